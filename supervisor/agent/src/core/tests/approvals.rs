//! Tests of actions beyond an agent's access: the person is asked, and the action is carried out exactly as shown.

use gate::Modes;
use gate::approval::{ApprovalSettings, Proposal};
use insta::assert_snapshot;
use ipc::effect::{Effect as Exact, FileEffect, FileState, Patch};
use ipc::id::{ApprovalId, CallId};
use ipc::message::CallOutcome;
use ipc::path::WirePath;
use ipc::rights::Network;
use ipc::tool::{ToolCall, ToolOutput, Written};
use protocol::approval::{ApprovalMode, AskKind, ReviewDecision, SessionScope};
use protocol::event::DecidedBy;
use protocol::frontend::{AgentAction, Op};

use super::script::{Script, call, command, config, file, only_temp, read, standing, text};
use crate::conversation::StopReason;
use crate::core::{AgentConfig, Effect, Input};

pub(super) fn ask_config() -> AgentConfig {
    let modes = Some(Modes { auto: vec!["/p".into()], always: vec![] });
    AgentConfig { standing: only_temp(standing()).with_mode(ApprovalMode::Ask).with_modes(modes), ..config() }
}

/// Returns an agent in mode `ask` that has made these calls.
pub(super) fn asking(calls: &[crate::conversation::AssistantBlock]) -> Script {
    asking_with(ask_config(), calls)
}

pub(super) fn asking_with(config: AgentConfig, calls: &[crate::conversation::AssistantBlock]) -> Script {
    let mut script = Script::with(config);
    script.ready(1).user("go").reply(1, calls, StopReason::ToolUse);
    script
}

pub(super) fn write(id: &str, path: &str) -> crate::conversation::AssistantBlock {
    call(id, "write_file", &format!(r#"{{"path":"{path}","content":"new\n"}}"#))
}

pub(super) fn make(id: &str, line: &str) -> crate::conversation::AssistantBlock {
    let input = serde_json::json!({ "command": line, "access": "write" }).to_string();
    call(id, "shell_exec", &input)
}

impl Script {
    pub(super) fn decide(&mut self, op: Op) -> &mut Self {
        self.input(Input::Op(op))
    }

    pub(super) fn patch(&mut self, id: u64, decision: ReviewDecision) -> &mut Self {
        self.decide(Op::Answer { id: ApprovalId(id), kind: AskKind::Patch, decision, digest: None })
    }

    pub(super) fn exec(&mut self, id: u64, decision: ReviewDecision) -> &mut Self {
        self.decide(Op::Answer { id: ApprovalId(id), kind: AskKind::Exec, decision, digest: None })
    }

    pub(super) fn lapsed(&mut self, id: u64, by: DecidedBy) -> &mut Self {
        self.lapsed_because(id, by, "nobody answered within 300 s")
    }

    fn lapsed_because(&mut self, id: u64, by: DecidedBy, cause: &str) -> &mut Self {
        self.input(Input::Lapsed { id: ApprovalId(id), by, cause: cause.to_owned() })
    }

    /// Reports the change of a call as prepared. The file at `path` contains `old`.
    pub(super) fn prepared(&mut self, call: u64, path: &str) -> &mut Self {
        let prepared = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Prepare { call: prepared, tool } if prepared.0 == call => Some(tool.clone()),
            _ => None,
        });
        let state = |bytes: &[u8]| Some(FileState { bytes: bytes.to_vec(), mode: 0o644 });
        let change =
            FileEffect { path: path.into(), old: state(b"old\n"), new: state(b"new\n"), replacements: 0 };
        let effect = Exact::Patch(Patch { files: vec![change] });
        let tool: ToolCall = prepared.expect("it was to be prepared");
        let proposal =
            Proposal::of_patch(&tool, effect, |file| Some(WirePath::from(file.path.as_path()))).unwrap();
        self.input(Input::Prepared { call: CallId(call), proposal })
    }

    pub(super) fn carried_out(&mut self, call: u64, outcome: CallOutcome) -> &mut Self {
        self.input(Input::OneShotFinished { call: CallId(call), outcome: Ok(outcome), duration_ms: 9 })
    }
}

pub(super) fn written() -> CallOutcome {
    CallOutcome::Done(ToolOutput::Written(Written { files: vec![] }))
}

pub(super) fn session(scope: SessionScope) -> ReviewDecision {
    ReviewDecision::ApprovedForSession { scope }
}

#[test]
fn a_patch_is_prepared_asked_for_and_carried_out() {
    let mut script = asking(&[text("The version is wrong."), write("a", "v.txt")]);
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log assistant msg_1 2 blocks, tool_use by Supervisor
    log started 1 a write_file {"path":"v.txt","content":"new\n"} by Supervisor
    prepare 1 write_file
    "#);
    script.prepared(1, "/p/v.txt");
    assert_snapshot!(script.lines(), @r#"ask 1: applyPatchApproval {"reason":"The version is wrong.","grant":{"write":["/p/v.txt"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":1,"file_changes":{"/p/v.txt":{"update":{"unified_diff":"@@ -1 +1 @@\n-old\n+new\n"}}},"grant_root":"/p"}"#);
    script.patch(1, ReviewDecision::Approved);
    assert_snapshot!(script.lines(), @r"
    log answered 1 of call 1: approved by User - by Supervisor
    asked 1 no more
    carry out 1: write /p/v.txt
    ");
    script.carried_out(1, written());
    assert_snapshot!(script.lines(), @r#"
    log finished 1 a Completed "nothing had to be written" by Worker
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn a_command_is_asked_for_in_the_words_that_run() {
    let mut script = asking(&[make("a", "cargo test -q")]);
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log assistant msg_1 1 blocks, tool_use by Supervisor
    log started 1 a shell_exec {"command":"cargo test -q","access":"write"} by Supervisor
    ask 1: execCommandApproval {"prefix":["cargo","test"],"grant":{"write":["/p"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":1,"command":["bash","-c","cargo test -q"],"cwd":"/p","grant_root":"/p","access":"write"}
    "#);
    script.exec(1, ReviewDecision::Denied { message: Some("not now".to_owned()) });
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: denied by User - by Supervisor
    asked 1 no more
    log finished 1 a Denied "The user denied this call. They say: not now" by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    assert_snapshot!(script.last_messages(), @r#"
    user "go"
    assistant {"type":"tool_use","id":"a","name":"shell_exec","input":{"command":"cargo test -q","access":"write"}}
    user [error a: "The user denied this call. They say: not now"]
    "#);
}

#[test]
fn calls_begin_in_order_and_wait_for_the_person() {
    let mut script = asking(&[read("a", "x"), make("b", "make"), read("c", "y"), write("d", "z")]);
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log assistant msg_1 4 blocks, tool_use by Supervisor
    log started 1 a read_file {"path":"x"} by Supervisor
    dispatch 1 read_file
    "#);
    script.outcome(1, file("x"));
    assert_snapshot!(script.lines(), @r#"
    log finished 1 a Completed "     1\tx\n(the last line has no line end)" by Worker
    log started 2 b shell_exec {"command":"make","access":"write"} by Supervisor
    ask 1: execCommandApproval {"grant_root":"/p","grant":{"write":["/p"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":2,"command":["bash","-c","make"],"cwd":"/p","access":"write"}
    "#);
    script.exec(1, ReviewDecision::Approved).carried_out(2, command(0, ""));
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 2: approved by User - by Supervisor
    asked 1 no more
    carry out 2: write /p
    log finished 2 b Completed "[exit code 0, 0.0 s]" by Worker
    log started 3 c read_file {"path":"y"} by Supervisor
    dispatch 3 read_file
    "#);
    script.outcome(3, file("y")).prepared(4, "/p/z").patch(2, ReviewDecision::DENIED);
    assert_snapshot!(script.lines(), @r#"
    log finished 3 c Completed "     1\ty\n(the last line has no line end)" by Worker
    log started 4 d write_file {"path":"z","content":"new\n"} by Supervisor
    prepare 4 write_file
    ask 2: applyPatchApproval {"grant_root":"/p","grant":{"write":["/p/z"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":4,"file_changes":{"/p/z":{"update":{"unified_diff":"@@ -1 +1 @@\n-old\n+new\n"}}}}
    log answered 2 of call 4: denied by User - by Supervisor
    asked 2 no more
    log finished 4 d Denied "The user denied this call." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn an_abort_ends_the_turn_with_a_result_for_every_call() {
    let mut script = asking(&[make("a", "make"), read("b", "x")]);
    script.lines();
    script.exec(1, ReviewDecision::Abort);
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: abort by User - by Supervisor
    asked 1 no more
    log finished 1 a Denied "The user denied this call and ended the turn." by Supervisor
    log started 2 b read_file {"path":"x"} by Supervisor
    log finished 2 b Interrupted "interrupted: the user ended the turn; the call was not carried out to its end" by Supervisor
    finish aborted text="" steps=1 tokens=115 message=Some("stopped by you")
    "#);
}

/// The input is that of the driver and of `serve` for a request that has no JSON form.
#[test]
fn a_request_that_cannot_be_serialised_is_denied_logged_and_told() {
    let mut script = asking(&[make("a", "make")]);
    script.lines();
    script.lapsed_because(1, DecidedBy::BadAnswer, "the request cannot be serialised: a key is no text");
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: denied by BadAnswer the request cannot be serialised: a key is no text by Supervisor
    asked 1 no more
    log finished 1 a Denied "The call was not approved, and was not carried out: the request cannot be serialised: a key is no text." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    script.exec(1, ReviewDecision::Approved);
    assert!(!script.effects.iter().any(|effect| matches!(effect, Effect::CarryOut { .. })));
}

#[test]
fn what_is_no_answer_to_the_request_is_a_denial_or_nothing() {
    let mut script = asking(&[make("a", "make")]);
    script.lines();
    script.exec(7, ReviewDecision::Approved);
    assert_snapshot!(script.lines(), @"log notice approval_ignored request 7 is no longer open: ignored the answer (approved) by Supervisor");
    script.patch(1, ReviewDecision::Approved);
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: denied by BadAnswer the answer belongs to another kind of request by Supervisor
    asked 1 no more
    log finished 1 a Denied "The call was not approved, and was not carried out: the answer belongs to another kind of request." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    script.exec(1, ReviewDecision::Approved);
    assert!(!script.effects.iter().any(|effect| matches!(effect, Effect::CarryOut { .. })));
    let mut script = asking(&[make("a", "make")]);
    script.lines();
    script.lapsed(1, DecidedBy::Deadline);
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: denied by Deadline nobody answered within 300 s by Supervisor
    asked 1 no more
    log finished 1 a Denied "The call was not approved, and was not carried out: nobody answered within 300 s." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn a_change_of_rights_takes_the_question_back() {
    let mut script = asking(&[make("a", "make")]);
    script.lines();
    script.net(Network::On);
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: denied by Interrupted the access was changed by Supervisor
    asked 1 no more
    log finished 1 a Interrupted "interrupted: the access changed; the call was ended with everything that it had started; the call had not been approved, and no part of it was carried out" by Supervisor
    replace the worker
    "#);
    script.exec(1, ReviewDecision::Approved);
    assert_snapshot!(script.lines(), @"log notice approval_ignored request 1 is no longer open: ignored the answer (approved) by Supervisor");
    let mut script = asking(&[make("a", "make")]);
    script.exec(1, ReviewDecision::Approved).lines();
    script.net(Network::On);
    assert_snapshot!(script.lines(), @r#"
    cancel call 1
    log finished 1 a Interrupted "interrupted: the access changed; the call was ended with everything that it had started; it was approved, and may have been carried out in part: look before you repeat it" by Supervisor
    replace the worker
    "#);
    script.carried_out(1, CallOutcome::Cancelled);
    assert_snapshot!(script.lines(), @r"");
}

#[test]
fn an_interrupt_closes_the_question() {
    let mut script = asking(&[make("a", "make"), read("b", "x")]);
    script.lines();
    script.interrupt();
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: denied by Interrupted the turn was ended by Supervisor
    asked 1 no more
    log finished 1 a Interrupted "interrupted by the user; the call was ended; the call had not been approved, and no part of it was carried out" by Supervisor
    log started 2 b read_file {"path":"x"} by Supervisor
    log finished 2 b Interrupted "interrupted by the user; the call was ended" by Supervisor
    finish interrupted text="" steps=1 tokens=115 message=None
    "#);
    script.exec(1, ReviewDecision::Approved);
    assert_snapshot!(script.lines(), @"log notice approval_ignored request 1 is no longer open: ignored the answer (approved) by Supervisor");
}

#[test]
fn the_mode_changes_by_a_new_worker_where_the_rights_do() {
    let mut script = asking(&[]);
    script.lines();
    for mode in [ApprovalMode::Auto, ApprovalMode::Ask, ApprovalMode::Deny, ApprovalMode::Deny] {
        script.decide(Op::Act(AgentAction::SetMode { mode })).ready(2);
    }
    assert_snapshot!(script.lines(), @r"
    replace the worker
    log mode auto by Supervisor
    log rights changed: generation 2, writes in the project, $TMPDIR · network off · secrets hidden by Supervisor
    replace the worker
    log mode ask by Supervisor
    log rights changed: generation 2, read-only but for $TMPDIR · network off · secrets hidden by Supervisor
    log mode deny by Supervisor
    log notice rights_unchanged nothing changed: the mode is already deny by Supervisor
    ");
    let mut fixed = Script::new();
    fixed.decide(Op::Act(AgentAction::SetMode { mode: ApprovalMode::Deny }));
    assert_snapshot!(fixed.lines(), @"log notice rights_refused the access was not changed: the mode of this session cannot be changed by Supervisor");
}

#[test]
fn without_anybody_to_ask_the_call_is_denied_at_once() {
    let approvals = ApprovalSettings { answerer: false, ..ApprovalSettings::default() };
    let mut script = asking_with(AgentConfig { approvals, ..ask_config() }, &[make("a", "make")]);
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log assistant msg_1 1 blocks, tool_use by Supervisor
    log started 1 a shell_exec {"command":"make","access":"write"} by Supervisor
    log answered - of call 1: denied by NoFrontEnd nobody can be asked in this run; --mode auto allows the call without asking, and --approval-socket PATH lets another program answer by Supervisor
    log finished 1 a Denied "The call was not approved, and was not carried out: nobody can be asked in this run; --mode auto allows the call without asking, and --approval-socket PATH lets another program answer." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

pub(super) fn online(id: &str) -> crate::conversation::AssistantBlock {
    call(id, "shell_exec", r#"{"command":"curl x","network":true}"#)
}

#[test]
fn nothing_that_was_approved_outlives_the_mode_deny() {
    let mut script = asking(&[make("a", "make"), write("b", "x")]);
    script.exec(1, ReviewDecision::Approved).lines();
    script.decide(Op::Act(AgentAction::SetMode { mode: ApprovalMode::Deny }));
    assert_snapshot!(script.lines(), @r#"
    cancel call 1
    log finished 1 a Interrupted "interrupted: the approval mode is deny now; the call was ended; it was approved, and may have been carried out in part: look before you repeat it" by Supervisor
    log mode deny by Supervisor
    log started 2 b write_file {"path":"x","content":"new\n"} by Supervisor
    dispatch 2 write_file
    "#);
}

#[test]
fn what_was_being_prepared_is_not_asked_once_the_mode_is_deny() {
    let mut script = asking(&[write("a", "x")]);
    script.decide(Op::Act(AgentAction::SetMode { mode: ApprovalMode::Deny })).lines();
    script.prepared(1, "/p/x");
    assert_snapshot!(script.lines(), @"dispatch 1 write_file");
}

#[test]
fn the_mode_deny_takes_the_network_as_well() {
    let mut script = asking(&[]);
    script.net(Network::On).ready(2).lines();
    script.decide(Op::Act(AgentAction::SetMode { mode: ApprovalMode::Deny })).ready(3);
    assert_snapshot!(script.lines(), @r"
    replace the worker
    log mode deny by Supervisor
    log rights changed: generation 3, read-only but for $TMPDIR · network off · secrets hidden by Supervisor
    ");
}

#[test]
fn what_is_hidden_protected_or_the_kernels_cannot_be_approved() {
    for path in ["/home/me/.ssh/id", "/p/.git/hooks/x", "/p/.vscode/tasks.json", "/proc/1/x"] {
        let mut script = asking(&[write("a", path)]);
        script.prepared(1, path);
        let lines = script.lines();
        assert!(lines.contains("blocked by the policy: write") && !lines.contains("ask "), "{lines}");
    }
    // Git's own configuration has to be allowed separately.
    let mut script = asking(&[write("a", ".git/config")]);
    script.prepared(1, "/p/.git/config");
    assert!(script.lines().contains("ask 1: applyPatchApproval"));
}
