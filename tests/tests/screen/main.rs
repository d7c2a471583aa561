//! Terminals, as they are seen and typed at: the terminal UI, and the streams of a sandboxed command.

mod streams;
mod terminal;
mod tui;
mod tui_approvals;
