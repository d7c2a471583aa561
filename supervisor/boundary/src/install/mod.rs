//! MCP servers whose command installs them first, such as `npx -y PACKAGE` and `uvx PACKAGE`.
//!
//! Bailiwick splits such a command. The installation runs in a sandbox that may write to one directory and connect to
//! the package registry alone. Later, the server starts from that directory without a network. An approval of the
//! server is bound to the digest of the directory.

mod recognise;
mod run;
mod tree;

pub use recognise::{Registry, SelfInstaller};
pub use run::{InstallError, Installed, install};
pub use tree::{TreeChanges, TreeDigest, TreeError, compare_trees, digest_tree};
