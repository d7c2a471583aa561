//! Front ends: the terminal UI, `exec`, `serve`, `batch` and `sandbox`.

pub(crate) mod batch;
pub(crate) mod exec;
pub(crate) mod sandbox;
pub(crate) mod serve;
pub mod terminal_ui;
