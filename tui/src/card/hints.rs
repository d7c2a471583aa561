use protocol::approval::{DeniedCommandApprovalParams, ServerRequest};

use super::part::Chosen;
use super::{Card, Menu, Stage, denied};
use crate::commands::{Command, KeyMode};
use crate::keymap::Keymap;

pub(crate) const APART: u16 = 2;

/// Minimum width of a card in columns for key hints that are full sentences.
const WIDE: u16 = 50;

#[derive(Debug)]
pub(crate) struct Hint {
    pub text: String,
    /// Number of emphasised bytes at the beginning of the hint.
    pub strong: usize,
}

impl Hint {
    fn of_key(key: &str, word: &str) -> Self {
        Self { text: format!("{key} {word}"), strong: key.len() }
    }

    fn sentence(text: String) -> Self {
        Self { strong: text.len(), text }
    }

    const fn remark(text: String) -> Self {
        Self { text, strong: 0 }
    }
}

/// Returns the key hints. `below` is the number of rows of text below the visible ones.
pub(crate) fn hints(card: &Card, keymap: &Keymap, below: usize, width: u16) -> Vec<Hint> {
    let keys = Keys { keymap, width };
    let hints = match &card.stage {
        Stage::Word(_) => keys.writing("say no with this reason"),
        Stage::Scope(menu) if menu.editing.is_some() => keys.writing("use the pattern"),
        Stage::Scope(menu) => keys.choosing(menu, below, card.sheet().is_read()),
        Stage::Comments if card.editor().is_some() => keys.writing("save the comment"),
        Stage::Comments => keys.commenting(card),
        Stage::Steps if card.editor().is_some() => keys.writing_field(card),
        Stage::Steps => keys.editing(card),
        Stage::Form => keys.filling(card),
        Stage::Part => keys.of_part(card, below),
        Stage::Versions(_) => keys.comparing(below),
        Stage::Rule(_) => keys.of_rule(card, below),
        Stage::Turn(_) => keys.of_page("yes, to everything in this turn", below, card.sheet().is_read()),
        Stage::Project(_) => keys.of_page("yes, always in this project", below, card.sheet().is_read()),
        Stage::Deciding if below > 0 && !card.sheet().is_read() => keys.reading(card, below),
        Stage::Deciding => keys.deciding(card, below),
    };
    hints.into_iter().flatten().collect()
}

/// Returns the number of rows for hints on a card of this size. The number does not depend on the scroll position.
pub(crate) fn rows(card: &Card, keymap: &Keymap, (width, height): (u16, u16)) -> u16 {
    let keys = Keys { keymap, width };
    let text = card.sheet().rows(width);
    let in_rows = |hints: Vec<Option<Hint>>| {
        let hints: Vec<Hint> = hints.into_iter().flatten().collect();
        u16::try_from(laid(&hints, width).len()).unwrap_or(u16::MAX)
    };
    let whole = in_rows(match &card.stage {
        Stage::Scope(menu) if menu.editing.is_none() => keys.choosing(menu, 0, true),
        Stage::Deciding => keys.deciding(card, 0),
        // The hints take one row if it has room; the list above them scrolls.
        Stage::Comments if card.editor().is_none() => return in_rows(keys.commenting(card)),
        Stage::Steps if card.editor().is_some() => return in_rows(keys.writing_field(card)),
        Stage::Steps => return in_rows(keys.editing(card)),
        Stage::Form => return in_rows(keys.filling(card)),
        Stage::Part => return in_rows(keys.of_part(card, text)).max(in_rows(keys.of_part(card, 0))),
        _ => return 1,
    });
    if text.saturating_add(usize::from(whole + card.editor_rows((width, height)) + 1)) <= usize::from(height)
    {
        return whole;
    }
    // The number of hidden lines gets no row of its own.
    let long = in_rows(match &card.stage {
        Stage::Scope(menu) => keys.choosing(menu, text, false),
        _ => keys.reading(card, text),
    });
    long.max(whole)
}

pub(crate) fn laid(hints: &[Hint], width: u16) -> Vec<Vec<&Hint>> {
    let mut rows: Vec<Vec<&Hint>> = Vec::new();
    let mut left = 0;
    for hint in hints {
        let columns = u16::try_from(hint.text.chars().count()).unwrap_or(u16::MAX);
        if let Some(row) = rows.last_mut().filter(|_| columns.saturating_add(APART) <= left) {
            row.push(hint);
            left -= columns + APART;
        } else {
            rows.push(vec![hint]);
            left = width.saturating_sub(columns);
        }
    }
    rows
}

struct Keys<'a> {
    keymap: &'a Keymap,
    width: u16,
}

impl Keys<'_> {
    fn key(&self, mode: KeyMode, command: Command, word: &str) -> Option<Hint> {
        let key = self.keymap.hint(mode, command);
        (!key.is_empty()).then(|| Hint::of_key(&key, word))
    }

    fn pair(&self, first: Command, second: Command, word: &str) -> Option<Hint> {
        self.pair_in(KeyMode::Scope, first, second, word)
    }

    fn pair_in(&self, mode: KeyMode, first: Command, second: Command, word: &str) -> Option<Hint> {
        let [first, second] = [first, second].map(|command| self.keymap.hint(mode, command));
        (!first.is_empty() && !second.is_empty()).then(|| Hint::of_key(&format!("{first}/{second}"), word))
    }

    /// Returns the hint that the person must scroll to the end of the text before an approval counts.
    fn to_end(&self, mode: KeyMode, end: Command, yes: Command, below: usize) -> Hint {
        let [end, yes] = [end, yes].map(|command| self.keymap.hint(mode, command));
        let lines = lines(below);
        Hint::sentence(if end.is_empty() || yes.is_empty() {
            lines
        } else if self.width < WIDE {
            format!("{lines}: {end}, then {yes}")
        } else {
            format!("{lines}. Press {end} to see the end, then {yes}.")
        })
    }

    fn writing(&self, done: &str) -> Vec<Option<Hint>> {
        let key = |command, word| self.key(KeyMode::Insert, command, word);
        vec![key(Command::Submit, done), key(Command::Leave, "back")]
    }

    fn choosing(&self, menu: &Menu, below: usize, is_read: bool) -> Vec<Option<Hint>> {
        let key = |command, word| self.key(KeyMode::Scope, command, word);
        vec![
            if below > 0 && !is_read {
                Some(self.to_end(KeyMode::Scope, Command::PageDown, Command::Confirm, below))
            } else {
                key(Command::Confirm, "yes, as chosen")
            },
            key(Command::Back, "back"),
            self.pair(Command::LineDown, Command::LineUp, "choose"),
            self.pair(Command::Shorter, Command::Longer, "words").filter(|_| menu.has_prefix_chosen()),
            key(Command::Edit, "edit").filter(|_| menu.has_pattern_chosen()),
            (below > 0 && is_read).then(|| Hint::remark(lines(below))),
        ]
    }

    fn commenting(&self, card: &Card) -> Vec<Option<Hint>> {
        let key = |command, word: &str| self.key(KeyMode::Comments, command, word);
        let count = card.comments.as_ref().map_or(0, super::Comments::count);
        let send =
            if count == 1 { "no, with 1 comment".to_owned() } else { format!("no, with {count} comments") };
        vec![
            key(Command::SendComments, &send).filter(|_| count > 0),
            key(Command::WriteComment, "comment"),
            self.pair_in(KeyMode::Comments, Command::LineDown, Command::LineUp, "or a number: choose"),
            key(Command::Back, "back"),
        ]
    }

    fn editing(&self, card: &Card) -> Vec<Option<Hint>> {
        let key = |command, word: &str| self.key(KeyMode::Steps, command, word);
        let pair = |first, second, word: &str| self.pair_in(KeyMode::Steps, first, second, word);
        // On a narrow screen, the steps of the plan need the rows.
        let is_wide = self.width >= WIDE;
        let count = card.unsaved();
        let save = format!("save {}", changes(count));
        vec![
            key(Command::SaveSteps, &save).filter(|_| count > 0),
            key(Command::EditField, "edit"),
            pair(Command::ShiftDown, Command::ShiftUp, "move"),
            key(Command::AddStep, if is_wide { "add a step" } else { "step" }),
            key(Command::AddCondition, if is_wide { "add a command" } else { "command" }),
            key(Command::DeleteField, "delete"),
            key(Command::Undo, "undo").filter(|_| count > 0),
            pair(Command::LineDown, Command::LineUp, "choose").filter(|_| is_wide),
            key(Command::NextStep, "next step").filter(|_| is_wide),
            key(Command::Back, "back"),
        ]
    }

    fn writing_field(&self, card: &Card) -> Vec<Option<Hint>> {
        let key = |command, word| self.key(KeyMode::Insert, command, word);
        let takes_lines = card.steps.as_ref().is_some_and(super::Steps::takes_lines);
        vec![
            key(Command::Submit, "keep it"),
            key(Command::Newline, "new line").filter(|_| takes_lines),
            key(Command::Leave, "back"),
        ]
    }

    fn filling(&self, card: &Card) -> Vec<Option<Hint>> {
        let key = |command, word| self.key(KeyMode::Form, command, word);
        let takes_text = card.form.as_ref().is_some_and(super::FormDraft::takes_text);
        let takes_several = card.form.as_ref().is_some_and(super::FormDraft::takes_several);
        vec![
            key(Command::NextField, "next field"),
            key(Command::PreviousField, "previous field"),
            self.pair_in(KeyMode::Form, Command::PreviousChoice, Command::NextChoice, "choose")
                .filter(|_| !takes_text),
            takes_several.then(|| Hint::remark("Space marks".to_owned())),
            key(Command::Back, "done"),
        ]
    }

    fn deciding_on_form(&self, card: &Card, below: usize) -> Vec<Option<Hint>> {
        let key = |command, word: &str| self.key(KeyMode::Approval, command, word);
        let is_empty = card.form.as_ref().is_none_or(super::FormDraft::is_empty);
        vec![
            key(Command::EditSteps, "fill in").filter(|_| !is_empty),
            key(Command::ApproveOnce, if is_empty { "yes" } else { "send" }),
            key(Command::Deny, "decline"),
            key(Command::Abort, "cancel"),
            key(Command::DenyWithWord, "decline, because…"),
            key(Command::Rule, "why"),
            key(Command::Whole, if card.whole { "smaller" } else { "full screen" }),
            (below > 0).then(|| Hint::remark(lines(below))),
        ]
    }

    fn comparing(&self, below: usize) -> Vec<Option<Hint>> {
        let pair = |first, second, word: &str| self.pair_in(KeyMode::Versions, first, second, word);
        vec![
            self.key(KeyMode::Versions, Command::Back, "back"),
            (below > 0).then(|| Hint::remark(lines(below))),
            pair(Command::OlderVersion, Command::NewerVersion, "newer side"),
            pair(Command::OlderBase, Command::NewerBase, "older side"),
            pair(Command::LineDown, Command::LineUp, "scroll"),
        ]
    }

    fn reading(&self, card: &Card, below: usize) -> Vec<Option<Hint>> {
        let end = self.to_end(card.key_mode(), Command::Bottom, Command::ApproveOnce, below);
        let mut hints = vec![
            Some(end).filter(|_| card.unsaved() == 0),
            self.key(card.key_mode(), Command::Deny, no(card)),
            self.in_part(card),
            self.together(card),
        ];
        hints.extend(self.others(card));
        hints
    }

    fn deciding(&self, card: &Card, below: usize) -> Vec<Option<Hint>> {
        if let ServerRequest::DeniedCommandApproval(params) = &*card.request {
            return self.deciding_on_denial(card, params, below);
        }
        if card.form.is_some() {
            return self.deciding_on_form(card, below);
        }
        if matches!(*card.request, ServerRequest::HostApproval(_)) {
            return self.deciding_on_host(card, below);
        }
        let key = |command, word| self.key(KeyMode::Approval, command, word);
        let mut hints = vec![
            key(Command::ApproveOnce, "yes").filter(|_| card.unsaved() == 0),
            key(Command::ApproveSession, "for the session…").filter(|_| Menu::is_offered(&card.request)),
            key(Command::ApproveProject, "always in this project…")
                .filter(|_| card.request.in_project().is_some()),
            self.whole_turn(card),
            self.in_part(card),
            self.together(card),
            key(Command::Deny, "no"),
        ];
        hints.extend(self.others(card));
        hints.push((below > 0).then(|| Hint::remark(lines(below))));
        hints
    }

    fn deciding_on_denial(
        &self,
        card: &Card,
        params: &DeniedCommandApprovalParams,
        below: usize,
    ) -> Vec<Option<Hint>> {
        let key = |command, word: &str| self.key(KeyMode::Denied, command, word);
        let mut hints = vec![
            key(Command::ApproveOnce, "allow once, run it again"),
            key(Command::ApproveSession, &card.for_session).filter(|_| denied::for_session(params).is_some()),
            self.whole_turn(card),
            key(Command::Deny, no(card)),
        ];
        hints.extend(self.others(card));
        hints.push((below > 0).then(|| Hint::remark(lines(below))));
        hints
    }

    fn deciding_on_host(&self, card: &Card, below: usize) -> Vec<Option<Hint>> {
        let key = |command, word: &str| self.key(KeyMode::Denied, command, word);
        let mut hints = vec![
            key(Command::ApproveOnce, "allow for this command"),
            key(Command::ApproveSession, &card.for_session),
            key(Command::Deny, no(card)),
        ];
        hints.extend(self.others(card));
        hints.push((below > 0).then(|| Hint::remark(lines(below))));
        hints
    }

    fn together(&self, card: &Card) -> Option<Hint> {
        let words = format!("all {} changes", card.others() + 1);
        self.key(KeyMode::Approval, Command::Together, &words).filter(|_| card.others() > 0)
    }

    fn in_part(&self, card: &Card) -> Option<Hint> {
        self.key(KeyMode::Approval, Command::ApprovePart, "in part…")
            .filter(|_| card.request.in_part().is_some())
    }

    /// Returns the hints of the page on which parts of a change are selected.
    fn of_part(&self, card: &Card, below: usize) -> Vec<Option<Hint>> {
        let key = |command, word: &str| self.key(KeyMode::Part, command, word);
        let Some(part) = &card.part else { return Vec::new() };
        let Chosen { count, of, is_edited, any_edited } = part.chosen();
        let yes = match count {
            _ if any_edited => "yes, as shown".to_owned(),
            _ if count == of => "yes, to all of it".to_owned(),
            _ => format!("yes, to {count} of {of} hunks"),
        };
        vec![
            if count == 0 {
                Some(Hint::sentence("Nothing is chosen.".to_owned()))
            } else if below > 0 && !part.sheet.is_read() {
                Some(self.to_end(KeyMode::Part, Command::Bottom, Command::Confirm, below))
            } else {
                key(Command::Confirm, &yes)
            },
            key(Command::Toggle, "take or leave"),
            self.pair_in(KeyMode::Part, Command::LineDown, Command::LineUp, "choose"),
            key(Command::EditText, "edit text"),
            key(Command::Undo, "undo the edit").filter(|_| is_edited),
            key(Command::Back, "back"),
            (below > 0 && part.sheet.is_read()).then(|| Hint::remark(lines(below))),
        ]
    }

    fn whole_turn(&self, card: &Card) -> Option<Hint> {
        self.key(card.key_mode(), Command::ApproveTurn, "this whole turn…")
            .filter(|_| card.request.turn().is_some())
    }

    /// Returns the hints of a page that explains the effect of an answer, such as an approval of the whole turn.
    fn of_page(&self, yes: &str, below: usize, is_read: bool) -> Vec<Option<Hint>> {
        let key = |command, word| self.key(KeyMode::Scope, command, word);
        vec![
            if below > 0 && !is_read {
                Some(self.to_end(KeyMode::Scope, Command::PageDown, Command::Confirm, below))
            } else {
                key(Command::Confirm, yes)
            },
            key(Command::Back, "back"),
            (below > 0 && is_read).then(|| Hint::remark(lines(below))),
        ]
    }

    fn of_rule(&self, card: &Card, below: usize) -> Vec<Option<Hint>> {
        let key = |command, word| self.key(card.key_mode(), command, word);
        vec![
            key(Command::Abort, "back to the request"),
            key(Command::Deny, no(card)),
            (below > 0).then(|| Hint::remark(lines(below))),
        ]
    }

    fn others(&self, card: &Card) -> [Option<Hint>; 7] {
        let key = |command, word: &str| self.key(card.key_mode(), command, word);
        let (is_plan, count) =
            (card.comments.is_some(), card.comments.as_ref().map_or(0, super::Comments::count));
        let edit = match card.unsaved() {
            0 => "edit".to_owned(),
            unsaved => format!("edit ({} not saved)", changes(unsaved)),
        };
        let comment = if count == 0 { "comment…".to_owned() } else { format!("comment… ({count})") };
        [
            key(Command::Rule, "why"),
            if is_plan {
                key(Command::Comment, &comment)
            } else {
                key(Command::DenyWithWord, "no, because…")
            },
            if card.form.as_ref().is_some_and(|form| !form.is_empty()) {
                key(Command::EditSteps, "fill in")
            } else {
                key(Command::EditSteps, &edit).filter(|_| is_plan)
            },
            key(Command::EditPlan, "editor").filter(|_| is_plan && card.unsaved() == 0),
            key(Command::Versions, &format!("{} versions", card.versions)).filter(|_| card.versions > 1),
            key(Command::Whole, if card.whole { "smaller" } else { "full screen" }),
            key(Command::Abort, if card.is_enlarged() { "smaller" } else { "stop" }),
        ]
    }
}

fn no(card: &Card) -> &'static str {
    if matches!(*card.request, ServerRequest::DeniedCommandApproval(_)) { "leave it" } else { "no" }
}

fn changes(count: usize) -> String {
    format!("{count} {}", if count == 1 { "change" } else { "changes" })
}

fn lines(below: usize) -> String {
    format!("{below} more {}", if below == 1 { "line" } else { "lines" })
}
