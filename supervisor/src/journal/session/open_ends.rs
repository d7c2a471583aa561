//! Calls, guests and sub-agents whose end is not in the log. A continued session first records that they have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use ipc::id::{AgentId, CallId, Generation, GuestId, ToolUseId};
use ipc::message::Leftovers;
use ipc::path::WirePath;
use protocol::event::{
    EventKind, GuestEnd, GuestEnded, GuestTotals, Location, SessionEvent, SubAgentResult, SubAgentSpawned,
    SubAgentStatus, TokenUsage, ToolCallStatus, ToolKind,
};

/// Beginning of the result of a call that was running when the session's process ended.
pub(super) const CUT_OFF: &str = "interrupted: the session ended before this call did";

/// The state in which a worker found a file whose change was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutOff {
    /// The change was completed.
    CarriedOut,
    /// The change was not made.
    NotCarriedOut,
    /// The file has neither the old nor the new content.
    Otherwise,
}

impl CutOff {
    const fn told(self) -> &'static str {
        match self {
            Self::CarriedOut => "but the change was made: the file is as this call leaves it",
            Self::NotCarriedOut => "and the change was not made: the file is as this call found it",
            Self::Otherwise => {
                "and the file is not as this call leaves it: the change was not made, or the file has changed since; read the file"
            }
        }
    }
}

/// Returns the events that end all open guests, calls and sub-agents, the innermost first. Each comes with its agent.
pub(crate) fn closing(
    events: &[SessionEvent],
    found: &BTreeMap<(AgentId, CallId), CutOff>,
) -> Vec<(AgentId, EventKind)> {
    let mut calls: BTreeMap<(&AgentId, CallId), &ToolUseId> = BTreeMap::new();
    let mut agents: BTreeMap<&AgentId, (&AgentId, &SubAgentSpawned, u64)> = BTreeMap::new();
    let mut guests: BTreeSet<(&AgentId, GuestId)> = BTreeSet::new();
    for event in events {
        match &event.kind {
            EventKind::ToolCallStarted { call, tool_use, .. } => {
                calls.insert((&event.agent, *call), tool_use);
            }
            EventKind::ToolCallFinished { call, .. } => drop(calls.remove(&(&event.agent, *call))),
            EventKind::SubAgentSpawned(spawned) => {
                agents.insert(&spawned.agent, (&event.agent, spawned, event.time_ms));
            }
            EventKind::SubAgentResult(result) => drop(agents.remove(&result.agent)),
            EventKind::GuestStarted(started) => drop(guests.insert((&event.agent, started.guest))),
            EventKind::GuestEnded(ended) => drop(guests.remove(&(&event.agent, ended.guest))),
            _ => {}
        }
    }
    // The latest comes first, because the gateway of a guest starts after the guest.
    let guests = guests.into_iter().rev().map(|(agent, guest)| {
        let (reason, totals) = (GuestEnd::CutOff, GuestTotals::default());
        let ended = GuestEnded { guest, reason, totals, hosts: Vec::new() };
        ((agent.level(), 3), (agent.clone(), EventKind::GuestEnded(ended)))
    });
    let calls = calls.into_iter().map(|((agent, call), tool_use)| {
        // A call that started a sub-agent ends after the sub-agent.
        let spawned =
            agents.values().any(|(parent, spawned, _)| **parent == *agent && spawned.call == Some(call));
        (
            (agent.level(), if spawned { 0 } else { 2 }),
            (agent.clone(), cut_off(call, tool_use, found.get(&(agent.clone(), call)).copied())),
        )
    });
    let ended = agents.values().map(|(parent, spawned, began)| {
        let result = EventKind::SubAgentResult(account(events, spawned, *began));
        ((parent.level(), 1), ((*parent).clone(), result))
    });
    let mut all: Vec<_> = guests.chain(calls).chain(ended).collect();
    all.sort_by_key(|(order, _)| std::cmp::Reverse(*order));
    all.into_iter().map(|(_, event)| event).collect()
}

/// Returns the files that unfinished writes may have left: by interrupted calls, and by one-shot workers whose end is
/// not recorded. `None` if there are none.
pub(crate) fn leftovers(events: &[SessionEvent]) -> Option<Leftovers> {
    let mut calls: BTreeMap<(&AgentId, CallId), &[Location]> = BTreeMap::new();
    let mut one_shots: BTreeMap<(&AgentId, Generation), &[WirePath]> = BTreeMap::new();
    for event in events {
        let agent = &event.agent;
        match &event.kind {
            EventKind::ToolCallStarted { call, kind: ToolKind::Edit, locations, .. } => {
                calls.insert((agent, *call), locations);
            }
            EventKind::ToolCallFinished { call, content, .. } if !content.starts_with(CUT_OFF) => {
                calls.remove(&(agent, *call));
            }
            EventKind::WorkerStarted(started) => {
                let grant = started.one_shot.as_ref().and_then(|one_shot| one_shot.grant.value());
                one_shots.extend(grant.map(|grant| ((agent, started.generation), grant.write.as_slice())));
            }
            EventKind::WorkerEnded { generation, .. } => drop(one_shots.remove(&(agent, *generation))),
            _ => {}
        }
    }
    let of_calls = calls.into_values().flatten().map(|location| &location.path);
    let mut places: Vec<_> = of_calls.chain(one_shots.into_values().flatten()).cloned().collect();
    places.sort();
    places.dedup();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let before_ns = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
    (!places.is_empty()).then_some(Leftovers { places, before_ns })
}

fn cut_off(call: CallId, tool_use: &ToolUseId, found: Option<CutOff>) -> EventKind {
    let content = match found {
        Some(found) => format!("{CUT_OFF}, {}", found.told()),
        None => {
            format!("{CUT_OFF}; the call may have done all or a part of its work: check before you repeat it")
        }
    };
    EventKind::ToolCallFinished {
        call,
        tool_use: tool_use.clone(),
        status: ToolCallStatus::Interrupted,
        content,
        explanation_bytes: None,
        duration_ms: 0,
        diffs: Vec::new(),
        diffs_left_out: false,
        images: Vec::new(),
    }
}

/// Returns the result of an interrupted sub-agent, as far as the log shows it.
fn account(events: &[SessionEvent], spawned: &SubAgentSpawned, began_ms: u64) -> SubAgentResult {
    let own = || events.iter().filter(|event| event.agent == spawned.agent);
    let (mut usage, mut steps) = (TokenUsage::default(), 0);
    for event in own() {
        if let EventKind::AssistantMessage(message) = &event.kind {
            usage += message.usage;
            steps += 1;
        }
    }
    let denied = own().filter(|event| matches!(event.kind, EventKind::Denied { .. })).count();
    let last_ms = own().map(|event| event.time_ms).max().unwrap_or(began_ms);
    SubAgentResult {
        agent: spawned.agent.clone(),
        call: spawned.call,
        status: SubAgentStatus::Interrupted,
        message: Some("the session ended before the sub-agent did".to_owned()),
        files: Vec::new(),
        unseen: (!spawned.write.is_empty())
            .then(|| "the session ended before the project's files were checked".to_owned()),
        denials: u32::try_from(denied).unwrap_or(u32::MAX),
        denied: Vec::new(),
        steps,
        usage,
        cost_usd: None,
        duration_ms: last_ms.saturating_sub(began_ms),
        plan: Vec::new(),
        text: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::journal::session::made::Log;

    fn guest(guest: u32) -> serde_json::Value {
        json!({
            "guest": guest, "kind": "gateway", "pid": 7, "tier": "floor", "landlock_abi": 7, "rules": 1, "rights": {"net": "on"},
            "rights_digest": "d", "ruleset_digest": "d", "startup_us": 1,
        })
    }

    #[test]
    fn open_guests_end_before_what_they_belong_to_and_the_latest_first() {
        let spawned = json!({
            "agent": "1.1", "call": 1, "task": "t", "model": "m", "write": [], "net": "off", "rights_digest": "d",
            "reach": {"host": false, "lan": false, "link_local": false, "metadata": false},
        });
        let call = json!({"call": 1, "tool_use": "t", "name": "spawn_agent", "input": {}});
        let log = Log::new().with("1", "guest_started", guest(1)).with("1", "guest_started", guest(2));
        let log = log.with("1", "guest_started", guest(3)).with("1", "tool_call_started", call);
        let log = log.with("1", "guest_ended", json!({"guest": 3, "reason": {"type": "finished"}}));
        let log = log.with("1", "sub_agent_spawned", spawned).with("1.1", "guest_started", guest(1));
        let events = log.loaded().tree.into_events();
        let closed: Vec<_> = closing(&events, &BTreeMap::new())
            .into_iter()
            .map(|(agent, kind)| match kind {
                EventKind::GuestEnded(ended) => format!("{agent}: guest {} {}", ended.guest, ended.reason),
                EventKind::SubAgentResult(result) => format!("{agent}: result of {}", result.agent),
                EventKind::ToolCallFinished { call, .. } => format!("{agent}: call {call}"),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            closed,
            [
                "1.1: guest 1 was ended with the session",
                "1: guest 2 was ended with the session",
                "1: guest 1 was ended with the session",
                "1: result of 1.1",
                "1: call 1",
            ]
        );
    }
}
