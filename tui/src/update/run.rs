//! Letters where each would be a command, in NORMAL and in the views: one alone is its command, motions stay motions, and a run with
//! any other letter is a message that somebody writes. It goes to the prompt whole.

use std::time::Duration;

use crossterm::event::KeyCode;

use super::{copy, keys, rewind, tree, turns};
use crate::commands::{Command, KeyMode};
use crate::keymap::Key;
use crate::message::Action;
use crate::model::{Mode, Model, Run};
use crate::moment::UiTime;

/// The reach of a letter's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// It moves the reader: a repetition is no text.
    Motion,
    /// It opens a line for the letters that follow.
    Line,
    /// It changes the view, and can be undone.
    View,
    /// It has other effects: it waits until no letter follows.
    Beyond,
    Nothing,
}

/// Takes a key that belongs to a run of letters, or begins one; false for a key whose command is to be carried out now. `alone` is
/// false for a key that came together with others: it reaches nothing beyond the view.
pub(super) fn takes(
    model: &mut Model,
    at: UiTime,
    key: Key,
    (mode, alone): (KeyMode, bool),
    actions: &mut Vec<Action>,
) -> bool {
    settle(model, at, actions);
    let Some(letter) = key.text() else {
        match &mut model.run {
            // Esc leads somewhere else, and the message goes on after it.
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
        // A view is closed, and a command follows.
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

/// In NORMAL any letter but a motion begins a message; in a view letters without a meaning do, and those that reach beyond it.
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
        | Command::NextAgent => Reach::Motion,
        Command::CommandLine | Command::Search | Command::FilterLog | Command::MessageAgent => Reach::Line,
        Command::Copy
        | Command::CopyCode
        | Command::AskAgain
        | Command::StopAgent
        | Command::ConfirmRewind => Reach::Beyond,
        _ => Reach::View,
    }
}

/// Ends a run that no letter can continue any more; returns true if there was one.
pub(super) fn settle(model: &mut Model, now: UiTime, actions: &mut Vec<Action>) -> bool {
    let is_over = model.run.as_ref().is_some_and(|run| run.is_over(now));
    if is_over {
        end(model, actions);
    }
    is_over
}

/// Ends the run: what waited for that is carried out.
pub(super) fn end(model: &mut Model, actions: &mut Vec<Action>) {
    let Some(command) = model.run.take().and_then(|run| run.waits()) else { return };
    match (command, model.mode) {
        (Command::Copy, _) => copy::answer(model, actions),
        (Command::CopyCode, _) => copy::code(model, actions),
        (Command::AskAgain, _) => turns::ask_again(model, model.now, actions),
        (Command::StopAgent, Mode::Agents) => tree::walk(model, command, actions),
        (Command::ConfirmRewind, Mode::Rewind) => rewind::key(model, command, actions),
        // Esc has led out of the view meanwhile.
        _ => {}
    }
}

/// The time until a command is carried out that waits for it.
pub(super) fn next(model: &Model, now: UiTime) -> Option<Duration> {
    model.run.as_ref().filter(|run| run.waits().is_some()).map(|run| run.left(now))
}
