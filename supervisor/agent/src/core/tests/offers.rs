//! Tests of offers to run a denied command again with more access.

use gate::activity::Activity;
use gate::approval::ApprovalSettings;
use insta::assert_snapshot;
use ipc::id::{ApprovalId, CallId};
use ipc::rights::Network;
use protocol::approval::{AskKind, ReviewDecision, SessionScope};
use protocol::event::DecidedBy;
use protocol::frontend::Op;

use super::approvals::{ask_config, asking, asking_with, session};
use super::script::{Script, call, command, config, proved_command, run};
use crate::conversation::AssistantBlock;
use crate::core::{AgentConfig, Effect, Input};

const OUTSIDE: &str = "touch: cannot touch '/etc/probe': Permission denied";
const IN_PROJECT: &str = "sh: 1: cannot create /p/out: Permission denied";
const NETWORK: &str = "curl: (6) Could not resolve host: example.com";

fn again(id: u64, decision: ReviewDecision) -> Input {
    Input::Op(Op::Answer { id: ApprovalId(id), kind: AskKind::Denied, decision, digest: None })
}

fn located(call: u64, place: Option<&str>) -> Input {
    Input::Located { call: CallId(call), place: place.map(Into::into) }
}

fn asked_after_denials(script: &Script) -> usize {
    let asks = |effect: &&Effect| matches!(effect, Effect::RequestApproval { .. } | Effect::Locate { .. });
    script.effects.iter().filter(asks).count()
}

/// Returns an agent whose command was denied a write in /etc, up to the question about another run.
fn denied_outside() -> Script {
    let mut script = asking(&[run("a", "touch /etc/probe")]);
    script.outcome(1, proved_command(1, OUTSIDE));
    script.input(located(1, Some("/etc")));
    script
}

#[test]
fn what_lies_outside_is_offered_as_the_place_that_was_found_and_the_second_run_is_the_result() {
    let mut script = asking(&[run("a", "touch /etc/probe")]);
    script.lines();
    script.outcome(1, proved_command(1, OUTSIDE));
    assert_snapshot!(script.lines(), @"locate 1: /etc/probe");
    script.input(located(1, Some("/etc")));
    assert_snapshot!(script.lines(), @r#"ask 1: deniedCommandApproval {"denial":{"layer":"landlock","operation":"write","object":{"path":"/etc/probe"},"missing_right":{"type":"write","path":"/etc/probe"},"grant":"--write /etc/probe","grade":"proved","errno":13},"grant":{"write":["/etc"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":1,"command":["bash","-c","touch /etc/probe"],"cwd":"/p","grant_root":"/etc","access":"standing"}"#);
    script.input(again(1, ReviewDecision::Approved));
    assert_snapshot!(script.lines(), @r"
    log answered 1 of call 1: approved by User - by Supervisor
    asked 1 no more
    carry out 1: write /etc
    ");
    script.carried_out(1, command(0, "done\n"));
    assert_snapshot!(script.lines(), @r#"
    log finished 1 a Completed "done\n[exit code 0, 0.0 s]" by Worker
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    assert_snapshot!(script.last_messages(), @r#"
    user "go"
    assistant {"type":"tool_use","id":"a","name":"shell_exec","input":{"command":"touch /etc/probe"}}
    user [result a: "done\n[exit code 0, 0.0 s]"]
    "#);
}

#[test]
fn a_denial_that_is_left_is_told_once_with_a_word_of_the_user() {
    let mut script = denied_outside();
    script.lines();
    script.input(again(1, ReviewDecision::Denied { message: Some("use /tmp".to_owned()) }));
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: denied by User - by Supervisor
    asked 1 no more
    log denied 1 blocked by the kernel (Landlock): write /etc/probe; missing access: write /etc/probe; the user can allow it with --write /etc/probe by Worker
    log finished 1 a Failed "touch: cannot touch '/etc/probe': Permission denied\n[exit code 1, 0.0 s]\n(The user was asked whether to allow this, and did not allow it.) They say: use /tmp\nblocked by the kernel (Landlock): write /etc/probe; missing access: write /etc/probe; the user can allow it with --write /etc/probe. Your rights: read-only but for $TMPDIR · network off · secrets hidden" by Worker
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn a_write_in_the_project_is_offered_with_write_access_also_where_it_is_only_likely() {
    let mut script = asking(&[run("a", "echo x > out")]);
    script.lines();
    script.outcome(1, command(2, IN_PROJECT));
    assert_snapshot!(script.lines(), @r#"ask 1: deniedCommandApproval {"denial":{"layer":"landlock","operation":"write","object":{"path":"/p/out"},"missing_right":{"type":"write","path":"/p/out","closed_by":"mode"},"grant":"--mode auto","grade":"likely"},"grant":{"write":["/p"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":1,"command":["bash","-c","echo x > out"],"cwd":"/p","grant_root":"/p","access":"write"}"#);
    script.input(again(1, session(SessionScope::GrantRoot)));
    assert_snapshot!(script.lines(), @r"
    log answered 1 of call 1: approved_for_session by User - by Supervisor
    asked 1 no more
    carry out 1: write /p
    ");
    script.carried_out(1, command(0, ""));
    assert_snapshot!(script.lines(), @r#"
    log finished 1 a Completed "[exit code 0, 0.0 s]" by Worker
    replace the worker
    "#);
}

#[test]
fn a_second_denial_is_offered_with_the_access_of_both() {
    let mut script = asking(&[run("a", "make")]);
    script.outcome(1, command(2, IN_PROJECT)).input(again(1, ReviewDecision::Approved)).lines();
    script.carried_out(1, command(6, NETWORK));
    assert_snapshot!(script.lines(), @r#"ask 2: deniedCommandApproval {"denial":{"layer":"mediation","operation":"network","object":{"address":"example.com"},"missing_right":{"type":"network"},"grant":"--net on","grade":"likely"},"grant":{"write":["/p"],"net":"on","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":1,"command":["bash","-c","make"],"cwd":"/p","network":"on","access":"write"}"#);
    // The offer contains two rights, so that the approval of one of them for the session does not match.
    script.input(again(2, session(SessionScope::Network)));
    assert_snapshot!(script.lines(), @r#"
    log answered 2 of call 1: denied by BadAnswer this approval for the session does not match the request by Supervisor
    asked 2 no more
    log denied 1 likely blocked by the sandbox (mediation): reach example.com; missing access: network; the user can allow it with --net on by Worker
    log finished 1 a Failed "curl: (6) Could not resolve host: example.com\n[exit code 6, 0.0 s]\nlikely blocked by the sandbox (mediation): reach example.com; missing access: network; the user can allow it with --net on. Your rights: writes in the project, $TMPDIR · network off · secrets hidden" by Worker
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn the_network_can_be_a_standing_right() {
    let mut script = asking(&[run("a", "curl example.com")]);
    script.outcome(1, command(6, NETWORK)).lines();
    script.input(again(1, session(SessionScope::Network)));
    script.carried_out(1, command(0, "page"));
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: approved_for_session by User - by Supervisor
    asked 1 no more
    carry out 1: net on
    log finished 1 a Completed "page\n[exit code 0, 0.0 s]" by Worker
    replace the worker
    "#);
}

#[test]
fn a_scope_that_was_not_shown_denies() {
    for scope in [
        SessionScope::Exact,
        SessionScope::CommandPrefix(vec!["touch".to_owned()]),
        SessionScope::PathPattern("**".to_owned()),
        SessionScope::Network,
    ] {
        let mut script = denied_outside();
        script.lines();
        script.input(again(1, session(scope.clone())));
        let lines = script.lines();
        assert!(lines.contains("denied by BadAnswer") && !lines.contains("carry out"), "{scope:?}: {lines}");
        assert!(lines.contains("finished 1 a Failed"), "{lines}");
    }
}

#[test]
fn an_answer_of_another_kind_or_to_another_command_denies() {
    for op in [
        Op::Answer {
            id: ApprovalId(1),
            kind: AskKind::Exec,
            decision: ReviewDecision::Approved,
            digest: None,
        },
        Op::Answer {
            id: ApprovalId(1),
            kind: AskKind::Denied,
            decision: ReviewDecision::Approved,
            digest: Some("00".to_owned()),
        },
    ] {
        let mut script = denied_outside();
        script.decide(op.clone());
        assert!(!script.lines().contains("carry out"), "{op:?}");
    }
}

#[test]
fn whoever_may_not_ask_is_told_at_once() {
    let silent = ApprovalSettings { offers: false, ..ApprovalSettings::default() };
    let nobody = ApprovalSettings { answerer: false, ..ApprovalSettings::default() };
    let configs = [
        config(),
        AgentConfig { approvals: silent, ..ask_config() },
        AgentConfig { approvals: nobody, ..ask_config() },
        AgentConfig { id: "1.1".into(), ..ask_config() },
        AgentConfig { activity: Activity::Plan, ..ask_config() },
    ];
    for (n, config) in configs.into_iter().enumerate() {
        let mut script = asking_with(config, &[run("a", "touch /etc/probe")]);
        script.outcome(1, proved_command(1, OUTSIDE));
        assert_eq!(asked_after_denials(&script), 0, "{n}");
        assert!(script.lines().contains("finished 1 a Failed"), "{n}");
    }
}

#[test]
fn nothing_is_offered_that_nothing_can_allow() {
    let reading = |line: &str| {
        call("a", "shell_exec", &serde_json::json!({ "command": line, "access": "read" }).to_string())
    };
    let offline = |line: &str| {
        call("a", "shell_exec", &serde_json::json!({ "command": line, "network": false }).to_string())
    };
    let cannot = |path: &str| format!("touch: cannot touch '{path}': Permission denied");
    let cases: Vec<(AssistantBlock, ipc::message::CallOutcome)> = vec![
        // Paths that are hidden, protected, of the kernel, or lead through `..`.
        (run("a", "x"), proved_command(1, &cannot("/home/me/.ssh/authorized_keys"))),
        (run("a", "x"), proved_command(1, &cannot("/p/.git/hooks/pre-commit"))),
        (run("a", "x"), proved_command(1, &cannot("/proc/sys/kernel/core_pattern"))),
        (run("a", "x"), proved_command(1, &cannot("/etc/../home/me/.ssh/x"))),
        // Paths that no kernel has denied, commands that only read, and a command without the network.
        (run("a", "x"), command(1, OUTSIDE)),
        (reading("x"), proved_command(1, OUTSIDE)),
        (reading("x"), command(6, NETWORK)),
        (offline("x"), command(6, NETWORK)),
        // Commands that exited with 0.
        (run("a", "make | tail"), proved_command(0, OUTSIDE)),
        (run("a", "echo x > out; true"), command(0, IN_PROJECT)),
        (run("a", "curl x | head"), command(0, NETWORK)),
    ];
    for (n, (block, outcome)) in cases.into_iter().enumerate() {
        let mut script = asking(&[block]);
        script.outcome(1, outcome);
        assert_eq!(asked_after_denials(&script), 0, "{n}: {}", script.lines());
        assert!(script.lines().contains("finished 1 a"), "{n}");
    }
}

#[test]
fn a_place_that_nobody_may_grant_is_not_offered() {
    for place in
        [None, Some("/"), Some("/home"), Some("/home/me/.ssh"), Some("/usr"), Some("/p"), Some("/proc")]
    {
        let mut script = asking(&[run("a", "touch /etc/probe")]);
        script.outcome(1, proved_command(1, OUTSIDE));
        script.lines();
        script.input(located(1, place));
        let lines = script.lines();
        assert!(!lines.contains("ask ") && lines.contains("finished 1 a Failed"), "{place:?}: {lines}");
    }
    // A right to a directory above the project would include the project.
    let mut script = asking(&[run("a", "touch /probe")]);
    script.outcome(1, proved_command(1, "touch: cannot touch '/probe': Permission denied"));
    script.input(located(1, Some("/")));
    assert!(!script.lines().contains("ask "));
}

#[test]
fn calls_beside_it_come_first_and_each_has_its_own_question() {
    let mut script = asking(&[run("a", "touch /etc/a"), run("b", "touch /etc/b"), run("c", "echo x > out")]);
    script.outcome(1, proved_command(1, "touch: cannot touch '/etc/a': Permission denied"));
    script.input(located(1, Some("/etc")));
    script.lines();
    script.outcome(2, proved_command(1, "touch: cannot touch '/etc/b': Permission denied"));
    assert_snapshot!(script.lines(), @"locate 2: /etc/b");
    script.outcome(3, command(2, IN_PROJECT));
    // The question about the first command does not wait for the search for the second command's directory.
    assert!(script.lines().starts_with("ask 1: "));
    script.input(again(1, ReviewDecision::DENIED));
    assert!(!script.lines().contains("ask 2"), "the second has no place yet");
    script.input(located(2, None));
    assert!(script.lines().contains("ask 2: "));
    script.input(again(2, ReviewDecision::DENIED));
    assert!(script.lines().contains("start 2"));
}

#[test]
fn what_interrupts_a_question_leaves_the_first_run() {
    type Interrupt = fn(&mut Script) -> &mut Script;
    let interrupts: [(&str, Interrupt); 5] = [
        ("the user", Script::interrupt),
        ("a change of rights", |script| script.net(Network::On)),
        ("the deadline", |script| script.lapsed(1, DecidedBy::Deadline)),
        ("nobody", |script| script.input(Input::FrontEndGone)),
        ("the end of the turn", |script| script.input(again(1, ReviewDecision::Abort))),
    ];
    for (why, interrupt) in interrupts {
        let mut script = denied_outside();
        script.lines();
        interrupt(&mut script);
        let lines = script.lines();
        assert!(lines.contains("log denied 1 blocked by the kernel"), "{why}: {lines}");
        assert!(lines.contains("finished 1 a Failed \"touch: cannot touch"), "{why}: {lines}");
        assert!(!lines.contains("carry out"), "{why}: {lines}");
    }
    // An interruption before the question has the same result.
    let mut script = asking(&[run("a", "touch /etc/probe")]);
    script.outcome(1, proved_command(1, OUTSIDE)).lines();
    script.interrupt();
    assert!(script.lines().contains("finished 1 a Failed"));
    script.input(located(1, Some("/etc")));
    assert_eq!(script.lines(), "", "a place that is not waited for");
}

#[test]
fn a_run_that_does_not_come_to_be_leaves_the_first_one_and_the_rights() {
    let mut script = denied_outside();
    script.input(again(1, session(SessionScope::GrantRoot))).lines();
    let outcome = Err("nothing was carried out: /etc is a link now".to_owned());
    script.input(Input::OneShotFinished { call: CallId(1), outcome, duration_ms: 1 });
    assert_snapshot!(script.lines(), @r#"
    log notice not_added the command was not run again: the access approved for the session was not added by Supervisor
    log denied 1 blocked by the kernel (Landlock): write /etc/probe; missing access: write /etc/probe; the user can allow it with --write /etc/probe by Worker
    log finished 1 a Failed "touch: cannot touch '/etc/probe': Permission denied\n[exit code 1, 0.0 s]\n(The user allowed the command to run again with the access that it lacked: nothing was carried out: /etc is a link now.)\nblocked by the kernel (Landlock): write /etc/probe; missing access: write /etc/probe; the user can allow it with --write /etc/probe. Your rights: read-only but for $TMPDIR · network off · secrets hidden" by Worker
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}
