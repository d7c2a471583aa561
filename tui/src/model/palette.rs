use protocol::own_command::OwnCommand;
use protocol::typed_prompt::TypedPrompt;

use super::{Editor, LineFor, Mode, Model};
use crate::commands::{Command, CommandRow, TABLE, is_quit};

pub(crate) struct PaletteRow<'a> {
    name: &'a str,
    /// The name with its arguments.
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

/// Maximum number of recently used commands that are listed first.
const MOST_USED: usize = 5;

/// Number of sent messages in which used commands are sought.
const LOOKED_AT: usize = 200;

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
    /// Commands that start with the typed word, then those that contain it; the last used ones first. With an argument,
    /// only the command itself.
    pub(crate) fn palette_rows(&self) -> Vec<PaletteRow<'_>> {
        let Some(typed) = self.typed_command() else { return Vec::new() };
        let rows = TABLE.iter().filter_map(PaletteRow::of_command);
        let rows = rows.chain(self.start.commands.iter().map(PaletteRow::of_own));
        let rows = rows.chain(self.prompts.iter().map(PaletteRow::of_prompt));
        let mut found: Vec<_> = match typed.split_once(' ') {
            Some((word, _)) => rows.filter(|row| row.name == word).collect(),
            None => rows.filter(|row| row.name.contains(typed)).collect(),
        };
        let used = self.used_commands();
        let unused =
            |row: &PaletteRow<'_>| used.iter().position(|name| *name == row.name).unwrap_or(used.len());
        // The sort is stable: rows of equal rank keep the table's order.
        found.sort_by_key(|row| (row.name != typed, !row.name.starts_with(typed), unused(row)));
        found
    }

    /// Returns the names of the commands that the person used last, the newest first.
    fn used_commands(&self) -> Vec<&str> {
        let commands = self.history.newest_first().take(LOOKED_AT).filter_map(|sent| sent.strip_prefix('/'));
        let mut used: Vec<&str> = Vec::new();
        for name in commands.filter_map(|command| command.split_whitespace().next()) {
            // Each session ends with the command that quits.
            if used.len() < MOST_USED && !used.contains(&name) && !is_quit(name) {
                used.push(name);
            }
        }
        used
    }

    pub(crate) fn palette_choice(&self) -> Option<usize> {
        let typed = self.typed_command()?;
        let last = self.palette_rows().len().checked_sub(1)?;
        Some(self.palette.chosen.map_or(0, |at| at.min(last))).filter(|_| !typed.contains(' '))
    }

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

    /// Completes the name of the selected command. True if the command must not run yet: it needs an argument, or the
    /// person neither typed a letter of it nor selected it. Else Enter after a bare `/` would end the session after a
    /// `/q`.
    pub(crate) fn complete(&mut self) -> bool {
        let Some((text, needs_argument)) = self.completed() else { return false };
        let is_line = self.mode == Mode::Command;
        let is_bare = self.typed_command().is_some_and(str::is_empty) && self.palette.chosen.is_none();
        let (sign, editor) = if is_line { ("", &mut self.line) } else { ("/", &mut self.prompt) };
        *editor = Editor::with(format!("{sign}{text}"));
        needs_argument || is_bare
    }

    /// Returns the name of the selected command with the blank before an argument, and true if it needs one.
    fn completed(&self) -> Option<(String, bool)> {
        let row = self.palette_rows().into_iter().nth(self.palette_choice()?)?;
        let blank = if row.takes_argument { " " } else { "" };
        Some((format!("{}{blank}", row.name), row.needs_argument))
    }

    /// Resets the selection after the typed text has changed. Empty text allows the list to open again.
    pub(crate) fn palette_follows(&mut self) {
        self.palette.chosen = None;
        self.recall_anew();
        self.palette.closed &= self.mode == Mode::Insert && !self.prompt.is_empty();
    }

    /// Without its sign; `None` while no command is typed or the list is closed.
    fn typed_command(&self) -> Option<&str> {
        let text = match self.mode {
            Mode::Command if self.line_for == LineFor::Command => self.line.text(),
            Mode::Insert if !self.palette.closed && self.recall.is_none() && self.own.is_none() => {
                self.prompt.text().strip_prefix('/')?
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
        let is_open = self.mode == Mode::Command || self.cards.is_empty();
        (is_open && !text.contains('\n')).then_some(text)
    }
}

const fn needs_argument(command: Command) -> bool {
    matches!(command, Command::Net | Command::Mode | Command::Disallow | Command::Revoke | Command::Agent)
}
