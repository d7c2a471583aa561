use ipc::confinement::Tier;
use ipc::path::WirePath;
use ipc::rights::{Network, RightsSummary};
use protocol::approval::ApprovalMode;
use protocol::event::Activity;
use protocol::own_command::OwnCommand;

use crate::keymap::Keymap;
use crate::known_models::KnownModels;

#[derive(Clone, Debug)]
pub struct Start {
    pub project: WirePath,
    pub activity: Activity,
    pub mode: ApprovalMode,
    pub net: Network,
    pub rights: RightsSummary,
    pub tier: Option<Tier>,
    pub model: String,
    /// Models that can be selected in the session.
    pub models: KnownModels,
    pub window: Option<u64>,
    pub keymap: Keymap,
    pub is_plain: bool,
    pub commands: Vec<OwnCommand>,
    pub history: Vec<String>,
    pub capabilities: Capabilities,
    pub status: StatusWords,
    /// Function that formats a time of the log, in milliseconds since the epoch, in the time zone of the machine.
    pub local_time: fn(u64) -> String,
    /// Functions that describe in words the actions which an approval would cover.
    pub previews: Previews,
    /// Origins of the settings because of which approvals are requested.
    pub origins: Origins,
    /// Commands and tools that need no approval in this project, each in words that include the origin of the setting.
    pub unasked: Vec<String>,
}

impl Start {
    pub(crate) fn own_command(&self, name: &str) -> Option<&OwnCommand> {
        self.commands.iter().find(|command| command.name == name)
    }
}

/// Origins of some settings, in words: `default`, `--mode`, `config.toml:3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    pub mode: String,
    pub net: String,
    pub write: String,
    pub confirm_shell: String,
}

/// Amount of text in the status bar, as set by the person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusWords {
    /// All values for which there is room.
    #[default]
    Full,
    /// Only values that differ from the defaults.
    Short,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    pub colour: Colour,
    /// Theme from the settings, else the one for the terminal's background; `None` if the background is unknown.
    pub theme: Option<ThemeName>,
    pub size: (u16, u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// No colours (`NO_COLOR`); bold, dim, underlined and reversed text replace them.
    None,
    Sixteen,
    /// The 256 colours that most terminals have.
    Indexed,
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

#[derive(Clone, Copy, Debug)]
pub struct Previews {
    pub prefix: fn(&[String]) -> String,
    pub pattern: fn(&str) -> String,
}
