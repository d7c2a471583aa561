//! `bailiwick [PROMPT]`: the terminal UI on a real terminal.
//!
//! The crate [`tui`] decides what is shown and what a key does. It does no input or output. This module connects it to
//! the session: the terminal ([`tty`]), its keys ([`input`], [`keys`]), the output of frames ([`frames`]), and the main
//! loop ([`ui`]). [`plain`] is another main loop, which prints lines.

mod background;
mod calls;
mod copy;
mod disputed;
mod editing;
mod farewell;
mod frames;
mod input;
mod keys;
mod log_view;
mod painter;
mod pick;
mod plain;
mod remembered;
mod start;
mod tty;
mod ui;

use std::io::{self, IsTerminal, stdin, stdout};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::core::{EndReason, Window};
use gate::activity::Activity;
use model::recording::FrontEnd;
use protocol::error_code::ErrorCode;

use self::farewell::{Farewell, resume_command};
use self::pick::{UiChoice, choose};
use self::remembered::UiMemory;
use self::tty::{Engaged, Tty};
use self::ui::{AfterUi, ControllingTerminal, Ui, UiEnded, UiPlaces};
use crate::engine::driver::Turns;
use crate::engine::opening::{
    self, Handle, OpenedSession, Record, Refusal, Resume, SessionDirs, SessionEvents, SessionOptions,
    find_log, for_activity,
};
use crate::engine::place::ConfinementOptions;
use crate::journal::session::{begun, is_just_imported};
use crate::process::exit::Exit;
use crate::process::messages::{complain, notes, one_line, say, tell};
use crate::process::signals::{Changes, Endings};
use crate::settings::args::{ActivityArg, ResumeArgs, TuiArgs, of_tui};
use crate::settings::config::{Effective, Sources, ask_for_trust, can_ask, yes};

pub use self::painter::{END, Painter};

/// Default time limit for the answer to an approval. The person may be away from the terminal for hours.
const A_DAY: Duration = Duration::from_hours(24);

/// Assumed width of a terminal that does not report its size.
const COLUMNS: u16 = 80;

/// Runs the UI and returns the exit status. Afterwards the terminal shows only the last answer and two lines about the
/// session.
pub(crate) async fn run(args: TuiArgs, place: SessionDirs) -> Exit {
    // The next session gets the same flags. A session that is chosen by name may belong to another project.
    let (mode, confinement, model) = (args.mode, args.confinement.clone(), args.model.clone());
    let here = args.directory.clone();
    let (is_plain, is_named) = (args.plain, here != Path::new(".") || args.session.is_some());
    let finished = on_the_terminal(args, place.clone()).await;
    let left = finished.log.clone();
    if let Some(log) = finished.log {
        let name = log.file_stem().unwrap_or_default().to_string_lossy();
        finished.farewell.print(&resume_command(&name, is_named, is_plain));
    }
    match finished.then {
        AfterUi::Session(session) => {
            let directory = session.is_none().then_some(here);
            let another = ResumeArgs { session, fork: false, directory, mode, confinement, model };
            Box::pin(resumed_after(another, place, left.as_deref())).await
        }
        AfterUi::Nothing => finished.exit,
    }
}

/// Runs the UI for the demo. The caller deletes the session's log afterwards.
pub(crate) async fn play(args: TuiArgs, place: SessionDirs) -> Exit {
    on_the_terminal(args, place).await.exit
}

/// Runs the UI. Holds messages for the terminal back, and prints them afterwards.
async fn on_the_terminal(args: TuiArgs, place: SessionDirs) -> UiFinished {
    let began = Instant::now();
    notes::begin_to_hold();
    let finished = match prepare(&args, place, began) {
        Ok(prepared) if args.plain => Box::pin(plain::serve(prepared, args.prompt)).await,
        Ok(prepared) => Box::pin(prepared.run(args.prompt)).await,
        Err(refusal) => UiFinished::from(refusal),
    };
    for note in notes::end_to_hold() {
        say(&note);
    }
    if let Some(message) = &finished.message {
        complain(message);
    }
    finished
}

/// The result of the UI, which is handled after the terminal was restored.
struct UiFinished {
    exit: Exit,
    message: Option<String>,
    log: Option<PathBuf>,
    farewell: Farewell,
    then: AfterUi,
}

impl From<Refusal> for UiFinished {
    fn from(Refusal(exit, message): Refusal) -> Self {
        Self {
            exit,
            message: Some(message),
            log: None,
            farewell: Farewell::default(),
            then: AfterUi::Nothing,
        }
    }
}

struct PreparedUi {
    session: OpenedSession,
    handle: Handle,
    events: SessionEvents,
    effective: Effective,
    window: Window,
    began: Instant,
    endings: Endings,
    state: PathBuf,
}

/// Checks the arguments and opens the session, while errors can still be printed on the terminal.
fn prepare(args: &TuiArgs, place: SessionDirs, began: Instant) -> Result<PreparedUi, Refusal> {
    if args.plain {
        some_terminal()?;
    } else {
        usable_terminal()?;
    }
    crate::process::diagnostics::off_the_terminal().map_err(Refusal::usage)?;
    let resume = resume(args, &place).map_err(Refusal::usage)?;
    let mut sources = Sources::read(&place.directories, &args.directory).map_err(Refusal::usage)?;
    ask_for_trust(&mut sources).map_err(Refusal::internal)?;
    // Signals are handled before anything exists that they could leave behind. Before, they end the process.
    let endings = Endings::on_a_terminal().map_err(Refusal::internal)?;
    let activity = match &resume {
        Some(log) => begun(log).map_or(Activity::Execute, |begun| begun.activity),
        None => args.activity.into(),
    };
    let flags = for_activity(of_tui(args), &sources, activity);
    let effective = sources.effective(&flags);
    tell(&sources.notices(&effective, &flags));
    let mut options = SessionOptions { activity, ..options(args, &effective) }.choosing_from(sources, flags);
    options.resume = resume.map(|log| Resume { log, shows: !args.plain, forks: args.forks });
    let window = options.model.choice(options.window).window;
    let state = place.directories.state.clone();
    let (session, handle, events) = opening::open(options, place, began)?;
    Ok(PreparedUi { session, handle, events, effective, window, began, endings, state })
}

/// Returns the log of the session to continue; `None` for a new session.
fn resume(args: &TuiArgs, place: &SessionDirs) -> Result<Option<PathBuf>, String> {
    if args.session.is_none() && !args.goes_on {
        return Ok(None);
    }
    let project = args.directory.canonicalize().unwrap_or_else(|_| args.directory.clone());
    find_log(&place.directories.sessions(), args.session.as_deref(), &project).map(Some)
}

/// Continues a session in its own project, unless another project is named.
pub(crate) async fn resumed(args: ResumeArgs, place: SessionDirs) -> Exit {
    resumed_after(args, place, None).await
}

/// Continues a session. `left` is the log of the session that the person has just left; `None` if there was none.
async fn resumed_after(args: ResumeArgs, place: SessionDirs, left: Option<&Path>) -> Exit {
    let ResumeArgs { session, directory, mode, confinement, model, fork: forks } = args;
    let here = directory.clone().unwrap_or_else(|| PathBuf::from("."));
    let here = here.canonicalize().unwrap_or(here);
    let log = match log_of(session.as_deref(), &place, &here, left).await {
        Ok(Some(log)) => log,
        Ok(None) => return Exit::Done,
        Err(error) => {
            complain(&error);
            return Exit::Usage;
        }
    };
    let directory = match directory.map_or_else(|| project_of(&log, &here), |named| Ok(Some(named))) {
        Ok(Some(directory)) => directory,
        Ok(None) => return Exit::Done,
        Err(error) => {
            complain(&error);
            return Exit::Usage;
        }
    };
    let session = log.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let args = TuiArgs {
        prompt: None,
        directory,
        mode,
        activity: ActivityArg::Execute,
        confinement,
        model,
        record: None,
        plain: false,
        goes_on: false,
        session,
        forks,
    };
    run(args, place).await
}

/// Returns the project in which to continue a session, normally the session's own. If the session was imported and not
/// continued since, the person is asked first. `None` if the person refuses.
fn project_of(log: &Path, here: &Path) -> Result<Option<PathBuf>, String> {
    let Some(own) = begun(log).map(|begun| begun.project.as_path().to_owned()) else {
        return Ok(Some(here.to_owned()));
    };
    if own == here || !is_just_imported(log).map_err(|error| format!("{}: {error}", log.display()))? {
        return Ok(Some(own));
    }
    let named = one_line(&own.to_string_lossy());
    if !can_ask() {
        return Err(format!(
            "the session was imported, and its log names the project {named}\n  hint: choose the project with bailiwick resume -C DIR"
        ));
    }
    let answer =
        yes(&format!("The session was imported, and its log names the project {named}. Open that project?"));
    answer.map(|yes| yes.then_some(own)).map_err(|error| format!("cannot ask: {error}"))
}

/// Returns the log of the named session. Without a name, it is the session that the person chooses at a terminal, or
/// else the last session. `None` if the person cancelled.
async fn log_of(
    name: Option<&str>,
    place: &SessionDirs,
    project: &Path,
    left: Option<&Path>,
) -> Result<Option<PathBuf>, String> {
    if name.is_none() && usable_terminal().is_ok() {
        let chosen = choose(&place.directories.state, project, left).await;
        match chosen.map_err(|error| format!("cannot show the sessions: {error}"))? {
            UiChoice::Log(log) => return Ok(Some(log)),
            UiChoice::Nothing => return Ok(None),
            UiChoice::NoSession => {}
        }
    }
    find_log(&place.directories.sessions(), name, project).map(Some)
}

/// Hint about `bailiwick exec`, which needs no terminal.
const HEADLESS: &str =
    "\n  hint: bailiwick exec --mode auto \"fix the failing test\" runs one task without a terminal";

fn some_terminal() -> Result<(), Refusal> {
    if stdin().is_terminal() && stdout().is_terminal() {
        return Ok(());
    }
    let text = format!("the UI needs a terminal as its standard input and output{HEADLESS}");
    Err(Refusal::usage(ErrorCode::NoTerminal.mark(&text)))
}

/// Checks that the terminal can be drawn on.
fn usable_terminal() -> Result<(), Refusal> {
    const LINES: &str = "\n  hint: bailiwick --plain only prints lines, and works in any terminal";
    some_terminal()?;
    let cause = match std::env::var("TERM").as_deref() {
        Ok("dumb") => "TERM=dumb: the UI needs a terminal that moves its cursor",
        Ok("") | Err(_) => "TERM is not set: the abilities of this terminal are unknown",
        Ok(_) => return Ok(()),
    };
    Err(Refusal::usage(ErrorCode::DumbTerminal.mark(&format!("{cause}{LINES}"))))
}

fn options(args: &TuiArgs, effective: &Effective) -> SessionOptions {
    let wanted = ConfinementOptions::new(effective, &args.confinement).asking();
    let record = |directory| Record { directory, front_end: FrontEnd::Tui, task: None };
    let mut options = SessionOptions {
        record: args.record.clone().map(record),
        pauses: true,
        ..SessionOptions::new(effective, args.directory.clone(), wanted, Turns::Many)
    };
    if !effective.is_set("approvals.timeout_s") {
        options.approvals.timeout = A_DAY;
    }
    options
}

impl PreparedUi {
    async fn run(self, prompt: Option<String>) -> UiFinished {
        let log = Some(self.session.log_path().to_owned());
        match Box::pin(self.serve(prompt)).await {
            Ok((ended, then, farewell)) => UiFinished { log, farewell, then, ..of_session(ended) },
            Err(error) => {
                let message = Some(format!("the terminal cannot be used: {error}"));
                UiFinished {
                    exit: Exit::Internal,
                    message,
                    log,
                    farewell: Farewell::default(),
                    then: AfterUi::Nothing,
                }
            }
        }
    }

    async fn serve(self, prompt: Option<String>) -> io::Result<(UiEnded, AfterUi, Farewell)> {
        let Self { session, handle, events, effective, window, began, endings, state } = self;
        // From here on the signals have handlers, so that none of them leaves the terminal changed.
        let changes = Changes::new()?;
        let tty = Arc::new(Tty::new(stdout().as_fd(), effective.has_wheel())?);
        let project = session.standing().project().as_path().to_owned();
        let remembered = UiMemory::new(&state, &project);
        let history = remembered.messages();
        let places = UiPlaces { project, copied: copy::file(&state), log: session.log_path().to_owned() };
        let start = start::of(&session, window, &effective, tty.size(), history).map_err(io::Error::other)?;
        tty.release_on_panic();
        let engaged = Engaged(Arc::clone(&tty));
        tty.engage()?;
        let terminal = ControllingTerminal { tty, endings, changes };
        let model = tui::Model::new(start);
        let mut ui = Ui::new(terminal, model, handle, events, places, began, remembered)?;
        if start::asks_for_background(&effective) {
            ui.ask_for_background()?;
        }
        ui.begin(prompt).await?;
        // The future contains the state of the UI, which is too large for the stack.
        let ended = Box::pin(ui.run(tokio::spawn(session.run()))).await;
        drop(engaged);
        Ok(ended)
    }
}

fn of_session(ended: UiEnded) -> UiFinished {
    match ended {
        Ok(Ok(end)) => {
            let expected =
                matches!(end.reason, EndReason::Closed | EndReason::Terminated | EndReason::HungUp);
            let message = end.message.filter(|_| !expected);
            UiFinished {
                exit: end.reason.into(),
                message,
                log: None,
                farewell: Farewell::default(),
                then: AfterUi::Nothing,
            }
        }
        Ok(Err(error)) => UiFinished {
            exit: Exit::Internal,
            message: Some(error.told()),
            log: None,
            farewell: Farewell::default(),
            then: AfterUi::Nothing,
        },
        // The error was printed when it happened.
        Err(_) => UiFinished {
            exit: Exit::Internal,
            message: None,
            log: None,
            farewell: Farewell::default(),
            then: AfterUi::Nothing,
        },
    }
}
