//! Tests that a session resumed from a large log misses nothing, although only a part of the log is read.

use std::collections::BTreeMap;

use agent::core::standing;
use gate::plan::Document;
use ipc::id::{AgentId, EventId};
use proptest::prelude::*;
use protocol::event::{EventKind, ObservedBy, RewindScope, RewindTarget, SessionEvent};
use serde_json::{Value, json};

use super::agent::gone_on;
use crate::engine::opening::cut_off_plan::CutOffPlan;
use crate::journal::session::{Needed, Reopened, SessionLog, Sizes, closing, leftovers, read_needed_within};

const PLAN: &str = "# Two words\n\n## Steps\n\n### 1. Write two\n\n### 2. Write three\n";

/// A step of a generated session. Numbers select one of the existing agents, calls or messages.
#[derive(Clone, Debug)]
enum Step {
    Say,
    Answer { agent: usize, calls: usize },
    Finish { which: usize, cut_off: bool },
    Compact,
    Rewind { which: usize, scope: RewindScope },
    Undo,
    Run,
    Fix,
    Model,
    Number,
    OneShot { ends: bool },
    Guest { agent: usize, ends: bool },
    Pin { changes: bool },
    Spawn { agent: usize, plan: bool },
    End { agent: usize },
    Plan,
    Progress { agent: usize, step: u32 },
    Other { agent: usize },
}

fn any_step() -> impl Strategy<Value = Step> {
    let scope =
        prop_oneof![Just(RewindScope::Both), Just(RewindScope::Conversation), Just(RewindScope::Files)];
    prop_oneof![
        4 => Just(Step::Say),
        6 => (0..4usize, 0..3usize).prop_map(|(agent, calls)| Step::Answer { agent, calls }),
        6 => (0..9usize, any::<bool>()).prop_map(|(which, cut_off)| Step::Finish { which, cut_off }),
        2 => Just(Step::Compact),
        2 => (0..9usize, scope).prop_map(|(which, scope)| Step::Rewind { which, scope }),
        1 => Just(Step::Undo),
        1 => Just(Step::Run),
        1 => Just(Step::Fix),
        1 => Just(Step::Model),
        2 => Just(Step::Number),
        2 => any::<bool>().prop_map(|ends| Step::OneShot { ends }),
        2 => (0..4usize, any::<bool>()).prop_map(|(agent, ends)| Step::Guest { agent, ends }),
        1 => any::<bool>().prop_map(|changes| Step::Pin { changes }),
        2 => (1..4usize, any::<bool>()).prop_map(|(agent, plan)| Step::Spawn { agent, plan }),
        2 => (1..4usize).prop_map(|agent| Step::End { agent }),
        2 => Just(Step::Plan),
        2 => (1..4usize, 1..3u32).prop_map(|(agent, step)| Step::Progress { agent, step }),
        2 => (0..4usize).prop_map(|agent| Step::Other { agent }),
    ]
}

/// A generated session and its log.
struct Play {
    _state: tempfile::TempDir,
    log: SessionLog,
    events: Vec<SessionEvent>,
    /// Calls without an end event.
    calls: Vec<(String, u64)>,
    number: u64,
    /// Ids of the living agents: the first, two below it, and one below the second of these.
    agents: [Option<String>; 4],
}

impl Play {
    fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        let log = SessionLog::create(state.path(), &"s-1".into()).unwrap();
        let agents = [Some("1".to_owned()), None, None, None];
        let mut play = Self { _state: state, log, events: Vec::new(), calls: Vec::new(), number: 0, agents };
        play.play(Step::Run);
        play
    }

    fn add(&mut self, agent: &str, kind: &str, data: &Value) -> u64 {
        let kind: EventKind = serde_json::from_value(json!({"type": kind, "data": data})).unwrap();
        let event = self.log.append(&AgentId::from(agent), ObservedBy::Supervisor, kind).unwrap();
        let id = event.id.0;
        self.events.push(event);
        id
    }

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn messages(&self) -> Vec<EventId> {
        let is_message = |event: &&SessionEvent| event.agent == AgentId::root() && is_message(&event.kind);
        standing(&self.events).into_iter().filter(is_message).map(|event| event.id).collect()
    }

    #[expect(clippy::too_many_lines, reason = "a table")]
    fn play(&mut self, step: Step) {
        let usage = json!({"input": 9, "cache_creation": 0, "cache_read": 0, "output": 9});
        let reach = json!({"host": false, "lan": false, "link_local": false, "metadata": false});
        let number = self.next();
        match step {
            Step::Say => {
                _ = self.add(
                    "1",
                    "user_message",
                    &json!({"text": format!("say {number} {}", "so ".repeat(200))}),
                );
            }
            Step::Answer { agent, calls } => {
                if let Some(agent) = self.agents[agent].clone() {
                    self.answer(&agent, calls, &usage);
                }
            }
            Step::Finish { which, cut_off } => self.finish(which, cut_off),
            Step::Compact => {
                _ = self.add(
                    "1",
                    "context_compacted",
                    &json!({"cause": "limit", "summary": "conversation", "tokens_before": 9,
                    "tokens_after": 1, "usage": usage, "first_message": [format!("summary {number}")]}),
                );
            }
            Step::Rewind { which, scope } => {
                let messages = self.messages();
                if let Some(to) = messages.get(which % messages.len().max(1)) {
                    _ = self.add("1", "rewound", &json!({"target": {"to": to, "scope": scope}}));
                }
            }
            Step::Undo => _ = self.add("1", "rewound", &json!({"target": {"scope": "both"}})),
            Step::Run => {
                _ = self.add(
                    "1",
                    "session_started",
                    &json!({"version": "0", "project": "/p", "activity": "execute", "mode": "ask",
                    "model": "m", "provider": "p", "rights": "none", "resumed": number > 1}),
                );
                _ = self.add(
                    "1",
                    "context_added",
                    &json!({"source": "AGENTS.md", "text": format!("rule {number}")}),
                );
            }
            Step::Fix => {
                _ = self.add(
                    "1",
                    "prompt_fixed",
                    &json!({"system": format!("be {number}"), "new_context": "model"}),
                );
            }
            Step::Model => {
                _ = self.add(
                    "1",
                    "model_changed",
                    &json!({"from": "a", "to": format!("m{number}"), "new_context": number.is_multiple_of(2)}),
                );
            }
            Step::Number => {
                _ = self.add("1", "grant_added", &json!({"id": number, "covers": "x", "grant": "write /p"}));
            }
            Step::OneShot { ends } => {
                let write = vec![format!("/p/{number}").into_bytes().into()];
                let grant = ipc::rights::Grant { write, ..ipc::rights::Grant::default() };
                _ = self.add(
                    "1",
                    "worker_started",
                    &json!({"generation": number, "pid": 1, "tier": "floor", "landlock_abi": 6,
                    "rules": 1, "rights": "r", "rights_digest": "d", "ruleset_digest": "d", "startup_us": 1,
                    "one_shot": {"call": 1, "grant": grant, "effect_digest": "d"}}),
                );
                if ends {
                    _ = self.add("1", "worker_ended", &json!({"generation": number, "reason": "done"}));
                }
            }
            Step::Guest { agent, ends } => {
                let Some(agent) = self.agents[agent].clone() else { return };
                _ = self.add(
                    &agent,
                    "guest_started",
                    &json!({"guest": number, "kind": "gateway", "worker": 1, "pid": 1, "tier": "floor",
                    "landlock_abi": 6, "rules": 1, "rights": {"net": "on"}, "rights_digest": "d",
                    "ruleset_digest": "d", "startup_us": 1}),
                );
                if ends {
                    let ended = json!({"guest": number, "reason": {"type": "owner_ended"}});
                    _ = self.add(&agent, "guest_ended", &ended);
                }
            }
            Step::Pin { changes } => {
                let digest = if changes { number } else { 0 };
                _ = self.add(
                    "1",
                    "tool_pinned",
                    &json!({"server": "docs", "digest": digest.to_string(), "tools": 1, "change": "first"}),
                );
            }
            Step::Spawn { agent, plan } => {
                let parent = self.agents[if agent == 3 { 2 } else { 0 }].clone();
                let (Some(parent), None) = (parent, &self.agents[agent]) else { return };
                let name = format!("{parent}.{number}");
                let plan = plan.then_some("d");
                let spawned = json!({"agent": name, "call": number, "plan": plan, "task": "t", "model": "m", "write": [],
                    "net": "off", "reach": reach, "rights_digest": "r"});
                _ = self.add(&parent, "sub_agent_spawned", &spawned);
                self.agents[agent] = Some(name);
            }
            Step::End { agent } => {
                let Some(name) = self.agents[agent].take() else { return };
                if agent == 2 {
                    self.agents[3] = None;
                }
                let parent = name.rsplit_once('.').unwrap().0;
                let ended = json!({"agent": name, "call": 1, "status": "done", "denials": 0, "steps": 1, "usage": usage,
                    "duration_ms": 1, "text": "done"});
                _ = self.add(parent, "sub_agent_result", &ended);
            }
            Step::Plan => {
                let plan = Document::parse(PLAN).unwrap().plan().clone();
                _ = self.add(
                    "1",
                    "plan_created",
                    &json!({"call": 1, "path": "/s/p.md", "digest": "d", "author": "planner",
                    "markdown": PLAN, "plan": plan}),
                );
            }
            Step::Progress { agent, step } => {
                let Some(agent) = self.agents[agent].clone() else { return };
                let progress = json!({"step": step, "title": "t", "from": "pending", "to": "completed"});
                _ = self.add(&agent, "plan_step_status", &progress);
            }
            Step::Other { agent } => {
                let Some(agent) = self.agents[agent].clone() else { return };
                _ = self.add(&agent, "notice", &json!({"code": "settings", "message": "m"}));
            }
        }
    }

    fn answer(&mut self, agent: &str, calls: usize, usage: &Value) {
        let numbers: Vec<_> = (0..calls).map(|_| self.next()).collect();
        let blocks: Vec<_> = numbers
            .iter()
            .map(|number| json!({"type": "tool_use", "id": format!("t{number}"), "name": "edit_file", "input": {}}))
            .chain([json!({"type": "text", "text": format!("so {}", "word ".repeat(99))})])
            .collect();
        self.add(
            agent,
            "assistant_message",
            &json!({"message_id": "i", "model": "m", "content": blocks, "stop_reason": "end_turn", "usage": usage}),
        );
        for number in numbers {
            let kind = if number % 2 == 0 { "edit" } else { "read" };
            self.add(
                agent,
                "tool_call_started",
                &json!({"call": number, "tool_use": format!("t{number}"), "name": "edit_file", "kind": kind,
                    "locations": [{"path": format!("/p/{number}")}], "input": {"path": "a", "edits": []}}),
            );
            self.calls.push((agent.to_owned(), number));
        }
    }

    fn finish(&mut self, which: usize, cut_off: bool) {
        if self.calls.is_empty() {
            return;
        }
        let (agent, number) = self.calls.remove(which % self.calls.len());
        let content = if cut_off {
            "interrupted: the session ended before this call did, and the change was not made".to_owned()
        } else {
            format!("result {number} {}", "line\n".repeat(99))
        };
        self.add(
            &agent,
            "tool_call_finished",
            &json!({"call": number, "tool_use": format!("t{number}"), "status": "completed", "content": content, "duration_ms": 1}),
        );
    }
}

const fn is_message(kind: &EventKind) -> bool {
    matches!(kind, EventKind::UserMessage { .. })
}

/// Returns all data that a resumed session derives from the events, without the texts of the conversation.
fn made_of(events: &[SessionEvent]) -> String {
    let standing = standing(events);
    let messages: Vec<_> =
        standing.iter().filter(|event| is_message(&event.kind)).map(|event| event.id).collect();
    let called: Vec<_> = messages
        .iter()
        .map(|to| {
            let is_call = |event: &&SessionEvent| matches!(event.kind, EventKind::ToolCallStarted { .. });
            standing.iter().copied().filter(is_call).any(|event| event.id > *to)
        })
        .collect();
    let about_the_model = |event: &&SessionEvent| {
        event.agent == AgentId::root()
            && matches!(
                event.kind,
                EventKind::ModelChanged(_) | EventKind::SessionStarted(_) | EventKind::PromptFixed(_)
            )
    };
    let prompts: Vec<_> = events.iter().filter(about_the_model).map(|event| &event.kind).collect();
    let has_reply = events
        .iter()
        .any(|event| event.agent == AgentId::root() && matches!(event.kind, EventKind::AssistantMessage(_)));
    let workers = events.iter().filter_map(|event| match &event.kind {
        EventKind::WorkerStarted(started) if event.agent == AgentId::root() => Some(started.generation),
        _ => None,
    });
    let pin = events.iter().rev().find(|event| matches!(event.kind, EventKind::ToolPinned(_)));
    let places = leftovers(events).map(|leftovers| leftovers.places);
    format!(
        "{:?}\n{places:?}\n{:?}\n{messages:?} {called:?}\n{prompts:?} {has_reply} {:?} {pin:?}",
        closing(events, &BTreeMap::new()),
        (CutOffPlan::of(events), CutOffPlan::all(events)),
        workers.max(),
    )
}

fn needed(play: &Play, shown: u64, ahead: Option<RewindTarget>) -> Needed {
    read_needed_within(play.log.path(), Sizes { whole: 0, shown }, ahead, &mut |_, _| ()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_part_of_a_log_goes_on_as_the_whole_does(
        steps in proptest::collection::vec(any_step(), 0..60),
        shown in prop_oneof![Just(0u64), 1..20_000u64],
        then in (0..9usize, prop_oneof![Just(None), Just(Some(RewindScope::Both)), Just(Some(RewindScope::Files))]),
    ) {
        let mut play = Play::new();
        for step in steps {
            play.play(step);
        }
        let part = needed(&play, shown, None);
        prop_assert_eq!(made_of(&part.events), made_of(&play.events));
        prop_assert_eq!(gone_on(&part.events), gone_on(&play.events));
        let agents: std::collections::BTreeSet<_> = play.events.iter().map(|event| event.agent.clone()).collect();
        prop_assert_eq!(&part.agents, &agents);
        let shown: Vec<_> = standing(&part.events).into_iter().filter(|event| part.is_whole(event)).collect();
        let whole = standing(&play.events);
        let whole: Vec<_> = whole.into_iter().filter(|event| event.agent == AgentId::root()).collect();
        prop_assert!(whole.ends_with(&shown));
        // A rewind of the running session.
        let messages = play.messages();
        let to = messages.get(then.0 % messages.len().max(1)).copied();
        let target = match then.1 {
            Some(scope) if to.is_some() => RewindTarget { to, scope },
            _ => RewindTarget { to: None, scope: RewindScope::Both },
        };
        let mut part = needed(&play, 0, Some(target)).events;
        play.add("1", "rewound", &json!({"target": target}));
        part.push(play.events.last().unwrap().clone());
        prop_assert_eq!(gone_on(&part), gone_on(&play.events));
        // The same rewind, for a process that continues the session later.
        let Play { log, events, .. } = &mut play;
        let (path, session) = (log.path().to_owned(), log.session().clone());
        let other = SessionLog::create(&path.with_file_name("other"), &session).unwrap();
        drop(std::mem::replace(log, other));
        let reopened = SessionLog::reopen_within(&path, Sizes { whole: 0, shown: 0 }, &mut |_, _| ());
        let Reopened { log, needed, torn } = reopened.unwrap();
        prop_assert_eq!((gone_on(&needed.events), torn), (gone_on(events), false));
        prop_assert_eq!(log.session().as_str(), "s-1");
    }
}

#[test]
fn what_is_summarised_and_not_shown_is_not_held() {
    let mut play = Play::new();
    for _ in 0..50 {
        for step in
            [Step::Say, Step::Answer { agent: 0, calls: 2 }, Step::Finish { which: 0, cut_off: false }]
        {
            play.play(step);
        }
        play.play(Step::Finish { which: 0, cut_off: false });
        play.play(Step::Compact);
    }
    let bytes = |events: &[SessionEvent]| {
        serde_json::to_string(events.iter().map(|event| &event.kind).collect::<Vec<_>>().as_slice())
            .unwrap()
            .len()
    };
    let part = needed(&play, 0, None);
    assert!(
        bytes(&part.events) * 4 < bytes(&play.events),
        "{} of {}",
        bytes(&part.events),
        bytes(&play.events)
    );
    // The whole conversation is loaded if it is to be shown.
    let whole = needed(&play, u64::MAX, None);
    assert_eq!(whole.events.len(), play.events.len());
}
