//! `shell_exec` and all other commands of a worker, in a sandbox inside the worker's. A command ends with its call.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, remove_dir_all};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ipc::denial::Operation;
use ipc::effect::Exec;
use ipc::path::WirePath;
use ipc::rights::{Execution, Network};
use ipc::tool::{Access, CommandExit, CommandResult, ShellExec, ToolErrorKind};
use nix::errno::Errno;
use sandbox_exec::command::{
    CommandDomain, CommandError, CommandSpec, DomainAccess, Ending, Running, end_orphans,
};
use sandbox_exec::stage::Stage;
use tokio::time::Instant;

use super::command::{End, KeptOutput, follow};
use super::commit::random;
use super::environment::environment;
use super::head_tail::HeadTail;
use super::save::Saving;
use super::snapshot::{Tracked, in_repository};
use super::{ignore_rules, named};
use crate::assignment::Assignment;
use crate::fault::{Result, Stop, failed, refused, refused_io};
use crate::open_call::OpenCall;

/// Maximum size in bytes of the output in a result, which has to fit into one message.
const MAX_OUTPUT: u64 = 1 << 20;
/// Maximum size in bytes of git's list of tracked files.
const MAX_INDEX: usize = 64 << 20;
/// Time limit for git to list the tracked files.
const INDEX_TIME: Duration = Duration::from_secs(20);
/// Shell command that lists tracked files without git's hooks and file monitor. Errors show in the exit code.
const LIST_INDEX: &str =
    "exec git -c core.fsmonitor=false -c core.hooksPath=/dev/null ls-files -z --cached 2>/dev/null";

/// Runner of one agent's commands.
#[derive(Debug, Default)]
pub struct Commands {
    domain: OnceLock<std::result::Result<CommandDomain, CommandError>>,
    /// Pids of the reapers, the processes that supervise the running commands.
    reapers: Mutex<BTreeSet<u32>>,
}

/// Returns the command that a call would run. Fails for a time-out of zero.
pub fn effect(assignment: &Assignment, call: &ShellExec) -> Result<Exec> {
    let limit = assignment.rights.limits.timeout_ms;
    if call.timeout_ms == Some(0) {
        return Err(failed(ToolErrorKind::InvalidArgument, "The time-out must be longer than 0."));
    }
    let text = match &assignment.shell_init {
        Some(init) => format!("{init}\n{}", call.command),
        None => call.command.clone(),
    };
    let cwd = call.cwd.as_ref().map_or_else(|| assignment.project.clone(), |cwd| assignment.absolute(cwd));
    Ok(Exec {
        argv: ["bash", "-c", &text].map(WirePath::from).into(),
        cwd: cwd.into(),
        environment: Vec::new(),
        access: call.access,
        network: call.network.clone(),
        timeout_ms: call.timeout_ms.unwrap_or(limit).min(limit),
    })
}

/// Fails if the working directory is reached over a link. The user approved a directory of the project, but a link may
/// lead to one that the agent can write without approval.
pub fn shown_directory(exec: &Exec) -> Result<()> {
    let cwd = exec.cwd.as_path();
    let real = cwd.canonicalize().map_err(|error| refused_io(Operation::Read, cwd, &error))?;
    if real == cwd {
        return Ok(());
    }
    let message = format!(
        "The working directory `{}` is a link to `{}`, and the command was not run; name the directory itself.",
        cwd.display(),
        real.display()
    );
    Err(failed(ToolErrorKind::InvalidArgument, message))
}

struct Run<'a> {
    assignment: &'a Assignment,
    exec: &'a Exec,
    deadline: Instant,
    /// True if output is sent to the supervisor while the command runs.
    stream: bool,
}

impl Commands {
    /// Runs a command and returns its result. Fails if it lacks access, cannot start, or is cancelled.
    pub async fn run(
        &self,
        assignment: &Assignment,
        exec: &Exec,
        mut open: OpenCall,
    ) -> Result<CommandResult> {
        granted(assignment, exec)?;
        let started = Instant::now();
        let limits = assignment.rights.limits;
        let deadline = started + Duration::from_millis(exec.timeout_ms.min(limits.timeout_ms));
        let most = usize::try_from(limits.output_bytes.min(MAX_OUTPUT)).unwrap_or(0);
        let saving = assignment.temp.as_deref().map(|temp| Saving::new(temp, open.id(), most));
        let mut kept = KeptOutput { ends: HeadTail::new(most), saving };
        let run = Run { assignment, exec, deadline, stream: true };
        let end = self.follow(&run, &mut kept, &mut open).await;
        let end = end.and_then(|(end, reaper)| Ok((exit(exec, end)?, reaper)));
        let KeptOutput { ends, saving } = kept;
        let (exit, reaper, ends) = match end {
            Ok((exit, reaper)) => (exit, reaper, ends.finish()),
            Err(stop) => {
                saving.into_iter().for_each(Saving::discard);
                return Err(stop);
            }
        };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(CommandResult {
            exit,
            named: named::look(assignment, exec, &ends).await,
            head: ends.head,
            omitted_bytes: ends.omitted,
            tail: ends.tail,
            saved: saving.and_then(Saving::finish),
            process: reaper,
            refused: Vec::new(),
            duration_ms,
        })
    }

    /// Lists the files that git tracks. Git runs as a command that may only read.
    pub async fn tracked(&self, assignment: &Assignment, mut open: OpenCall) -> Result<Tracked> {
        if !in_repository(&assignment.project) {
            return Ok(Tracked::None);
        }
        if let Some(trap) = ignore_rules::trap_of_index(&assignment.project) {
            return Ok(Tracked::Unknown(format!("`{}` is not a regular file.", trap.display())));
        }
        let exec = Exec {
            argv: ["sh", "-c", LIST_INDEX].map(WirePath::from).into(),
            cwd: (&assignment.project).into(),
            environment: Vec::new(),
            access: Access::Read,
            network: None,
            timeout_ms: 0,
        };
        let mut kept = KeptOutput { ends: HeadTail::new(2 * MAX_INDEX), saving: None };
        let run = Run { assignment, exec: &exec, deadline: Instant::now() + INDEX_TIME, stream: false };
        let unknown = |reason: String| Ok(Tracked::Unknown(reason));
        match self.follow(&run, &mut kept, &mut open).await.map(|(end, _)| end) {
            Ok(End::Itself(Ending::Exited(0))) => match kept.ends.whole() {
                Some(paths) => Ok(Tracked::Paths(paths)),
                None => unknown("the index of git is too large.".to_owned()),
            },
            Ok(End::Itself(Ending::Exited(code))) => unknown(format!("git ended with code {code}.")),
            Ok(End::Cancelled) | Err(Stop::Cancelled) => Err(Stop::Cancelled),
            Ok(end) => unknown(format!("git did not end normally ({end:?}).")),
            Err(Stop::Failed(error)) => unknown(error.message),
        }
    }

    /// Runs a command until all its processes have ended. Also returns the pid of its reaper.
    async fn follow(&self, run: &Run<'_>, kept: &mut KeptOutput, open: &mut OpenCall) -> Result<(End, u32)> {
        let temp = match run.exec.access {
            Access::Read => Some(FreshTemp::new(run.assignment)?),
            Access::Standing | Access::Write => None,
        };
        let running = self.spawn(run, temp.as_ref())?;
        let reaper = running.pid();
        self.reapers().insert(reaper);
        let followed = follow(running, run.deadline, kept, run.stream, open).await;
        let mut reapers = self.reapers();
        reapers.remove(&reaper);
        if matches!(followed, Ok(End::Lost)) {
            end_orphans(&reapers.iter().copied().collect::<Vec<_>>());
        }
        drop(reapers);
        followed.map(|end| (end, reaper)).map_err(|error| {
            failed(ToolErrorKind::System, format!("The end of the command could not be observed: {error}."))
        })
    }

    fn spawn(&self, run: &Run<'_>, temp: Option<&FreshTemp>) -> Result<Running> {
        let Run { assignment, exec, .. } = run;
        let prepare =
            || CommandDomain::prepare(&assignment.rights, assignment.temp.as_deref(), assignment.tier);
        let domain = self.domain.get_or_init(prepare).as_ref().map_err(not_spawned)?;
        let spec = CommandSpec {
            argv: argv(exec)?,
            environment: environment(exec, temp.map(|temp| temp.0.as_path()), assignment.tier),
            cwd: exec.cwd.as_path().to_owned(),
            access: match temp {
                // A read-only command gets no other right of the worker.
                Some(temp) => {
                    let net = exec.network.clone().unwrap_or_default();
                    DomainAccess::Read { temp: temp.0.clone(), net }
                }
                None if exec.network.as_ref().is_some_and(Network::is_off) => DomainAccess::Offline,
                None => DomainAccess::Standing,
            },
        };
        domain.spawn(&spec).map_err(|error| not_spawned(&error))
    }

    fn reapers(&self) -> std::sync::MutexGuard<'_, BTreeSet<u32>> {
        self.reapers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn exit(exec: &Exec, end: End) -> Result<CommandExit> {
    match end {
        End::Itself(Ending::Exited(code)) => Ok(CommandExit::Code(code)),
        End::Itself(Ending::Signalled(signal)) => Ok(CommandExit::Signal(signal)),
        End::Itself(Ending::NotStarted { stage, errno }) => Err(not_started(exec, stage, errno)),
        End::TimedOut => Ok(CommandExit::TimedOut),
        End::Cancelled => Err(Stop::Cancelled),
        End::Lost => {
            let message =
                "The command was ended from outside, and its exit code is unknown; run the command again.";
            Err(failed(ToolErrorKind::Interrupted, message))
        }
    }
}

/// Fails if the command needs access that the worker lacks. The kernel would deny it only when a part has already run.
fn granted(assignment: &Assignment, exec: &Exec) -> Result<()> {
    let rights = &assignment.rights;
    let message = match exec {
        _ if rights.exec == Execution::Denied => "Commands are not allowed here; use the other tools.",
        Exec { network: Some(net), .. } if net.reaches_out() && rights.net.is_off() => {
            "The network is off here; do without the network."
        }
        Exec { access: Access::Write, .. } if !has_write_root(assignment) => {
            "Writing was not allowed; use access `read`."
        }
        _ => return Ok(()),
    };
    Err(failed(ToolErrorKind::NotGranted, message))
}

fn has_write_root(assignment: &Assignment) -> bool {
    let temp = assignment.temp.as_ref().map(WirePath::from);
    assignment.rights.write.iter().any(|root| Some(root) != temp.as_ref())
}

/// Returns the words of a command, with the program's absolute path, found on `PATH` as by execvp(3).
fn argv(exec: &Exec) -> Result<Vec<OsString>> {
    let mut words: Vec<_> = exec.argv.iter().map(|word| word.as_path().as_os_str().to_owned()).collect();
    if let Some(program) = words.first_mut() {
        let found = locate(program, &std::env::var_os("PATH").unwrap_or_default());
        *program = found.ok_or_else(|| {
            failed(
                ToolErrorKind::NotFound,
                format!("There is no program `{}` on the PATH.", program.display()),
            )
        })?;
    }
    Ok(words)
}

fn locate(program: &OsStr, path: &OsStr) -> Option<OsString> {
    if Path::new(program).is_absolute() {
        return Some(program.to_owned());
    }
    let is_program = |file: &PathBuf| {
        file.is_absolute()
            && file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path).map(|directory| directory.join(program)).find(is_program).map(Into::into)
}

fn not_spawned(error: &CommandError) -> Stop {
    match error {
        CommandError::Denied => {
            failed(ToolErrorKind::NotGranted, "Commands are not allowed here; use the other tools.")
        }
        CommandError::Nul { .. } => {
            failed(ToolErrorKind::InvalidArgument, format!("The command cannot be run: {error}."))
        }
        _ => failed(ToolErrorKind::System, format!("The command could not be started: {error}.")),
    }
}

fn not_started(exec: &Exec, stage: Stage, errno: i32) -> Stop {
    let errno = Errno::from_raw(errno);
    match stage {
        Stage::Directory => refused(Operation::Read, exec.cwd.as_path(), errno),
        Stage::Execute => {
            let program = exec.argv.first().map_or(Path::new(""), WirePath::as_path);
            refused(Operation::Execute, program, errno)
        }
        stage => {
            let message = format!(
                "The command could not be sandboxed, and was not run (stage {stage}: {}).",
                errno.desc()
            );
            failed(ToolErrorKind::System, message)
        }
    }
}

/// Temporary directory of one command, removed on drop.
#[derive(Debug)]
struct FreshTemp(PathBuf);

impl FreshTemp {
    fn new(assignment: &Assignment) -> Result<Self> {
        let parent = assignment.temp.clone().unwrap_or_else(std::env::temp_dir);
        let path = parent.join(format!("r-{:016x}", random()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| refused_io(Operation::Write, &path, &error))?;
        Ok(Self(path))
    }
}

impl Drop for FreshTemp {
    fn drop(&mut self) {
        if let Err(error) = remove_dir_all(&self.0) {
            tracing::warn!("cannot remove {}: {error}", self.0.display());
        }
    }
}
