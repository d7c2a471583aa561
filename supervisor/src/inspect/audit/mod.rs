//! `bailiwick audit`: the actions of agents from a session's log, and the possible actions of an agent by attempts.
//!
//! * [`account`]: the checked summary of a log. [`agent_account`] summarizes one agent, and [`findings`] finds
//!   contradictions. [`text`] is the form for a terminal, and [`page`] the one for a browser.
//! * [`places`]: the paths to try in a project. [`effective`]: the results compared with the declared access.
//!   [`running`]: the same for agents that run now.

mod account;
mod agent_account;
mod by_agent;
mod effective;
mod findings;
mod guest_account;
mod guest_text;
mod page;
mod places;
mod running;
#[cfg(test)]
mod tests;
mod text;
mod timeline;

use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use protocol::event::{EventKind, SessionEvent};
use protocol::shell_word::shell_word;
use serde::Serialize;

use self::account::AuditAccount;
use self::by_agent::EventsByAgent;
use self::effective::EffectiveAccess;
use self::page::PageError;
use self::running::RunningAgent;
use crate::inspect::explain::{ExplainError, ExplainedPlace};
use crate::journal::session::{self, LogError, last_of};
use crate::journal::sessions::{IsExport, check_no_export};
use crate::process::directories::{Directories, DirectoriesError};
use crate::process::exit::{Exit, printed};
use crate::process::messages::{ReadingProgress, complain, harmless};
use crate::settings::args::{AgentArgs, AuditArgs};

#[derive(Debug, thiserror::Error)]
enum AuditError {
    #[error(transparent)]
    Directories(#[from] DirectoriesError),
    #[error("{0}\n  hint: bailiwick audit reads the log of the last session in this project")]
    Log(LogError),
    #[error("cannot list the sessions in {0}: {1}")]
    Sessions(PathBuf, io::Error),
    #[error("{0}")]
    Named(String),
    #[error("cannot find the project {0}: {1}")]
    Project(PathBuf, io::Error),
    #[error(
        "no session of the project {} has a log\n  hint: bailiwick audit FILE checks a log; logs of other projects are in {}",
        .project.display(), shell_word(.sessions)
    )]
    NoSession { project: PathBuf, sessions: PathBuf },
    #[error(transparent)]
    Export(#[from] IsExport),
    #[error(transparent)]
    Explain(#[from] ExplainError),
    #[error(transparent)]
    Page(#[from] PageError),
}

impl AuditError {
    const fn exit(&self) -> Exit {
        match self {
            Self::Directories(_)
            | Self::Log(_)
            | Self::Sessions(..)
            | Self::Project(..)
            | Self::NoSession { .. }
            | Self::Named(_)
            | Self::Export(_)
            | Self::Page(_) => Exit::Usage,
            Self::Explain(error) => error.exit(),
        }
    }
}

/// Makes and prints an audit. The exit status is a failure if there is a fault, a finding or a difference.
pub(crate) async fn run(args: AuditArgs) -> Exit {
    let audited = if args.probe {
        probe(&args.agent).await.map(|probed| (print(&probed, &args), probed.exit()))
    } else {
        of_log(&args).map(|account| (print(&account, &args), account.exit()))
    };
    match audited {
        Ok((done, exit)) => printed(done, exit),
        Err(error) => {
            complain(&error);
            error.exit()
        }
    }
}

#[derive(Debug, Serialize)]
struct Probed {
    #[serde(flatten)]
    would_be: EffectiveAccess,
    running: Vec<RunningAgent>,
}

impl Probed {
    fn exit(&self) -> Exit {
        let is_sound = self.would_be.is_as_declared() && self.running.iter().all(RunningAgent::is_sound);
        if is_sound { Exit::Done } else { Exit::Internal }
    }
}

impl Display for Probed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.would_be.fmt(f)?;
        for running in &self.running {
            writeln!(f)?;
            running.fmt(f)?;
        }
        Ok(())
    }
}

async fn probe(args: &AgentArgs) -> Result<Probed, AuditError> {
    let directories = Directories::of_process()?;
    let place = ExplainedPlace::prepare(args)?;
    let would_be = EffectiveAccess::probe(&place).await?;
    Ok(Probed { would_be, running: RunningAgent::all(args, &directories).await })
}

fn of_log(args: &AuditArgs) -> Result<AuditAccount, AuditError> {
    let path = log_of(args.session.as_deref(), &args.agent.directory)?;
    let mut progress = ReadingProgress::begin();
    let watch = &mut |read, whole| progress.tell(read, whole);
    let loaded = session::load_as(&path, watch, without_words).map_err(AuditError::Log)?;
    drop(progress);
    let events = EventsByAgent::of(&loaded.tree);
    let account = AuditAccount::of(&path, &loaded, &events);
    if let Some(file) = &args.html {
        page::write(file, &page::page(&account, &events))?;
    }
    Ok(account)
}

/// Maximum size in bytes that is kept of a person's message. The first message is the task of an agent.
const LONGEST_MESSAGE: usize = 16 << 10;

/// Returns the event without long texts. An audit is about actions and does not show these texts.
fn without_words(mut event: SessionEvent) -> SessionEvent {
    match &mut event.kind {
        EventKind::AssistantMessage(message) => message.content = Vec::new(),
        EventKind::UserMessage { text, images } => {
            text.truncate(text.floor_char_boundary(LONGEST_MESSAGE));
            *images = Vec::new();
        }
        EventKind::ContextAdded { text, .. } => *text = String::new(),
        EventKind::ContextCompacted(compacted) => compacted.first_message = Vec::new(),
        EventKind::ToolCallFinished { content, diffs, images, .. } => {
            *content = String::new();
            (*diffs, *images) = (Vec::new(), Vec::new());
        }
        _ => {}
    }
    event
}

fn log_of(session: Option<&Path>, project: &Path) -> Result<PathBuf, AuditError> {
    let sessions = Directories::of_process()?.sessions();
    Ok(match session {
        // A name without a slash means a session, never a file of the project.
        Some(name) if name.components().count() == 1 => {
            let name = name.to_string_lossy();
            session::find(&sessions, Some(&name), project).map_err(|error| {
                let file = Path::new(".").join(&*name);
                let file = file.exists().then(|| shell_word(&file));
                AuditError::Named(file.map_or(error, |file| {
                    format!("no session {name}\n  hint: bailiwick audit {file} reads the file with this name")
                }))
            })?
        }
        Some(file) => {
            check_no_export(file)?;
            file.to_owned()
        }
        None => last_session(sessions, project)?,
    })
}

fn last_session(sessions: PathBuf, project: &Path) -> Result<PathBuf, AuditError> {
    let project = project.canonicalize().map_err(|error| AuditError::Project(project.to_owned(), error))?;
    match last_of(&sessions, &project) {
        Ok(Some(log)) => Ok(log),
        Ok(None) => Err(AuditError::NoSession { project, sessions }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(AuditError::NoSession { project, sessions })
        }
        Err(error) => Err(AuditError::Sessions(sessions, error)),
    }
}

/// Prints a value as JSON or as text. The alternate format (`{:#}`) is the verbose text.
fn print<T: Serialize + Display>(value: &T, args: &AuditArgs) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, value)?;
        writeln!(out)?;
    } else {
        let text = if args.verbose { format!("{value:#}") } else { value.to_string() };
        write!(out, "{}", harmless(&text))?;
    }
    out.flush()
}
