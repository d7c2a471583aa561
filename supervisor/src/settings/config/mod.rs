//! Settings: the person's `config.toml`, a project's `.bailiwick.toml`, and their combination with flags and
//! environment.
//!
//! A project's file is untrusted. It may restrict agents. It can add access only after the person has trusted exactly
//! its present content.

mod ask;
mod described;
mod effective;
mod error;
mod keys;
mod layer;
mod mcp;
mod mcp_file;
mod merge;
mod origin;
mod own_commands;
mod parse;
mod preapproved;
mod project_file;
mod project_roles;
mod settled;
mod sources;
mod taken_grants;
mod trust;
mod user_file;
mod user_tables;
mod value;

pub(crate) use ask::{ask_for_trust, asked, can_ask, says_yes, yes};
pub use effective::{Effective, at_home};
pub use error::{Problem, SettingsError};
pub use keys::{KEYS, Key, Kind, Preset, ProjectMay};
pub use layer::{Binding, Layer, ModelEntry, RoleEntry, Setting};
pub use mcp::{McpProposal, McpServer, ToolGrant, ToolName, is_server_name, is_variable, no_address};
pub use mcp_file::{McpFile, McpFileError};
pub use merge::{Layers, merge};
pub use origin::{ConfigOrigin, SettingPlace};
pub use parse::parse;
pub use preapproved::{allow_prefixes, allow_tool};
pub use project_file::{FOREIGN_NAME, PROJECT_NAME, ProjectFile};
pub use settled::{Ignored, Resolution};
pub(crate) use sources::Sources;
pub use taken_grants::TakenGrant;
pub use trust::{FileDigest, Trust, TrustError, TrustQuestion};
pub use user_file::{USER_NAME, UserFile};
pub use user_tables::{TableError, remove_server, write_server};
pub use value::{Element, Value, time_of};

#[cfg(test)]
mod tests;
