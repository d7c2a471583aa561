//! List of commands above the prompt while a command is typed.

use super::{Editor, LineFor, Mode, Model};
use crate::commands::{Command, CommandRow, TABLE};

#[derive(Debug, Default)]
pub(crate) struct Palette {
    /// Index of the row that was selected by keys.
    chosen: Option<usize>,
    /// True if the person closed the list; it opens again with the next command.
    closed: bool,
}

impl Palette {
    pub(crate) const fn close(&mut self) {
        self.closed = true;
    }
}

impl Model {
    /// Returns the commands that start with the typed word, then those that contain it. With an argument, only the command
    /// itself.
    pub(crate) fn palette_rows(&self) -> Vec<&'static CommandRow> {
        let Some(typed) = self.typed_command() else { return Vec::new() };
        let names = TABLE.iter().filter_map(|row| Some((name(row)?, row)));
        let mut found: Vec<_> = match typed.split_once(' ') {
            Some((word, _)) => names.filter(|(name, _)| *name == word).collect(),
            None => names.filter(|(name, _)| name.contains(typed)).collect(),
        };
        // The sort is stable: rows of equal rank keep the table's order.
        found.sort_by_key(|(name, _)| (*name != typed, !name.starts_with(typed)));
        found.into_iter().map(|(_, row)| row).collect()
    }

    /// Returns the index of the row that Enter executes and Tab completes.
    pub(crate) fn palette_choice(&self) -> Option<usize> {
        let typed = self.typed_command()?;
        let last = self.palette_rows().len().checked_sub(1)?;
        let first = (!typed.is_empty()).then_some(0);
        self.palette.chosen.map(|at| at.min(last)).or(first).filter(|_| !typed.contains(' '))
    }

    /// True if the list is open and has rows.
    pub(crate) fn has_choice(&self) -> bool {
        self.typed_command().is_some_and(|typed| !typed.contains(' ')) && !self.palette_rows().is_empty()
    }

    /// Selects the previous or next row; returns false without a list.
    pub(crate) fn choose(&mut self, down: bool) -> bool {
        let rows = self.palette_rows().len();
        if !self.has_choice() {
            return false;
        }
        let after = self.palette_choice().map_or(0, |at| (at + 1) % rows);
        let before = self.palette_choice().unwrap_or(0).checked_sub(1).unwrap_or(rows - 1);
        self.palette.chosen = Some(if down { after } else { before });
        true
    }

    /// Completes the name of the selected command; returns true if the command needs an argument.
    pub(crate) fn complete(&mut self) -> bool {
        let chosen = self.palette_choice().and_then(|at| self.palette_rows().get(at).copied());
        let Some((row, name)) = chosen.and_then(|row| Some((row, name(row)?))) else { return false };
        let blank = if row.typed.is_some_and(|typed| typed.contains(' ')) { " " } else { "" };
        let sign = if self.mode == Mode::Command { "" } else { "/" };
        let editor = if self.mode == Mode::Command { &mut self.line } else { &mut self.prompt };
        *editor = Editor::with(format!("{sign}{name}{blank}"));
        needs_argument(row.command)
    }

    /// Resets the selection after the typed text has changed. Empty text allows the list to open again.
    pub(crate) fn palette_follows(&mut self) {
        self.palette.chosen = None;
        self.recall_anew();
        self.palette.closed &= self.mode == Mode::Insert && !self.prompt.is_empty();
    }

    /// Returns the typed command without its sign; `None` while no command is typed or the list is closed.
    fn typed_command(&self) -> Option<&str> {
        let text = match self.mode {
            Mode::Command if self.line_for == LineFor::Command => self.line.text(),
            Mode::Insert if !self.palette.closed && self.recall.is_none() => {
                self.prompt.text().strip_prefix('/')?
            }
            Mode::Command
            | Mode::Insert
            | Mode::Normal
            | Mode::Agents
            | Mode::Plan
            | Mode::Log
            | Mode::Rewind
            | Mode::Page => {
                return None;
            }
        };
        let is_open = self.mode == Mode::Command || self.cards.is_empty();
        (is_open && !text.contains('\n')).then_some(text)
    }
}

fn name(row: &CommandRow) -> Option<&'static str> {
    row.typed?.split(' ').next()
}

const fn needs_argument(command: Command) -> bool {
    matches!(command, Command::Net | Command::Mode | Command::Disallow | Command::Revoke | Command::Agent)
}
