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
    pub project: WirePath,
    pub activity: Activity,
    /// Handling of calls beyond the standing rights.
    pub mode: ApprovalMode,
    pub net: Network,
    pub rights: RightsSummary,
    /// Tier of this machine; absent until a worker reports it.
    pub tier: Option<Tier>,
    pub model: String,
    /// The models that it may be changed to.
    pub models: KnownModels,
    /// The most tokens of a prompt and its reply together.
    pub window: Option<u64>,
    pub keymap: Keymap,
    /// True if there is no NORMAL: what is typed is written, always.
    pub is_plain: bool,
    /// The messages of earlier sessions, the last one last.
    pub history: Vec<String>,
    pub capabilities: Capabilities,
    /// Describes the coverage of a scope, in one sentence or a few lines: the grammar is the supervisor's.
    pub previews: Previews,
    /// The origins of the rules that a request comes from.
    pub origins: Origins,
}

/// The origins of settings as a person reads them: `default`, `--mode`, `config.toml:3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    pub mode: String,
    pub net: String,
    pub write: String,
    /// Flag or setting that asks before every command.
    pub confirm_shell: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    pub colour: Colour,
    pub theme: ThemeName,
    pub size: (u16, u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// No colours, or none wanted (`NO_COLOR`): bold, dim, underlined and reversed replace them.
    None,
    /// The sixteen of the user's own palette; no others are used.
    Sixteen,
    /// Each by its red, green and blue.
    Exact,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThemeName {
    #[default]
    Dark,
    Light,
    /// At least 7:1 between a text and its background, and no faint or slanted text.
    HighContrast,
}

/// Describes the coverage of a scope, in one sentence or a few lines: the grammar is the supervisor's.
#[derive(Clone, Copy, Debug)]
pub struct Previews {
    /// For commands that begin with these words.
    pub prefix: fn(&[String]) -> String,
    /// For changes of files whose path in the project matches this glob.
    pub pattern: fn(&str) -> String,
}
