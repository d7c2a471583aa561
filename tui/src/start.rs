//! Initial state of the terminal UI.

use ipc::confinement::Tier;
use ipc::path::WirePath;
use ipc::rights::{Network, RightsSummary};
use protocol::approval::ApprovalMode;
use protocol::event::Activity;
use protocol::own_command::OwnCommand;

use crate::keymap::Keymap;
use crate::known_models::KnownModels;

/// Facts that are known before the first event.
#[derive(Clone, Debug)]
pub struct Start {
    pub project: WirePath,
    pub activity: Activity,
    /// Handling of actions for which the agent has no right.
    pub mode: ApprovalMode,
    pub net: Network,
    pub rights: RightsSummary,
    /// Kind of sandbox; `None` until a worker reports it.
    pub tier: Option<Tier>,
    pub model: String,
    /// Models that can be chosen in the session.
    pub models: KnownModels,
    /// Context window in tokens.
    pub window: Option<u64>,
    pub keymap: Keymap,
    /// True for a keymap without Normal mode, in which keys always type text.
    pub is_plain: bool,
    /// Commands of the person's own.
    pub commands: Vec<OwnCommand>,
    /// Messages of earlier sessions, oldest first.
    pub history: Vec<String>,
    pub capabilities: Capabilities,
    pub status: StatusWords,
    /// Function that formats a time of the log, in milliseconds since the epoch, in the time zone of the machine.
    pub local_time: fn(u64) -> String,
    /// Functions that describe the scope of an approval.
    pub previews: Previews,
    /// Origins of the settings that cause requests.
    pub origins: Origins,
}

/// Origins of settings for display: `default`, `--mode`, `config.toml:3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    pub mode: String,
    pub net: String,
    pub write: String,
    /// Setting that requires an approval before every command.
    pub confirm_shell: String,
}

/// Length of the status bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusWords {
    /// Everything that there is room for.
    #[default]
    Full,
    /// Only what is not ordinary.
    Short,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    pub colour: Colour,
    /// Theme of the settings, or the one for the terminal's background; `None` if the background is unknown.
    pub theme: Option<ThemeName>,
    pub size: (u16, u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// No colours (`NO_COLOR`); bold, dim, underlined and reversed text replace them.
    None,
    /// Only the sixteen colours of the terminal's palette.
    Sixteen,
    /// The 256 colours that most terminals have.
    Indexed,
    /// Exact colours.
    Exact,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThemeName {
    #[default]
    Dark,
    Light,
    /// Contrast of at least 7:1; no faint or italic text.
    HighContrast,
}

/// Functions that describe the scope of an approval; the supervisor implements them.
#[derive(Clone, Copy, Debug)]
pub struct Previews {
    /// Describes a prefix of commands.
    pub prefix: fn(&[String]) -> String,
    /// Describes a glob for paths in the project.
    pub pattern: fn(&str) -> String,
}
