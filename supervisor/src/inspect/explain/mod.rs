//! `bailiwick explain`: the policy for a path, an address or a command, with the reasons and the possible changes.
//!
//! * [`subject`]: the kind of the subject. [`path`], [`address`], [`command`]: the answers for each kind.
//! * [`judge`]: the gate's judgement of a path; `tried`: an attempt. [`place`]: access and settings of a session.
//!   [`origins`]: the origins of rules. [`answer`]: one answer, with the reason. `print`: text for a person.
//!
//! The judgement comes from the gate. For a path, actions are then tried in the sandbox of an agent's worker, to find
//! differences from the kernel. The network is not used.

mod address;
mod answer;
mod command;
mod judge;
mod origins;
mod path;
mod place;
mod print;
mod subject;
mod tried;

use std::io::Write;

use gate::modes::{ApprovalMode, PermitRow};
use ipc::confinement::Tier;
use ipc::rights::RightsSummary;
use serde::Serialize;

use self::address::AddressExplained;
pub(crate) use self::answer::ExplainAnswer;
use self::command::CommandExplained;
pub(crate) use self::path::PathExplained;
pub(crate) use self::place::{ExplainPolicy, ExplainedPlace};
use self::subject::{ExplainSubject, SubjectError};
use crate::engine::inside::{self, InsideError};
use crate::engine::place::SetupError;
use crate::process::exit::{Exit, printed};
use crate::process::messages::{complain, harmless};
use crate::settings::args::ExplainArgs;
use crate::settings::config::SettingsError;

#[derive(Debug, Serialize)]
struct Explanation {
    /// The tier in which a session would start.
    tier: Tier,
    /// The mode, which decides about calls that need more access than the agent has.
    mode: ApprovalMode,
    rights: RightsSummary,
    /// The rows for this mode in the table of modes.
    mode_permits: [PermitRow; 3],
    #[serde(flatten)]
    said: ExplainedRights,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum ExplainedRights {
    Path(Box<PathExplained>),
    Address(AddressExplained),
    Command(CommandExplained),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ExplainError {
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// The settings cannot be read.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("no sandbox works here: {0}\n  hint: bailiwick doctor shows what is missing on this machine")]
    Inside(#[from] InsideError),
}

impl ExplainError {
    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::Subject(_) | Self::Settings(_) => Exit::Usage,
            Self::Setup(error) => error.exit(),
            Self::Inside(_) => Exit::NoSandbox,
        }
    }
}

pub(crate) async fn run(args: ExplainArgs) -> Exit {
    match explain(&args).await {
        Ok(explanation) => printed(print(&explanation, args.json), Exit::Done),
        Err(error) => {
            complain(&error);
            error.exit()
        }
    }
}

async fn explain(args: &ExplainArgs) -> Result<Explanation, ExplainError> {
    let place = ExplainedPlace::prepare(&args.agent)?;
    let setup = &place.setup;
    let subject = ExplainSubject::of(&args.what, args.kind, &setup.policy.project)?;
    let probes = match &subject {
        ExplainSubject::Path(path) => PathExplained::probes(path).to_vec(),
        ExplainSubject::Address(_) | ExplainSubject::Command(_) => Vec::new(),
    };
    let (ruleset, outcomes) =
        inside::try_all(setup, setup.confinement(setup.policy.standing()), &probes).await?;
    let standing = place.standing(ruleset.tier);
    let policy = place.policy(&standing);
    let said = match &subject {
        ExplainSubject::Path(path) => {
            ExplainedRights::Path(Box::new(PathExplained::new(path, &policy, &outcomes)))
        }
        ExplainSubject::Address(address) => ExplainedRights::Address(AddressExplained::new(address, &policy)),
        ExplainSubject::Command(command) => ExplainedRights::Command(CommandExplained::new(command, &policy)),
    };
    Ok(Explanation {
        tier: ruleset.tier,
        mode: standing.mode(),
        rights: standing.summary(),
        mode_permits: PermitRow::of_mode(standing.mode()),
        said,
    })
}

fn print(explanation: &Explanation, json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, explanation)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", harmless(&explanation.to_string()))?;
    }
    out.flush()
}
