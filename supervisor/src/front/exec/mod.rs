mod approval_socket;
mod limits;
mod output;
mod plan;
pub(crate) mod replay;
mod review;
mod schema;
mod servers;
mod task;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use agent::core::Approver;
use gate::modes::{Position, permits};
use model::recording::{FrontEnd, Places, Task};
use protocol::approval::ApprovalMode;
use protocol::frontend::{AgentAction, UserActionKind};
use tokio::task::JoinSet;

use self::approval_socket::{ApprovalSocket, relay};
use self::limits::ProjectLimits;
use self::output::{Format, OutputPrinter, Printed};
pub(crate) use self::plan::{ApprovedPlan, execute_plan};
use self::schema::AnswerSchema;
use self::servers::{allow_tools, chosen_servers, remarks, started};
use crate::engine::driver::Turns;
use crate::engine::opening::{
    self, Handle, OpenedSession, PreparedSession, Record, Refusal, Resume, SessionDirs, SessionOptions,
    find_log, for_activity, plan_options,
};
use crate::engine::place::{ConfinementOptions, idle_flags};
use crate::journal::pictures;
use crate::process::exit::{Exit, printed};
use crate::process::messages::{complain, tell};
use crate::process::signals::{UserSignals, end_with};
use crate::settings::args::{
    ActivityArg, DeniedArg, ExecArgs, ExecCommand, OutputFormat, ProfileArg, of_exec, of_task,
};
use crate::settings::config::{ConfigOrigin, Layer, McpFile, Sources, Value};

pub(crate) async fn run(mut args: ExecArgs, place: SessionDirs) -> Exit {
    if let Some(ExecCommand::Review(args)) = args.inner.take() {
        return Box::pin(review::review(*args, place)).await;
    }
    match task(&args) {
        Ok(task) => {
            let is_argument = args.prompt.as_deref().is_some_and(|prompt| prompt != "-");
            let said = is_argument && task::is_left_out();
            if said {
                complain(&task::LEFT_OUT);
            }
            let RunOutcome { exit, .. } = carry_out(&args, Beginning::Task(task), place, |_| ()).await;
            // Input can also arrive later, for example from a slow command.
            if is_argument && !said && task::is_left_out() {
                complain(&task::LEFT_OUT);
            }
            exit
        }
        Err(Refusal(exit, message)) => {
            complain(&message);
            exit
        }
    }
}

/// Runs the session. Calls `arrived` with the run's directories before the first request to the model.
async fn carry_out(
    args: &ExecArgs,
    beginning: Beginning,
    place: SessionDirs,
    arrived: impl FnOnce(&Places),
) -> RunOutcome {
    let began = Instant::now();
    // Signals are handled before anything exists that they could leave behind.
    let signals = UserSignals::new().map_err(Refusal::internal);
    let signals = signals.and_then(|signals| match args.batch {
        Some(parent) => end_with(parent).map(|()| signals).map_err(Refusal::internal),
        None => Ok(signals),
    });
    let prepared = async {
        let mut signals = signals?;
        let planned = plan(args, beginning, &place)?;
        Ok((planned.prepared(place, began, &mut signals).await?, signals))
    };
    match prepared.await {
        Ok((prepared, signals)) => {
            arrived(prepared.session.places());
            Box::pin(prepared.run(signals)).await
        }
        Err(Refusal(exit, message)) => {
            complain(&message);
            RunOutcome { exit, answer: None }
        }
    }
}

struct RunOutcome {
    exit: Exit,
    answer: Option<serde_json::Value>,
}

enum Beginning {
    Task(Task),
    Review { task: Task, answer: Arc<AnswerSchema> },
    Plan(ApprovedPlan),
}

/// A run whose flags and files are checked. Nothing is started yet.
struct PlannedRun {
    options: SessionOptions,
    beginning: UserActionKind,
    /// The MCP servers from the file of `--mcp-config`; `None` without this flag.
    servers: Option<McpFile>,
    socket: Option<ApprovalSocket>,
    format: Format,
}

struct PreparedRun {
    session: OpenedSession,
    handle: Handle,
    printer: OutputPrinter,
    beginning: UserActionKind,
    /// The tasks that pass approvals to a front end; `None` without an approval socket.
    relay: Option<JoinSet<()>>,
}

fn task(args: &ExecArgs) -> Result<Task, Refusal> {
    // If a command of the person is named, the argument belongs to that command.
    let prompt = match (&args.command, &args.prompt) {
        (Some(_), arguments) => arguments.clone().unwrap_or_default(),
        (None, prompt) => task::text(prompt.as_deref())?,
    };
    let images = args.image.iter().map(|path| pictures::read(path)).collect::<Result<_, _>>();
    Ok(Task { prompt, images: images.map_err(Refusal::usage)? })
}

fn plan(args: &ExecArgs, beginning: Beginning, place: &SessionDirs) -> Result<PlannedRun, Refusal> {
    if args.deltas && args.output != OutputFormat::StreamJson {
        return Err(Refusal::usage(
            "cannot use --deltas with this kind of output\n  hint: use --output stream-json --deltas",
        ));
    }
    if args.approve_plan.is_some() && args.activity != ActivityArg::Plan {
        return Err(Refusal::usage("--approve-plan works only with --activity plan"));
    }
    if args.profile == ProfileArg::Minimal && args.activity == ActivityArg::Plan {
        return Err(Refusal::usage(
            "--profile minimal: the agent of this profile has no tool to write a plan",
        ));
    }
    if args.profile == ProfileArg::Minimal && args.servers.mcp_config.is_some() {
        return Err(Refusal::usage(
            "--profile minimal: the agent of this profile cannot use MCP servers, but --mcp-config names some",
        ));
    }
    if !args.allow_tool.is_empty() && args.activity == ActivityArg::Plan {
        return Err(Refusal::usage(
            "--allow-tool: a planner may only read, and the execution calls the tools that its plan lists",
        ));
    }
    let sources = Sources::read(&place.directories, &args.directory).map_err(Refusal::usage)?;
    let mut flags = match &beginning {
        Beginning::Task(_) | Beginning::Review { .. } => of_task(args),
        Beginning::Plan(_) => of_exec(args),
    };
    let (beginning, reads) = with_command(args, &sources, &mut flags, beginning)?;
    let read = |file| McpFile::read(file, &sources.effective(&flags));
    let mut servers = args.servers.mcp_config.as_deref().map(read).transpose().map_err(Refusal::usage)?;
    let (mut options, limits) = options(args, sources, flags, &beginning);
    if reads {
        (options.mode, options.wanted.write, options.wanted.sockets) =
            (ApprovalMode::Deny, Vec::new(), Vec::new());
    }
    if let Some(file) = &args.schema {
        options.answer = Some(Arc::new(AnswerSchema::read(file).map_err(Refusal::usage)?));
    }
    tell(&servers.iter().flat_map(|file| remarks(file, &args.directory)).collect::<Vec<_>>());
    options.mcp = chosen_servers(&args.servers.mcp, &options.mcp).map_err(Refusal::usage)?;
    allow_tools(&args.allow_tool, &mut options.mcp, &mut servers).map_err(Refusal::usage)?;
    options.resume = resume(args, place).map_err(Refusal::usage)?;
    let executes_plan = matches!(beginning, Beginning::Plan(_));
    let keeps_answer = matches!(beginning, Beginning::Review { .. });
    let only_reads = reads || keeps_answer;
    let beginning = match beginning {
        Beginning::Review { task, answer } => {
            options.wanted = review::reading_only(options.wanted);
            options.answer = Some(answer);
            UserActionKind::Agent(AgentAction::Prompt { text: task.prompt, images: task.images })
        }
        Beginning::Task(task) => {
            options.record = args.record.clone().map(|directory| Record {
                directory,
                front_end: FrontEnd::Exec,
                task: Some(task.clone()),
            });
            UserActionKind::Agent(AgentAction::Prompt { text: task.prompt, images: task.images })
        }
        Beginning::Plan(ApprovedPlan { earlier, markdown }) => {
            options.plan.earlier = Some(earlier);
            UserActionKind::Agent(AgentAction::ExecutePlan { markdown })
        }
    };
    let socket = args.approval_socket.as_deref().map(|path| approval_socket(path, &options)).transpose()?;
    let fits_schema = args.schema.is_some() || keeps_answer;
    let (output, deltas) = (args.output, args.deltas);
    // The log does not exist yet. It is created with the session.
    let log = PathBuf::new().into();
    let format = Format { output, deltas, fits_schema, keeps_answer, only_reads, executes_plan, limits, log };
    Ok(PlannedRun { options, beginning, servers, socket, format })
}

impl PlannedRun {
    /// Starts the MCP servers of `--mcp-config`, and opens the session.
    async fn prepared(
        self,
        place: SessionDirs,
        began: Instant,
        signals: &mut UserSignals,
    ) -> Result<PreparedRun, Refusal> {
        let Self { options, beginning, servers, socket, format } = self;
        let deadline = options.timeout.map(|timeout| began + timeout);
        let mut prepared = PreparedSession::new(options, place.directories.clone())?;
        if let Some(file) = servers {
            let started = started(file, prepared.setup(), deadline, signals).await?;
            prepared = prepared.with_servers(started);
        }
        let (session, handle, events) = opening::open_prepared(prepared, place, began)?;
        let (events, relay) = match socket {
            None => (events, None),
            Some(socket) => {
                let (events, relay) = relay(socket, handle.clone(), events).map_err(Refusal::internal)?;
                (events, Some(relay))
            }
        };
        let format = Format { log: session.log_path().into(), ..format };
        let printer = OutputPrinter::start(format, events).map_err(Refusal::internal)?;
        Ok(PreparedRun { session, handle, printer, beginning, relay })
    }
}

/// Replaces the task by the text of the command of `--command`. The bool is true if this command may only read.
fn with_command(
    args: &ExecArgs,
    sources: &Sources,
    flags: &mut Layer,
    beginning: Beginning,
) -> Result<(Beginning, bool), Refusal> {
    let (Some(name), Beginning::Task(Task { prompt, images })) = (&args.command, &beginning) else {
        return Ok((beginning, false));
    };
    let commands = sources.effective(flags).commands;
    let Some(command) = commands.iter().find(|command| command.name == *name) else {
        let known: Vec<_> = commands.iter().map(|command| command.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        tell(&sources.notices(&sources.effective(flags), flags));
        return Err(Refusal::usage(format!(
            "cannot use --command {name:?}: you have no such command (your commands: {known})"
        )));
    };
    let prompt = command.with_arguments(prompt).map_err(Refusal::usage)?;
    if flags.value("model").is_none()
        && let Some(model) = &command.model
    {
        let model = Some(Value::Text(model.clone()));
        *flags = std::mem::take(flags).with("model", model, ConfigOrigin::Flag("--command"));
    }
    Ok((Beginning::Task(Task { prompt, images: images.clone() }), command.reads))
}

/// Returns the session to continue; `None` for a new one. Earlier messages are not printed again.
fn resume(args: &ExecArgs, place: &SessionDirs) -> Result<Option<Resume>, String> {
    if args.resume.is_none() && !args.goes_on {
        if args.fork {
            return Err("--fork needs a session to copy\n  hint: name the session with --resume, or use the last one with -c".to_owned());
        }
        return Ok(None);
    }
    let project = args.directory.canonicalize().unwrap_or_else(|_| args.directory.clone());
    let log = find_log(&place.directories.sessions(), args.resume.as_deref(), &project)?;
    Ok(Some(Resume { log, shows: false, forks: args.fork }))
}

/// Creates the approval socket, outside of all directories that agents may write. Fails in a mode without approvals.
fn approval_socket(path: &Path, options: &SessionOptions) -> Result<ApprovalSocket, Refusal> {
    if !permits(Position::FIRST, options.mode).asks() {
        return Err(Refusal::usage("--approval-socket works only with --mode ask"));
    }
    let project = &options.directory;
    let given = options.wanted.write.iter().map(|root| project.join(&root.path));
    let roots = std::iter::once(project.clone()).chain(given);
    // A directory that cannot be resolved causes its own error later.
    let roots: Vec<_> = roots.filter_map(|root| root.canonicalize().ok()).collect();
    ApprovalSocket::listen(path, &roots).map_err(Refusal::usage)
}

fn options(
    args: &ExecArgs,
    sources: Sources,
    flags: Layer,
    beginning: &Beginning,
) -> (SessionOptions, ProjectLimits) {
    let activity = args.activity.into();
    let flags = for_activity(flags, &sources, activity);
    let effective = sources.effective(&flags);
    let mode = match beginning {
        Beginning::Task(_) | Beginning::Review { .. } => effective.mode(),
        // The approval of the plan includes this mode.
        Beginning::Plan(_) => args.mode.into(),
    };
    // Nobody can be asked here. Untrusted settings are therefore not used, and a notice says so.
    tell(&sources.notices(&effective, &flags));
    tell(&idle_flags(&effective, &args.directory));
    let wanted = ConfinementOptions::new(&effective, &args.confinement).of_batch(args.batch.is_some());
    let mut plan = plan_options(&effective);
    if let Some(rounds) = args.approve_plan {
        plan.approver = Approver::Flags { rounds };
    }
    let options = SessionOptions {
        activity,
        profile: args.profile.into(),
        plan,
        mode,
        approvals: effective.approvals(args.approval_socket.is_some()),
        patch: args.patch.clone(),
        keeps_files: !args.no_rewind,
        lists_changes: args.output == OutputFormat::Json,
        fails_when_denied: args.denied == DeniedArg::Fail,
        ..SessionOptions::new(&effective, args.directory.clone(), wanted, Turns::One)
    };
    let limits = ProjectLimits::of(&effective);
    (options.choosing_from(sources, flags), limits)
}

impl PreparedRun {
    async fn run(self, signals: UserSignals) -> RunOutcome {
        self.handle.act(self.beginning).await;
        tokio::spawn(self.handle.forward(signals));
        let ended = Box::pin(self.session.run()).await;
        let Printed { written, answer } = self.printer.finish().await;
        if let Some(mut relay) = self.relay {
            relay.shutdown().await;
        }
        let exit = match ended {
            Ok(end) => printed(written, Exit::from(end.reason)),
            Err(error) => {
                complain(&error.told());
                Exit::Internal
            }
        };
        RunOutcome { exit, answer }
    }
}
