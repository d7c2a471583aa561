//! MCP servers whose command installs them: `npx -y PACKAGE`, `uvx PACKAGE` and the like.
//!
//! Bailiwick splits such a command into two steps. The installation runs in a sandbox that may write one
//! directory and reach the package registry by name. Each later start uses this directory, without a network.
//! An approval is for the digest of the directory.

mod recognise;
mod run;
mod tree;

pub use recognise::{Registry, SelfInstaller};
pub use run::{InstallError, Installed, install};
pub use tree::{TreeChanges, TreeDigest, TreeError, compare_trees, digest_tree};
