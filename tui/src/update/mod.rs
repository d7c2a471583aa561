mod access;
mod agent_rows;
mod approval;
mod aside;
mod branch;
mod calls;
mod code;
mod comments;
mod context;
mod copy;
mod cost;
mod denial;
mod editing;
mod effects;
mod events;
mod files;
mod findings;
mod form;
mod help;
mod hosts;
mod keys;
mod log;
mod models;
mod own;
mod page;
mod palette;
mod part;
mod pause;
mod picture;
mod plan;
mod prompts;
mod recall;
mod reply;
mod review;
mod rewind;
mod run;
mod said;
mod search;
mod select;
mod shell;
mod steps;
mod tasks;
mod tree;
mod turns;
mod typed;
mod walk;

use std::time::Duration;

use protocol::frontend::UserActionKind;

pub use access::{ALLOWED, allowed};
pub use review::review_task;

use crate::card::{Asked, LAST_MINUTE};
use crate::commands::Command;
use crate::message::{Action, Msg, Reason};
use crate::model::tree::counts_seconds;
use crate::model::{Areas, Look, Mode, Model, plan_rows};
use crate::moment::UiTime;
use crate::view::Shown;

const NOTCH: isize = 3;

/// Applies one message. Returns the actions that the caller must execute.
pub fn update(model: &mut Model, at: UiTime, message: Msg) -> Vec<Action> {
    model.now = model.now.max(at);
    let mut actions = Vec::new();
    let ends_call = match message {
        Msg::Key(_) | Msg::KeyOfMany(_) | Msg::Paste(_) => model.attention.key(at),
        Msg::Focus(focused) => model.attention.focus(at, focused),
        _ => false,
    };
    if ends_call {
        actions.extend([Action::EndCall, Action::Redraw]);
    }
    let writes = matches!(message, Msg::Key(_) | Msg::KeyOfMany(_) | Msg::Paste(_) | Msg::PromptEdited(_));
    let changed = match message {
        Msg::Key(event) => keys::key(model, at, event, &mut actions),
        Msg::KeyOfMany(event) => keys::key_of_many(model, at, event, &mut actions),
        Msg::Paste(text) => keys::paste(model, &text, &mut actions),
        Msg::Submit(text) => {
            pause::retry(model, &mut actions);
            keys::send(model, at, text, &mut actions);
            true
        }
        Msg::Focus(_) => false,
        Msg::Wheel(notches) => wheel(model, notches),
        Msg::Resize(width, height) => resize(model, (width, height)),
        Msg::Core(event) => events::core(model, event, &mut actions),
        Msg::Tick => {
            plan::lay(model);
            let ended = run::settle(model, at, &mut actions);
            ended | end_answer(model) | reply::read_all(model) | keys::stay(model) | changes_by_itself(model)
        }
        Msg::Drawn(shown) => drawn(model, at, shown, &mut actions),
        Msg::LogRead(read) => log::read(model, read),
        Msg::EventRead(read) => log::read_event(model, read),
        Msg::CodeRead(read) => code::read(model, &read),
        Msg::PlanEdited { agent, id, edited } => {
            plan::edited(model, Asked { agent, id }, edited, &mut actions)
        }
        Msg::TextEdited { agent, id, path, edited } => {
            part::edited(model, &Asked { agent, id }, &path, edited)
        }
        Msg::PromptEdited(edited) => keys::edited(model, edited),
        Msg::Resumed => return resumed(model),
        Msg::Answer(text) => {
            model.answer(Look::Notice, &text);
            true
        }
        Msg::Note(text) => {
            model.say(Look::Notice, &text);
            true
        }
        Msg::Theme(theme) => model.start.capabilities.theme.replace(theme) != Some(theme),
        Msg::Attached(read) => typed::attached(model, read),
        Msg::PictureFound { text, image } => picture::found(model, text, image),
        Msg::CoreGone => core_gone(model),
    };
    approval::face(model, at);
    if writes {
        files::follow(model, &mut actions);
    }
    if changed {
        agent_rows::renew_all(model);
        actions.push(Action::Redraw);
    }
    actions
}

/// Notifies the person if the person seems to be absent.
fn call(model: &mut Model, reason: Reason, actions: &mut Vec<Action>) {
    if model.attention.call(model.now) {
        actions.push(Action::Call(reason));
    }
}

/// Returns the time from `now` until the next [`Msg::Tick`]; `None` if nothing will change on the screen by itself.
pub fn next_tick(model: &Model, now: UiTime) -> Option<Duration> {
    let card = model.card();
    let opens = card.and_then(|card| card.opens_at(now)).map(|opens| opens.since(now));
    // A request shows its remaining time in the last minute only.
    let remaining = card.map(|card| card.remaining(now)).filter(|remaining| !remaining.is_zero());
    let last_minute = remaining.and_then(|remaining| remaining.checked_sub(LAST_MINUTE));
    let last_minute = last_minute.filter(|until| !until.is_zero());
    let remaining = remaining.filter(|_| last_minute.is_none());
    let turn = &model.agents.shown().turn;
    // The list of agents shows the running times of all agents.
    let began = if counts_seconds(model) { model.agents.began() } else { turn.began };
    let elapsed = began.map(|began| now.since(began));
    let attempt = turn.began.and_then(|_| turn.doing.remaining(now));
    // Countdowns show whole remaining seconds, turns show whole elapsed seconds.
    let countdown = [remaining, attempt].into_iter().flatten().map(past_whole_second).min();
    let count = elapsed.map(|elapsed| Duration::from_secs(elapsed.as_secs() + 1).saturating_sub(elapsed));
    let answer = model.answer.as_ref().map(|answer| answer.left(model.now));
    let others = [reply::next(model, now), keys::leaves_for(model, now), run::next(model, now), answer];
    [opens, last_minute, countdown, count].into_iter().chain(others).flatten().min()
}

fn past_whole_second(remaining: Duration) -> Duration {
    let over = Duration::from_nanos(u64::from(remaining.subsec_nanos()));
    if over.is_zero() { Duration::from_secs(1) } else { over }
}

/// Removes the answer above the prompt if it was shown long enough. True if it was removed.
fn end_answer(model: &mut Model) -> bool {
    let now = model.now;
    model.answer.take_if(|answer| answer.left(now).is_zero()).is_some()
}

fn changes_by_itself(model: &Model) -> bool {
    let turns = counts_seconds(model) && model.agents.began().is_some();
    turns || model.agents.shown().turn.is_running() || !model.cards.is_empty()
}

fn wheel(model: &mut Model, notches: i16) -> bool {
    let rows = isize::from(notches) * NOTCH;
    let areas = Areas::now(model);
    match (model.cards.front_mut(), areas.card) {
        (Some(card), Some(area)) => approval::scroll(card, &model.start.keymap, area, rows),
        _ if model.mode == Mode::Plan => {
            let height = plan_rows(areas.transcript.height);
            let sheet = match &mut model.versions {
                Some(compared) => &mut compared.sheet,
                None => &mut model.plan_sheet,
            };
            sheet.scroll(rows, (areas.transcript.width, height));
        }
        _ if model.mode == Mode::Log => model.log.go(rows),
        _ if model.mode == Mode::Page => {
            model.page.scroll(rows, (areas.transcript.width, plan_rows(areas.transcript.height)));
        }
        _ if model.mode == Mode::Rewind => rewind::wheel(model, rows),
        _ if model.mode == Mode::Findings => findings::wheel(model, rows),
        _ => model
            .agents
            .shown_mut()
            .transcript
            .scroll(rows, (areas.transcript.width, areas.transcript.height)),
    }
    true
}

fn resize(model: &mut Model, size: (u16, u16)) -> bool {
    model.size = size;
    true
}

fn drawn(model: &mut Model, at: UiTime, shown: Shown, actions: &mut Vec<Action>) -> bool {
    if shown.plain {
        code::ask(model, actions);
    }
    let card = model.cards.front_mut().filter(|card| shown.card == Some(card.number()));
    card.is_some_and(|card| card.drawn(at, shown.whole, shown.to_end))
}

fn resumed(model: &mut Model) -> Vec<Action> {
    for card in &mut model.cards {
        card.forget_screen();
    }
    vec![Action::Repaint, Action::Redraw]
}

fn core_gone(model: &mut Model) -> bool {
    model.cards.clear();
    model.agents.all_mut().for_each(|view| view.turn.end());
    model.over = true;
    model.say(Look::Error, "the session is over; :q leaves");
    true
}

fn tell(model: &Model, actions: &mut Vec<Action>, kind: UserActionKind) {
    actions.push(Action::User(model.agents.shown_id().clone(), kind));
}

/// Returns the number of rows by which a command scrolls, negative for up; `None` if the command does not scroll.
fn scrolled(command: Command, height: u16) -> Option<isize> {
    let page = isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1);
    Some(match command {
        Command::LineUp => -1,
        Command::LineDown => 1,
        Command::PageUp => -page,
        Command::PageDown => page,
        Command::Top => isize::MIN,
        Command::Bottom => isize::MAX,
        _ => return None,
    })
}
