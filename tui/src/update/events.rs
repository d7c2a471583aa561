//! What the core says.

use std::time::Duration;

use ipc::approval::{ReviewDecision, SessionGrant};
use ipc::event::{
    Account, ApprovalAnswered, AssistantMessage, CompactionStarted, DecidedBy, EventKind, RestoredPlace,
    SessionEvent, SessionStarted, WorkerStarted,
};
use ipc::frontend::UiEventKind;
use ipc::id::{CallId, Generation, GrantId};
use ipc::image::Image;

use super::{denial, turns};
use crate::card::Card;
use crate::message::Action;
use crate::model::{Block, Call, Doing, Fold, Look, Model, Part, Pending, Reply, access};
use crate::text::SafeText;

/// What the core says; says whether anything that shows changed.
pub(super) fn core(model: &mut Model, kind: UiEventKind, actions: &mut Vec<Action>) -> bool {
    match kind {
        UiEventKind::Logged(event) => return logged(model, *event, actions),
        UiEventKind::TextDelta { text } => text_delta(model, &text),
        UiEventKind::ThinkingDelta { text } => thinking_delta(model, &text),
        UiEventKind::OutputDelta { call, text } => {
            if let Some(block) =
                model.calls.get(&call).and_then(|call| model.transcript.block_mut(call.block))
            {
                Call::printed(block, &text);
            }
        }
        UiEventKind::ApprovalRequested { id, request } => {
            let revision = model.next_revision();
            model.cards.push_back(Card::new(id, request, &model.start.project, model.now, revision));
        }
        UiEventKind::ApprovalClosed { id } => model.cards.retain(|card| card.id != id),
    }
    true
}

fn text_delta(model: &mut Model, text: &str) {
    model.turn.doing = Doing::Answering;
    let at = model.reply.text.unwrap_or_else(|| begin(model, paragraph(Look::Assistant)));
    model.reply.text = Some(at);
    model.reply.thinking = None;
    model.reply.streamed = true;
    push(model, at, text);
}

fn thinking_delta(model: &mut Model, text: &str) {
    model.turn.doing = Doing::Thinking;
    let at = model.reply.thinking.unwrap_or_else(|| {
        let part = Part::new(SafeText::default(), Look::Thinking).folded(Fold::Thinking);
        begin(model, Block::of(vec![part]))
    });
    // Text after it is another paragraph: what is shown has the order in which it came.
    model.reply.text = None;
    model.reply.thinking = Some(at);
    push(model, at, text);
}

/// Begins a block of the reply.
fn begin(model: &mut Model, block: Block) -> usize {
    let at = model.transcript.push(block);
    model.reply.blocks.push(at);
    at
}

fn paragraph(look: Look) -> Block {
    Block::of(vec![Part::new(SafeText::default(), look)]).apart()
}

fn push(model: &mut Model, block: usize, text: &str) {
    if let Some(part) = model.transcript.block_mut(block).and_then(|block| block.parts.last_mut()) {
        part.push(text);
    }
}

fn logged(model: &mut Model, event: SessionEvent, actions: &mut Vec<Action>) -> bool {
    match event.kind {
        EventKind::SessionStarted(started) => session_started(model, started),
        EventKind::UserMessage { text, images } => user_message(model, &text, &images),
        EventKind::ContextAdded { source, .. } if !is_our_own(&source) => {
            model.say(Look::Notice, &format!("read {source}"));
        }
        EventKind::ModelRequested { .. } => {
            model.turn.doing = Doing::Asking;
            model.reply = Reply::default();
        }
        EventKind::AssistantMessage(message) => assistant_message(model, message),
        EventKind::ModelFailed { message, retry_in_ms, .. } => model_failed(model, &message, retry_in_ms),
        EventKind::ToolCallStarted { call, name, input, .. } => call_started(model, call, &name, input.get()),
        EventKind::ToolCallFinished { call, status, content, duration_ms, .. } => {
            if let Some(call) = model.calls.remove(&call)
                && let Some(block) = model.transcript.block_mut(call.block)
            {
                call.finished(block, status, &content, duration_ms);
            }
        }
        EventKind::Denied { call: Some(call), denial, rights } => {
            denial::show(model, &event.agent, call, &denial);
            if let Some(call) = model.calls.get_mut(&call) {
                call.told(&denial, &rights);
            }
        }
        EventKind::Denied { call: None, denial, .. } => {
            model.say(Look::Notice, &format!("agent {}, beside its calls: {denial}", event.agent));
        }
        EventKind::TurnFinished(turn) => turns::finished(model, &turn, actions),
        other => return state_changed(model, other),
    }
    true
}

/// What changes the session rather than the conversation.
fn state_changed(model: &mut Model, kind: EventKind) -> bool {
    match kind {
        EventKind::ApprovalAnswered(answered) => approval_answered(model, &answered),
        EventKind::GrantAdded(grant) => grant_added(model, grant),
        EventKind::GrantRevoked { id } => {
            model.session.grants.retain(|grant| grant.id != id);
            model.say(Look::Notice, &format!("no longer approved for the session: {id}"));
        }
        EventKind::ModeChanged { mode } => {
            model.session.mode = mode;
            model.session.pending =
                model.session.pending.filter(|pending| !matches!(pending, Pending::Mode(_)));
            model.say(Look::Notice, &format!("mode: {mode}"));
        }
        EventKind::ModelChanged(changed) => model.session.model = changed.to,
        EventKind::RightsChanged(changed) => {
            model.session.set_rights(&changed.rights);
            model.session.pending =
                model.session.pending.filter(|pending| matches!(pending, Pending::Mode(_)));
            model.say(Look::Notice, &format!("access: {}", access::plain(&changed.rights)));
        }
        EventKind::WorkerStarted(started) => worker_started(model, &started),
        EventKind::ProtocolViolation { violation, .. } => {
            model.say(Look::Error, &format!("the worker broke the protocol and was killed: {violation}"));
        }
        EventKind::CompactionStarted(started) => compaction_started(model, &started),
        EventKind::ContextCompacted(compacted) => {
            model.turn.account += Account { usage: compacted.usage, cost: compacted.cost_usd };
            model.say(Look::Notice, &compacted.to_string());
        }
        EventKind::Notice { code, message } => {
            if code.ends_change() {
                model.session.pending = None;
            }
            model.say(Look::Notice, &message);
        }
        EventKind::Restored { places, .. } => restored(model, &places),
        EventKind::ChangeSet { files, patch } => {
            let patch = patch.map(|patch| format!(" · patch: {patch}")).unwrap_or_default();
            model.say(Look::Notice, &format!("files changed: {}{patch}", files.len()));
        }
        EventKind::Result(result) => {
            model.turn.end();
            model.session.over = true;
            let message = result.message.map(|message| format!(": {message}")).unwrap_or_default();
            model.say(Look::Notice, &format!("the session is over: {}{message}", result.reason));
        }
        _ => return false,
    }
    true
}

/// A summary that was asked for at rest is a turn of its own.
fn compaction_started(model: &mut Model, started: &CompactionStarted) {
    if !model.turn.is_running() {
        model.turn.begin(model.now);
    }
    model.say(Look::Notice, &started.to_string());
}

fn session_started(model: &mut Model, started: SessionStarted) {
    model.session.model = started.model;
    if started.rights != model.session.rights {
        model.session.set_rights(&started.rights);
        model.say(Look::Notice, &format!("access: {}", access::plain(&started.rights)));
    }
}

fn user_message(model: &mut Model, text: &str, images: &[Image]) {
    if !model.turn.is_running() {
        model.turn.begin(model.now);
    }
    let images = images.iter().map(ToString::to_string);
    let said = images.chain(Some(text.to_owned()).filter(|text| !text.is_empty()));
    let parts = said.map(|said| Part::new(SafeText::prose(&said), Look::User)).collect();
    model.transcript.push(Block::of(parts).apart());
}

/// What was streamed is whole now; what was not streamed is shown at once.
fn assistant_message(model: &mut Model, message: AssistantMessage) {
    model.turn.retry = None;
    model.turn.account += Account { usage: message.usage, cost: message.cost_usd };
    let reply = std::mem::take(&mut model.reply);
    if reply.streamed {
        return;
    }
    for block in message.content {
        let Ok(block) = serde_json::from_str::<serde_json::Value>(block.get()) else { continue };
        let of_kind = |kind| block.get("type").and_then(serde_json::Value::as_str) == Some(kind);
        if let Some(text) = block.get("text").and_then(serde_json::Value::as_str).filter(|_| of_kind("text"))
        {
            let at = model.transcript.push(paragraph(Look::Assistant));
            push(model, at, text);
        }
    }
}

fn model_failed(model: &mut Model, message: &str, retry_in_ms: Option<u64>) {
    let reply = std::mem::take(&mut model.reply);
    for &at in &reply.blocks {
        let parts = model.transcript.block_mut(at).map(|block| block.parts.iter_mut());
        parts.into_iter().flatten().for_each(|part| part.set_look(Look::Void));
    }
    if !reply.blocks.is_empty() {
        model.say(Look::Notice, "the reply above was cut off: it does not count");
    }
    // Where there is no other attempt the end of the turn tells it.
    let Some(wait) = retry_in_ms.map(Duration::from_millis) else { return };
    model.turn.doing = Doing::BackingOff { until: model.now.plus(wait) };
    let text = format!("{message}; trying again in {:.1} s", wait.as_secs_f64());
    if !reply.blocks.is_empty() {
        model.turn.retry = None;
    }
    turns::tell_failure(model, Look::Notice, &text);
}

fn call_started(model: &mut Model, id: CallId, name: &str, input: &str) {
    model.turn.doing = Doing::Working;
    let (mut call, block) = Call::started(name, input);
    call.block = model.transcript.push(block);
    model.calls.insert(id, call);
}

fn approval_answered(model: &mut Model, answered: &ApprovalAnswered) {
    let (look, decision) = match &answered.decision {
        ReviewDecision::Approved => (Look::Notice, "approved once".to_owned()),
        ReviewDecision::ApprovedForSession { .. } => (Look::Notice, "approved for the session".to_owned()),
        ReviewDecision::Denied { message: None } => (Look::Notice, "denied".to_owned()),
        ReviewDecision::Denied { message: Some(word) } => (Look::Notice, format!("denied: {word}")),
        ReviewDecision::Abort => (Look::Notice, "denied, and the turn ends".to_owned()),
    };
    if let (ReviewDecision::Denied { .. } | ReviewDecision::Abort, Some(call)) =
        (&answered.decision, model.calls.get_mut(&answered.call))
    {
        call.refused = true;
    }
    let by = match (answered.by, &answered.cause) {
        (DecidedBy::SessionGrant(id), _) => return allowed_by_grant(model, answered, id),
        (DecidedBy::Configuration, _) => " by the configuration".to_owned(),
        (_, Some(cause)) => format!(": {cause}"),
        (DecidedBy::User, None) => String::new(),
        (DecidedBy::Deadline, None) => ": nobody answered in time".to_owned(),
        (DecidedBy::NoFrontEnd, None) => ": there was nobody to ask".to_owned(),
        (DecidedBy::BadAnswer, None) => ": the answer did not count".to_owned(),
        (DecidedBy::Interrupted, None) => ": interrupted".to_owned(),
    };
    model.say(look, &format!("call {}: {decision}{by}", answered.call));
}

fn allowed_by_grant(model: &mut Model, answered: &ApprovalAnswered, id: GrantId) {
    let grant = model.session.grants.iter().find(|grant| grant.id == id);
    let covers = grant.map(|grant| format!(": {}", grant.covers)).unwrap_or_default();
    model.say(Look::Notice, &format!("call {}: allowed by grant {id}{covers}", answered.call));
}

fn grant_added(model: &mut Model, grant: SessionGrant) {
    let SessionGrant { id, covers, grant: given } = &grant;
    model.say(
        Look::Notice,
        &format!("approved for the session as {id}: {covers} · {given} · :revoke {id} takes it back"),
    );
    model.session.grants.push(grant);
}

fn worker_started(model: &mut Model, started: &WorkerStarted) {
    if started.one_shot.is_some() {
        return;
    }
    model.session.tier = Some(started.tier);
    if started.generation == Generation(1)
        && let Some(why) = &started.no_full_tier
    {
        model.say(Look::Notice, &format!("the {} tier: {why}; hint: bailiwick doctor", started.tier));
    }
}

fn restored(model: &mut Model, places: &[RestoredPlace]) {
    for place in places {
        let words =
            if place.restored { "changed and restored" } else { "changed, and could NOT be restored" };
        model.say(Look::Error, &format!("{words}: {} ({})", place.path, place.phrase()));
    }
}

/// Whether context comes from Bailiwick itself, and not from a file.
fn is_our_own(source: &str) -> bool {
    matches!(source, "environment" | "rights" | "bailiwick")
}
