//! Letters in modes in which each letter is a command. A single letter executes its command. Several letters in quick
//! succession are text and go to the prompt, unless all of them are movements.

use std::time::Duration;

use crossterm::event::KeyCode;

use super::{copy, keys, rewind, select, tree, turns};
use crate::commands::{Command, KeyMode};
use crate::keymap::Key;
use crate::message::Action;
use crate::model::{Mode, Model, Run};
use crate::moment::UiTime;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Moves or scrolls. People repeat these letters, so a second one does not make them text.
    Motion,
    /// Opens an input line, which gets the next letters.
    Line,
    /// Changes the view; can be undone.
    View,
    /// Has lasting effects. The command is delayed until no further letter can belong to the succession.
    Beyond,
    Nothing,
}

/// Handles a key as one of several letters in quick succession. Returns false if the caller must execute the key's
/// command. `alone` is false for a key that was read together with others; its command may only change the view.
pub(super) fn takes(
    model: &mut Model,
    at: UiTime,
    key: Key,
    mode: KeyMode,
    alone: bool,
    actions: &mut Vec<Action>,
) -> bool {
    settle(model, at, actions);
    let Some(letter) = key.text() else {
        match &mut model.run {
            // Esc leaves the view, and the typed message continues.
            Some(run) if key.is(KeyCode::Esc) => run.goes_on(at),
            _ => end(model, actions),
        }
        return false;
    };
    if model.run.is_none() && mode.is_for_text() {
        return false;
    }
    let command = model.start.keymap.command(mode, key);
    let mut run = model.run.take().unwrap_or_else(|| Run::begin(model, at));
    let reach = match mode.is_for_text() {
        // The key closes the view and opens the command line.
        true if run.is_motion() && matches!(letter, ':' | '/') => return false,
        true => Reach::Nothing,
        false => reach(command),
    };
    let is_text = run.add(at, letter, is_other(mode, reach));
    let begins = matches!(mode, KeyMode::Normal | KeyMode::Page);
    if is_text || reach == Reach::Nothing && begins && !letter.is_whitespace() {
        let text = run.undo(model);
        model.mode = Mode::Insert;
        keys::type_text(model, at, &text);
        return true;
    }
    let waits = reach == Reach::Beyond;
    if let Some(command) = command.filter(|_| waits && alone) {
        run.hold(command);
    }
    model.run = (reach != Reach::Line).then_some(run);
    waits
}

/// True if a letter with this effect makes the whole succession text once there are several letters. In Normal mode,
/// only movements and input lines do not; in a view, changes of the view do not either.
const fn is_other(mode: KeyMode, reach: Reach) -> bool {
    match (mode, reach) {
        (KeyMode::Normal, Reach::View) | (_, Reach::Beyond | Reach::Nothing) => true,
        (_, Reach::Motion | Reach::Line | Reach::View) => false,
    }
}

fn reach(command: Option<Command>) -> Reach {
    let Some(command) = command else { return Reach::Nothing };
    match command {
        Command::LineUp
        | Command::LineDown
        | Command::PageUp
        | Command::PageDown
        | Command::Top
        | Command::Bottom
        | Command::SearchNext
        | Command::SearchPrevious
        | Command::PreviousAgent
        | Command::NextAgent
        | Command::PreviousMessage
        | Command::NextMessage
        | Command::PreviousOutput
        | Command::NextOutput
        | Command::Left
        | Command::Right
        | Command::WordLeft
        | Command::WordRight
        | Command::LineStart
        | Command::LineEnd => Reach::Motion,
        Command::CommandLine
        | Command::Search
        | Command::FilterLog
        | Command::MessageAgent
        | Command::FixFinding => Reach::Line,
        Command::Copy
        | Command::CopyCode
        | Command::CopySelection
        | Command::AskAgain
        | Command::StopAgent
        | Command::ConfirmRewind => Reach::Beyond,
        _ => Reach::View,
    }
}

/// Ends the succession of letters if its time is over. Returns true if it has ended.
pub(super) fn settle(model: &mut Model, now: UiTime, actions: &mut Vec<Action>) -> bool {
    let is_over = model.run.as_ref().is_some_and(|run| run.is_over(now));
    if is_over {
        end(model, actions);
    }
    is_over
}

pub(super) fn end(model: &mut Model, actions: &mut Vec<Action>) {
    let Some(command) = model.run.take().and_then(|run| run.waits()) else { return };
    match (command, model.mode) {
        (Command::Copy, _) => copy::answer(model, actions),
        (Command::CopyCode, _) => copy::code(model, actions),
        (Command::AskAgain, _) => turns::ask_again(model, model.now, actions),
        (Command::CopySelection, Mode::Select) => select::copy(model, actions),
        (Command::StopAgent, Mode::Agents) => tree::walk(model, command, actions),
        (Command::ConfirmRewind, Mode::Rewind) => rewind::key(model, command, actions),
        // Esc has already left the view.
        _ => {}
    }
}

/// Returns the time until the delayed command runs; `None` if no command is delayed.
pub(super) fn next(model: &Model, now: UiTime) -> Option<Duration> {
    model.run.as_ref().filter(|run| run.waits().is_some()).map(|run| run.left(now))
}
