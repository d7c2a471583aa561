//! What stands on a terminal, and what is typed there: the terminal UI, and the streams of a sandboxed command.

mod streams;
mod terminal;
mod tui;
mod tui_approvals;
