//! MCP servers whose command installs them, such as `npx -y PACKAGE` and `uvx PACKAGE`.
//!
//! Bailiwick splits such a command: the installation runs in a sandbox that may write one directory and reach the
//! package registry by name. Later starts use the directory without a network. An approval is for the digest of the
//! directory.

mod recognise;
mod run;
mod tree;

pub use recognise::{Registry, SelfInstaller};
pub use run::{InstallError, Installed, install};
pub use tree::{TreeChanges, TreeDigest, TreeError, compare_trees, digest_tree};
