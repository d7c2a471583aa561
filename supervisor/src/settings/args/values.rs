//! Values of flags.

use std::time::Duration;

use agent::prompt::Profile;
use boundary::tripwire::BaselineChoice;
use clap::ValueEnum;
use gate::activity::Activity;
use gate::modes::ApprovalMode;
use ipc::confinement::TierChoice;
use model::provider::ProviderKind;
use protocol::cost::{NotAnAmount, Usd};

use crate::settings::config::time_of;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// The project is read-only; each change is shown, and you are asked.
    Ask,
    /// The project is writable; other access is denied.
    Auto,
    /// The project is read-only; other access is denied.
    Deny,
}

/// The values of `--baseline`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BaselineArg {
    /// Keep the changed files.
    Mine,
    /// Restore the files to their state before the command.
    Restore,
}

impl From<BaselineArg> for BaselineChoice {
    fn from(word: BaselineArg) -> Self {
        match word {
            BaselineArg::Mine => Self::Mine,
            BaselineArg::Restore => Self::Restore,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ActivityArg {
    /// The agent does the task.
    #[default]
    Execute,
    /// The agent makes a plan, and changes nothing; another agent executes the plan after your approval.
    Plan,
}

/// The values of `--profile`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileArg {
    /// All tools.
    #[default]
    Full,
    /// Only the shell, and a short prompt.
    Minimal,
}

/// The values of `--engine`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// Checkouts on this machine.
    #[default]
    None,
    /// Containers of Docker.
    Docker,
    /// Containers of Podman.
    Podman,
}

impl From<ProfileArg> for Profile {
    fn from(profile: ProfileArg) -> Self {
        match profile {
            ProfileArg::Full => Self::Full,
            ProfileArg::Minimal => Self::Minimal,
        }
    }
}

impl From<ActivityArg> for Activity {
    fn from(activity: ActivityArg) -> Self {
        match activity {
            ActivityArg::Execute => Self::Execute,
            ActivityArg::Plan => Self::Plan,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReachArg {
    /// This machine's own addresses.
    Host,
    /// Private networks.
    Lan,
    /// Link-local addresses.
    LinkLocal,
    /// The addresses at which clouds hand out credentials.
    Metadata,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TierArg {
    /// The full sandbox if this machine has it, else the floor.
    #[default]
    Best,
    /// The full sandbox; an error if this machine lacks it.
    Full,
    /// The smaller sandbox, which needs no namespaces.
    Floor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccessArg {
    /// The project is writable.
    Write,
    /// The project is read-only, and the network is off.
    Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SubjectArg {
    /// A file or directory, whether it exists or not.
    Path,
    /// An internet address.
    Address,
    /// A command, as `bash -c` gets it.
    Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The model's last message.
    Text,
    /// The result as one JSON object.
    Json,
    /// The session's events as they happen, one JSON object per line.
    StreamJson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeniedArg {
    /// Exit status 0; the result lists the denials.
    Ok,
    /// Exit status 4.
    Fail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProviderArg {
    /// The Messages API.
    Anthropic,
    /// Chat completions.
    #[value(name = "openai")]
    OpenAi,
    /// The Responses API.
    Responses,
}

impl From<ModeArg> for ApprovalMode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Ask => Self::Ask,
            ModeArg::Auto => Self::Auto,
            ModeArg::Deny => Self::Deny,
        }
    }
}

impl From<ApprovalMode> for ModeArg {
    fn from(mode: ApprovalMode) -> Self {
        match mode {
            ApprovalMode::Ask => Self::Ask,
            ApprovalMode::Auto => Self::Auto,
            ApprovalMode::Deny => Self::Deny,
        }
    }
}

impl From<ProviderArg> for ProviderKind {
    fn from(provider: ProviderArg) -> Self {
        match provider {
            ProviderArg::Anthropic => Self::Anthropic,
            ProviderArg::OpenAi => Self::OpenAi,
            ProviderArg::Responses => Self::Responses,
        }
    }
}

impl From<TierArg> for TierChoice {
    fn from(tier: TierArg) -> Self {
        match tier {
            TierArg::Best => Self::Best,
            TierArg::Full => Self::Full,
            TierArg::Floor => Self::Floor,
        }
    }
}

pub(super) fn task(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("the task is empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Parses an amount in US dollars above 0.
pub(super) fn amount(text: &str) -> Result<Usd, String> {
    let amount: Usd = text.parse().map_err(|error: NotAnAmount| error.to_string())?;
    if amount == Usd::ZERO { Err("expected an amount above 0".to_owned()) } else { Ok(amount) }
}

/// Parses a time in seconds.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let time = text.parse().ok().and_then(time_of);
    time.ok_or_else(|| "expected a number of seconds from 0.001 to 31536000, as in 90 or 0.5".to_owned())
}
