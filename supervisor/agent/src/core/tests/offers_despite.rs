//! Tests of commands with exit code 0 and denials: the person is asked once, and only about certain denials.

use insta::assert_snapshot;
use ipc::id::{ApprovalId, CallId};
use ipc::message::CallOutcome;
use ipc::place::Place;
use ipc::refusal::{Act, Refusal, Target};
use protocol::approval::{AskKind, ReviewDecision, SessionScope};
use protocol::event::DecidedBy;
use protocol::frontend::Op;

use super::approvals::{asking, session};
use super::script::{Script, command, proved_command, refused_command, run};
use crate::conversation::{AssistantBlock, StopReason};
use crate::core::Input;

const ETC: &str = "touch: cannot touch '/etc/probe': Permission denied\n";

fn tried_by(program: &str, address: &str) -> Refusal {
    Refusal {
        process: 7,
        program: program.to_owned(),
        act: Act::Connect,
        object: Target::Internet(address.parse().unwrap(), Place::Elsewhere),
        errno: 101,
        count: 1,
        untold: 0,
    }
}

fn offline(program: &str, address: &str) -> CallOutcome {
    refused_command(0, "", vec![tried_by(program, address)])
}

fn chmod(path: &str) -> CallOutcome {
    let object = Target::File(path.into());
    let refusal = Refusal { act: Act::Change, object, errno: 1, ..tried_by("chmod", "192.0.2.1:1") };
    refused_command(0, "", vec![refusal])
}

/// Ends the command of reply `n` with `outcome`. Returns true if the person is asked about another run.
fn asked(script: &mut Script, (n, line): (u64, &str), outcome: CallOutcome) -> bool {
    if n > 1 {
        script.reply(n, &[run("a", line)], StopReason::ToolUse);
    }
    script.lines();
    script.outcome(n, outcome);
    let mut lines = script.lines();
    if lines.contains("locate") {
        let place = if lines.contains("/srv") { "/srv" } else { "/etc" };
        script.input(Input::Located { call: CallId(n), place: Some(place.into()) });
        lines = script.lines();
    }
    lines.contains("deniedCommandApproval")
}

fn decide(script: &mut Script, id: u64, decision: ReviewDecision) {
    script.decide(Op::Answer { id: ApprovalId(id), kind: AskKind::Denied, decision, digest: None });
}

#[test]
fn the_result_waits_for_the_answer_and_is_that_of_the_second_run() {
    let mut script = asking(&[run("a", "curl -sS example.org | head -3")]);
    assert!(asked(&mut script, (1, ""), offline("curl", "192.0.2.1:443")));
    decide(&mut script, 1, session(SessionScope::Network));
    assert_snapshot!(script.lines(), @r"
    log answered 1 of call 1: approved_for_session by User - by Supervisor
    asked 1 no more
    carry out 1: net on
    ");
    script.carried_out(1, command(0, "page\n"));
    assert_snapshot!(script.lines(), @r#"
    log finished 1 a Completed "page\n[exit code 0, 0.0 s]" by Worker
    replace the worker
    "#);
}

#[test]
fn what_is_left_is_told_with_the_result_of_the_run_that_there_was() {
    let mut script = asking(&[run("a", "curl -s example.org | head -3")]);
    assert!(asked(&mut script, (1, ""), offline("curl", "192.0.2.1:443")));
    decide(&mut script, 1, ReviewDecision::Denied { message: Some("not now".to_owned()) });
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: denied by User - by Supervisor
    asked 1 no more
    log denied 1 blocked by the sandbox (mediation): reach 192.0.2.1:443 (tried by curl); missing access: network; the user can allow it with --net on by Supervisor
    log finished 1 a Completed "[exit code 0, 0.0 s]\n(The user was asked whether to allow this, and did not allow it.) They say: not now\nDespite exit code 0: blocked by the sandbox (mediation): reach 192.0.2.1:443 (tried by curl); missing access: network; the user can allow it with --net on. Your rights: read-only but for $TMPDIR · network off · secrets hidden" by Worker
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn several_denials_of_one_call_are_one_question() {
    let refused = vec![tried_by("curl", "192.0.2.1:443"), tried_by("node", "192.0.2.2:443")];
    let mut script = asking(&[run("a", "curl x; node y; true")]);
    assert!(asked(&mut script, (1, ""), refused_command(0, "", refused)));
    decide(&mut script, 1, ReviewDecision::DENIED);
    assert!(script.lines().contains("start 2"), "the turn goes on");
}

#[test]
fn a_no_holds_for_the_session_where_the_command_carries_on() {
    let no = ReviewDecision::DENIED;
    let telemetry = || offline("node", "192.0.2.9:443");
    let mut script = asking(&[run("a", "npm test")]);
    assert!(asked(&mut script, (1, ""), telemetry()));
    decide(&mut script, 1, no.clone());
    assert!(!asked(&mut script, (2, "npm test"), telemetry()), "the same again");
    // The person is asked about another address, another program, and a command that fails.
    assert!(asked(&mut script, (3, "npm test"), offline("node", "192.0.2.10:443")));
    decide(&mut script, 2, no.clone());
    assert!(asked(&mut script, (4, "curl x | head"), offline("curl", "192.0.2.9:443")));
    decide(&mut script, 3, no.clone());
    let failed = refused_command(1, "", vec![tried_by("node", "192.0.2.9:443")]);
    assert!(asked(&mut script, (5, "npm ci"), failed));
    decide(&mut script, 4, no.clone());
    // The command has a declined denial, and one that was not declined.
    let both = vec![tried_by("node", "192.0.2.9:443"), tried_by("git", "192.0.2.11:22")];
    assert!(asked(&mut script, (6, "npm test"), refused_command(0, "", both)));
}

#[test]
fn a_no_about_a_write_holds_for_the_place_that_was_to_be_granted() {
    let mut script = asking(&[run("a", "touch /etc/probe; true")]);
    assert!(asked(&mut script, (1, ""), proved_command(0, ETC)));
    decide(&mut script, 1, ReviewDecision::DENIED);
    assert!(!asked(&mut script, (2, "touch /etc/probe; true"), proved_command(0, ETC)));
    assert!(
        !asked(&mut script, (3, "chmod 600 /etc/other; true"), chmod("/etc/other")),
        "in the same directory"
    );
    assert!(asked(&mut script, (4, "chmod 600 /srv/x; true"), chmod("/srv/x")));
}

#[test]
fn nobody_who_answers_is_a_no_and_an_interrupt_is_none() {
    for (by, again) in [(DecidedBy::Deadline, false), (DecidedBy::Interrupted, true)] {
        let mut script = asking(&[run("a", "npm test")]);
        assert!(asked(&mut script, (1, ""), offline("node", "192.0.2.9:443")));
        if again {
            script.interrupt();
            script.user("go on");
        } else {
            script.lapsed(1, by);
        }
        assert_eq!(asked(&mut script, (2, "npm test"), offline("node", "192.0.2.9:443")), again, "{by:?}");
    }
}

#[test]
fn own_words_of_the_command_prove_it() {
    let own: [(&str, &str); 2] = [
        ("touch /etc/probe; true", ETC),
        ("(echo x > /etc/probe) 2>&1 | cat", "sh: 1: cannot create /etc/probe: Permission denied\n"),
    ];
    for (line, output) in own {
        assert!(asked(&mut asking(&[block(line)]), (1, ""), proved_command(0, output)), "{line}");
        let unconfirmed = command(0, output);
        assert!(!asked(&mut asking(&[block(line)]), (1, ""), unconfirmed), "{line}: only the line says so");
    }
}

fn block(line: &str) -> AssistantBlock {
    run("a", line)
}
