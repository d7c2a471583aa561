use std::time::Duration;

use crossterm::event::{KeyEvent, KeyEventKind};
use protocol::frontend::{AgentAction, UserActionKind};

use super::{
    approval, aside, copy, editing, files, findings, help, log, page, palette, pause, picture, plan, recall,
    rewind, run, search, select, tell, tree, turns, typed, walk,
};
use crate::card::{Card, DroppedKey};
use crate::commands::{Command, KeyMode, is_quit};
use crate::keymap::Key;
use crate::message::Action;
use crate::model::{
    Areas, Editor, GAP, LineFor, Look, Mode, Model, Outgoing, Pasted, Shape, Unfolded, short_help,
};
use crate::moment::UiTime;

/// Maximum time between two presses of Ctrl+C that together end the session.
const TWICE: Duration = Duration::from_secs(3);

/// Maximum number of messages with long pastes that are kept while they are not in the log.
const MOST_PASTED: usize = 7;

pub(super) fn key(model: &mut Model, at: UiTime, event: KeyEvent, actions: &mut Vec<Action>) -> bool {
    one(model, at, event, true, actions)
}

fn one(model: &mut Model, at: UiTime, event: KeyEvent, alone: bool, actions: &mut Vec<Action>) -> bool {
    if event.kind == KeyEventKind::Release {
        return false;
    }
    let key = Key::from(event);
    if let Some(action) = anywhere(model, key) {
        actions.push(action);
        return true;
    }
    if model.asking().is_some_and(|card| card.takes_key(at)) {
        run::end(model, actions);
        // A repetition of a key that is held down answers no request.
        return event.kind == KeyEventKind::Press && approval::key(model, at, key, actions);
    }
    if !is_writing(model, at) && model.asking().is_some_and(|card| card.drops(DroppedKey::TooEarly(key))) {
        return true;
    }
    here(model, at, key, alone, actions)
}

/// True if the key probably continues the text that is being typed at the prompt.
fn is_writing(model: &Model, at: UiTime) -> bool {
    let goes_on = model.wrote_at.is_some_and(|wrote| at.since(wrote) <= GAP);
    goes_on && model.mode == Mode::Insert && !model.prompt.is_empty()
}

fn here(model: &mut Model, at: UiTime, key: Key, alone: bool, actions: &mut Vec<Action>) -> bool {
    let mode = key_mode(model);
    if matches!(model.mode, Mode::Normal | Mode::Insert) {
        model.came_from = model.mode;
    }
    let had_remark = model.remark.take().is_some();
    let leaves = model.leaves.take();
    if run::takes(model, at, key, mode, alone, actions) {
        return true;
    }
    match (model.start.keymap.command(mode, key), key.text()) {
        (Some(command), _) if recall::perform(model, command) || files::perform(model, command) => {}
        (Some(Command::Cancel), _) => cancel(model, at, leaves, actions),
        (Some(command), _) => perform(model, at, command, actions),
        (None, Some(c)) if mode.is_for_text() => write(model, c),
        (None, _) if model.mode == Mode::Normal => unbound(model, key),
        (None, _) => return had_remark,
    }
    if mode == KeyMode::Insert {
        model.wrote_at = Some(at);
    }
    true
}

const fn key_mode(model: &Model) -> KeyMode {
    match model.mode {
        Mode::Normal => KeyMode::Normal,
        Mode::Insert => KeyMode::Insert,
        Mode::Command => KeyMode::Command,
        Mode::Agents => KeyMode::Agents,
        Mode::Plan if model.versions.is_some() => KeyMode::Versions,
        Mode::Plan => KeyMode::Plan,
        Mode::Log => KeyMode::Log,
        Mode::Rewind => KeyMode::Rewind,
        Mode::Page => KeyMode::Page,
        Mode::Findings => KeyMode::Findings,
        Mode::Select => KeyMode::Select,
    }
}

/// Returns the action of a key that works in every mode (suspend or repaint); `None` for any other key.
fn anywhere(model: &Model, key: Key) -> Option<Action> {
    match model.start.keymap.command(KeyMode::Insert, key)? {
        Command::Suspend => Some(Action::Suspend),
        Command::Repaint => Some(Action::Repaint),
        _ => None,
    }
}

/// Handles a key that was read together with others, as in a paste. It answers no approval request.
pub(super) fn key_of_many(model: &mut Model, at: UiTime, event: KeyEvent, actions: &mut Vec<Action>) -> bool {
    let pressed = Key::from(event);
    let decides = approval::decides(model, pressed);
    if let Some(card) = model.asking()
        && (card.is_in_burst(at) || decides && card.is_open(at))
    {
        // The rest of the paste must not become a message either.
        card.wait_again(at);
        return decides || approval::key(model, at, pressed, actions);
    }
    let guarded =
        [Command::CycleMode, Command::EditPrompt, Command::PastePicture, Command::Suspend].map(Some);
    if guarded.contains(&model.start.keymap.command(KeyMode::Insert, pressed)) {
        // A paste must not widen access, nor start an editor, a shell or another program.
        return false;
    }
    one(model, at, event, false, actions)
}

/// Shows that a key has no meaning in Normal mode, and the keys that lead to the other modes.
fn unbound(model: &mut Model, key: Key) {
    model.remark = Some([format!("{} does nothing in NORMAL", key.label()), normal_keys(model)].join(" · "));
}

fn normal_keys(model: &Model) -> String {
    let keys = [(Command::Insert, "writes"), (Command::CommandLine, "commands"), (Command::Help, "keys")];
    let hints = keys.map(|(command, does)| (model.start.keymap.hint(KeyMode::Normal, command), does));
    let bound = hints.iter().filter(|(key, _)| !key.is_empty());
    bound.map(|(key, does)| format!("{key} {does}")).collect::<Vec<_>>().join(" · ")
}

fn to_normal(model: &mut Model) {
    if model.start.is_plain {
        model.mode = Mode::Insert;
    } else {
        model.mode = Mode::Normal;
        model.remark = Some(normal_keys(model));
    }
}

/// Shows that there is nothing to stop. Used if the keymap has no Normal mode.
fn nothing_to_leave(model: &mut Model) {
    let key = model.start.keymap.hint(KeyMode::Insert, Command::Leave);
    model.remark = Some(format!("{key}: nothing to stop"));
}

pub(super) fn edited(model: &mut Model, edited: Result<Option<String>, String>) -> bool {
    match edited {
        Ok(None) => {}
        // Editors add a line end to the last line.
        Ok(Some(text)) => model.prompt = Editor::with(text.strip_suffix('\n').unwrap_or(&text).to_owned()),
        Err(why) => model.answer(Look::Error, &why),
    }
    true
}

/// Inserts pasted text. A paste never answers an approval request.
pub(super) fn paste(model: &mut Model, text: &str, actions: &mut Vec<Action>) -> bool {
    run::end(model, actions);
    let now = model.now;
    let card = model.asking().filter(|card| card.is_open(now));
    let pasted = if let Some(editor) = card.and_then(Card::editor_mut) {
        editor.paste(text)
    } else {
        if matches!(
            model.mode,
            Mode::Normal | Mode::Agents | Mode::Plan | Mode::Log | Mode::Rewind | Mode::Page | Mode::Select
        ) {
            select::close(model);
            model.mode = Mode::Insert;
        }
        if model.mode == Mode::Command {
            model.line.paste(text)
        } else {
            picture::pasted(model, text, actions);
            model.prompt.paste_folded(text)
        }
    };
    if let Err(error) = pasted {
        model.answer(Look::Error, &error.to_string());
    }
    true
}

const fn writing(model: &mut Model) -> &mut Editor {
    match model.mode {
        Mode::Command => &mut model.line,
        Mode::Normal
        | Mode::Insert
        | Mode::Agents
        | Mode::Plan
        | Mode::Log
        | Mode::Rewind
        | Mode::Page
        | Mode::Findings
        | Mode::Select => &mut model.prompt,
    }
}

/// Inserts letters at the prompt that were taken for commands of Normal mode at first.
pub(super) fn type_text(model: &mut Model, at: UiTime, text: &str) {
    text.chars().for_each(|letter| write(model, letter));
    model.wrote_at = Some(at);
}

fn write(model: &mut Model, c: char) {
    if c == ':' && model.mode == Mode::Insert && model.prompt.is_empty() && model.recall.is_none() {
        return model.mode = Mode::Command;
    }
    if model.mode == Mode::Insert && model.prompt.is_empty() {
        model.own = None;
    }
    palette::follow(model);
    if let Err(error) = writing(model).insert(c.encode_utf8(&mut [0; 4])) {
        model.answer(Look::Error, &error.to_string());
    }
}

fn perform(model: &mut Model, at: UiTime, command: Command, actions: &mut Vec<Action>) {
    let is_at_end = model.prompt.caret() == model.prompt.text().len();
    if command == Command::LineEnd && model.mode == Mode::Insert && is_at_end {
        // The caret is at the end of the prompt already.
        return model.agents.shown_mut().transcript.follow();
    }
    if command == Command::CommandLine {
        // The command line also replaces an open view.
        select::close(model);
        return model.mode = Mode::Command;
    }
    if model.mode == Mode::Agents {
        return tree::walk(model, command, actions);
    }
    if model.mode == Mode::Plan {
        return plan::read(model, command, actions);
    }
    if model.mode == Mode::Log {
        return log::walk(model, command, actions);
    }
    if model.mode == Mode::Rewind {
        return rewind::key(model, command, actions);
    }
    if model.mode == Mode::Page {
        return page::read(model, command, actions);
    }
    if model.mode == Mode::Findings {
        return findings::walk(model, command, actions);
    }
    if model.mode == Mode::Select {
        return select::walk(model, command, actions);
    }
    if model.mode != Mode::Normal && editing::edit(writing(model), command) {
        return palette::follow(model);
    }
    match command {
        Command::Submit => submit(model, at, actions),
        Command::Newline => write(model, '\n'),
        Command::HistoryBack => history(model, false),
        Command::HistoryForward => history(model, true),
        Command::SearchHistory => recall::begin(model),
        Command::Complete => _ = palette::complete(model),
        Command::CycleMode => typed::cycle_mode(model, actions),
        Command::OpenRow if walk::open(model) => {}
        Command::Insert | Command::OpenRow => {
            model.agents.shown_mut().transcript.forget_found();
            model.mode = Mode::Insert;
        }
        Command::Search => search::begin(model),
        Command::SearchNext => search::next(model, true),
        Command::SearchPrevious => search::next(model, false),
        Command::Leave => leave(model, actions),
        Command::PreviousMessage | Command::NextMessage | Command::PreviousOutput | Command::NextOutput => {
            walk::by(model, command);
        }
        Command::Interrupt if walk::is_marked(model) && !model.agents.shown().turn.is_running() => {
            model.agents.shown_mut().transcript.forget_mark();
        }
        Command::Interrupt if is_at_rest(model) => rewind::open(model),
        Command::Interrupt => turns::interrupt(model, actions),
        Command::EditPrompt => actions.push(Action::EditPrompt(model.prompt.whole())),
        Command::PastePicture => picture::paste(model, actions),
        Command::Suspend => actions.push(Action::Suspend),
        Command::Repaint => actions.push(Action::Repaint),
        Command::Quit => quit(model, actions),
        Command::Help => help::show(model),
        Command::Agents => tree::open(model),
        Command::PreviousAgent => tree::show_beside(model, -1),
        Command::NextAgent => tree::show_beside(model, 1),
        Command::SelectCharacters => select::begin(model, Shape::Characters),
        Command::SelectLines => select::begin(model, Shape::Lines),
        Command::SelectColumns => select::begin(model, Shape::Columns),
        Command::Copy => copy::answer(model, actions),
        Command::CopyCode => copy::code(model, actions),
        Command::AskAgain => turns::ask_again(model, at, actions),
        Command::FoldThinking => {
            let transcript = &mut model.agents.shown_mut().transcript;
            transcript.fold_all(|Unfolded { thinking, .. }| *thinking ^= true);
        }
        Command::FoldOutput => walk::fold_output(model),
        Command::FoldPane => model.is_pane_folded ^= true,
        other => scroll(model, other),
    }
}

fn scroll(model: &mut Model, command: Command) {
    let area = Areas::now(model).transcript;
    let size = (area.width, area.height);
    let page = isize::try_from(area.height.saturating_sub(1).max(1)).unwrap_or(1);
    match command {
        Command::LineUp => model.agents.shown_mut().transcript.scroll(-1, size),
        Command::LineDown => model.agents.shown_mut().transcript.scroll(1, size),
        Command::PageUp => model.agents.shown_mut().transcript.scroll(-page, size),
        Command::PageDown => model.agents.shown_mut().transcript.scroll(page, size),
        Command::Top => model.agents.shown_mut().transcript.go_to_top(size),
        Command::Bottom => model.agents.shown_mut().transcript.follow(),
        _ => {}
    }
}

fn submit(model: &mut Model, at: UiTime, actions: &mut Vec<Action>) {
    match model.line_for {
        LineFor::Search => return search::submit(model),
        LineFor::Filter => return log::submit(model),
        LineFor::Command => {}
    }
    if palette::complete(model) {
        return;
    }
    if model.mode == Mode::Command {
        model.mode = model.came_from;
        let line = model.line.take();
        if !line.trim().is_empty() && !is_quit(line.trim()) {
            remember(model, &format!("/{}", line.trim()), actions);
        }
        return typed::run(model, ':', &line, actions);
    }
    if short_help::is_shown(model) && model.own.is_none() {
        model.prompt = Editor::default();
        return help::show(model);
    }
    if pause::retry(model, actions) {
        return;
    }
    if model.prompt.text().trim().is_empty() && model.attached.is_empty() {
        walk::open(model);
        return;
    }
    if model.own.is_some() {
        return send_own(model, at, actions);
    }
    let folded = model.prompt.drawn(0..model.prompt.text().len());
    let text = model.prompt.take();
    if aside::take(model, &text, actions) {
        return remember(model, &text, actions);
    }
    if let Some(why) = tree::takes_nothing(model) {
        model.prompt = Editor::with(text);
        return model.answer(Look::Error, &why);
    }
    if folded != text {
        remember_folded(model, &text, folded);
    }
    send(model, at, text, actions);
}

/// Keeps the short form of a message with long pastes. The transcript shows it when the message is in the log.
pub(super) fn remember_folded(model: &mut Model, text: &str, folded: String) {
    model.pasted.truncate(MOST_PASTED);
    model.pasted.push_front(Pasted { whole: text.to_owned(), folded });
}

/// Sends the text of a custom command as a message, even if the text begins with `/` or `!`.
fn send_own(model: &mut Model, at: UiTime, actions: &mut Vec<Action>) {
    if !model.agents.shown_id().is_top_level() {
        return model.answer(Look::Error, "your own commands work only with the main agent");
    }
    let (text, own) = (model.prompt.take(), model.own.take());
    let images = std::mem::take(&mut model.attached);
    model.agents.shown_mut().transcript.follow();
    turns::send(model, at, Outgoing { text, images, is_command: false, own }, actions);
}

fn remember(model: &mut Model, text: &str, actions: &mut Vec<Action>) {
    model.history.add(text);
    if !text.trim().is_empty() {
        actions.push(Action::Remember(text.to_owned()));
    }
}

pub(super) fn send(model: &mut Model, at: UiTime, text: String, actions: &mut Vec<Action>) {
    remember(model, &text, actions);
    model.agents.shown_mut().transcript.follow();
    let images = std::mem::take(&mut model.attached);
    turns::send(model, at, Outgoing { text, images, ..Outgoing::default() }, actions);
}

fn history(model: &mut Model, forward: bool) {
    if palette::choose(model, forward) || model.mode == Mode::Command || model.prompt.vertical(forward) {
        return;
    }
    model.palette.close();
    if forward {
        model.history.forward(&mut model.prompt);
    } else {
        model.history.back(&mut model.prompt);
    }
}

/// True if the session is idle, the prompt is empty, and there is a message to which the session can be rewound.
fn is_at_rest(model: &Model) -> bool {
    let Model { prompt, rewind, agents, over, .. } = model;
    !over && prompt.is_empty() && !rewind.said.is_empty() && !agents.any_is_running()
}

fn leave(model: &mut Model, actions: &mut Vec<Action>) {
    match model.mode {
        Mode::Command if model.line_for == LineFor::Filter => {
            model.line = Editor::default();
            log::leave_line(model);
        }
        Mode::Command => {
            model.line = Editor::default();
            model.line_for = LineFor::Command;
            if model.aside {
                model.mode = model.came_from;
            } else {
                to_normal(model);
            }
        }
        Mode::Insert if palette::has_choice(model) => model.palette.close(),
        Mode::Insert if short_help::is_shown(model) => model.prompt = Editor::default(),
        Mode::Insert if model.agents.shown().turn.is_running() => turns::interrupt(model, actions),
        Mode::Insert if walk::is_marked(model) => model.agents.shown_mut().transcript.forget_mark(),
        Mode::Insert if model.start.is_plain => nothing_to_leave(model),
        Mode::Insert
        | Mode::Normal
        | Mode::Agents
        | Mode::Plan
        | Mode::Log
        | Mode::Rewind
        | Mode::Page
        | Mode::Findings
        | Mode::Select => {
            to_normal(model);
        }
    }
}

/// Empties the prompt; if it is empty, interrupts the turn; if no turn runs, ends the session on the second press.
fn cancel(model: &mut Model, at: UiTime, before: Option<UiTime>, actions: &mut Vec<Action>) {
    let is_running = model.agents.shown().turn.is_running() && !model.agents.shown().turn.interrupted;
    if model.mode == Mode::Command {
        leave(model, actions);
    } else if !model.prompt.is_empty() {
        (model.prompt, model.own) = (Editor::default(), None);
    } else if is_running {
        turns::interrupt(model, actions);
    } else if before.is_some_and(|before| at.since(before) < TWICE) {
        actions.push(Action::Quit);
    } else {
        model.leaves = Some(at);
        let key = model.start.keymap.hint(KeyMode::Insert, Command::Cancel);
        model.remark = Some(format!("{key} again ends the session"));
    }
}

/// Returns the time that is left for a second Ctrl+C to end the session; `None` if Ctrl+C was not pressed just before.
pub(super) fn leaves_for(model: &Model, now: UiTime) -> Option<Duration> {
    model.leaves.map(|before| TWICE.saturating_sub(now.since(before)))
}

/// Forgets the first Ctrl+C if it is too long ago. True if there was one to forget.
pub(super) fn stay(model: &mut Model) -> bool {
    let is_over = leaves_for(model, model.now).is_some_and(|left| left.is_zero());
    if is_over {
        (model.leaves, model.remark) = (None, None);
    }
    is_over
}

fn quit(model: &mut Model, actions: &mut Vec<Action>) {
    if model.prompt.is_empty() {
        actions.push(Action::Quit);
    }
}

pub(super) fn revoke(model: &Model, id: u64, actions: &mut Vec<Action>) {
    tell(model, actions, UserActionKind::Agent(AgentAction::RevokeGrant { id: ipc::id::GrantId(id) }));
}
