use ipc::id::AgentId;
use protocol::event::{Account, EndReason, TurnFinished};
use protocol::frontend::{AgentAction, UserActionKind};

use super::{call, findings, recall, tell};
use crate::commands::{Command, KeyMode};
use crate::message::{Action, Reason};
use crate::model::{
    AgentView, Block, Editor, Look, Model, Outgoing, Part, REVIEW, TurnAccess, account, summary, tells_apart,
};
use crate::moment::UiTime;
use crate::text::SafeText;

/// Sends a message to the shown agent. While a turn of the agent runs, queues the message instead.
pub(super) fn send(model: &mut Model, at: UiTime, message: Outgoing, actions: &mut Vec<Action>) {
    let agent = model.agents.shown_id().clone();
    send_to(model, &agent, at, message, actions);
}

fn send_to(model: &mut Model, agent: &AgentId, at: UiTime, message: Outgoing, actions: &mut Vec<Action>) {
    if model.over {
        return model.answer(Look::Error, "the session is over; :q leaves");
    }
    let view = model.agents.of(agent);
    // A sub-agent has one turn, and reads new messages with its next request.
    if view.turn.is_running() && agent.is_top_level() {
        view.queue.push_back(message);
    } else {
        if view.turn.is_running() {
            view.say(Look::Notice, "the agent reads this with its next request");
        } else {
            view.turn.begin(at);
        }
        let Outgoing { text, images, is_command, own } = message;
        let (reads, offline) = own.as_ref().map_or((false, false), |own| (own.reads, own.offline));
        view.session.until = own.as_ref().and_then(|own| TurnAccess::of(own, &view.session));
        view.turn.is_review = own.as_ref().is_some_and(|own| own.name == REVIEW);
        let now = view.session.model.clone();
        if let Some(wanted) = own.and_then(|own| own.model).filter(|wanted| *wanted != now) {
            view.turn.model_after = Some(now);
            set_model(agent, wanted, actions);
        }
        let command = text.strip_prefix('!').filter(|_| is_command);
        let kind = match command.map(str::to_owned) {
            Some(command) => UserActionKind::Agent(AgentAction::RunCommand { command }),
            None if reads => UserActionKind::Agent(AgentAction::PromptReading { text, images, offline }),
            None => UserActionKind::Agent(AgentAction::Prompt { text, images }),
        };
        actions.push(Action::User(agent.clone(), kind));
    }
}

fn set_model(agent: &AgentId, model: String, actions: &mut Vec<Action>) {
    actions.push(Action::User(agent.clone(), UserActionKind::SetModel { model }));
}

pub(super) fn interrupt(model: &mut Model, actions: &mut Vec<Action>) {
    let turn = &mut model.agents.shown_mut().turn;
    if turn.is_running() && !turn.interrupted {
        turn.interrupted = true;
        tell(model, actions, UserActionKind::Agent(AgentAction::Interrupt));
    }
}

/// Ends a turn. Sends the next queued message, unless the turn was interrupted or failed.
pub(super) fn finished(model: &mut Model, agent: &AgentId, turn: &TurnFinished, actions: &mut Vec<Action>) {
    if agent.is_top_level() && model.agents.of(agent).queue.is_empty() {
        call(model, Reason::TurnOver, actions);
    }
    // Costs of sub-agents may be known even if the model of the agent itself has no price.
    let known = model.agents.of_turn(agent).known;
    let account = Account { known: known.max(account(turn).known), ..account(turn) };
    let view = model.agents.of(agent);
    view.turn.end();
    view.session.end_turn_access();
    if let Some(model) = view.turn.model_after.take() {
        set_model(agent, model, actions);
    }
    // The main agent's usage and cost include those of its sub-agents.
    view.turn.account = account;
    view.turn.below = Account::default();
    if let Some(message) = turn.message.as_deref().filter(|_| tells_apart(turn)) {
        tell_failure(view, Look::Error, message);
    }
    let end = Part::new(SafeText::prose(&summary(turn, &account)), Look::Turn);
    view.transcript.push_end(Block::of(vec![end]));
    if std::mem::take(&mut view.turn.is_review) && turn.reason == EndReason::Done {
        findings::found(view);
    }
    // After a turn whose requests were all allowed, the person first decides on its changes.
    let waits = model.rewind.is_of_turn && *agent == AgentId::root();
    if turn.reason == EndReason::Done && !view.turn.interrupted && !waits {
        if let Some(message) = view.queue.pop_front() {
            send_to(model, agent, model.now, message, actions);
        }
    } else {
        give_back(model, agent);
    }
}

/// Shows the key that makes the agent repeat a call whose approval request expired.
pub(super) fn tell_lapsed(model: &mut Model) {
    let bound_in: &[_] =
        if model.start.is_plain { &[KeyMode::Insert] } else { &[KeyMode::Insert, KeyMode::Normal] };
    let mut hints = bound_in.iter().map(|mode| model.start.keymap.hint(*mode, Command::AskAgain));
    if let (Some(_), Some(key)) = (&model.lapsed, hints.find(|key| !key.is_empty())) {
        model.say(Look::Notice, &format!("{key} repeats the unanswered request"));
    }
}

/// Asks the agent to repeat a call whose approval request expired.
pub(super) fn ask_again(model: &mut Model, at: UiTime, actions: &mut Vec<Action>) {
    let Some(call) = model.lapsed.take() else {
        return model.answer(Look::Notice, "every request was answered");
    };
    let text = format!(
        "Nobody answered your request in time: {call}. I am here now: make the call again if it is still needed."
    );
    send_to(model, &AgentId::root(), at, Outgoing { text, ..Outgoing::default() }, actions);
}

/// Shows an error of a model request. The error of the next attempt replaces it.
pub(super) fn tell_failure(view: &mut AgentView, look: Look, text: &str) {
    let text = in_commands(text);
    let (cause, hint) = text.split_at(text.find(HINT).unwrap_or(text.len()));
    let mut parts = vec![Part::new(SafeText::prose(cause), look)];
    // The hint has the usual style, not that of errors.
    if !hint.is_empty() {
        let indent = " ".repeat(4);
        parts.push(Part::new(SafeText::prose(hint.trim_start()), Look::Tool).after(indent.clone(), indent));
    }
    if let Some(block) = view.turn.retry.and_then(|at| view.transcript.block_mut(at)) {
        block.parts = parts;
    } else {
        view.turn.retry = Some(view.transcript.push(Block::of(parts)));
    }
}

/// Text between an error message and the hint about what to do.
const HINT: &str = "\n  hint: ";

/// Command-line flags, each with the UI command that has the same effect.
const COMMANDS: [(&str, &str); 5] = [
    ("--model", ":model"),
    ("--net on", ":net on"),
    ("--mode", ":mode"),
    ("--write", ":allow write"),
    ("--socket", ":allow socket"),
];

/// Replaces command-line flags in the hint of an error message with UI commands.
fn in_commands(text: &str) -> String {
    let Some((cause, hint)) = text.split_once(HINT) else { return text.to_owned() };
    let mut hint = hint.to_owned();
    for (flag, command) in COMMANDS {
        let mut said = String::new();
        let mut rest = hint.as_str();
        while let Some((before, after)) = rest.split_once(flag) {
            let is_longer = after.starts_with(|c: char| c.is_alphanumeric() || c == '-');
            said.extend([before, if is_longer { flag } else { command }]);
            rest = after;
        }
        hint = said + rest;
    }
    format!("{cause}{HINT}{hint}")
}

/// Moves queued messages to the prompt, before the text that is there.
fn give_back(model: &mut Model, agent: &AgentId) {
    let queue = std::mem::take(&mut model.agents.of(agent).queue);
    if queue.is_empty() {
        return;
    }
    recall::end(model, false);
    let images = std::mem::take(&mut model.attached);
    let own = model.own.take();
    let draft = Outgoing { text: model.prompt.take(), images, own, ..Outgoing::default() };
    let mut texts = Vec::new();
    for Outgoing { text, images, own, .. } in queue.into_iter().chain([draft]) {
        // If several messages have a command, one that only reads takes precedence.
        let reads = own.as_ref().is_some_and(|own| own.reads);
        if reads || model.own.is_none() {
            model.own = own.or_else(|| model.own.take());
        }
        texts.extend(Some(text).filter(|text| !text.is_empty()));
        model.attached.extend(images);
    }
    model.prompt = Editor::with(texts.join("\n"));
    model.agents.of(agent).say(Look::Notice, "queued messages moved back to the prompt");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_what_can_be_typed() {
        for (hint, shown) in [
            (
                "check --model: the server does not have this model",
                "check :model: the server does not have this model",
            ),
            (
                "try again later, or choose another model with --model",
                "try again later, or choose another model with :model",
            ),
            (
                "check the permissions of this key, and --model",
                "check the permissions of this key, and :model",
            ),
            ("--net on", ":net on"),
            ("--mode auto", ":mode auto"),
            ("--write /srv allows it", ":allow write /srv allows it"),
            ("check --base-url and --provider", "check --base-url and --provider"),
            ("--models, --model-of and --model", "--models, --model-of and :model"),
        ] {
            assert_eq!(in_commands(&format!("--model\n  hint: {hint}")), format!("--model\n  hint: {shown}"));
        }
        assert_eq!(in_commands("the server knows no --model"), "the server knows no --model");
    }
}
