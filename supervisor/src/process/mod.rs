//! The supervisor as a process: its directories, messages, signals, terminal, temporary files and exit status.

pub mod attempt;
pub(crate) mod clipboard;
pub(crate) mod diagnostics;
pub(crate) mod directories;
pub(crate) mod editor;
pub(crate) mod exit;
pub(crate) mod messages;
pub(crate) mod pager;
pub(crate) mod passing;
pub(crate) mod scratch;
pub(crate) mod signals;
pub(crate) mod tty;
