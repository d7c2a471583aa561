use std::time::Duration;

use gate::approval::Proposal;
use ipc::confinement::Tier;
use ipc::effect::{Effect as Exact, FileEffect, FileState, Patch};
use ipc::id::{ApprovalId, CallId, GrantId};
use ipc::message::CallOutcome;
use ipc::path::WirePath;
use ipc::rights::{Network, RightsChange};
use ipc::tool::{ToolCall, WriteFile};
use proptest::prelude::*;
use protocol::approval::{ApprovalMode, AskKind, ChangePart, FilePart, ReviewDecision, SessionScope};
use protocol::event::{DecidedBy, TokenUsage};
use protocol::frontend::{AgentAction, Op};

use super::approvals::ask_config;
use super::script::{
    Script, broken_call, call, command, completed, config, error, file, not_found, proved_command, raw, read,
    ready, run, text, thinking,
};
use super::served::{note, search, with_served_tools};
use super::witness::Witness;
use crate::conversation::{AssistantBlock, ContentBlock, StopReason, StreamEvent};
use crate::core::{
    AgentConfig, ContextItem, Effect, Input, RequestId, RunLimits, ServedOutcome, TimerId, Window,
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
        id.clone().prop_map(note),
        id.clone().prop_map(search),
        (id, prop_oneof![Just("x"), Just("y")]).prop_map(|(id, path)| {
            call(id, "write_file", &format!(r#"{{"path":"{path}","content":"c"}}"#))
        }),
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

#[derive(Clone, Debug)]
enum Any {
    Op(Op),
    Context,
    Stream(u64, StreamEvent),
    Failed(u64, bool),
    Overflow,
    Finished(u64, usize),
    Lost(u64),
    Timer(u64),
    TimeUp,
    Together(u64),
    Ready,
    NotReplaced,
    Prepared(u64),
    Located(u64, Option<&'static str>),
    NotPrepared(u64),
    Answer(u64, usize, ReviewDecision),
    Lapsed(u64),
    Carried(u64, usize),
    Served(u64, usize),
}

/// Returns an approval of a part of a change: an edited text, or the hunk 1. That hunk is the whole change, so that the
/// answer is invalid.
fn in_part(is_edited: bool) -> ReviewDecision {
    let path: WirePath = "/p/x".into();
    let file = if is_edited {
        FilePart::Text { path, text: "mine".to_owned() }
    } else {
        FilePart::Hunks { path, hunks: vec![1] }
    };
    let shown = proposal(0);
    let part = ChangePart::of(&shown.digest, &shown.changes, vec![file]).unwrap();
    ReviewDecision::ApprovedInPart { part }
}

fn decision() -> impl Strategy<Value = ReviewDecision> {
    let session = |scope| ReviewDecision::ApprovedForSession { scope };
    prop_oneof![
        4 => Just(ReviewDecision::Approved),
        2 => Just(session(SessionScope::Exact)),
        1 => Just(session(SessionScope::CommandPrefix(vec!["make".to_owned()]))),
        1 => Just(session(SessionScope::GrantRoot)),
        1 => Just(session(SessionScope::Network)),
        2 => Just(ReviewDecision::ApprovedForTurn),
        2 => proptest::bool::ANY.prop_map(in_part),
        2 => Just(ReviewDecision::DENIED),
        1 => Just(ReviewDecision::Abort),
    ]
}

fn any() -> impl Strategy<Value = Any> {
    let user = |text: String| Any::Op(Op::Act(AgentAction::Prompt { text, images: vec![] }));
    prop_oneof![
        4 => Just(user("go".to_owned())),
        1 => Just(user("many words ".repeat(300))),
        1 => Just(Any::Op(Op::Act(AgentAction::Compact))),
        1 => Just(Any::Op(Op::Act(AgentAction::Clear))),
        1 => Just(Any::Op(Op::Act(AgentAction::RunCommand { command: "make".to_owned() }))),
        1 => Just(Any::Overflow),
        1 => Just(Any::Op(Op::Act(AgentAction::Interrupt))),
        1 => Just(Any::Context),
        20 => (prop_oneof![9 => Just(0u64), 1 => 1..3u64], event()).prop_map(|(age, event)| Any::Stream(age, event)),
        2 => (0..2u64, proptest::bool::ANY).prop_map(|(age, retryable)| Any::Failed(age, retryable)),
        12 => (0..5u64, 0..9usize).prop_map(|(age, outcome)| Any::Finished(age, outcome)),
        2 => (0..5u64).prop_map(Any::Lost),
        3 => (0..2u64).prop_map(Any::Timer),
        1 => Just(Any::TimeUp),
        2 => prop_oneof![Just(Network::On), Just(Network::Off)].prop_map(|net| {
            let change = RightsChange::Network { net, reach: None };
            Any::Op(Op::Act(AgentAction::SetRights { change }))
        }),
        3 => (0..2u64).prop_map(Any::Together),
        2 => Just(Any::Ready),
        1 => Just(Any::NotReplaced),
        4 => (0..5u64).prop_map(Any::Prepared),
        1 => (0..5u64).prop_map(Any::NotPrepared),
        4 => (0..5u64, prop_oneof![4 => Just(Some("/etc")), 1 => Just(Some("/")), 1 => Just(None)])
            .prop_map(|(age, place)| Any::Located(age, place)),
        6 => (0..3u64, 0..7usize, decision()).prop_map(|(age, kind, decision)| Any::Answer(age, kind, decision)),
        1 => (0..3u64).prop_map(Any::Lapsed),
        4 => (0..5u64, 0..9usize).prop_map(|(age, outcome)| Any::Carried(age, outcome)),
        4 => (0..5u64, 0..5usize).prop_map(|(age, outcome)| Any::Served(age, outcome)),
        1 => prop_oneof![Just(ApprovalMode::Ask), Just(ApprovalMode::Auto), Just(ApprovalMode::Deny)]
            .prop_map(|mode| Any::Op(Op::Act(AgentAction::SetMode { mode }))),
        1 => (0..3u64).prop_map(|id| Any::Op(Op::Act(AgentAction::RevokeGrant { id: GrantId(id) }))),
    ]
}

fn input(any: Any, script: &Script) -> Input {
    let request = |age| RequestId(script.agent.turn.last_request().0.saturating_sub(age));
    let call = |age| CallId(script.agent.calls.last_ids().0.0.saturating_sub(age));
    match any {
        Any::Op(op) => Input::Op(op),
        Any::Context => Input::Context(vec![ContextItem { source: "s".to_owned(), text: "c".to_owned() }]),
        Any::Stream(age, event) => Input::Stream { request: request(age), event },
        Any::Failed(age, retryable) => {
            Input::StreamFailed { request: request(age), error: error("connection", retryable) }
        }
        Any::Overflow => {
            let mut error = error("invalid_request_error", false);
            error.message = "prompt is too long: 9 tokens > 8 maximum".to_owned();
            Input::StreamFailed { request: request(0), error }
        }
        Any::Finished(age, kind) => {
            Input::CallFinished { call: call(age), outcome: outcome(kind), duration_ms: 1 }
        }
        Any::Carried(age, kind) => {
            Input::OneShotFinished { call: call(age), outcome: Ok(outcome(kind)), duration_ms: 1 }
        }
        Any::Served(age, kind) => Input::Served { call: call(age), outcome: served(kind), duration_ms: 1 },
        Any::Prepared(age) => Input::Prepared { call: call(age), proposal: proposal(age) },
        Any::Located(age, place) => Input::Located { call: call(age), place: place.map(WirePath::from) },
        Any::Together(age) => Input::Op(Op::Act(AgentAction::AskTogether { id: approval(script, age) })),
        Any::NotPrepared(age) => Input::NotPrepared { call: call(age), reason: "no".to_owned() },
        Any::Answer(age, kind, decision) => {
            let id = approval(script, age);
            let kind = match kind {
                0 => AskKind::Patch,
                1 => AskKind::Exec,
                2 => AskKind::Network,
                3 => AskKind::ExternalTool,
                4 => AskKind::Denied,
                5 => AskKind::Host,
                6 => AskKind::Form,
                _ => AskKind::Agent,
            };
            let is_part = matches!(decision, ReviewDecision::ApprovedInPart { .. });
            let digest = is_part.then(|| proposal(0).digest);
            Input::Op(Op::Answer { id, kind, decision, digest })
        }
        Any::Lapsed(age) => {
            Input::Lapsed { id: approval(script, age), by: DecidedBy::Deadline, cause: "late".to_owned() }
        }
        Any::Lost(age) => Input::CallLost { call: call(age), reason: "gone".to_owned() },
        Any::Timer(age) => Input::Timer(TimerId(script.agent.turn.last_timer().0.saturating_sub(age))),
        Any::TimeUp => Input::TimeUp,
        Any::Ready => Input::WorkerReady(ready(1, Tier::Floor)),
        Any::NotReplaced => Input::NotReplaced { reason: "no".to_owned() },
    }
}

/// Replaces the token count of a reply by a plausible one: with a low count, the conversation would outgrow its window.
fn counted(mut input: Input, prompt: u64) -> Input {
    if let Input::Stream { event: StreamEvent::MessageCompleted { usage, .. }, .. } = &mut input {
        *usage = TokenUsage { input: prompt, output: 200, ..TokenUsage::default() };
    }
    input
}

fn approval(script: &Script, age: u64) -> ApprovalId {
    ApprovalId(script.agent.calls.last_ids().1.0.saturating_sub(age))
}

fn outcome(kind: usize) -> CallOutcome {
    let refusal = command(1, "touch: cannot touch '/etc/x': Permission denied");
    let proved = proved_command(1, "touch: cannot touch '/etc/x': Permission denied");
    let in_project = command(1, "touch: cannot touch '/p/x': Permission denied");
    let long = "a long line\n".repeat(900);
    [
        file("x"),
        command(0, ""),
        file(&long),
        command(1, &long),
        refusal,
        not_found(),
        CallOutcome::Cancelled,
        proved,
        in_project,
    ][kind]
        .clone()
}

fn served(kind: usize) -> ServedOutcome {
    match kind {
        0 => ServedOutcome::Answered("a long line\n".repeat(900)),
        1 => ServedOutcome::Failed("no".to_owned()),
        2 => ServedOutcome::Unserved("nobody".to_owned()),
        3 => ServedOutcome::Pictured("see".to_owned(), vec![super::images::image(0); 9]),
        _ => ServedOutcome::Late(Duration::from_secs(1)),
    }
}

fn proposal(age: u64) -> Proposal {
    let tool = ToolCall::WriteFile(WriteFile { path: "x".into(), content: "c".to_owned() });
    let new = Some(FileState { bytes: b"c".to_vec(), mode: 0o644 });
    let path = if age.is_multiple_of(2) { "/p/x" } else { "/p/y" };
    let file = FileEffect { path: path.into(), old: None, new, replacements: 0 };
    let effect = Exact::Patch(Patch { files: vec![file] });
    Proposal::of_patch(&tool, effect, |_| Some("/p".into())).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_order_of_inputs_keeps_the_promises(inputs in proptest::collection::vec(any(), 0..120), steps in 1..40u32, asks in proptest::bool::ANY, small in proptest::bool::ANY) {
        let limits = RunLimits { max_steps: Some(steps), ..RunLimits::default() };
        let config = with_served_tools(if asks { ask_config() } else { config() });
        let window = if small { Window::new(0) } else { Window::default() };
        let mut script = Script::with(AgentConfig { window, limits, ..config });
        let mut witness = Witness::new(window);
        for any in inputs {
            let input = counted(input(any, &script), witness.prompt);
            let was_busy = script.agent.is_busy();
            let begins = matches!(input, Input::Op(Op::Act(AgentAction::RunCommand { .. } | AgentAction::Prompt { .. })));
            let effects = script.agent.handle(input);
            for effect in &effects {
                witness.see(effect);
            }
            let ends = effects.iter().filter(|effect| matches!(effect, Effect::Finish(_))).count();
            prop_assert!(ends <= 1, "one end a run");
            // A command that cannot run begins and ends at once. So does a message that fits into no context.
            let at_once = begins && !was_busy && !script.agent.is_busy() && ends == 1;
            prop_assert_eq!(was_busy && !script.agent.is_busy() || at_once, ends == 1, "no run ends without saying so");
        }
    }
}
