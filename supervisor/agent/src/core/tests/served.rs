//! Tests of calls that are carried out without a worker.

use std::sync::Arc;
use std::time::Duration;

use gate::activity::Activity;
use gate::approval::ApprovalSettings;
use gate::tools::{ExternalTool, Invocation, Registry, SupervisorCall, Tool, ToolDefinition, ToolUseError};
use insta::assert_snapshot;
use ipc::id::{ApprovalId, CallId};
use protocol::approval::{ApprovalMode, AskKind, ReviewDecision, SessionScope};
use protocol::frontend::{AgentAction, Op};
use serde_json::value::RawValue;

use super::approvals::{ask_config, session};
use super::script::{Script, call, config, read};
use crate::conversation::{AssistantBlock, StopReason};
use crate::core::{AgentConfig, Effect, Input, ServedOutcome};

struct Note(ToolDefinition);

impl Tool for Note {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn parse(&self, input: &str) -> Result<Invocation, ToolUseError> {
        Ok(Invocation::Supervisor(SupervisorCall { tool: self.0.name.clone(), json: input.to_owned() }))
    }
}

pub(super) fn definition(name: &str) -> ToolDefinition {
    let schema = r#"{"type":"object","properties":{"q":{"type":"string"}}}"#;
    ToolDefinition {
        name: name.to_owned().into(),
        description: "A tool of the tests.".into(),
        input_schema: RawValue::from_string(schema.to_owned()).unwrap(),
    }
}

pub(super) fn with_served_tools(config: AgentConfig) -> AgentConfig {
    let search = ExternalTool::new("docs".to_owned(), "search".to_owned(), definition("docs__search"));
    let tools: Vec<Box<dyn Tool>> = vec![Box::new(search), Box::new(Note(definition("note")))];
    let tools = Registry::for_activity(Activity::Execute).with(tools).unwrap();
    AgentConfig { tools: Arc::new(tools), ..config }
}

pub(super) fn search(id: &str) -> AssistantBlock {
    call(id, "docs__search", r#"{"q": "x"}"#)
}

pub(super) fn note(id: &str) -> AssistantBlock {
    call(id, "note", r#"{"q":"y"}"#)
}

pub(super) fn called(config: AgentConfig, calls: &[AssistantBlock]) -> Script {
    let mut script = Script::with(with_served_tools(config));
    script.ready(1).user("go").lines();
    script.reply(1, calls, StopReason::ToolUse);
    script
}

pub(super) fn external(id: u64, decision: ReviewDecision) -> Input {
    Input::Op(Op::Answer { id: ApprovalId(id), kind: AskKind::ExternalTool, decision, digest: None })
}

pub(super) fn served(call: u64, outcome: ServedOutcome) -> Input {
    Input::Served { call: CallId(call), outcome, duration_ms: 5 }
}

pub(super) fn answered(text: &str) -> ServedOutcome {
    ServedOutcome::Answered(text.to_owned())
}

#[test]
fn an_approved_call_is_served_and_its_answer_goes_to_the_model() {
    let mut script = called(ask_config(), &[search("a")]);
    assert_snapshot!(script.lines(), @r#"
    log assistant msg_1 1 blocks, tool_use by Supervisor
    log started 1 a docs__search {"q": "x"} by Supervisor
    ask 1: externalToolApproval {"tool":"search","json":"{\"q\": \"x\"}","call_id":1,"server":"docs"}
    "#);
    script.input(external(1, ReviewDecision::Approved));
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: approved by User - by Supervisor
    asked 1 no more
    serve 1 External(ExternalCall { server: "docs", tool: "search", json: "{\"q\": \"x\"}", guest: None })
    "#);
    script.input(served(1, answered("found it")));
    assert_snapshot!(script.lines(), @r#"
    log finished 1 a Completed "found it" by Server
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    assert_snapshot!(script.last_messages(), @r#"
    user "go"
    assistant {"type":"tool_use","id":"a","name":"docs__search","input":{"q": "x"}}
    user [result a: "found it"]
    "#);
}

#[test]
fn a_call_of_the_supervisors_own_is_served_at_once_in_every_mode() {
    for config in [ask_config(), config()] {
        let mut script = called(config, &[note("a"), read("b", "a.rs")]);
        insta::allow_duplicates! {
            assert_snapshot!(script.lines(), @r#"
            log assistant msg_1 2 blocks, tool_use by Supervisor
            log started 1 a note {"q":"y"} by Supervisor
            serve 1 Supervisor(SupervisorCall { tool: "note", json: "{\"q\":\"y\"}" })
            log started 2 b read_file {"path":"a.rs"} by Supervisor
            dispatch 2 read_file
            "#);
        }
        script.input(served(1, answered("")));
        let line = script.lines();
        assert_eq!(line, "log finished 1 a Completed \"(the answer of the tool is empty)\" by Supervisor\n");
    }
}

#[test]
fn calls_behind_one_that_is_served_outside_wait_for_it() {
    let mut script = called(ask_config(), &[search("a"), read("b", "a.rs"), search("c")]);
    script.input(external(1, ReviewDecision::Approved)).lines();
    script.input(served(1, answered("found it")));
    assert_snapshot!(script.lines(), @r#"
    log finished 1 a Completed "found it" by Server
    log started 2 b read_file {"path":"a.rs"} by Supervisor
    dispatch 2 read_file
    "#);
}

#[test]
fn where_nobody_is_asked_the_call_is_denied() {
    let sub_agent = AgentConfig { id: "1.1".into(), ..ask_config() };
    let mut script = called(sub_agent, &[search("a")]);
    assert_snapshot!(script.lines(), @r#"
    log assistant msg_1 1 blocks, tool_use by Supervisor
    log started 1 a docs__search {"q": "x"} by Supervisor
    log denied 1 blocked by the policy: call search of docs; missing access: an approval of this call; it cannot be allowed here by Supervisor
    log finished 1 a Denied "the call was not carried out\nblocked by the policy: call search of docs; missing access: an approval of this call; it cannot be allowed here. Your rights: read-only but for $TMPDIR · network off · secrets hidden" by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    let mut script = called(config(), &[search("a")]);
    assert_snapshot!(script.lines(), @r#"
    log assistant msg_1 1 blocks, tool_use by Supervisor
    log started 1 a docs__search {"q": "x"} by Supervisor
    log denied 1 blocked by the policy: call search of docs; missing access: an approval of this call; the user can allow it with --mode ask by Supervisor
    log finished 1 a Denied "the call was not carried out\nblocked by the policy: call search of docs; missing access: an approval of this call; the user can allow it with --mode ask. Your rights: writes in the project, $TMPDIR · network off · secrets hidden" by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    let approvals = ApprovalSettings { answerer: false, ..ApprovalSettings::default() };
    let mut script = called(AgentConfig { approvals, ..ask_config() }, &[search("a")]);
    assert_snapshot!(script.lines(), @r#"
    log assistant msg_1 1 blocks, tool_use by Supervisor
    log started 1 a docs__search {"q": "x"} by Supervisor
    log answered - of call 1: denied by NoFrontEnd nobody can be asked in this run; --approval-socket PATH lets another program answer by Supervisor
    log finished 1 a Denied "The call was not approved, and was not carried out: nobody can be asked in this run; --approval-socket PATH lets another program answer." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn a_call_that_is_not_approved_is_not_served() {
    for op in [
        Op::Answer {
            id: ApprovalId(1),
            kind: AskKind::ExternalTool,
            decision: ReviewDecision::DENIED,
            digest: None,
        },
        Op::Answer {
            id: ApprovalId(1),
            kind: AskKind::Exec,
            decision: ReviewDecision::Approved,
            digest: None,
        },
        Op::Answer {
            id: ApprovalId(1),
            kind: AskKind::ExternalTool,
            decision: session(SessionScope::CommandPrefix(vec!["search".to_owned()])),
            digest: None,
        },
        Op::Answer {
            id: ApprovalId(1),
            kind: AskKind::ExternalTool,
            decision: ReviewDecision::Approved,
            digest: Some("another".to_owned()),
        },
        Op::Answer {
            id: ApprovalId(1),
            kind: AskKind::ExternalTool,
            decision: ReviewDecision::Abort,
            digest: None,
        },
    ] {
        let mut script = called(ask_config(), &[search("a")]);
        script.input(Input::Op(op.clone()));
        assert!(!script.effects.iter().any(|effect| matches!(effect, Effect::Serve { .. })), "{op:?}");
        assert!(script.lines().contains("finished 1 a Denied"), "{op:?}");
    }
}

#[test]
fn what_is_approved_for_the_session_is_these_bytes_and_no_other() {
    let calls = [search("a"), search("b"), call("c", "docs__search", r#"{"q":"x"}"#)];
    let mut script = called(ask_config(), &calls);
    script.input(external(1, session(SessionScope::Exact))).lines();
    script.input(served(1, answered("found it"))).input(served(2, answered("found it again")));
    assert_snapshot!(script.lines(), @r#"
    log finished 1 a Completed "found it" by Server
    log started 2 b docs__search {"q": "x"} by Supervisor
    log answered - of call 2: approved by SessionGrant(GrantId(1)) - by Supervisor
    serve 2 External(ExternalCall { server: "docs", tool: "search", json: "{\"q\": \"x\"}", guest: None })
    log finished 2 b Completed "found it again" by Server
    log started 3 c docs__search {"q":"x"} by Supervisor
    ask 2: externalToolApproval {"tool":"search","json":"{\"q\":\"x\"}","call_id":3,"server":"docs"}
    "#);
}

#[test]
fn arguments_that_are_no_object_are_told_and_nobody_is_asked() {
    let mut script = called(ask_config(), &[call("a", "docs__search", r#"["x"]"#)]);
    assert_snapshot!(script.lines(), @r#"
    log assistant msg_1 1 blocks, tool_use by Supervisor
    log started 1 a docs__search ["x"] by Supervisor
    log finished 1 a Failed "`docs__search` was not run: got no JSON object (invalid type: sequence, expected a map), expected one with the arguments {q?}" by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn a_failure_is_told_in_the_tools_words_and_a_lack_of_an_answer_in_ours() {
    let said = |outcome: ServedOutcome| {
        let mut script = called(ask_config(), &[search("a")]);
        script.input(external(1, ReviewDecision::Approved)).lines();
        script.input(served(1, outcome));
        script.lines().lines().next().unwrap().to_owned()
    };
    assert_snapshot!(said(ServedOutcome::Failed("no such index".to_owned())), @r#"log finished 1 a Failed "no such index" by Server"#);
    assert_snapshot!(said(ServedOutcome::Unserved("nothing serves it".to_owned())), @r#"log finished 1 a Failed "the call was not carried out: nothing serves it" by Supervisor"#);
    assert_snapshot!(said(ServedOutcome::Late(Duration::from_mins(2))), @r#"log finished 1 a Interrupted "interrupted: the tool did not answer within 120s; it was approved, and may have been carried out in part: look before you repeat it" by Supervisor"#);
}

#[test]
fn an_interrupt_ends_a_call_that_is_served() {
    let mut script = called(ask_config(), &[search("a")]);
    script.input(external(1, ReviewDecision::Approved)).lines();
    script.interrupt();
    assert_snapshot!(script.lines(), @r#"
    cancel call 1
    log finished 1 a Interrupted "interrupted by the user; the call was ended; it was approved, and may have been carried out in part: look before you repeat it" by Supervisor
    finish interrupted text="" steps=1 tokens=115 message=None
    "#);
    // An outcome that arrives after the end of the call has no effect.
    script.input(served(1, answered("too late")));
    assert_eq!(script.lines(), "");
}

#[test]
fn the_mode_deny_ends_an_approved_call_and_not_one_of_our_own() {
    let mut script = called(ask_config(), &[note("a"), search("b")]);
    script.input(served(1, answered("noted")));
    script.input(external(1, ReviewDecision::Approved)).lines();
    script.input(Input::Op(Op::Act(AgentAction::SetMode { mode: ApprovalMode::Deny })));
    assert!(script.lines().contains("cancel call 2"));
    let mut script = called(ask_config(), &[note("a")]);
    script.lines();
    script.input(Input::Op(Op::Act(AgentAction::SetMode { mode: ApprovalMode::Deny })));
    assert!(!script.lines().contains("cancel call 1"));
}

#[test]
fn no_worker_answers_a_call_that_is_not_its_own() {
    let mut script = called(ask_config(), &[search("a")]);
    script.input(external(1, ReviewDecision::Approved)).lines();
    script.outcome(1, super::script::file("from the worker"));
    script.input(Input::OneShotFinished {
        call: CallId(1),
        outcome: Ok(super::script::file("from another")),
        duration_ms: 1,
    });
    assert_eq!(script.lines(), "");
}
