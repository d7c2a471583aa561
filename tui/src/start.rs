//! What a model is made from.

use ipc::confinement::Tier;
use ipc::path::WirePath;
use ipc::rights::{Network, RightsSummary};
use protocol::approval::ApprovalMode;
use protocol::event::Activity;

use crate::keymap::Keymap;
use crate::known_models::KnownModels;

/// Everything that is known before the first event.
#[derive(Clone, Debug)]
pub struct Start {
    /// The project, absolute.
    pub project: WirePath,
    /// The activity of the agent.
    pub activity: Activity,
    /// What becomes of calls beyond the standing rights.
    pub mode: ApprovalMode,
    /// The network.
    pub net: Network,
    /// The standing rights.
    pub rights: RightsSummary,
    /// What this machine enforces; absent until a worker says so.
    pub tier: Option<Tier>,
    /// The model's name.
    pub model: String,
    /// The models that it may be changed to.
    pub models: KnownModels,
    /// The most tokens of a prompt and its reply together.
    pub window: Option<u64>,
    /// Which key does what.
    pub keymap: Keymap,
    /// True if there is no NORMAL: what is typed is written, always.
    pub is_plain: bool,
    /// The messages of earlier sessions, the last one last.
    pub history: Vec<String>,
    /// What the terminal can do.
    pub capabilities: Capabilities,
    /// What a scope would cover, in words: the grammar is the supervisor's.
    pub previews: Previews,
    /// The origins of the rules that a request comes from.
    pub origins: Origins,
}

/// The origins of settings as a person reads them: `default`, `--mode`, `config.toml:3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    /// Of the approval mode.
    pub mode: String,
    /// Of the network.
    pub net: String,
    /// Of the write roots.
    pub write: String,
    /// Of the wish to be asked for every command.
    pub confirm_shell: String,
}

/// What the terminal can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Its colours.
    pub colour: Colour,
    /// The colours that go with it.
    pub theme: ThemeName,
    /// Columns and rows.
    pub size: (u16, u16),
}

/// The colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// None, or the user wants none (`NO_COLOR`): bold, dim, underlined and reversed have to do.
    None,
    /// The sixteen of the user's own palette; no others are used.
    Sixteen,
    /// Each by its red, green and blue.
    Exact,
}

/// The name of a choice of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThemeName {
    /// For a dark background.
    #[default]
    Dark,
    /// For a light background.
    Light,
    /// At least 7:1 between a text and its background, and no faint or slanted text.
    HighContrast,
}

/// What a scope would cover, in words: one sentence or a few lines, shown as they are.
#[derive(Clone, Copy, Debug)]
pub struct Previews {
    /// Of commands that begin with these words.
    pub prefix: fn(&[String]) -> String,
    /// Of changes of files whose path in the project matches this glob.
    pub pattern: fn(&str) -> String,
}
