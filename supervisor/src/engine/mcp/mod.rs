//! Servers of MCP: each a guest with rights of its own, which its table in the person's settings states.
//!
//! The definitions of a server's tools come from its pin, which a person approved. So nothing is started for a session before the
//! first call, and a definition that has changed since is withheld. Servers of a file that a person named for one run have no
//! pin: they are started once before the session, which holds them to the definitions that they gave then.

mod beside;
mod confine;
mod denied;
mod file;
mod find;
mod host;
mod inspect;
mod installed;
mod names;
mod offer;
mod pin;
mod program;
mod progress;
mod questions;
mod resources;
mod result;
mod server;
mod store;

pub(crate) use beside::BesideServers;
pub(crate) use confine::stores;
pub(crate) use denied::denied;
pub(crate) use file::{FileServer, start};
pub(crate) use host::{McpHost, tell_prompts};
pub(crate) use inspect::{AccessIn, InspectError, Inspected, inspect};
pub(crate) use installed::{Installations, InstalledServer, NewInstallation, NotInstalled, fault};
pub(crate) use offer::{Offered, SessionServers};
pub(crate) use pin::{Pin, PinnedTool, Pins};
pub(crate) use program::{interpreters, toolchain};
