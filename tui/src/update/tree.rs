//! Keys and commands for the list of agents.

use ipc::id::AgentId;
use protocol::frontend::{AgentAction, UserActionKind};

use crate::commands::{Command, KeyMode};
use crate::message::Action;
use crate::model::tree::listed;
use crate::model::{Look, Mode, Model};

pub(super) fn open(model: &mut Model) {
    model.mode = Mode::Agents;
    let shown = model.agents.shown_id().clone();
    model.agents.point_at(shown);
}

pub(super) fn show(model: &mut Model, agent: &AgentId) {
    if !model.select(agent) {
        model.answer(Look::Error, &format!("no agent {agent} (see :agents)"));
    }
}

/// Shows the agent `places` rows below the shown one in the list of agents, or above if negative.
pub(super) fn show_beside(model: &mut Model, places: isize) {
    let shown = model.agents.shown_id().clone();
    match beside(model, &shown, places) {
        Some(agent) => show(model, &agent),
        None if listed(model).len() < 2 => model.answer(Look::Notice, "there is no other agent"),
        None => {}
    }
}

pub(super) fn walk(model: &mut Model, command: Command, actions: &mut Vec<Action>) {
    let selected = model.agents.selected().clone();
    let places = match command {
        Command::LineUp => -1,
        Command::LineDown => 1,
        Command::Top => isize::MIN,
        Command::Bottom => isize::MAX,
        Command::OpenAgent => return leave_to(model, &selected, model.came_from),
        Command::MessageAgent => return leave_to(model, &selected, Mode::Insert),
        Command::StopAgent => return stop(model, selected, actions),
        Command::Repaint => return actions.push(Action::Repaint),
        _ => return model.mode = model.came_from,
    };
    if let Some(agent) = beside(model, &selected, places) {
        model.agents.point_at(agent);
    }
}

/// Returns the agent `places` rows below `agent` in the list of agents, or above if negative; at most the last or the
/// first one. `None` if that is `agent` itself.
fn beside(model: &Model, agent: &AgentId, places: isize) -> Option<AgentId> {
    let listed = listed(model);
    let last = listed.len().saturating_sub(1);
    let at = listed.iter().position(|(id, _)| *id == agent).unwrap_or(0);
    let wanted = at.saturating_add_signed(places).min(last);
    listed.get(wanted).map(|(id, _)| (*id).clone()).filter(|id| id != agent)
}

fn leave_to(model: &mut Model, agent: &AgentId, mode: Mode) {
    model.mode = mode;
    show(model, agent);
}

fn stop(model: &mut Model, agent: AgentId, actions: &mut Vec<Action>) {
    let turn = &mut model.agents.of(&agent).turn;
    if !turn.is_running() {
        model.answer(Look::Notice, &format!("agent {agent} is idle: nothing to stop"));
    } else if !turn.interrupted {
        turn.interrupted = true;
        actions.push(Action::User(agent, UserActionKind::Agent(AgentAction::Interrupt)));
    }
}

/// Returns the reason why the shown agent accepts no messages; `None` if it accepts them.
pub(super) fn takes_nothing(model: &Model) -> Option<String> {
    let agent = model.agents.shown_id();
    model.agents.shown().ended?;
    let back = model.start.keymap.hint(KeyMode::Normal, Command::PreviousAgent);
    let key = if model.start.is_plain { String::new() } else { format!(" or {back} in NORMAL") };
    Some(format!("agent {agent} has ended; :agent 1{key} switches to the main agent"))
}
