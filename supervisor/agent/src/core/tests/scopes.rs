use gate::approval::ApprovalSettings;
use insta::assert_snapshot;
use ipc::id::{ApprovalId, GrantId};
use ipc::rights::{Network, Reach};
use protocol::approval::{AskKind, ReviewDecision, SessionScope};
use protocol::frontend::{AgentAction, Op};

use super::approvals::{ask_config, asking, asking_with, make, online, session, write};
use super::script::{call, command, file};
use crate::conversation::StopReason;
use crate::core::AgentConfig;

#[test]
fn a_scope_that_does_not_fit_denies() {
    let scopes = [
        SessionScope::CommandPrefix(vec!["cargo".to_owned(), "build".to_owned()]),
        SessionScope::CommandPrefix(vec![]),
        SessionScope::PathPattern("**".to_owned()),
        SessionScope::Network,
    ];
    for scope in scopes {
        let mut script = asking(&[make("a", "cargo test")]);
        script.lines();
        script.exec(1, session(scope.clone()));
        let lines = script.lines();
        assert!(lines.contains("denied by BadAnswer") && !lines.contains("carry out"), "{scope:?}: {lines}");
    }
    for scope in [SessionScope::PathPattern("src/**".to_owned()), SessionScope::Network] {
        let mut script = asking(&[write("a", "v.txt")]);
        script.prepared(1, "/p/v.txt").lines();
        script.patch(1, session(scope.clone()));
        let lines = script.lines();
        assert!(lines.contains("denied by BadAnswer") && !lines.contains("carry out"), "{scope:?}: {lines}");
    }
}

#[test]
fn a_prefix_covers_the_next_command_until_it_is_revoked() {
    let mut script =
        asking(&[make("a", "cargo test -q"), make("b", "cargo test --all"), make("c", "cargo test; rm x")]);
    script.lines();
    script.exec(1, session(SessionScope::CommandPrefix(vec!["cargo".to_owned(), "test".to_owned()])));
    assert_snapshot!(script.lines(), @r"
    log answered 1 of call 1: approved_for_session by User - by Supervisor
    asked 1 no more
    log grant 1: commands that begin with: cargo test, in /p (write /p) by Supervisor
    carry out 1: write /p
    ");
    script.carried_out(1, command(0, ""));
    assert_snapshot!(script.lines(), @r#"
    log finished 1 a Completed "[exit code 0, 0.0 s]" by Worker
    log started 2 b shell_exec {"command":"cargo test --all","access":"write"} by Supervisor
    log answered - of call 2: approved by SessionGrant(GrantId(1)) - by Supervisor
    carry out 2: write /p
    "#);
    script.carried_out(2, command(0, ""));
    assert_snapshot!(script.lines(), @r#"
    log finished 2 b Completed "[exit code 0, 0.0 s]" by Worker
    log started 3 c shell_exec {"command":"cargo test; rm x","access":"write"} by Supervisor
    ask 2: execCommandApproval {"parts":[["cargo","test"],["rm","x"]],"grant":{"write":["/p"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":3,"command":["bash","-c","cargo test; rm x"],"cwd":"/p","grant_root":"/p","access":"write"}
    "#);
    script.exec(2, ReviewDecision::DENIED).decide(Op::Act(AgentAction::RevokeGrant { id: GrantId(1) }));
    script.decide(Op::Act(AgentAction::RevokeGrant { id: GrantId(1) })).lines();
    script.reply(2, &[make("d", "cargo test -q")], StopReason::ToolUse);
    assert!(script.lines().contains("ask 3: execCommandApproval"));
}

#[test]
fn a_write_root_comes_when_its_call_is_over() {
    let mut script = asking(&[make("a", "make"), make("b", "make install")]);
    script.lines();
    script.exec(1, session(SessionScope::GrantRoot));
    assert_snapshot!(script.lines(), @r"
    log answered 1 of call 1: approved_for_session by User - by Supervisor
    asked 1 no more
    carry out 1: write /p
    ");
    script.carried_out(1, command(0, ""));
    assert_snapshot!(script.lines(), @r#"
    log finished 1 a Completed "[exit code 0, 0.0 s]" by Worker
    replace the worker
    log started 2 b shell_exec {"command":"make install","access":"write"} by Supervisor
    dispatch 2 shell_exec
    "#);
    script.ready(2);
    assert_snapshot!(script.lines(), @"log rights changed: generation 2, writes in the project, $TMPDIR · network off · secrets hidden by Supervisor");
}

#[test]
fn what_configuration_approves_runs_and_nothing_beside_it() {
    let approvals =
        ApprovalSettings { preapproved: vec![vec!["make".to_owned()]], ..ApprovalSettings::default() };
    let network = call("b", "shell_exec", r#"{"command":"make","access":"write","network":true}"#);
    let mut script =
        asking_with(AgentConfig { approvals, ..ask_config() }, &[make("a", "make check"), network]);
    script.carried_out(1, command(0, ""));
    let lines = script.lines();
    assert!(lines.contains("answered - of call 1: approved by Configuration"), "{lines}");
    assert!(lines.contains("ask 1: execCommandApproval"), "the network is not approved with it: {lines}");
}

#[test]
fn the_network_that_was_approved_goes_when_the_user_turns_it_off() {
    let mut script = asking(&[online("a"), online("b")]);
    let decision = ReviewDecision::ApprovedForSession { scope: SessionScope::Exact };
    script.decide(Op::Answer { id: ApprovalId(1), kind: AskKind::Network, decision, digest: None }).lines();
    script.net(Network::Off);
    assert_snapshot!(script.lines(), @r#"
    log grant 1 revoked by Supervisor
    cancel call 1
    log finished 1 a Interrupted "interrupted: the user turned the network off; the call was ended; it was approved, and may have been carried out in part: look before you repeat it" by Supervisor
    log notice approvals_withdrawn calls that were approved with the network were ended, and need a new approval by Supervisor
    log started 2 b shell_exec {"command":"curl x","network":true} by Supervisor
    ask 2: networkApproval {"access":"standing","grant":{"write":[],"net":"on","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":2,"command":["bash","-c","curl x"],"cwd":"/p"}
    "#);
}

#[test]
fn an_approved_network_leads_as_far_as_the_start_allowed() {
    let mut config = ask_config();
    config.standing = config.standing.with_reach(Reach { host: true, ..Reach::default() });
    let host = r#""reach":{"host":true,"lan":false,"link_local":false,"metadata":false}"#;
    let mut script = asking_with(config, &[online("a")]);
    let asked = script.lines();
    assert!(asked.contains("ask 1: networkApproval") && asked.contains(host), "{asked}");
    let decision = ReviewDecision::ApprovedForSession { scope: SessionScope::Network };
    script.decide(Op::Answer { id: ApprovalId(1), kind: AskKind::Network, decision, digest: None });
    script.outcome(1, file("x")).ready(2);
    let lines = script.lines();
    assert!(lines.contains("net on +host"), "{lines}");
}

#[test]
fn configuration_approves_nothing_that_runs_where_the_agent_writes() {
    let runs = |cwd: &str| {
        let input = serde_json::json!({ "command": "make", "access": "write", "cwd": cwd }).to_string();
        let approvals =
            ApprovalSettings { preapproved: vec![vec!["make".to_owned()]], ..ApprovalSettings::default() };
        let config = AgentConfig { approvals, ..ask_config() };
        asking_with(config, &[call("a", "shell_exec", &input)]).lines()
    };
    for cwd in [".", "/p", "/p/sub", "./sub/"] {
        assert!(runs(cwd).contains("of call 1: approved by Configuration"), "{cwd}");
    }
    for cwd in ["/tmp/bw-1", "/tmp/bw-1/deep", "/", "/px"] {
        assert!(runs(cwd).contains("ask 1: execCommandApproval"), "{cwd}");
    }
    for cwd in ["..", "/p/../tmp/bw-1", "sub/../../tmp/bw-1"] {
        let lines = runs(cwd);
        assert!(lines.contains("by BadAnswer the working directory"), "{lines}");
    }
}

#[test]
fn an_answer_with_a_prefix_that_nobody_could_type_says_why() {
    for (words, why) in
        [(&[][..], "at least one word"), (&["eval"], "word of the shell"), (&["make", "a b"], "plain word")]
    {
        let mut script = asking(&[make("a", "make 'a b'")]);
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let scope = SessionScope::CommandPrefix(words);
        script.exec(1, ReviewDecision::ApprovedForSession { scope });
        let lines = script.lines();
        assert!(lines.contains("denied by BadAnswer") && lines.contains(why), "{lines}");
    }
}

#[test]
fn parts_of_a_compound_command_are_approved_each_by_itself() {
    let prefix = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let parts = |list: &[&str]| SessionScope::CommandPrefixes(list.iter().map(|text| prefix(text)).collect());
    let both = "cargo fmt && cargo test -q";
    let mut script =
        asking(&[make("a", both), make("b", "cargo test; cargo fmt"), make("c", "cargo fmt; rm x")]);
    assert!(script.lines().contains(r#""parts":[["cargo","fmt"],["cargo","test"]]"#));
    script.exec(1, session(parts(&["cargo fmt", "cargo test"])));
    assert_snapshot!(script.lines(), @r"
    log answered 1 of call 1: approved_for_session by User - by Supervisor
    asked 1 no more
    log grant 1: commands that begin with: cargo fmt, in /p (write /p) by Supervisor
    log grant 2: commands that begin with: cargo test, in /p (write /p) by Supervisor
    carry out 1: write /p
    ");
    script.carried_out(1, command(0, ""));
    assert!(script.lines().contains("approved by SessionGrant(GrantId(2))"), "both together cover the next");
    script.carried_out(2, command(0, ""));
    assert!(script.lines().contains("ask 2: "), "a part that is not covered is asked for");
    for list in [&[][..], &["rm"][..], &["cargo fmt", "rm"][..], &["cargo fmt", ""][..]] {
        let mut script = asking(&[make("a", both)]);
        script.exec(1, session(parts(list)));
        let lines = script.lines();
        assert!(lines.contains("denied by BadAnswer") && !lines.contains("carry out"), "{list:?}: {lines}");
    }
}

fn keeping() -> AgentConfig {
    let approvals =
        ApprovalSettings { kept_in: Some("/c/config.toml".into()), ..ApprovalSettings::default() };
    AgentConfig { approvals, ..ask_config() }
}

fn in_project(list: &[&str]) -> ReviewDecision {
    let list = list.iter().map(|text| text.split(' ').map(str::to_owned).collect());
    session(SessionScope::CommandPrefixesInProject(list.collect()))
}

#[test]
fn a_prefix_for_the_project_is_kept_and_counts_at_once() {
    let mut script = asking_with(keeping(), &[make("a", "cargo test -q"), make("b", "cargo test --all")]);
    let asked = script.lines();
    assert!(
        asked.contains(r#""in_project":{"prefixes":[["cargo","test"]],"file":"/c/config.toml"}"#),
        "{asked}"
    );
    script.exec(1, in_project(&["cargo test"]));
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: approved_for_session by User - by Supervisor
    asked 1 no more
    keep [["cargo", "test"]]
    log grant 1: commands that begin with: cargo test, in /p (write /p) by Supervisor
    carry out 1: write /p
    "#);
    script.carried_out(1, command(0, ""));
    assert!(script.lines().contains("call 2: approved by SessionGrant(GrantId(1))"));
}

#[test]
fn parts_are_kept_for_the_project_each_by_itself() {
    let mut script = asking_with(keeping(), &[make("a", "cargo fmt && cargo test -q")]);
    let asked = script.lines();
    assert!(asked.contains(r#""prefixes":[["cargo","fmt"],["cargo","test"]]"#), "{asked}");
    script.exec(1, in_project(&["cargo fmt"]));
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: approved_for_session by User - by Supervisor
    asked 1 no more
    keep [["cargo", "fmt"]]
    log grant 1: commands that begin with: cargo fmt, in /p (write /p) by Supervisor
    carry out 1: write /p
    "#);
}

#[test]
fn only_a_prefix_that_was_offered_is_kept_for_the_project() {
    for list in [&[][..], &["cargo"], &["cargo build"], &["cargo test", "rm"], &["cargo test -q"]] {
        let mut script = asking_with(keeping(), &[make("a", "cargo test -q")]);
        script.exec(1, in_project(list));
        let lines = script.lines();
        assert!(lines.contains("denied by BadAnswer") && !lines.contains("keep"), "{list:?}: {lines}");
    }
}

#[test]
fn a_command_that_the_setting_would_not_approve_is_not_offered_for_the_project() {
    let written = |input: serde_json::Value| call("a", "shell_exec", &input.to_string());
    for asked_for in [
        online("a"),
        make("a", "bash -c x"),
        make("a", "python3"),
        make("a", "sudo make"),
        make("a", "make $X"),
        make("a", "make > out"),
        written(serde_json::json!({"command": "make", "access": "write", "network": true})),
        written(serde_json::json!({"command": "make", "access": "write", "cwd": "/tmp/bw-1"})),
        written(serde_json::json!({"command": "make", "access": "write", "cwd": "/px"})),
        write("a", "v.txt"),
    ] {
        let named = format!("{asked_for:?}");
        let mut script = asking_with(keeping(), &[asked_for]);
        let lines = script.lines();
        assert!(!lines.contains("in_project"), "{named}: {lines}");
        script.exec(1, in_project(&["make"]));
        assert!(!script.lines().contains("keep"), "{named}");
    }
    // Without a settings file to store the approval in, an approval for the project is not offered.
    assert!(!asking(&[make("a", "make")]).lines().contains("in_project"));
}
