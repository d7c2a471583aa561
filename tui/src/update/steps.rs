use protocol::frontend::{AgentAction, UserActionKind};

use super::approval::{set_stage, text_rows};
use super::scrolled;
use crate::card::{Asked, Stage, Steps};
use crate::commands::{Command, KeyMode};
use crate::keymap::Key;
use crate::message::Action;
use crate::model::{Areas, Model};
use crate::plan::Compared;

pub(super) fn begin(model: &mut Model) {
    if model.cards.front().is_some_and(|card| card.steps.is_some()) {
        set_stage(model, Stage::Steps);
        lay(model);
    }
}

pub(super) fn key(model: &mut Model, key: Key, actions: &mut Vec<Action>) -> bool {
    let page = isize::try_from(rows(model).1.saturating_sub(1).max(1)).unwrap_or(1);
    let command = model.start.keymap.command(KeyMode::Steps, key);
    let digit = key.text().and_then(|c| c.to_digit(10)).and_then(|digit| usize::try_from(digit).ok());
    let Some(steps) = steps(model) else { return false };
    steps.remark = None;
    match (command, digit) {
        (Some(Command::SaveSteps), _) => save(model, actions),
        (Some(Command::Back), _) => {
            set_stage(model, Stage::Deciding);
            return true;
        }
        (Some(Command::EditField), _) => steps.write(),
        (Some(Command::AddStep), _) => steps.add_step(),
        (Some(Command::AddCondition), _) => steps.add_condition(),
        (Some(command), _) if change(steps, command) => {}
        (Some(Command::LineUp), _) => steps.draft.go(false),
        (Some(Command::LineDown), _) => steps.draft.go(true),
        (Some(Command::PreviousStep), _) => steps.draft.go_steps(-1),
        (Some(Command::NextStep), _) => steps.draft.go_steps(1),
        (Some(Command::PageUp), _) => steps.draft.go_steps(-page),
        (Some(Command::PageDown), _) => steps.draft.go_steps(page),
        (Some(Command::Top), _) => steps.draft.go_steps(isize::MIN),
        (Some(Command::Bottom), _) => steps.draft.go_steps(isize::MAX),
        (None, Some(digit)) => steps.draft.go_by_digit(digit),
        _ => return false,
    }
    lay(model);
    true
}

fn change(steps: &mut Steps, command: Command) -> bool {
    match command {
        Command::ShiftUp => steps.draft.shift(false),
        Command::ShiftDown => steps.draft.shift(true),
        Command::DeleteField => steps.draft.delete(),
        Command::ChangeKind => steps.draft.change_kind(),
        Command::Undo => _ = steps.draft.undo(),
        _ => return false,
    }
    true
}

pub(super) fn end_writing(model: &mut Model, keeps: bool) {
    match steps(model) {
        Some(steps) if keeps => steps.finish(),
        Some(steps) => steps.give_up(),
        None => {}
    }
    lay(model);
}

/// Adds a line to the text of a step's field, or moves the caret up or down. Returns false for any other command.
pub(super) fn in_lines(model: &mut Model, command: Command) -> bool {
    let Some(steps) = steps(model).filter(|steps| steps.takes_lines()) else { return false };
    let Some(editor) = steps.editor_mut() else { return false };
    match command {
        Command::Newline => _ = editor.insert("\n"),
        Command::HistoryBack => _ = editor.vertical(false),
        Command::HistoryForward => _ = editor.vertical(true),
        _ => return false,
    }
    true
}

/// Sends the edited plan. The draft is kept, since the supervisor may reject it.
fn save(model: &mut Model, actions: &mut Vec<Action>) {
    let Some(card) = model.cards.front() else { return };
    let Some(steps) = card.steps.as_ref().filter(|steps| steps.draft.changes() > 0) else { return };
    let plan = Box::new(steps.draft.plan().clone());
    let Asked { agent, id } = card.asked.clone();
    actions.push(Action::User(agent, UserActionKind::Agent(AgentAction::RevisePlan { id, plan })));
}

pub(super) fn lay(model: &mut Model) {
    let revision = model.next_revision();
    let size = rows(model);
    if let Some(steps) = steps(model) {
        steps.lay(revision, size);
    }
}

pub(super) fn compare(model: &mut Model) {
    let revision = model.next_revision();
    let Some(card) = model.cards.front().filter(|card| card.versions > 1) else { return };
    let versions = model.plans.versions(&card.asked.agent);
    set_stage(model, Stage::Versions(Compared::last(versions, revision)));
}

/// Handles a key while an approval request shows a comparison of plan versions.
pub(super) fn compare_key(model: &mut Model, key: Key) -> bool {
    let Some(command) = model.start.keymap.command(KeyMode::Versions, key) else { return false };
    if command == Command::Back {
        set_stage(model, Stage::Deciding);
        return true;
    }
    let revision = model.next_revision();
    let size = rows(model);
    let Some(card) = model.cards.front_mut() else { return false };
    let Stage::Versions(compared) = &mut card.stage else { return false };
    choose(compared, command, revision, size)
}

pub(super) fn choose(compared: &mut Compared, command: Command, revision: u64, size: (u16, u16)) -> bool {
    match command {
        Command::OlderVersion => compared.choose(true, -1, revision),
        Command::NewerVersion => compared.choose(true, 1, revision),
        Command::OlderBase => compared.choose(false, -1, revision),
        Command::NewerBase => compared.choose(false, 1, revision),
        _ => match scrolled(command, size.1) {
            Some(rows) => compared.sheet.scroll(rows, size),
            None => return false,
        },
    }
    true
}

fn rows(model: &Model) -> (u16, u16) {
    let area = Areas::now(model).card.unwrap_or_default();
    let card = model.cards.front();
    (area.width, card.map_or(0, |card| text_rows(card, &model.start.keymap, area)))
}

fn steps(model: &mut Model) -> Option<&mut Steps> {
    model.cards.front_mut()?.steps.as_mut()
}
