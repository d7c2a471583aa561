//! Settings from files, and the command line's flags.

pub(crate) mod args;
pub mod config;
