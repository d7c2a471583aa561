//! Whatever comes in, in whatever order: no panic, a history that the API accepts, and nothing run that is not logged.

use std::collections::BTreeSet;

use ipc::approval::{ApprovalMode, ReviewDecision, SessionScope};
use ipc::confinement::Tier;
use ipc::effect::{Effect as Exact, FileEffect, FileState, Patch};
use ipc::event::{DecidedBy, EventKind};
use ipc::frontend::Op;
use ipc::id::{ApprovalId, CallId, GrantId};
use ipc::message::Outcome;
use ipc::rights::{Network, Reach, RightsChange};
use ipc::tool::{ToolCall, WriteFile};
use proptest::prelude::*;

use super::approvals::ask_config;
use super::script::{
    Script, broken_call, call, command, completed, config, error, file, not_found, raw, read, ready, run,
    text, thinking,
};
use crate::approval::Proposal;
use crate::core::{AgentConfig, ContextItem, Effect, Input, RequestId, RunLimits, TimerId};
use crate::provider::{
    AssistantBlock, ContentBlock, Message, ModelRequest, StopReason, StreamEvent, UserBlock,
};

fn block() -> impl Strategy<Value = AssistantBlock> {
    let id = prop_oneof![Just("a"), Just("b"), Just("c"), Just("")];
    let other = AssistantBlock {
        content: ContentBlock::Other { kind: "compaction".to_owned() },
        raw: raw(r#"{"type":"compaction"}"#),
    };
    prop_oneof![
        Just(text("hello")),
        Just(text("")),
        Just(thinking()),
        Just(other),
        id.clone().prop_map(|id| read(id, "x")),
        id.clone().prop_map(|id| run(id, "true")),
        id.clone().prop_map(|id| broken_call(id, "write_file")),
        id.clone().prop_map(|id| call(id, "no_such_tool", "{}")),
        id.clone().prop_map(|id| call(id, "shell_exec", r#"{"command":"x","network":true}"#)),
        id.clone().prop_map(|id| call(id, "shell_exec", r#"{"command":"make x","access":"write"}"#)),
        id.prop_map(|id| call(id, "write_file", r#"{"path":"x","content":"c"}"#)),
    ]
}

fn stop() -> impl Strategy<Value = StopReason> {
    prop_oneof![
        4 => Just(StopReason::ToolUse),
        1 => Just(StopReason::EndTurn),
        1 => Just(StopReason::MaxTokens),
        1 => Just(StopReason::PauseTurn),
        1 => Just(StopReason::Refusal(None)),
        1 => Just(StopReason::ContextWindowExceeded),
        1 => Just(StopReason::Other("new".to_owned())),
    ]
}

fn event() -> impl Strategy<Value = StreamEvent> {
    prop_oneof![
        1 => Just(StreamEvent::MessageStarted { message_id: "m".to_owned(), model: "x".to_owned() }),
        2 => (0..4usize).prop_map(|index| StreamEvent::TextDelta { index, text: "t".to_owned() }),
        6 => (0..4usize, block()).prop_map(|(index, block)| StreamEvent::BlockClosed { index, block }),
        3 => stop().prop_map(completed),
    ]
}

/// An input. Numbers are relative to the latest ones, so that most hit what is waited for and some are late.
#[derive(Clone, Debug)]
enum Any {
    Op(Op),
    Context,
    Stream(u64, StreamEvent),
    Failed(u64, bool),
    Finished(u64, usize),
    Lost(u64),
    Timer(u64),
    TimeUp,
    Ready,
    NotReplaced,
    Prepared(u64),
    NotPrepared(u64),
    Answer(u64, usize, ReviewDecision),
    Lapsed(u64),
    Carried(u64, usize),
}

fn decision() -> impl Strategy<Value = ReviewDecision> {
    let session = |scope| ReviewDecision::ApprovedForSession { scope };
    prop_oneof![
        4 => Just(ReviewDecision::Approved),
        2 => Just(session(SessionScope::Exact)),
        1 => Just(session(SessionScope::CommandPrefix(vec!["make".to_owned()]))),
        1 => Just(session(SessionScope::GrantRoot)),
        1 => Just(session(SessionScope::Network)),
        2 => Just(ReviewDecision::DENIED),
        1 => Just(ReviewDecision::Abort),
    ]
}

fn any() -> impl Strategy<Value = Any> {
    let user = Op::UserTurn { text: "go".to_owned(), images: vec![] };
    prop_oneof![
        4 => Just(Any::Op(user)),
        1 => Just(Any::Op(Op::Interrupt)),
        1 => Just(Any::Context),
        20 => (prop_oneof![9 => Just(0u64), 1 => 1..3u64], event()).prop_map(|(age, event)| Any::Stream(age, event)),
        2 => (0..2u64, proptest::bool::ANY).prop_map(|(age, retryable)| Any::Failed(age, retryable)),
        12 => (0..5u64, 0..5usize).prop_map(|(age, outcome)| Any::Finished(age, outcome)),
        2 => (0..5u64).prop_map(Any::Lost),
        3 => (0..2u64).prop_map(Any::Timer),
        1 => Just(Any::TimeUp),
        2 => prop_oneof![Just(Network::On), Just(Network::Off)].prop_map(|net| {
            let change = RightsChange::Network { net, reach: Reach::default() };
            Any::Op(Op::SetRights { change })
        }),
        2 => Just(Any::Ready),
        1 => Just(Any::NotReplaced),
        4 => (0..5u64).prop_map(Any::Prepared),
        1 => (0..5u64).prop_map(Any::NotPrepared),
        6 => (0..3u64, 0..3usize, decision()).prop_map(|(age, kind, decision)| Any::Answer(age, kind, decision)),
        1 => (0..3u64).prop_map(Any::Lapsed),
        4 => (0..5u64, 0..5usize).prop_map(|(age, outcome)| Any::Carried(age, outcome)),
        1 => prop_oneof![Just(ApprovalMode::Ask), Just(ApprovalMode::Auto), Just(ApprovalMode::Deny)]
            .prop_map(|mode| Any::Op(Op::SetMode { mode })),
        1 => (0..3u64).prop_map(|id| Any::Op(Op::RevokeGrant { id: GrantId(id) })),
    ]
}

fn input(any: Any, script: &Script) -> Input {
    let request = |age| RequestId(script.agent.last_request.0.saturating_sub(age));
    let call = |age| CallId(script.agent.last_call.0.saturating_sub(age));
    match any {
        Any::Op(op) => Input::Op(op),
        Any::Context => Input::Context(vec![ContextItem { source: "s".to_owned(), text: "c".to_owned() }]),
        Any::Stream(age, event) => Input::Stream { request: request(age), event },
        Any::Failed(age, retryable) => {
            Input::StreamFailed { request: request(age), error: error("connection", retryable) }
        }
        Any::Finished(age, kind) => {
            Input::CallFinished { call: call(age), outcome: outcome(kind), duration_ms: 1 }
        }
        Any::Carried(age, kind) => {
            Input::OneShotFinished { call: call(age), outcome: Ok(outcome(kind)), duration_ms: 1 }
        }
        Any::Prepared(age) => Input::Prepared { call: call(age), proposal: proposal() },
        Any::NotPrepared(age) => Input::NotPrepared { call: call(age), reason: "no".to_owned() },
        Any::Answer(age, kind, decision) => {
            let id = approval(script, age);
            Input::Op(match kind {
                0 => Op::PatchApproval { id, decision },
                1 => Op::ExecApproval { id, decision },
                _ => Op::NetworkApproval { id, decision },
            })
        }
        Any::Lapsed(age) => {
            Input::Lapsed { id: approval(script, age), by: DecidedBy::Deadline, cause: "late".to_owned() }
        }
        Any::Lost(age) => Input::CallLost { call: call(age), reason: "gone".to_owned() },
        Any::Timer(age) => Input::Timer(TimerId(script.agent.last_timer.0.saturating_sub(age))),
        Any::TimeUp => Input::TimeUp,
        Any::Ready => Input::WorkerReady(ready(1, Tier::FloorUnmediated)),
        Any::NotReplaced => Input::NotReplaced { reason: "no".to_owned() },
    }
}

fn approval(script: &Script, age: u64) -> ApprovalId {
    ApprovalId(script.agent.last_approval.0.saturating_sub(age))
}

fn outcome(kind: usize) -> Outcome {
    let refusal = command(1, "touch: cannot touch '/etc/x': Permission denied");
    [file("x"), command(0, ""), refusal, not_found(), Outcome::Cancelled][kind].clone()
}

fn proposal() -> Proposal {
    let tool = ToolCall::WriteFile(WriteFile { path: "x".into(), content: "c".to_owned() });
    let new = Some(FileState { bytes: b"c".to_vec(), mode: 0o644 });
    let file = FileEffect { path: "/p/x".into(), old: None, new, replacements: 0 };
    let effect = Exact::Patch(Patch { files: vec![file] });
    Proposal::of_patch(&tool, effect, |_| Some("/p".into())).unwrap()
}

/// The ids of the tool calls in a message of the model.
fn calls(message: &Message) -> Vec<String> {
    let Message::Assistant(blocks) = message else {
        return vec![];
    };
    let values = blocks.iter().map(|block| serde_json::from_str::<serde_json::Value>(block.get()).unwrap());
    values
        .filter(|block| block["type"] == "tool_use")
        .map(|block| block["id"].as_str().unwrap().to_owned())
        .collect()
}

/// WIRE R3, R4, R5.
fn assert_acceptable(request: &ModelRequest) {
    let messages = &request.messages;
    assert!(matches!(*messages[0], Message::User(_)), "{messages:?}");
    for (place, message) in messages.iter().enumerate() {
        let next = messages.get(place + 1).map(|message| &**message);
        match &**message {
            Message::Assistant(blocks) => {
                assert!(!blocks.is_empty());
                assert!(!blocks.iter().any(|block| block.get().contains(r#""text":"""#)), "{messages:?}");
                assert!(!matches!(next, Some(Message::Assistant(_))), "{messages:?}");
                assert_answered(&calls(message), next);
            }
            Message::User(blocks) => {
                assert!(!blocks.is_empty() && !matches!(next, Some(Message::User(_))), "{messages:?}");
                assert!(!blocks.contains(&UserBlock::Text(String::new())));
                let before = place.checked_sub(1).map(|before| calls(&messages[before])).unwrap_or_default();
                assert_eq!(results(blocks), before, "{messages:?}");
            }
        }
    }
}

fn assert_answered(calls: &[String], next: Option<&Message>) {
    if calls.is_empty() {
        return;
    }
    let Some(Message::User(blocks)) = next else { panic!("{calls:?} without results: {next:?}") };
    // Results come first, each once, in the order of the calls.
    assert_eq!(results(&blocks[..calls.len()]), calls);
}

fn results(blocks: &[UserBlock]) -> Vec<String> {
    let results = blocks.iter().filter_map(|block| match block {
        UserBlock::ToolResult { tool_use, content, .. } => {
            assert!(!content.is_empty());
            Some(tool_use.as_str().to_owned())
        }
        UserBlock::Text(_) | UserBlock::Image(_) => None,
    });
    results.collect()
}

/// What the effects must satisfy in their order.
#[derive(Default)]
struct Witness {
    started: BTreeSet<CallId>,
    dispatched: BTreeSet<CallId>,
    prepared: BTreeSet<CallId>,
    /// Calls that were approved, and not carried out yet.
    approved: BTreeSet<CallId>,
    /// Requests that are open; each has one answer.
    asked: BTreeSet<ApprovalId>,
    finished: BTreeSet<CallId>,
    last_history: Vec<String>,
}

impl Witness {
    fn see(&mut self, effect: &Effect) {
        match effect {
            Effect::Log { kind: EventKind::ToolCallStarted { call, .. }, .. } => {
                assert!(self.started.insert(*call), "call {call} started twice");
            }
            Effect::Log { kind: EventKind::ToolCallFinished { call, .. }, .. } => {
                assert!(self.started.contains(call) && self.finished.insert(*call), "call {call}");
            }
            Effect::Dispatch { call, .. } => {
                assert!(self.started.contains(call) && self.dispatched.insert(*call), "call {call}");
            }
            Effect::Prepare { call, .. } => {
                assert!(self.started.contains(call));
                self.prepared.insert(*call);
            }
            Effect::Log { kind: EventKind::ApprovalAnswered(answer), .. } => {
                if let Some(id) = &answer.id {
                    assert!(self.asked.remove(id), "request {id} is decided once");
                }
                let yes = ReviewDecision::Approved;
                if answer.decision == yes
                    || matches!(answer.decision, ReviewDecision::ApprovedForSession { .. })
                {
                    self.approved.insert(answer.call);
                }
            }
            Effect::RequestApproval { id, .. } => {
                assert!(self.asked.is_empty() && self.asked.insert(*id), "one question at a time");
            }
            Effect::CarryOut { call, .. } => {
                assert!(self.approved.remove(call), "call {call} was not approved");
                assert!(!self.finished.contains(call) && self.dispatched.insert(*call), "call {call}");
            }
            Effect::CancelCall(call) => {
                assert!(self.dispatched.contains(call) || self.prepared.contains(call));
            }
            Effect::StartStream { model, .. } => self.see_request(model),
            Effect::Finish(_) => {
                assert_eq!(self.started, self.finished, "every call has its end");
                assert!(self.asked.is_empty() && self.approved.is_empty(), "and every question");
            }
            _ => {}
        }
    }

    fn see_request(&mut self, model: &ModelRequest) {
        assert_acceptable(model);
        assert_eq!(self.started, self.finished, "no request while a call is open");
        // Append-only: what was sent before is a prefix of what is sent now, block by block.
        let history = blocks(model);
        assert!(history.starts_with(&self.last_history), "{history:?} after {:?}", self.last_history);
        self.last_history = history;
    }
}

fn blocks(model: &ModelRequest) -> Vec<String> {
    let blocks = model.messages.iter().flat_map(|message| match &**message {
        Message::User(blocks) => blocks.iter().map(|block| format!("user {block:?}")).collect::<Vec<_>>(),
        Message::Assistant(blocks) => blocks.iter().map(|block| format!("assistant {block}")).collect(),
    });
    blocks.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_order_of_inputs_keeps_the_promises(inputs in proptest::collection::vec(any(), 0..120), steps in 1..40u32, asks in proptest::bool::ANY) {
        let limits = RunLimits { max_steps: Some(steps), ..RunLimits::default() };
        let config = if asks { ask_config() } else { config() };
        let mut script = Script::with(AgentConfig { limits, ..config });
        let mut witness = Witness::default();
        for any in inputs {
            let input = input(any, &script);
            let was_busy = script.agent.is_busy();
            let effects = script.agent.handle(input);
            for effect in &effects {
                witness.see(effect);
            }
            let ends = effects.iter().filter(|effect| matches!(effect, Effect::Finish(_))).count();
            prop_assert!(ends <= 1, "one end a run");
            prop_assert_eq!(was_busy && !script.agent.is_busy(), ends == 1, "no run ends without saying so");
        }
    }
}
