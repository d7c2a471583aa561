//! Servers that install themselves: `npx -y PACKAGE`, `uvx PACKAGE` and the like.
//!
//! Such a command fetches a package and runs it. Here these are two steps: an installation into a directory of its own, in a sandbox
//! that may write that directory and reach the registry by name, and starts from that directory without a network. The digest of the
//! directory says what was approved.

mod recognise;
mod run;
mod tree;

pub use recognise::{Registry, SelfInstaller};
pub use run::{InstallError, Installed, install};
pub use tree::{TreeChanges, TreeDigest, TreeError, compare_trees, digest_tree};
