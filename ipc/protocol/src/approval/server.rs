//! The access of a confined MCP server, in the form in which a person sees it.

use std::fmt;

use ipc::path::WirePath;
use ipc::rights::Network;
use serde::{Deserialize, Serialize};

/// The access of a confined MCP server, from its table in the user's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ServerAccess {
    /// Directories, with all below them, that the server may read in addition to the system's programs.
    pub read: Vec<WirePath>,
    /// Directories, with all below them, that the server may write in addition to its private ones.
    pub write: Vec<WirePath>,
    /// Use of the network: off, on, or only to named hosts.
    pub net: Network,
    /// Names of the environment variables that the server gets. Their values may be secrets.
    pub variables: Vec<String>,
}

/// An MCP server that a sub-agent or the execution of a plan may call. The server has its own access, not the agent's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct NamedServer {
    /// Name of the server in the settings.
    pub name: String,
    /// The tools that may be called, by the server's own names; empty if all may be called.
    pub tools: Vec<String>,
    /// Access of the server.
    pub access: ServerAccess,
}

/// Displays `docs (echo, other): reads /p · …`.
impl fmt::Display for NamedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, tools, access } = self;
        match tools.as_slice() {
            [] => write!(f, "{name}: {access}"),
            tools => write!(f, "{name} ({}): {access}", tools.join(", ")),
        }
    }
}

/// Displays `reads /p · writes only the server's own files · network off · no variable`.
impl fmt::Display for ServerAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { read, write, net, variables } = self;
        let paths = |paths: &[WirePath]| paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match read.as_slice() {
            [] => f.write_str("reads no project files")?,
            read => write!(f, "reads {}", paths(read))?,
        }
        match write.as_slice() {
            [] => f.write_str(" · writes only the server's own files")?,
            write => write!(f, " · writes {}", paths(write))?,
        }
        write!(f, " · network {net}")?;
        match variables.as_slice() {
            [] => f.write_str(" · no variable"),
            variables => write!(f, " · given {}", variables.join(", ")),
        }
    }
}
