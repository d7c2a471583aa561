//! Tests with terminals: the terminal UI, and the standard streams of a sandboxed command.

mod streams;
mod terminal;
mod tui;
mod tui_approvals;
