use std::time::Duration;

use ipc::id::{AgentCall, AgentId, Generation};
use protocol::approval::{ReviewDecision, ServerRequest, SessionGrant};
use protocol::error_code::ErrorCode;
use protocol::event::{
    Account, ApprovalAnswered, AssistantMessage, CompactionStarted, DecidedBy, EventKind, NoticeCode,
    PinChange, RestoredPlace, RunResult, SessionEvent, SessionStarted, SubAgentSpawned, UPDATE_TASKS,
    WorkerStarted,
};
use protocol::frontend::{UiEvent, UiEventKind};
use protocol::typed_prompt::TypedPrompts;

use super::{
    agent_rows, branch, call, calls, comments, denial, effects, form, hosts, pause, plan, prompts, reply,
    rewind, said, turns,
};
use crate::card::{Asked, Card};
use crate::message::{Action, Reason};
use crate::model::{
    AgentView, Block, Call, Fold, Look, Mode, Model, Part, Pending, Reply, SaidLast, Session, TurnActivity,
    access,
};
use crate::moment::UiTime;
use crate::text::SafeText;

/// Maximum size in bytes of a message that is compared with the reason of a request, of at most 600 characters.
const LONGEST_REASON: usize = 4 << 10;

/// Applies an event of the session. True if anything changed on the screen.
pub(super) fn core(model: &mut Model, event: UiEvent, actions: &mut Vec<Action>) -> bool {
    let UiEvent { agent, kind, .. } = event;
    let view = model.agents.of(&agent);
    match kind {
        UiEventKind::Logged(event) => {
            match &event.kind {
                EventKind::Notice { code: NoticeCode::PlanNotRead, message } => {
                    plan::not_read(model, &event.agent, message);
                }
                EventKind::Notice { code: NoticeCode::RewindRefused, .. } => rewind::refused(model),
                _ => {}
            }
            if let EventKind::Notice { code, message } = &event.kind
                && answers(code)
            {
                let view = model.agents.of(&event.agent);
                if code.ends_change() {
                    view.session.pending = None;
                }
                // The model of the person's own command was refused, so the turn continues with another model. Said in
                // the transcript: an answer above the prompt could be replaced by the next one.
                if *code == NoticeCode::ModelRefused && view.turn.model_after.take().is_some() {
                    view.say(Look::Error, message);
                    return true;
                }
                model.answer(Look::Notice, message);
                return true;
            }
            branch::follow(model, &event.agent, &event.kind, actions);
            model.agents.of(&event.agent).context.follow(&event);
            let effect = effects::told(model.agents.of(&event.agent), &event.kind);
            let teller = event.agent.clone();
            let changed = logged(model, *event, actions);
            effects::tell(model, &teller, effect);
            plan::lay(model);
            return changed;
        }
        UiEventKind::TextDelta { text } => text_delta(view, model.now, &text),
        UiEventKind::ThinkingDelta { text } => thinking_delta(view, model.now, &text),
        UiEventKind::OutputDelta { call, text } => {
            if let Some(block) = view.calls.get(&call).and_then(|call| view.transcript.block_mut(call.block))
            {
                Call::printed(block, &text);
            }
        }
        UiEventKind::ApprovalRequested { id, request } => {
            requested(model, Asked { agent, id }, request, actions);
        }
        UiEventKind::ServerPrompts { prompts } => model.prompts = TypedPrompts::new(prompts),
        UiEventKind::PromptExpanded(expanded) => prompts::expanded(model, *expanded),
        UiEventKind::Branch { name } => model.branch = name,
        UiEventKind::FileNames { names, cut, failed } => model.files.listed(names, cut, failed),
        UiEventKind::ApprovalClosed { id } => {
            let closed = Asked { agent, id };
            comments::keep(model, &closed);
            model.cards.retain(|card| card.asked != closed);
        }
        UiEventKind::RewindPreview(preview) => rewind::previewed(model, *preview),
        UiEventKind::LogPaused { path, free, last } => pause::paused(model, &path, free, last, actions),
        UiEventKind::LogGoesOn => pause::goes_on(model),
        UiEventKind::SpentBefore { accounts } => {
            for (agent, account) in accounts {
                model.agents.set_spent(agent, account);
            }
        }
    }
    true
}

/// Adds an approval request. It is shown after the earlier ones are answered.
fn requested(model: &mut Model, asked: Asked, request: Box<ServerRequest>, actions: &mut Vec<Action>) {
    let view = model.agents.of(&asked.agent);
    if let ServerRequest::PlanApproval(params) = &*request {
        model.plans.asked(params);
    }
    if let ServerRequest::DeniedCommandApproval(params) = &*request
        && let Some(call) = view.calls.get_mut(&params.call_id)
    {
        call.after_denial = true;
    }
    if let ServerRequest::HostApproval(params) = &*request {
        view.asked_hosts.insert(asked.id, params.host.to_string());
    }
    if let ServerRequest::ServerForm(params) = &*request {
        view.asked_forms.insert(asked.id, params.server.clone());
    }
    if model.cards.is_empty() {
        model.answered = 0;
    }
    let reason = if matches!(*request, ServerRequest::DeniedCommandApproval(_)) {
        Reason::Denial
    } else {
        Reason::Approval
    };
    let revision = model.next_revision();
    let mut card = Card::new(asked, request, &model.start.project, model.now, revision);
    card.versions = model.plans.versions(&card.asked.agent).len();
    comments::take_over(model, &mut card);
    // A person who is typing a command continues to type; the new request waits.
    model.aside |= model.cards.is_empty() && model.mode == Mode::Command;
    model.cards.push_back(card);
    call(model, reason, actions);
}

/// True if the notice is the answer to a command of the person that had no further effect.
const fn answers(code: &NoticeCode) -> bool {
    matches!(
        code,
        NoticeCode::ModelChanged
            | NoticeCode::ModelRefused
            | NoticeCode::ModelUnchanged
            | NoticeCode::RightsRefused
            | NoticeCode::RightsUnchanged
            | NoticeCode::NoSuchGrant
            | NoticeCode::NoAgent
            | NoticeCode::NotCleared
            | NoticeCode::NothingToCompact
            | NoticeCode::CompactionQueued
            | NoticeCode::RewindRefused
            | NoticeCode::PlanRefused
            | NoticeCode::EmptyMessage
    )
}

fn text_delta(view: &mut AgentView, now: UiTime, text: &str) {
    view.turn.doing = TurnActivity::Answering;
    view.reply.thinking = None;
    view.reply.streamed = true;
    reply::push(view, now, text);
}

fn thinking_delta(view: &mut AgentView, now: UiTime, text: &str) {
    view.turn.doing = TurnActivity::Thinking;
    let at = view.reply.thinking.unwrap_or_else(|| {
        let part = Part::new(SafeText::default(), Look::Thinking).folded(Fold::Thinking);
        reply::begin(view, Block::of(vec![part]))
    });
    // Text after thinking starts a new paragraph, in order of arrival.
    reply::end(view, now);
    view.reply.thinking = Some(at);
    push(view, at, text);
}

fn push(view: &mut AgentView, block: usize, text: &str) {
    if let Some(part) = view.transcript.block_mut(block).and_then(|block| block.parts.last_mut()) {
        part.push(text);
    }
}

fn logged(model: &mut Model, event: SessionEvent, actions: &mut Vec<Action>) -> bool {
    note_lapsed(model, &event);
    if let Some(account) = event.kind.spent() {
        model.agents.spend(&event.agent, account);
    }
    let now = model.now;
    let view = model.agents.of(&event.agent);
    match event.kind {
        EventKind::SessionStarted(started) => session_started(view, started),
        EventKind::UserMessage { text, images } => {
            let said = said::SaidAt { id: event.id, time_ms: event.time_ms };
            said::user_said(model, &event.agent, said, text, &images);
        }
        EventKind::ContextAdded { source, .. } if !is_our_own(&source) => {
            view.say(Look::Notice, &format!("read {source}"));
        }
        EventKind::ModelRequested { .. } => {
            view.turn.doing = TurnActivity::Asking;
            reply::end(view, now);
            view.reply = Reply::default();
        }
        EventKind::AssistantMessage(message) => assistant_message(view, now, message),
        EventKind::ModelFailed { message, retry_in_ms, .. } => model_failed(view, now, &message, retry_in_ms),
        // The list of tasks is shown instead of the call.
        EventKind::ToolCallStarted { name, .. } if name == UPDATE_TASKS => {
            view.turn.doing = TurnActivity::Working;
        }
        EventKind::TasksUpdated(list) => view.tasks = Some(list),
        EventKind::ToolCallStarted { call, name, input, .. } => {
            view.guests.called(&name, input.get());
            calls::started(model, AgentCall { agent: event.agent, call }, &name, input.get());
        }
        EventKind::FilesChanged(changed) => model.changes.seen(changed, &model.start.project),
        EventKind::ToolCallFinished { .. } => calls::finished(model, event),
        EventKind::Denied { call: Some(call), denial, .. } => {
            view.was_denied(&denial);
            denial::show(view, &event.agent, call, &denial);
        }
        EventKind::Denied { call: None, denial, .. } => {
            view.was_denied(&denial);
            view.say(Look::Notice, &format!("agent {}, outside of its tool calls: {denial}", event.agent));
        }
        EventKind::TurnAllowed(allowed) if event.agent == AgentId::root() => {
            model.rewind.is_of_turn = true;
            state_changed(model.agents.of(&event.agent), now, EventKind::TurnAllowed(allowed));
        }
        EventKind::TurnFinished(turn) => {
            turns::finished(model, &event.agent, &turn, actions);
            turns::tell_lapsed(model);
            if event.agent == AgentId::root() {
                rewind::turn_over(model, actions);
            }
        }
        EventKind::SubAgentSpawned(spawned) => sub_agent_spawned(model, &event.agent, &spawned),
        EventKind::SubAgentResult(result) => {
            agent_rows::end(model, &result);
            model.agents.of(&result.agent).ended(&result);
            let account = Account::of(result.usage, result.cost_usd);
            model.agents.set_spent(result.agent.clone(), account);
            model.plans.ended(now, &result);
        }
        EventKind::PlanCreated(created) => {
            view.say(Look::Notice, &created.to_string());
            model.plans.created(&event.agent, &created);
        }
        EventKind::PlanApproved(approved) => {
            view.say(Look::Notice, &approved.to_string());
            model.plans.approved(&approved);
        }
        EventKind::PlanStepStatus(change) => {
            view.say(Look::Notice, &change.to_string());
            model.plans.step(now, &event.agent, &change);
        }
        EventKind::Rewound(done) => rewind::rewound(model, &done),
        EventKind::Result(result) => over(model, &result),
        other => return state_changed(view, now, other),
    }
    true
}

/// Remembers the call of an expired approval request, so that one key can make the agent repeat the call.
fn note_lapsed(model: &mut Model, event: &SessionEvent) {
    if let EventKind::ApprovalAnswered(answered) = &event.kind
        && answered.by == DecidedBy::Deadline
    {
        let view = model.agents.of(&event.agent);
        let asks = |id| view.asked_hosts.contains_key(&id) || view.asked_forms.contains_key(&id);
        if answered.id.is_some_and(asks) {
            // The command that asked for a host or a form gets its own request if it is denied in the end.
            return;
        }
        let lapsed = view.calls.get(&answered.call).map(Call::summary);
        model.lapsed = lapsed.filter(|_| event.agent == AgentId::root());
    }
}

/// Applies an event that changes an agent's state. True if anything changed on the screen.
fn state_changed(view: &mut AgentView, now: UiTime, kind: EventKind) -> bool {
    match kind {
        EventKind::ApprovalAnswered(answered)
            if hosts::answered(view, &answered) || form::answered(view, &answered) => {}
        EventKind::ApprovalAnswered(answered) => approval_answered(view, &answered),
        EventKind::GrantAdded(grant) => grant_added(view, grant),
        EventKind::GrantRevoked { id } => {
            view.session.grants.retain(|grant| grant.id != id);
        }
        EventKind::TurnAllowed(allowed) => {
            view.session.allow_turn(&allowed.access);
            view.say(Look::Notice, &allowed.to_string());
        }
        EventKind::TurnAllowanceEnded { cause } => {
            view.session.end_turn_access();
            view.say(Look::Notice, &cause.to_string());
        }
        EventKind::ModeChanged { mode } => {
            view.session.mode = mode;
            view.session.pending.take_if(|pending| matches!(pending, Pending::Mode(_)));
        }
        EventKind::ModelChanged(changed) => {
            let Session { model, window, context, .. } = &mut view.session;
            *window = changed.window.or(window.filter(|_| *model == changed.to));
            *context = context.filter(|_| !changed.new_context);
            *model = changed.to;
        }
        EventKind::RightsChanged(changed) => {
            view.session.set_rights(&changed.rights);
            view.session.pending.take_if(|pending| matches!(pending, Pending::Net(_)));
        }
        EventKind::WorkerStarted(started) => worker_started(view, &started),
        EventKind::ProtocolViolation { violation, .. } => {
            view.say(Look::Error, &format!("the worker sent an invalid message and was killed: {violation}"));
        }
        EventKind::CompactionStarted(started) => compaction_started(view, now, &started),
        EventKind::ContextCompacted(compacted) => {
            view.session.context = None;
            view.say(Look::Notice, &compacted.to_string());
        }
        EventKind::GuestStarted(started) => view.guests.started(*started),
        EventKind::GuestEnded(ended) => {
            if let Some(notice) = view.guests.ended(&ended) {
                view.say(Look::Notice, &notice);
            }
        }
        EventKind::ToolPinned(pinned) if pinned.change == PinChange::Withheld => {
            view.say(Look::Notice, &pinned.to_string());
        }
        EventKind::HostsUsed { generation, uses } => {
            view.guests.used(generation, &uses);
            for failed in uses.iter().filter(|one| one.connections == 0) {
                let text = failed.to_string();
                if view.unreached.insert(text.clone()) {
                    view.say(Look::Notice, &text);
                }
            }
        }
        EventKind::Notice { code, message } => {
            if code.ends_change() {
                view.session.pending = None;
            }
            view.say(Look::Notice, &message);
        }
        EventKind::WriteTurnAwaited(waits) => {
            view.turn.doing = TurnActivity::AwaitingWriteTurn;
            view.say(Look::Notice, &waits.to_string());
        }
        EventKind::WriteTurnTaken(taken) => {
            view.turn.doing = TurnActivity::Working;
            view.say(Look::Notice, &taken.to_string());
        }
        EventKind::Restored { places, .. } => restored(view, &places),
        EventKind::ChangeSet { files, patch } => {
            let patch = patch.map(|patch| format!(" · patch: {patch}")).unwrap_or_default();
            view.say(Look::Notice, &format!("files changed: {}{patch}", files.len()));
        }
        _ => return false,
    }
    true
}

fn sub_agent_spawned(model: &mut Model, parent: &AgentId, spawned: &SubAgentSpawned) {
    let now = model.now;
    if spawned.call.is_none() {
        model.agents.begins_beside(parent);
    }
    let view = model.agents.of(parent);
    let parents = view.session.activity;
    model.agents.of(&spawned.agent).started(now, spawned, parents, &model.start.project);
    agent_rows::begin(model, parent, spawned);
    model.plans.spawned(spawned);
}

fn over(model: &mut Model, result: &RunResult) {
    model.over = true;
    model.agents.all_mut().for_each(|view| view.turn.end());
    let message = result.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    model.say(Look::Notice, &format!("the session is over: {}{message}", result.reason));
}

/// Shows that the conversation is being summarized. If no turn runs, the summary counts as a turn.
fn compaction_started(view: &mut AgentView, now: UiTime, started: &CompactionStarted) {
    if !view.turn.is_running() {
        view.turn.begin(now);
    }
    view.say(Look::Notice, &started.to_string());
}

fn session_started(view: &mut AgentView, started: SessionStarted) {
    view.session.model = started.model;
    if started.rights.value() != Some(&view.session.rights) {
        view.session.set_rights(&started.rights);
        view.say(Look::Notice, &format!("access: {}", access::recorded(&started.rights)));
    }
}

/// Completes a streamed message, or shows a message that was not streamed.
fn assistant_message(view: &mut AgentView, now: UiTime, message: AssistantMessage) {
    reply::end(view, now);
    (view.turn.retry, view.turn.discarded) = (None, None);
    view.session.context = Some(message.usage.prompt().saturating_add(message.usage.output));
    let mut reply = std::mem::take(&mut view.reply);
    let texts: Vec<_> = message.content.iter().filter_map(|block| said(block.get())).collect();
    if texts.iter().any(|text| !text.trim().is_empty()) {
        view.answer = texts.join("\n\n");
    }
    let last =
        texts.last().map(|text| text.trim()).filter(|text| text.len() <= LONGEST_REASON).map(str::to_owned);
    if !reply.streamed {
        for text in texts {
            reply::push(view, now, &text);
            reply::end(view, now);
        }
        reply = std::mem::take(&mut view.reply);
    }
    let blocks = reply.blocks.first().zip(reply.blocks.last());
    view.said = last.zip(blocks).map(|(text, (first, last))| SaidLast { text, blocks: *first..last + 1 });
}

fn said(block: &str) -> Option<String> {
    let block = serde_json::from_str::<serde_json::Value>(block).ok()?;
    let of = |name| block.get(name).and_then(serde_json::Value::as_str);
    of("text").filter(|_| of("type") == Some("text")).map(str::to_owned)
}

fn model_failed(view: &mut AgentView, now: UiTime, message: &str, retry_in_ms: Option<u64>) {
    reply::end(view, now);
    let reply = std::mem::take(&mut view.reply);
    discard(view, &reply.blocks);
    // Without another attempt, the end of the turn reports the failure.
    let Some(wait) = retry_in_ms.map(Duration::from_millis) else { return };
    view.turn.doing = TurnActivity::BackingOff { until: now.plus(wait) };
    let text = format!("{message}; trying again in {:.1} s", wait.as_secs_f64());
    turns::tell_failure(view, Look::Notice, &text);
}

/// Shows that a reply was cut off. If several are in a row, one block counts the others.
fn discard(view: &mut AgentView, blocks: &[usize]) {
    let Some(&first) = blocks.first() else { return };
    let is_end = blocks.len() == view.transcript.len() - first;
    if let Some((notice, times)) = view.turn.discarded.filter(|_| is_end) {
        let place = view.transcript.place();
        view.transcript.cut_from(first);
        view.transcript.go_back(place);
        let text = format!("replies were cut off {} times in a row and are discarded", times + 1);
        view.turn.discarded = Some((notice, times + 1));
        if let Some(part) = view.transcript.block_mut(notice).and_then(|block| block.parts.first_mut()) {
            part.replace(SafeText::line(&text), Look::Notice);
        }
        return;
    }
    for &at in blocks {
        let parts = view.transcript.block_mut(at).map(|block| block.parts.iter_mut());
        parts.into_iter().flatten().for_each(|part| part.set_look(Look::Void));
    }
    view.say(Look::Notice, "the reply above was cut off and is discarded");
    view.turn.discarded = view.transcript.last().map(|notice| (notice, 1));
    // The next failed request gets a new block, below this one.
    view.turn.retry = None;
}

fn approval_answered(view: &mut AgentView, answered: &ApprovalAnswered) {
    if matches!(answered.by, DecidedBy::Together | DecidedBy::OwnCommand) {
        // The answer is visible in the next request, or the person has just typed the command.
        return;
    }
    if view.calls.get(&answered.call).is_some_and(|call| call.after_denial) {
        return denial::answered(view, answered);
    }
    let (decision, end) = match &answered.decision {
        ReviewDecision::Approved => ("allowed", String::new()),
        ReviewDecision::ApprovedForSession { .. } => ("allowed", " for the session".to_owned()),
        ReviewDecision::ApprovedForTurn => ("allowed", ", with everything in this turn".to_owned()),
        ReviewDecision::ApprovedInPart { .. } => {
            let part = answered.in_part.as_ref().map(ToString::to_string);
            ("allowed", part.map(|part| format!(" in part: {part}")).unwrap_or_default())
        }
        ReviewDecision::Denied { message: None }
        | ReviewDecision::Filled { .. }
        | ReviewDecision::Cancelled => ("denied", String::new()),
        ReviewDecision::Denied { message: Some(word) } => ("denied", format!(": {word}")),
        ReviewDecision::Abort => ("denied", "; turn stopped".to_owned()),
    };
    let by = match (answered.by, &answered.cause) {
        (DecidedBy::SessionGrant(id), _) => format!(" by approval {id} for this session"),
        (DecidedBy::Configuration, _) => " by the settings".to_owned(),
        (_, Some(cause)) => format!(": {cause}"),
        (DecidedBy::User | DecidedBy::OwnCommand, None) => " by you".to_owned(),
        (DecidedBy::Deadline, None) => ": nobody answered in time".to_owned(),
        (DecidedBy::NoFrontEnd, None) => ": there was nobody to ask".to_owned(),
        (DecidedBy::BadAnswer, None) => ": the answer was not valid".to_owned(),
        (DecidedBy::Interrupted, None) => ": interrupted".to_owned(),
        (DecidedBy::Together, None) => ": this change is shown together with the others".to_owned(),
        (DecidedBy::Edited, None) => ": you edited the plan, and another request follows".to_owned(),
    };
    let is_denied = matches!(answered.decision, ReviewDecision::Denied { .. } | ReviewDecision::Abort);
    calls::answered(view, answered.call, &format!("{decision}{by}{end}"), is_denied);
}

fn grant_added(view: &mut AgentView, grant: SessionGrant) {
    let (SessionGrant { id, covers, .. }, given) = (&grant, grant.given());
    view.say(
        Look::Notice,
        &format!("approved for the session as {id}: {covers} · {given} · :revoke {id} withdraws it"),
    );
    view.session.grants.push(grant);
}

fn worker_started(view: &mut AgentView, started: &WorkerStarted) {
    if started.one_shot.is_some() {
        return;
    }
    view.session.tier = Some(started.tier);
    if started.generation == Generation(1)
        && let Some(why) = &started.no_full_tier
    {
        let text = format!("the {} tier: {why}; hint: bailiwick doctor", started.tier);
        view.say(Look::Notice, &ErrorCode::PartialSandbox.mark(&text));
    }
}

fn restored(view: &mut AgentView, places: &[RestoredPlace]) {
    for place in places {
        let words =
            if place.restored { "changed and restored" } else { "changed, and could NOT be restored" };
        view.say(Look::Error, &format!("{words}: {} ({})", place.path, place.phrase()));
    }
}

/// True if Bailiwick wrote this piece of context; false if it comes from a file.
fn is_our_own(source: &str) -> bool {
    matches!(source, "environment" | "rights" | "bailiwick")
}
