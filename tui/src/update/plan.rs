//! View of a plan, and the commands `:plan` and `:edit-plan`.

use ipc::id::{AgentId, ApprovalId};
use ipc::path::WirePath;
use protocol::approval::ServerRequest;
use protocol::event::Activity;
use protocol::frontend::{AgentAction, UserActionKind};

use super::{scrolled, steps};
use crate::card::{Asked, Card};
use crate::commands::Command;
use crate::message::Action;
use crate::model::{Areas, Block, Look, Mode, Model, Part, plan_rows};
use crate::plan::{Compared, Progress, styled};
use crate::text::SafeText;

pub(super) fn command(model: &mut Model, text: Option<&str>, actions: &mut Vec<Action>) {
    match text {
        None if model.plans.current().is_some() => open(model),
        _ if model.over => model.answer(Look::Error, "the session is over; :q leaves"),
        _ if model.start.activity == Activity::Plan => {
            model.answer(
                Look::Error,
                "this agent is already a planner: type a message that says what to plan",
            );
        }
        None => {
            let usage = ":plan TEXT: another agent makes a plan and changes nothing";
            model.answer(Look::Notice, usage);
        }
        Some(text) => {
            let kind = UserActionKind::Plan { text: text.to_owned() };
            actions.push(Action::User(AgentId::root(), kind));
        }
    }
}

pub(super) fn edit(model: &mut Model, actions: &mut Vec<Action>) {
    if model.cards.iter().any(|card| card.unsaved() > 0) {
        // Otherwise one of the two edits would be lost.
        return model.answer(Look::Error, "the plan has changes that are not saved: save or undo them first");
    }
    let action =
        model.cards.iter().find_map(|Card { asked: Asked { agent, id }, request, edited, .. }| {
            let ServerRequest::PlanApproval(params) = &**request else { return None };
            // A text that the supervisor rejected is edited further.
            let markdown = edited.as_ref().unwrap_or(&params.markdown).clone();
            let (agent, id) = (agent.clone(), *id);
            Some(Action::EditPlan { agent, id, markdown })
        });
    match action {
        Some(action) => actions.push(action),
        None => model.answer(Look::Notice, "no plan waits for your approval"),
    }
}

pub(super) fn edited(
    model: &mut Model,
    asked: Asked,
    edited: Result<Option<String>, String>,
    actions: &mut Vec<Action>,
) -> bool {
    let waits = model.cards.iter().any(|card| card.asked == asked);
    match edited {
        Err(why) => {
            model.answer(Look::Error, &why);
            not_read(model, &asked.agent, &why);
        }
        Ok(None) => model.answer(Look::Notice, "the plan is unchanged"),
        Ok(Some(_)) if !waits => {
            model.answer(Look::Error, "the edit was discarded: the plan no longer waits for your approval");
        }
        Ok(Some(markdown)) => {
            if let Some(card) = model.cards.iter_mut().find(|card| card.asked == asked) {
                card.edited = Some(markdown.clone());
            }
            let Asked { agent, id } = asked;
            actions.push(Action::User(agent, edit_of(id, markdown)));
        }
    }
    true
}

/// Shows in the plan's approval request why the supervisor rejected the person's edit of the plan.
pub(super) fn not_read(model: &mut Model, agent: &AgentId, message: &str) {
    let revision = model.next_revision();
    let is_plan = |card: &&mut Card| matches!(*card.request, ServerRequest::PlanApproval(_));
    let project = &model.start.project;
    for card in model.cards.iter_mut().filter(is_plan).filter(|card| card.asked.agent == *agent) {
        if let Some(steps) = card.steps.as_mut().filter(|steps| steps.draft.changes() > 0) {
            steps.remark = Some(message.to_owned());
        } else {
            card.remark(message, project, revision);
        }
    }
    steps::lay(model);
}

const fn edit_of(id: ApprovalId, markdown: String) -> UserActionKind {
    UserActionKind::Agent(AgentAction::EditPlan { id, markdown })
}

fn open(model: &mut Model) {
    model.mode = Mode::Plan;
    model.plan_sheet = crate::card::CardPage::default();
    model.versions = None;
    lay(model);
}

pub(super) fn lay(model: &mut Model) {
    if model.mode != Mode::Plan {
        return;
    }
    let revision = model.next_revision();
    if let Some(plan) = model.plans.current() {
        model.plan_sheet.renew(block(plan, model.now, &model.start.project), revision);
    }
}

fn block(plan: &Progress, now: crate::UiTime, project: &WirePath) -> Block {
    let part = |text: &str, look| Part::new(SafeText::line(text), look);
    let mut parts = vec![part(&format!("plan: {} · {}", plan.title, plan.state()), Look::Heading)];
    for (line, step) in plan.lines(now).iter().zip(plan.steps()) {
        parts.push(part(&line.text, Look::of_step(line.status)));
        parts.extend(step.note.as_ref().map(|note| Part::new(SafeText::exact(note), Look::Claim)));
        parts.extend(step.changes(project).map(|line| Part::new(SafeText::bytes(&line), Look::Fact)));
    }
    parts.push(part("text of the plan:", Look::Heading));
    parts.push(part(&plan.path, Look::Turn));
    parts.extend(styled(&plan.markdown));
    Block::of(parts)
}

pub(super) fn read(model: &mut Model, command: Command, actions: &mut Vec<Action>) {
    let area = Areas::now(model).transcript;
    let size = (area.width, plan_rows(area.height));
    let revision = model.next_revision();
    match (command, &mut model.versions) {
        (Command::Repaint, _) => actions.push(Action::Repaint),
        (Command::Back, versions) => *versions = None,
        (_, Some(compared)) => _ = steps::choose(compared, command, revision, size),
        (Command::Versions, None) => compare(model, revision),
        (_, None) => match scrolled(command, size.1) {
            Some(rows) => model.plan_sheet.scroll(rows, size),
            None => model.mode = model.came_from,
        },
    }
}

fn compare(model: &mut Model, revision: u64) {
    let versions = model.plans.current().map(|plan| plan.versions().to_vec()).unwrap_or_default();
    if !versions.is_empty() {
        model.versions = Some(Compared::last(versions, revision));
    }
}
