//! A filter for the older part of a large log. Of each event it keeps only the data that later code needs.

use std::collections::{BTreeMap, BTreeSet};

use ipc::id::{AgentId, CallId, EventId, Generation, GuestId};
use protocol::event::{CompactionCause, EventKind, NoticeCode, PinChange, SessionEvent, ToolKind};
use serde_json::value::RawValue;

use super::open_ends::CUT_OFF;

/// Maximum number of characters that are kept of a message, so that a rewind can name the message.
const NAME: usize = 200;

#[derive(Default)]
pub(super) struct Sieve {
    kept: BTreeMap<EventId, SessionEvent>,
    heads: BTreeMap<AgentId, EventId>,
    calls: BTreeMap<(AgentId, CallId), EventId>,
    one_shots: BTreeMap<(AgentId, Generation), EventId>,
    guests: BTreeMap<(AgentId, GuestId), EventId>,
    /// For each MCP server, the last event that records the server's tools, on which later calls rely.
    pins: BTreeMap<String, EventId>,
    /// Sub-agents that have not ended so far.
    agents: BTreeMap<AgentId, OpenSubAgent>,
    executors: BTreeSet<AgentId>,
    highest: BTreeMap<&'static str, (u64, SessionEvent)>,
    /// True if no call was made since the last message of the person or the last rewind.
    waits_for_call: bool,
    first_calls: BTreeSet<EventId>,
    has_reply: bool,
}

struct OpenSubAgent {
    spawned: EventId,
    own: Vec<EventId>,
    /// Last event of the sub-agent; `None` if that event is kept for another reason, or if there is none.
    last: Option<SessionEvent>,
}

impl Sieve {
    pub(super) fn take(&mut self, event: SessionEvent) {
        self.heads.insert(event.agent.clone(), event.id);
        self.number(&event);
        let is_first = event.agent == AgentId::root();
        match &event.kind {
            EventKind::SessionStarted(_)
            | EventKind::ModelChanged(_)
            | EventKind::PlanCreated(_)
            | EventKind::PlanStepStatus(_)
            | EventKind::TasksUpdated(_)
            | EventKind::Notice { code: NoticeCode::Imported, .. } => self.keep(event),
            EventKind::Rewound(_) => {
                self.waits_for_call = true;
                self.keep(event);
            }
            EventKind::PromptFixed(_) | EventKind::ContextAdded { .. } if is_first => {
                self.keep(event);
            }
            EventKind::UserMessage { .. } if event.agent.is_top_level() => {
                self.waits_for_call = true;
                self.keep(thin(event));
            }
            // A cleared conversation does not contain its earlier messages any more.
            EventKind::ContextCompacted(compacted)
                if is_first && compacted.cause == CompactionCause::Clear =>
            {
                self.keep(thin(event));
            }
            EventKind::AssistantMessage(_) if is_first && !self.has_reply => {
                self.has_reply = true;
                self.keep(thin(event));
            }
            EventKind::AssistantMessage(_) | EventKind::Denied { .. } => self.account(event),
            EventKind::ToolCallStarted { call, .. } => self.call(*call, event),
            EventKind::ToolCallFinished { call, .. } => self.called(*call, event),
            EventKind::WorkerStarted(started) if started.one_shot.is_some() => {
                self.one_shots.insert((event.agent.clone(), started.generation), event.id);
                self.keep(event);
            }
            EventKind::WorkerEnded { generation, .. } => {
                if let Some(id) = self.one_shots.remove(&(event.agent.clone(), *generation)) {
                    self.kept.remove(&id);
                }
                self.pass(event);
            }
            EventKind::GuestStarted(started) => {
                self.guests.insert((event.agent.clone(), started.guest), event.id);
                self.keep(event);
            }
            EventKind::GuestEnded(ended) => {
                if let Some(id) = self.guests.remove(&(event.agent.clone(), ended.guest)) {
                    self.kept.remove(&id);
                }
                self.pass(event);
            }
            EventKind::ToolPinned(pin) if pin.change != PinChange::Withheld => {
                if let Some(id) = self.pins.insert(pin.server.clone(), event.id) {
                    self.kept.remove(&id);
                }
                self.keep(event);
            }
            EventKind::SubAgentSpawned(spawned) => {
                let open = OpenSubAgent { spawned: event.id, own: Vec::new(), last: None };
                if spawned.plan.is_some() {
                    self.executors.insert(spawned.agent.clone());
                }
                self.agents.insert(spawned.agent.clone(), open);
                self.keep(event);
            }
            EventKind::SubAgentResult(result) => {
                let agent = result.agent.clone();
                self.ended(&agent, event);
            }
            _ => self.pass(event),
        }
    }

    /// Returns the id of the last event of each agent, and all kept events.
    pub(super) fn finish(mut self) -> (BTreeMap<AgentId, EventId>, BTreeMap<EventId, SessionEvent>) {
        let last = self.agents.into_values().filter_map(|open| open.last);
        let highest = self.highest.into_values().map(|(_, event)| event);
        for event in last.chain(highest) {
            self.kept.entry(event.id).or_insert(event);
        }
        (self.heads, self.kept)
    }

    fn keep(&mut self, event: SessionEvent) {
        self.kept.insert(event.id, event);
    }

    /// Drops an event, but keeps the last event of each agent that has not ended until the agent's next event.
    fn pass(&mut self, event: SessionEvent) {
        if let Some(open) = self.agents.get_mut(&event.agent) {
            open.last = Some(thin(event));
        }
    }

    /// Keeps an event that counts for the usage totals of an agent that has not ended.
    fn account(&mut self, event: SessionEvent) {
        if let Some(open) = self.agents.get_mut(&event.agent) {
            open.own.push(event.id);
            self.keep(thin(event));
        }
    }

    fn call(&mut self, call: CallId, event: SessionEvent) {
        if std::mem::take(&mut self.waits_for_call) {
            self.first_calls.insert(event.id);
        }
        self.calls.insert((event.agent.clone(), call), event.id);
        self.keep(event);
    }

    fn called(&mut self, call: CallId, event: SessionEvent) {
        let Some(id) = self.calls.remove(&(event.agent.clone(), call)) else { return self.pass(event) };
        let Some(started) = self.kept.remove(&id) else { return self.pass(event) };
        let is_edit = matches!(started.kind, EventKind::ToolCallStarted { kind: ToolKind::Edit, .. });
        // An interrupted edit may have left temporary files. Each continuation of the session searches for them.
        let leaves = is_edit
            && matches!(&event.kind, EventKind::ToolCallFinished { content, .. } if content.starts_with(CUT_OFF));
        if leaves || self.first_calls.contains(&id) {
            self.keep(thin(started));
            self.keep(thin(event));
        } else {
            self.pass(event);
        }
    }

    fn ended(&mut self, agent: &AgentId, event: SessionEvent) {
        let is_executor = self.executors.contains(agent);
        if let Some(open) = self.agents.remove(agent) {
            for id in open.own.iter().chain((!is_executor).then_some(&open.spawned)) {
                self.kept.remove(id);
            }
        }
        if is_executor { self.keep(thin(event)) } else { self.pass(event) }
    }

    /// Records the highest numbers of calls, approvals, grants and workers of the first agent. A continued session
    /// counts on from them.
    fn number(&mut self, event: &SessionEvent) {
        if event.agent != AgentId::root() {
            return;
        }
        let (what, number) = match &event.kind {
            EventKind::ToolCallStarted { call, .. } => ("call", call.0),
            EventKind::ApprovalRequested { id, .. } => ("approval", id.0),
            EventKind::GrantAdded(grant) => ("grant", grant.id.0),
            EventKind::WorkerStarted(started) => ("worker", started.generation.0.into()),
            _ => return,
        };
        if self.highest.get(what).is_none_or(|(highest, _)| *highest <= number) {
            self.highest.insert(what, (number, thin(event.clone())));
        }
    }
}

/// Returns the event without the content of its large fields, or with shorter ones.
pub(super) fn thin(mut event: SessionEvent) -> SessionEvent {
    match &mut event.kind {
        EventKind::UserMessage { text, images } => {
            images.clear();
            *text = text.chars().take(NAME).collect();
        }
        EventKind::AssistantMessage(message) => message.content = Vec::new(),
        EventKind::ContextCompacted(compacted) => compacted.first_message = Vec::new(),
        EventKind::ToolCallStarted { input, .. } => *input = RawValue::NULL.to_owned(),
        EventKind::ToolCallFinished { content, diffs, images, .. } => {
            if content.starts_with(CUT_OFF) {
                content.truncate(CUT_OFF.len());
            } else {
                content.clear();
            }
            (*diffs, *images) = (Vec::new(), Vec::new());
        }
        // The event of a one-shot worker without an end is kept unchanged.
        EventKind::WorkerStarted(started) => started.one_shot = None,
        EventKind::SubAgentResult(result) => {
            result.text.clear();
            (result.files, result.denied) = (Vec::new(), Vec::new());
        }
        _ => {}
    }
    event
}
