use protocol::own_command::OwnCommand;
use protocol::typed_prompt::TypedPrompt;

use super::{History, LineFor, Mode, Model};
use crate::commands::{Command, CommandRow, TABLE, is_quit};

pub(crate) struct PaletteRow<'a> {
    name: &'a str,
    pub(crate) typed: &'a str,
    pub(crate) about: &'a str,
    needs_argument: bool,
    takes_argument: bool,
}

impl<'a> PaletteRow<'a> {
    fn of_command(row: &'static CommandRow) -> Option<Self> {
        let typed = row.typed?;
        let name = typed.split(' ').next()?;
        let needs_argument = needs_argument(row.command);
        Some(Self { name, typed, about: row.about, needs_argument, takes_argument: typed.contains(' ') })
    }

    fn of_own(command: &'a OwnCommand) -> Self {
        let OwnCommand { name, description, .. } = command;
        let takes_argument = command.takes_arguments();
        Self { name, typed: name, about: description, needs_argument: takes_argument, takes_argument }
    }

    fn of_prompt(prompt: &'a TypedPrompt) -> Self {
        let TypedPrompt { name, typed, .. } = prompt;
        let needs_argument = prompt.needs_arguments();
        let takes_argument = typed.contains(' ');
        Self { name, typed, about: prompt.about(), needs_argument, takes_argument }
    }
}

const MOST_USED: usize = 5;

/// Number of latest messages in which used commands are searched.
const LOOKED_AT: usize = 200;

/// State of the list of commands that is open while a command is typed.
#[derive(Debug, Default)]
pub(crate) struct Palette {
    /// Index of the row that the person selected; `None` if no key has moved the selection.
    chosen: Option<usize>,
    /// True if the person closed the list, which stays closed for the command that is being typed.
    closed: bool,
}

impl Palette {
    pub(crate) const fn close(&mut self) {
        self.closed = true;
    }

    pub(crate) const fn choose(&mut self, row: usize) {
        self.chosen = Some(row);
    }

    /// Resets the selection after the typed text has changed. A closed list stays closed only if `has_text` is true.
    pub(crate) const fn follow(&mut self, has_text: bool) {
        self.chosen = None;
        self.closed &= has_text;
    }
}

/// Commands that match the typed text, and the selected one of them.
pub(crate) struct OfferedCommands<'a> {
    typed: &'a str,
    rows: Vec<PaletteRow<'a>>,
    chosen: Option<usize>,
}

impl<'a> OfferedCommands<'a> {
    /// Lists commands that start with the typed word, then those that contain it; the last used ones first. With a
    /// typed argument, lists the command itself alone. `None` while no command is typed or the list is closed.
    pub(crate) fn of(model: &'a Model) -> Option<Self> {
        let typed = typed(model)?;
        let rows = TABLE.iter().filter_map(PaletteRow::of_command);
        let rows = rows.chain(model.start.commands.iter().map(PaletteRow::of_own));
        let rows = rows.chain(model.prompts.iter().map(PaletteRow::of_prompt));
        let mut rows: Vec<_> = match typed.split_once(' ') {
            Some((word, _)) => rows.filter(|row| row.name == word).collect(),
            None => rows.filter(|row| row.name.contains(typed)).collect(),
        };
        let used = used_commands(&model.history);
        let unused =
            |row: &PaletteRow<'_>| used.iter().position(|name| *name == row.name).unwrap_or(used.len());
        // The sort is stable: rows of equal rank keep the table's order.
        rows.sort_by_key(|row| (row.name != typed, !row.name.starts_with(typed), unused(row)));
        Some(Self { typed, rows, chosen: model.palette.chosen })
    }

    pub(crate) fn rows(&self) -> &[PaletteRow<'a>] {
        &self.rows
    }

    /// Index of the selected row; `None` if there are no rows or an argument is being typed.
    pub(crate) fn choice(&self) -> Option<usize> {
        let last = self.rows.len().checked_sub(1)?;
        Some(self.chosen.map_or(0, |at| at.min(last))).filter(|_| !self.typed.contains(' '))
    }

    /// Returns the index of the row below or above the selected one; wraps around. `None` without a selected row.
    pub(crate) fn beside(&self, down: bool) -> Option<usize> {
        let (at, rows) = (self.choice()?, self.rows.len());
        Some(if down { (at + 1) % rows } else { at.checked_sub(1).unwrap_or(rows - 1) })
    }

    /// Returns the name of the selected command, with a space if it takes an argument. The `bool` is true if Enter must
    /// not run it yet: an argument is missing, or the person neither typed a letter nor selected a row.
    pub(crate) fn completed(&self) -> Option<(String, bool)> {
        let row = self.rows.get(self.choice()?)?;
        let blank = if row.takes_argument { " " } else { "" };
        let is_bare = self.typed.is_empty() && self.chosen.is_none();
        Some((format!("{}{blank}", row.name), row.needs_argument || is_bare))
    }
}

/// Returns the names of the [`MOST_USED`] last used commands, newest first.
fn used_commands(history: &History) -> Vec<&str> {
    let commands = history.newest_first().take(LOOKED_AT).filter_map(|sent| sent.strip_prefix('/'));
    let mut used: Vec<&str> = Vec::new();
    for name in commands.filter_map(|command| command.split_whitespace().next()) {
        // Each session ends with the command that quits.
        if used.len() < MOST_USED && !used.contains(&name) && !is_quit(name) {
            used.push(name);
        }
    }
    used
}

/// Returns the typed command without `/` or `:`; `None` while no command is typed or the list is closed.
fn typed(model: &Model) -> Option<&str> {
    let text = match model.mode {
        Mode::Command if model.line_for == LineFor::Command => model.line.text(),
        Mode::Insert if !model.palette.closed && model.recall.is_none() && model.own.is_none() => {
            model.prompt.text().strip_prefix('/')?
        }
        Mode::Command
        | Mode::Insert
        | Mode::Normal
        | Mode::Agents
        | Mode::Plan
        | Mode::Log
        | Mode::Rewind
        | Mode::Page
        | Mode::Findings
        | Mode::Select => {
            return None;
        }
    };
    let is_open = model.mode == Mode::Command || model.cards.is_empty();
    (is_open && !text.contains('\n')).then_some(text)
}

const fn needs_argument(command: Command) -> bool {
    matches!(command, Command::Net | Command::Mode | Command::Disallow | Command::Revoke | Command::Agent)
}
