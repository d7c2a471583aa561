use protocol::approval::{ProjectPrefixes, ReviewDecision, ServerRequest, SessionScope};
use protocol::frontend::{AgentAction, UserActionKind};
use ratatui::layout::Rect;

use super::{comments, editing, form, part, plan, steps};
use crate::card::{
    Asked, Card, CardPage, DroppedKey, InForce, Menu, Stage, always_in_project, explain, whole_turn,
};
use crate::commands::{Command, KeyMode};
use crate::keymap::{Key, Keymap};
use crate::message::Action;
use crate::model::{Areas, Editor, Mode, Model};
use crate::moment::UiTime;

pub(super) fn key(model: &mut Model, at: UiTime, key: Key, actions: &mut Vec<Action>) -> bool {
    let Some(card) = model.cards.front() else { return false };
    if matches!(card.stage, Stage::Form) {
        return form::key(model, at, key);
    }
    if card.editor().is_some() {
        return write(model, key, actions);
    }
    if model.start.keymap.command(mode_of(card), key) == Some(Command::CommandLine) {
        type_command(model);
        return true;
    }
    match card.stage {
        Stage::Comments => return comments::key(model, key, actions),
        Stage::Steps => return steps::key(model, key, actions),
        Stage::Part => return part::key(model, at, key, actions),
        Stage::Versions(_) => return steps::compare_key(model, key),
        Stage::Deciding
        | Stage::Scope(_)
        | Stage::Word(_)
        | Stage::Rule(_)
        | Stage::Turn(_)
        | Stage::Project(_)
        | Stage::Form => {}
    }
    let is_form = form::is_form(card);
    let Some(command) = model.start.keymap.command(mode_of(card), key) else {
        return key.is_letter() && no_meaning(model, at, key);
    };
    match command {
        Command::Suspend => actions.push(Action::Suspend),
        Command::Repaint => actions.push(Action::Repaint),
        Command::Deny => answer(model, ReviewDecision::DENIED, actions),
        Command::Abort if back(model) => {}
        Command::Abort if is_form => answer(model, ReviewDecision::Cancelled, actions),
        Command::Abort => answer(model, ReviewDecision::Abort, actions),
        Command::DenyWithWord => set_stage(model, Stage::Word(Editor::default())),
        Command::ApproveOnce if is_form => form::send(model, at, actions),
        Command::EditSteps if is_form => form::begin(model),
        Command::ApproveOnce => approve(model, at, |_| Some(ReviewDecision::Approved), actions),
        // The letters "py" or "ty" may begin a message.
        Command::Confirm if has_just_opened(model, at) => return drop_key(model, key),
        Command::Confirm => approve(model, at, beyond_once, actions),
        Command::ApproveSession => for_session(model, at, actions),
        Command::ApproveTurn => show_turn(model, at),
        Command::ApproveProject => show_project(model, at),
        Command::ApprovePart => part::begin(model, at),
        Command::Rule => show_rule(model),
        Command::Together => show_together(model, actions),
        Command::Back => set_stage(model, Stage::Deciding),
        Command::Comment => comments::begin(model),
        Command::EditPlan => plan::edit(model, actions),
        Command::EditSteps => steps::begin(model),
        Command::Versions => steps::compare(model),
        other => look(model, other),
    }
    true
}

/// Ignores a key that has no meaning here. The next letters are ignored too, since the person may be typing a text.
fn no_meaning(model: &mut Model, at: UiTime, key: Key) -> bool {
    let Some(card) = model.cards.front_mut() else { return false };
    card.rearm(at);
    card.drops(DroppedKey::WithoutMeaning(key))
}

fn has_just_opened(model: &Model, at: UiTime) -> bool {
    model.cards.front().is_some_and(|card| card.has_just_opened(at))
}

fn drop_key(model: &mut Model, key: Key) -> bool {
    model.cards.front_mut().is_some_and(|card| card.drops(DroppedKey::TooEarly(key)))
}

fn type_command(model: &mut Model) {
    if matches!(model.mode, Mode::Normal | Mode::Insert) {
        model.came_from = model.mode;
    }
    model.aside = true;
    model.mode = Mode::Command;
}

/// Returns to the approval request if the view that covered it was closed. Keys meant for the view do not answer it.
pub(super) fn face(model: &mut Model, at: UiTime) {
    model.aside &= !model.cards.is_empty();
    let is_over = matches!(model.mode, Mode::Normal | Mode::Insert);
    if model.aside && is_over {
        model.aside = false;
        if let Some(card) = model.cards.front_mut() {
            card.rearm(at);
        }
    }
    let is_new = is_over && !model.aside && model.cards.front_mut().is_some_and(Card::is_new);
    if is_new
        && has_just_said(model)
        && let Some(card) = model.cards.front_mut()
    {
        card.leave_out_reason();
    }
}

/// True if the reason that the request gives can be read in full in the transcript, above the request.
fn has_just_said(model: &Model) -> bool {
    let Some(card) = model.cards.front().filter(|card| !card.whole) else { return false };
    let view = model.agents.shown();
    let is_shown = *model.agents.shown_id() == card.asked.agent && !model.walks_tree();
    let said = view.said.as_ref().filter(|said| is_shown && card.request.reason() == Some(&said.text));
    let area = Areas::now(model).transcript;
    said.is_some_and(|said| view.transcript.shows_whole(&said.blocks, (area.width, area.height)))
}

fn back(model: &mut Model) -> bool {
    let Some(card) = model.cards.front_mut() else { return false };
    if matches!(card.stage, Stage::Rule(_)) {
        card.stage = Stage::Deciding;
        return true;
    }
    let is_page = card.is_enlarged();
    card.whole &= !is_page;
    is_page
}

pub(super) fn decides(model: &Model, key: Key) -> bool {
    let waits = model.aside || model.mode == Mode::Command;
    let card = model.cards.front().filter(|card| card.editor().is_none() && !waits);
    let Some(card) = card else { return false };
    let command = model.start.keymap.command(mode_of(card), key);
    command.is_some_and(|command| {
        matches!(
            command,
            Command::Deny
                | Command::Abort
                | Command::DenyWithWord
                | Command::ApproveOnce
                | Command::Confirm
                | Command::ApproveSession
                | Command::ApproveTurn
                | Command::ApproveProject
                | Command::ApprovePart
                | Command::EditText
                | Command::Comment
                | Command::SendComments
                | Command::EditPlan
                | Command::EditSteps
                | Command::SaveSteps
                | Command::Together
        )
    })
}

const fn mode_of(card: &Card) -> KeyMode {
    match card.stage {
        Stage::Scope(_) | Stage::Turn(_) | Stage::Project(_) => KeyMode::Scope,
        Stage::Comments => KeyMode::Comments,
        Stage::Steps => KeyMode::Steps,
        Stage::Part => KeyMode::Part,
        Stage::Form => KeyMode::Form,
        Stage::Versions(_) => KeyMode::Versions,
        Stage::Deciding | Stage::Word(_) | Stage::Rule(_) => card.key_mode(),
    }
}

pub(super) fn scroll(card: &mut Card, keymap: &Keymap, area: Rect, rows: isize) {
    let height = text_rows(card, keymap, area);
    card.sheet_mut().scroll(rows, (area.width, height));
}

pub(super) fn text_rows(card: &Card, keymap: &Keymap, area: Rect) -> u16 {
    area.height - card.frame_rows(keymap, (area.width, area.height))
}

pub(super) fn set_stage(model: &mut Model, stage: Stage) {
    if let Some(card) = model.cards.front_mut() {
        card.stage = stage;
    }
}

/// Returns the decision that the open page is about: for the session, the turn or the project; `None` for another page.
fn beyond_once(card: &Card) -> Option<ReviewDecision> {
    match &card.stage {
        Stage::Scope(menu) => menu.scope().map(|scope| ReviewDecision::ApprovedForSession { scope }),
        Stage::Turn(_) => Some(ReviewDecision::ApprovedForTurn),
        Stage::Project(_) => card.request.in_project().map(ProjectPrefixes::all),
        Stage::Deciding
        | Stage::Word(_)
        | Stage::Comments
        | Stage::Steps
        | Stage::Form
        | Stage::Part
        | Stage::Versions(_)
        | Stage::Rule(_) => None,
    }
}

fn approve(
    model: &mut Model,
    at: UiTime,
    decision: impl Fn(&Card) -> Option<ReviewDecision>,
    actions: &mut Vec<Action>,
) {
    let Some(card) = model.cards.front() else { return };
    // While an approval does not count yet, the key does nothing, however often it is pressed.
    if let (Ok(()), Some(decision)) = (card.approvable(at), decision(card)) {
        answer(model, decision, actions);
    }
}

pub(super) fn answer(model: &mut Model, decision: ReviewDecision, actions: &mut Vec<Action>) {
    let Some(card) = model.cards.pop_front() else { return };
    model.answered += 1;
    let answer = card.answer(decision);
    let Asked { agent, id } = card.asked;
    actions.push(Action::User(agent, UserActionKind::Answer { id, answer }));
}

/// Approves for the session. The scope is fixed for a request about a denial; else a menu of scopes opens.
fn for_session(model: &mut Model, at: UiTime, actions: &mut Vec<Action>) {
    let denied = |card: &Card| match &*card.request {
        ServerRequest::DeniedCommandApproval(params) => crate::card::for_session(params),
        ServerRequest::HostApproval(_) => Some(SessionScope::Network),
        _ => None,
    };
    match model.cards.front() {
        Some(card) if card.is_about_denial() => {
            let decision =
                |card: &Card| denied(card).map(|scope| ReviewDecision::ApprovedForSession { scope });
            approve(model, at, decision, actions);
        }
        _ => choose_scope(model, at),
    }
}

fn show_together(model: &Model, actions: &mut Vec<Action>) {
    let Some(card) = model.cards.front().filter(|card| card.others() > 0) else { return };
    let Asked { agent, id } = card.asked.clone();
    actions.push(Action::User(agent, UserActionKind::Agent(AgentAction::AskTogether { id })));
}

fn show_rule(model: &mut Model) {
    let revision = model.next_revision();
    let session = &model.agents.shown().session;
    let rules = InForce {
        mode: session.mode,
        mode_changed: session.mode != model.start.mode,
        net_changed: session.net != model.start.net,
        origins: &model.start.origins,
    };
    let Some(card) = model.cards.front_mut() else { return };
    card.stage = match card.stage {
        Stage::Rule(_) => Stage::Deciding,
        _ => Stage::Rule(CardPage::new(explain(&card.request, rules), revision)),
    };
}

fn show_turn(model: &mut Model, at: UiTime) {
    let revision = model.next_revision();
    let project = &model.start.project;
    let Some(card) = model.cards.front_mut().filter(|card| card.approvable(at).is_ok()) else { return };
    if let Some(access) = card.request.turn() {
        card.open_page(at, Stage::Turn(CardPage::new(whole_turn(access, project), revision)));
    }
}

fn show_project(model: &mut Model, at: UiTime) {
    let revision = model.next_revision();
    let (project, previews) = (&model.start.project, model.start.previews);
    let Some(card) = model.cards.front_mut().filter(|card| card.approvable(at).is_ok()) else { return };
    if let Some(kept) = card.request.in_project() {
        let page = CardPage::new(always_in_project(kept, project, previews), revision);
        card.open_page(at, Stage::Project(page));
    }
}

fn choose_scope(model: &mut Model, at: UiTime) {
    let revision = model.next_revision();
    let (project, previews) = (&model.start.project, model.start.previews);
    let Some(card) = model.cards.front_mut() else { return };
    if card.approvable(at).is_ok() && Menu::is_offered(&card.request) {
        let menu = Menu::new(&card.request, project, previews, revision);
        card.open_page(at, Stage::Scope(menu));
    }
}

/// Handles keys that scroll or select; they do not answer the request.
fn look(model: &mut Model, command: Command) {
    let Some(area) = Areas::now(model).card else { return };
    let revision = model.next_revision();
    let previews = model.start.previews;
    let (keymap, cards) = (&model.start.keymap, &mut model.cards);
    let Some(card) = cards.front_mut() else { return };
    let page = text_rows(card, keymap, area).saturating_sub(1).max(1);
    let page = isize::try_from(page).unwrap_or(1);
    match (command, &mut card.stage) {
        (Command::PageUp, _) => scroll(card, keymap, area, -page),
        (Command::PageDown, _) => scroll(card, keymap, area, page),
        (_, Stage::Scope(menu)) => {
            match command {
                Command::LineUp => menu.choose(-1),
                Command::LineDown => menu.choose(1),
                Command::Shorter => menu.lengthen(-1),
                Command::Longer => menu.lengthen(1),
                Command::Edit => menu.edit(),
                _ => return,
            }
            menu.lay(previews, revision);
        }
        (Command::LineUp, _) => scroll(card, keymap, area, -1),
        (Command::LineDown, _) => scroll(card, keymap, area, 1),
        (Command::Top, _) => scroll(card, keymap, area, isize::MIN),
        (Command::Bottom, _) => scroll(card, keymap, area, isize::MAX),
        (Command::Whole, _) => card.whole = !card.whole,
        _ => {}
    }
}

/// Handles a key in a text field of the request, where Enter approves nothing. True if the field or page changed.
fn write(model: &mut Model, key: Key, actions: &mut Vec<Action>) -> bool {
    let command = model.start.keymap.command(KeyMode::Insert, key);
    let is_field = model.cards.front().is_some_and(|card| matches!(card.stage, Stage::Steps));
    if is_field && command.is_some_and(|command| steps::in_lines(model, command)) {
        return true;
    }
    let Some(editor) = model.cards.front_mut().and_then(Card::editor_mut) else { return false };
    match (command, key.text()) {
        (Some(Command::Submit), _) => finish(model, actions),
        (Some(Command::Leave | Command::Cancel), _) => give_up(model),
        (Some(command), _) => return editing::edit(editor, command),
        // Text beyond the size limit is ignored.
        (None, Some(c)) => drop(editor.insert(c.encode_utf8(&mut [0; 4]))),
        (None, None) => return false,
    }
    true
}

fn finish(model: &mut Model, actions: &mut Vec<Action>) {
    let revision = model.next_revision();
    let previews = model.start.previews;
    let Some(card) = model.cards.front_mut() else { return };
    match &mut card.stage {
        Stage::Word(editor) => {
            let word = Some(editor.take()).filter(|word| !word.trim().is_empty());
            answer(model, ReviewDecision::Denied { message: word }, actions);
        }
        Stage::Scope(menu) => {
            menu.finish_editing();
            menu.lay(previews, revision);
        }
        Stage::Comments => comments::end_writing(model),
        Stage::Steps => steps::end_writing(model, true),
        Stage::Deciding
        | Stage::Form
        | Stage::Part
        | Stage::Versions(_)
        | Stage::Rule(_)
        | Stage::Turn(_)
        | Stage::Project(_) => {}
    }
}

fn give_up(model: &mut Model) {
    let Some(card) = model.cards.front_mut() else { return };
    match &mut card.stage {
        Stage::Scope(menu) => menu.editing = None,
        Stage::Comments => comments::end_writing(model),
        Stage::Steps => steps::end_writing(model, false),
        Stage::Word(_)
        | Stage::Deciding
        | Stage::Form
        | Stage::Part
        | Stage::Versions(_)
        | Stage::Rule(_)
        | Stage::Turn(_)
        | Stage::Project(_) => {
            card.stage = Stage::Deciding;
        }
    }
}
