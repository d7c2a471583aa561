//! Terminals with output and typed keys: the terminal UI, and the streams of a sandboxed command.

mod streams;
mod terminal;
mod tui;
mod tui_approvals;
