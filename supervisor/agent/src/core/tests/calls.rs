use gate::ApprovalMode;
use insta::assert_snapshot;
use ipc::confinement::Tier;
use ipc::denial::Operation;
use ipc::id::CallId;
use ipc::message::CallOutcome;
use ipc::place::Place;
use ipc::refusal::{Act, Refusal, Target};
use ipc::tool::{FailedAccess, ToolError, ToolErrorKind};

use super::script::{
    Script, broken_call, call, command, config, file, not_found, only_temp, read, ready, refused_command,
    run, standing, text,
};
use crate::conversation::StopReason;
use crate::core::{AgentConfig, Effect, Input};

const EACCES: i32 = 13;

#[test]
fn results_go_back_in_the_order_of_the_calls_whatever_finished_first() {
    let orders: [[u64; 3]; 6] = [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]];
    let mut seen = Vec::new();
    for order in orders {
        let mut script = Script::new();
        script.user("go").reply(
            1,
            &[read("a", "a.rs"), run("b", "true"), read("c", "c.rs")],
            StopReason::ToolUse,
        );
        for call in order {
            script.outcome(
                call,
                match call {
                    1 => file("one\n"),
                    2 => command(3, "oops\n"),
                    _ => not_found(),
                },
            );
        }
        seen.push(script.last_messages());
    }
    assert_snapshot!(seen[0], @r#"
    user "go"
    assistant {"type":"tool_use","id":"a","name":"read_file","input":{"path":"a.rs"}} {"type":"tool_use","id":"b","name":"shell_exec","input":{"command":"true"}} {"type":"tool_use","id":"c","name":"read_file","input":{"path":"c.rs"}}
    user [result a: "     1\tone\n"] [error b: "oops\n[exit code 3, 0.0 s]"] [error c: "a.rs does not exist; list_directory shows what does"]
    "#);
    assert!(seen.iter().all(|messages| messages == &seen[0]));
}

#[test]
fn mistakes_of_the_model_come_back_to_it_and_nothing_runs() {
    let mut script = Script::new();
    let calls = [
        call("a", "read", r#"{"path":"a"}"#),
        call("b", "read_file", r#"{"file":"a"}"#),
        call("c", "read_file", r#"{"path":3}"#),
        call(
            "d",
            "edit_file",
            r#"{"path":"a","edits":[{"old_string":"x","new_string":"y"},{"old_string":1}]}"#,
        ),
        broken_call("e", "write_file"),
    ];
    script.user("go").reply(1, &calls, StopReason::ToolUse);
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log assistant msg_1 5 blocks, tool_use by Supervisor
    log started 1 a read {"path":"a"} by Supervisor
    log finished 1 a Failed "there is no tool named `read`; the tools are: read_file, list_directory, search_files, write_file, edit_file, shell_exec" by Supervisor
    log started 2 b read_file {"file":"a"} by Supervisor
    log finished 2 b Failed "`read_file` was not run: argument `file`: unknown field `file`, expected one of `path`, `offset`, `limit`. Its arguments are {path, offset?, limit?}" by Supervisor
    log started 3 c read_file {"path":3} by Supervisor
    log finished 3 c Failed "`read_file` was not run: argument `path`: invalid type: integer `3`, expected a string. Its arguments are {path, offset?, limit?}" by Supervisor
    log started 4 d edit_file {"path":"a","edits":[{"old_string":"x","new_string":"y"},{"old_string":1}]} by Supervisor
    log finished 4 d Failed "`edit_file` was not run: argument `edits[1].old_string`: invalid type: integer `1`, expected a string. Its arguments are {path, old_string?, new_string?, replace_all?, edits?}" by Supervisor
    log started 5 e write_file {} by Supervisor
    log finished 5 e Failed "`write_file` was not run: got no JSON object (EOF while parsing a string), expected one with the arguments {path, content}" by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn lost_worker_gives_a_clear_error_and_the_run_goes_on() {
    let mut script = Script::new();
    script.user("go").reply(1, &[run("a", "make"), read("b", "b")], StopReason::ToolUse).lines();
    script.lost(1).lost(2).lost(2).reply(2, &[text("ok")], StopReason::EndTurn);
    assert_snapshot!(script.lines(), @r#"
    log finished 1 a Interrupted "the call was lost: the worker died. It may have been carried out in part: look before you repeat it" by Supervisor
    log finished 2 b Interrupted "the call was lost: the worker died. It may have been carried out in part: look before you repeat it" by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    log assistant msg_2 1 blocks, end_turn by Supervisor
    finish done text="ok" steps=2 tokens=230 message=None
    "#);
}

fn refused(path: &str) -> CallOutcome {
    let access = FailedAccess {
        operation: Operation::Write,
        path: path.into(),
        errno: EACCES,
        permitted_by_mode: true,
        nearest: None,
    };
    let message = format!("cannot write {path}: Permission denied");
    CallOutcome::Failed(ToolError { kind: ToolErrorKind::Refused, message, access: Some(access) })
}

#[test]
fn denial_of_a_tool_is_proved_and_ends_the_run_with_it() {
    let mut script = Script::new();
    let write = call("a", "write_file", r#"{"path":"/etc/probe","content":"x"}"#);
    script.user("go").reply(1, &[write], StopReason::ToolUse).outcome(1, refused("/etc/probe"));
    script.reply(2, &[text("I may not.")], StopReason::EndTurn);
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log assistant msg_1 1 blocks, tool_use by Supervisor
    log started 1 a write_file {"path":"/etc/probe","content":"x"} by Supervisor
    dispatch 1 write_file
    log denied 1 blocked by the kernel (Landlock): write /etc/probe; missing access: write /etc/probe; the user can allow it with --write /etc/probe by Worker
    log finished 1 a Denied "cannot write /etc/probe: Permission denied\nblocked by the kernel (Landlock): write /etc/probe; missing access: write /etc/probe; the user can allow it with --write /etc/probe. Your rights: writes in the project, $TMPDIR · network off · secrets hidden" by Worker
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    log assistant msg_2 1 blocks, end_turn by Supervisor
    finish denied text="I may not." steps=2 tokens=230 message=Some("blocked by the kernel (Landlock): write /etc/probe; missing access: write /etc/probe; the user can allow it with --write /etc/probe")
    "#);
}

/// If the broker reports a denial, the one that was guessed from the output is not used.
#[test]
fn what_the_broker_refused_a_command_is_proved() {
    let object = Target::Internet("192.0.2.1:443".parse().unwrap(), Place::Elsewhere);
    let program = "curl".to_owned();
    let refusal = Refusal { process: 9, program, act: Act::Connect, object, errno: 101, count: 3, untold: 0 };
    let mut script = Script::new();
    script.user("go").reply(1, &[run("a", "curl x; curl x || true")], StopReason::ToolUse).lines();
    let output = "curl: (6) Could not resolve host: x\n";
    script.outcome(1, refused_command(6, output, vec![refusal.clone()]));
    assert_snapshot!(script.lines(), @r#"
    log denied 1 blocked by the sandbox (mediation): reach 192.0.2.1:443 (tried by curl); missing access: network; the user can allow it with --net on by Supervisor
    log finished 1 a Failed "curl: (6) Could not resolve host: x\n[exit code 6, 0.0 s]\nblocked by the sandbox (mediation): reach 192.0.2.1:443 (tried by curl); missing access: network; the user can allow it with --net on. Your rights: writes in the project, $TMPDIR · network off · secrets hidden" by Worker
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    script.reply(2, &[run("b", "curl x || true")], StopReason::ToolUse).lines();
    script.outcome(2, refused_command(0, output, vec![refusal]));
    assert_snapshot!(script.lines(), @r#"
    log denied 2 blocked by the sandbox (mediation): reach 192.0.2.1:443 (tried by curl); missing access: network; the user can allow it with --net on by Supervisor
    log finished 2 b Completed "curl: (6) Could not resolve host: x\n[exit code 0, 0.0 s]" by Worker
    log requested 3.1 by Supervisor
    start 3 with 5 messages
    "#);
}

#[test]
fn success_after_a_denial_clears_it() {
    let mut script = Script::new();
    script.user("go").reply(1, &[run("a", "touch /etc/x")], StopReason::ToolUse);
    script.outcome(1, command(1, "touch: cannot touch '/etc/x': Permission denied\n")).lines();
    script.reply(2, &[run("b", "touch x")], StopReason::ToolUse).outcome(2, command(0, ""));
    script.reply(3, &[text("Done.")], StopReason::EndTurn);
    assert_snapshot!(script.lines(), @r#"
    log assistant msg_2 1 blocks, tool_use by Supervisor
    log started 2 b shell_exec {"command":"touch x"} by Supervisor
    dispatch 2 shell_exec
    log finished 2 b Completed "[exit code 0, 0.0 s]" by Worker
    log requested 3.1 by Supervisor
    start 3 with 5 messages
    log assistant msg_3 1 blocks, end_turn by Supervisor
    finish done text="Done." steps=3 tokens=345 message=None
    "#);
}

#[test]
fn denial_of_a_command_is_likely() {
    let mut script = Script::new();
    script.user("go").reply(1, &[run("a", "touch /etc/x")], StopReason::ToolUse).lines();
    script.outcome(1, command(1, "touch: cannot touch '/etc/x': Permission denied\n"));
    script.reply(2, &[text("I may not.")], StopReason::EndTurn);
    assert_snapshot!(script.lines(), @r#"
    log denied 1 likely blocked by the sandbox (Landlock): write /etc/x; missing access: write /etc/x; the user can allow it with --write /etc/x by Worker
    log finished 1 a Failed "touch: cannot touch '/etc/x': Permission denied\n[exit code 1, 0.0 s]\nlikely blocked by the sandbox (Landlock): write /etc/x; missing access: write /etc/x; the user can allow it with --write /etc/x. Your rights: writes in the project, $TMPDIR · network off · secrets hidden" by Worker
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    log assistant msg_2 1 blocks, end_turn by Supervisor
    finish denied text="I may not." steps=2 tokens=230 message=Some("likely blocked by the sandbox (Landlock): write /etc/x; missing access: write /etc/x; the user can allow it with --write /etc/x")
    "#);
}

#[test]
fn policy_denies_before_anything_is_sent() {
    let standing = only_temp(standing()).with_mode(ApprovalMode::Deny);
    let mut script = Script::with(AgentConfig { standing, ..config() });
    let calls = [
        call("a", "shell_exec", r#"{"command":"make","access":"write"}"#),
        call("b", "shell_exec", r#"{"command":"curl x","network":true}"#),
        call("c", "shell_exec", r#"{"command":"cat x","access":"read","network":true}"#),
    ];
    script.user("go").reply(1, &calls, StopReason::ToolUse);
    assert!(!script.effects.iter().any(|effect| matches!(effect, Effect::Dispatch { .. })));
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log assistant msg_1 3 blocks, tool_use by Supervisor
    log started 1 a shell_exec {"command":"make","access":"write"} by Supervisor
    log denied 1 blocked by the policy: write /p; missing access: write /p; the user can allow it with --mode auto by Supervisor
    log finished 1 a Denied "the call was not carried out\nblocked by the policy: write /p; missing access: write /p; the user can allow it with --mode auto. Your rights: read-only but for $TMPDIR · network off · secrets hidden" by Supervisor
    log started 2 b shell_exec {"command":"curl x","network":true} by Supervisor
    log denied 2 blocked by the policy: reach the network; missing access: network; the user can allow it with --net on by Supervisor
    log finished 2 b Denied "the call was not carried out\nblocked by the policy: reach the network; missing access: network; the user can allow it with --net on. Your rights: read-only but for $TMPDIR · network off · secrets hidden" by Supervisor
    log started 3 c shell_exec {"command":"cat x","access":"read","network":true} by Supervisor
    log denied 3 blocked by the policy: reach the network; missing access: network, which a command with access "read" never has; it cannot be allowed here by Supervisor
    log finished 3 c Denied "the call was not carried out\nblocked by the policy: reach the network; missing access: network, which a command with access \"read\" never has; it cannot be allowed here. Your rights: read-only but for $TMPDIR · network off · secrets hidden" by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn command_that_declared_to_read_is_told_so() {
    let mut script = Script::new();
    let call = call("a", "shell_exec", r#"{"command":"touch x","access":"read"}"#);
    script.user("go").reply(1, &[call], StopReason::ToolUse);
    script.outcome(1, command(1, "touch: cannot touch 'x': Permission denied\n"));
    assert_snapshot!(script.last_messages(), @r#"
    user "go"
    assistant {"type":"tool_use","id":"a","name":"shell_exec","input":{"command":"touch x","access":"read"}}
    user [error a: "touch: cannot touch 'x': Permission denied\n[exit code 1, 0.0 s]\n(This command ran with access \"read\": it can write only $TMPDIR, and has no network. If it has to do more, leave access out.)"]
    "#);
}

#[test]
fn worker_that_answers_out_of_turn_is_not_believed() {
    let mut script = Script::new();
    script.user("go").reply(1, &[read("a", "a")], StopReason::ToolUse).lines();
    script.outcome(7, file("x")).outcome(1, CallOutcome::Prepared).outcome(1, file("late"));
    assert_snapshot!(script.lines(), @r#"
    log finished 1 a Failed "the worker gave a result that does not match the call" by Worker
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn two_calls_of_one_id_make_the_reply_void() {
    let mut script = Script::new();
    script.user("go").reply(1, &[read("a", "a"), read("a", "b")], StopReason::ToolUse);
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log failed invalid_response void retry=Some(1000) by Supervisor
    timer 1 after 1s
    "#);
}

#[test]
fn call_of_the_drivers_own_shares_the_numbers() {
    let mut script = Script::new();
    assert_eq!(script.agent.reserve_call(), CallId(1));
    script.user("go").reply(1, &[read("a", "a")], StopReason::ToolUse);
    assert!(script.lines().contains("dispatch 2 read_file"));
    assert_eq!(script.agent.reserve_call(), CallId(3));
}

#[test]
fn denials_are_told_as_the_worker_sees_the_paths() {
    let mut script = Script::new();
    script.input(Input::WorkerReady(ready(1, Tier::Full)));
    script.user("go").reply(1, &[run("a", "touch /etc/x /tmp/y")], StopReason::ToolUse).lines();
    let output = "touch: cannot touch '/etc/x': Read-only file system\n";
    script.outcome(1, command(1, output));
    let denied = script.lines().lines().next().unwrap().to_owned();
    assert_snapshot!(denied, @"log denied 1 likely blocked by the sandbox (read-only mount): write /etc/x; missing access: write /etc/x; the user can allow it with --write /etc/x by Worker");
    script.reply(2, &[run("b", "touch /tmp/y")], StopReason::ToolUse).lines();
    script.outcome(2, command(1, "touch: cannot touch '/tmp/y': Permission denied\n"));
    assert!(!script.lines().contains("blocked by"), "the private /tmp may be written");
}
