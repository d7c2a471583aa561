//! `bailiwick audit`: what agents did, by a session's log, and what one could do, by trying.
//!
//! * [`account`]: a log, checked and added up per agent.
//! * [`places`]: what is tried in a project. [`effective`]: what became of it, beside what is declared. [`running`]: the same for the
//!   agents that run now.

mod account;
mod effective;
mod places;
mod running;

use std::fmt::{self, Display, Formatter};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::account::Account;
use self::effective::Effective;
use self::running::Running;
use super::args::{AgentArgs, AuditArgs};
use super::exit::Exit;
use super::explain::{ExplainError, Place};
use crate::directories::{Directories, DirectoriesError};
use crate::session::{self, LogError};

/// Why nothing was audited.
#[derive(Debug, thiserror::Error)]
enum AuditError {
    #[error(transparent)]
    Directories(#[from] DirectoriesError),
    #[error("{0}\n  next: name a session of the directory {1}, or the file of a log")]
    Log(LogError, PathBuf),
    #[error(transparent)]
    Explain(#[from] ExplainError),
}

impl AuditError {
    const fn exit(&self) -> Exit {
        match self {
            Self::Directories(_) | Self::Log(..) => Exit::Usage,
            Self::Explain(error) => error.exit(),
        }
    }
}

/// Audits and prints. A breach, or a difference, is a failure.
pub(super) async fn run(args: AuditArgs) -> Exit {
    let (told, is_sound) = match &args.session {
        Some(session) => match of_log(session) {
            Ok(account) => (print(&account, args.json), account.intact),
            Err(error) => return refuse(&error),
        },
        None => match probe(&args.agent).await {
            Ok(probed) => (print(&probed, args.json), probed.is_sound()),
            Err(error) => return refuse(&error),
        },
    };
    match (told, is_sound) {
        (Ok(()), true) => Exit::Done,
        (Ok(()), false) | (Err(_), _) => Exit::Internal,
    }
}

/// What a would-be agent could do, and what those could do that run.
#[derive(Debug, Serialize)]
struct Probed {
    #[serde(flatten)]
    would_be: Effective,
    running: Vec<Running>,
}

impl Probed {
    fn is_sound(&self) -> bool {
        self.would_be.is_as_declared() && self.running.iter().all(Running::is_sound)
    }
}

impl Display for Probed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.would_be.fmt(f)?;
        self.running.iter().try_for_each(|running| write!(f, "\n{running}"))
    }
}

async fn probe(args: &AgentArgs) -> Result<Probed, AuditError> {
    let directories = Directories::of_process()?;
    let place = Place::prepare(args)?;
    let would_be = Effective::probe(&place).await?;
    Ok(Probed { would_be, running: Running::all(args, &directories).await })
}

fn refuse(error: &AuditError) -> Exit {
    super::complain(error);
    error.exit()
}

fn of_log(session: &Path) -> Result<Account, AuditError> {
    let directories = Directories::of_process()?;
    let sessions = directories.sessions();
    // A name without a slash is that of a session.
    let path = if session.components().count() == 1 && !session.exists() {
        sessions.join(session).with_extension("jsonl")
    } else {
        session.to_owned()
    };
    let loaded = session::load(&path).map_err(|error| AuditError::Log(error, sessions))?;
    Ok(Account::of(&path, &loaded))
}

fn print<T: Serialize + Display>(value: &T, json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, value)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", super::output::harmless(&value.to_string()))?;
    }
    out.flush()
}
