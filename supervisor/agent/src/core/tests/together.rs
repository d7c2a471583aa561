use insta::assert_snapshot;
use ipc::id::{ApprovalId, CallId};
use ipc::message::CallOutcome;
use protocol::approval::{ApprovalMode, AskKind, ReviewDecision, SessionScope};
use protocol::event::DecidedBy;
use protocol::frontend::{AgentAction, Op};

use super::approvals::{asking, make, session, write, written};
use super::script::{Script, read};
use crate::core::{Effect, Input};

fn together(id: u64) -> Input {
    Input::Op(Op::Act(AgentAction::AskTogether { id: ApprovalId(id) }))
}

/// Returns an agent with changes of three files. The person is asked about the first.
fn three() -> Script {
    let mut script = asking(&[write("a", "a.txt"), write("b", "b.txt"), write("c", "c.txt"), read("d", "x")]);
    script.prepared(1, "/p/a.txt");
    script
}

fn all_three() -> Script {
    let mut script = three();
    script.input(together(1)).prepared(2, "/p/b.txt").prepared(3, "/p/c.txt");
    script
}

#[test]
fn all_changes_are_shown_and_one_answer_carries_them_out_one_after_the_other() {
    let mut script = three();
    assert!(script.lines().contains(r#""more":2"#));
    script.input(together(1));
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: denied by Together the user wants to see this change together with the other changes of the reply by Supervisor
    asked 1 no more
    log started 2 b write_file {"path":"b.txt","content":"new\n"} by Supervisor
    prepare 2 write_file
    log started 3 c write_file {"path":"c.txt","content":"new\n"} by Supervisor
    prepare 3 write_file
    "#);
    script.prepared(3, "/p/c.txt");
    assert_eq!(script.lines(), "", "not before all are there");
    script.prepared(2, "/p/b.txt");
    assert_snapshot!(script.lines(), @r#"ask 2: applyPatchApproval {"with":[2,3],"grant":{"write":["/p/a.txt","/p/b.txt","/p/c.txt"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":1,"file_changes":{"/p/a.txt":{"update":{"unified_diff":"@@ -1 +1 @@\n-old\n+new\n"}},"/p/b.txt":{"update":{"unified_diff":"@@ -1 +1 @@\n-old\n+new\n"}},"/p/c.txt":{"update":{"unified_diff":"@@ -1 +1 @@\n-old\n+new\n"}}}}"#);
    script.patch(2, ReviewDecision::Approved);
    assert_snapshot!(script.lines(), @r"
    log answered 2 of call 1: approved by User - by Supervisor
    asked 2 no more
    log answered - of call 2: approved by User - by Supervisor
    log answered - of call 3: approved by User - by Supervisor
    carry out 1: write /p/a.txt
    ");
    script.carried_out(1, written());
    assert_snapshot!(script.lines(), @r#"
    log finished 1 a Completed "nothing had to be written" by Worker
    carry out 2: write /p/b.txt
    "#);
    script.carried_out(2, written());
    script.carried_out(3, CallOutcome::Cancelled);
    assert_snapshot!(script.lines(), @r#"
    log finished 2 b Completed "nothing had to be written" by Worker
    carry out 3: write /p/c.txt
    log finished 3 c Interrupted "the call was interrupted before it was done" by Worker
    log started 4 d read_file {"path":"x"} by Supervisor
    dispatch 4 read_file
    "#);
}

#[test]
fn what_is_carried_out_is_what_was_shown() {
    let mut script = all_three();
    let digests = |script: &Script| -> Vec<String> {
        let carried = script.effects.iter().filter_map(|effect| match effect {
            Effect::CarryOut { effect, .. } => gate::approval::effect_digest(effect).ok(),
            _ => None,
        });
        carried.collect()
    };
    // An answer that names another digest than that of all of them denies all of them.
    let wrong = Some("00".to_owned());
    script.decide(Op::Answer {
        id: ApprovalId(2),
        kind: AskKind::Patch,
        decision: ReviewDecision::Approved,
        digest: wrong,
    });
    assert!(digests(&script).is_empty());
    assert_eq!(script.lines().matches("Denied \"The call was not approved").count(), 3);
    let shown = |script: &Script| {
        let mut asked = script.effects.iter().filter_map(|effect| match effect {
            Effect::RequestApproval { request, .. } => Some(request.digest().to_owned()),
            _ => None,
        });
        asked.next_back().unwrap()
    };
    let mut script = all_three();
    let digest = Some(shown(&script));
    script.decide(Op::Answer {
        id: ApprovalId(2),
        kind: AskKind::Patch,
        decision: ReviewDecision::Approved,
        digest,
    });
    for call in 1..=3 {
        script.carried_out(call, written());
    }
    assert_eq!(digests(&script).len(), 3);
}

#[test]
fn one_no_denies_all_and_nothing_for_the_session_fits() {
    let mut script = all_three();
    script.lines();
    script.patch(2, ReviewDecision::Denied { message: Some("not so".to_owned()) });
    let lines = script.lines();
    assert_eq!(lines.matches("They say: not so").count(), 3, "{lines}");
    assert!(lines.contains("dispatch 4 read_file"), "the reply goes on: {lines}");
    for scope in [SessionScope::Exact, SessionScope::GrantRoot, SessionScope::PathPattern("**".to_owned())] {
        let mut script = all_three();
        script.lines();
        script.patch(2, session(scope));
        let lines = script.lines();
        assert!(lines.contains("denied by BadAnswer") && !lines.contains("carry out"), "{lines}");
    }
}

#[test]
fn only_changes_of_other_files_right_behind_it_are_shown_with_it() {
    let more = |calls: &[_]| {
        let mut script = asking(calls);
        script.prepared(1, "/p/a.txt");
        let lines = script.lines();
        script.input(together(1));
        (lines.contains(r#""more":1"#), lines.contains(r#""more""#), script.lines())
    };
    let (one, ..) = more(&[write("a", "a.txt"), write("b", "b.txt"), make("c", "make"), write("d", "d.txt")]);
    assert!(one, "a command comes between");
    let (one, ..) = more(&[write("a", "a.txt"), write("b", "b.txt"), write("c", "./b.txt")]);
    assert!(one, "the second change of a file depends on the first");
    for calls in
        [&[write("a", "a.txt")][..], &[write("a", "a.txt"), read("b", "b.txt"), write("c", "c.txt")][..]]
    {
        let (_, any, lines) = more(calls);
        assert!(!any && lines.contains("no other changes of the reply"), "{lines}");
    }
}

#[test]
fn two_names_of_one_file_are_two_questions() {
    let mut script = three();
    script.input(together(1)).prepared(2, "/p/a.txt");
    script.lines();
    script.prepared(3, "/p/c.txt");
    assert!(script.lines().contains(r#""with":[3]"#));
    script.patch(2, ReviewDecision::Approved).carried_out(1, written());
    script.carried_out(3, written());
    let lines = script.lines();
    assert!(lines.contains("prepare 2 write_file"), "what it does is known now: {lines}");
    script.prepared(2, "/p/a.txt");
    assert!(script.lines().contains("ask 3: "));
}

#[test]
fn a_change_that_cannot_be_prepared_is_left_out() {
    let mut script = three();
    script.input(together(1)).lines();
    script.input(Input::NotPrepared { call: CallId(2), reason: "no".to_owned() });
    script.prepared(3, "/p/c.txt");
    assert!(script.lines().contains(r#""with":[3]"#));
    let mut script = three();
    script.input(together(1)).lines();
    script.lost(2).lost(3);
    let lines = script.lines();
    assert!(lines.contains("ask 2: ") && !lines.contains(r#""with""#), "{lines}");
}

#[test]
fn whatever_interrupts_leaves_no_change_without_an_end() {
    type Interrupt = fn(&mut Script) -> &mut Script;
    let interrupts: [Interrupt; 5] = [
        Script::interrupt,
        |script| script.net(ipc::rights::Network::On),
        |script| script.decide(Op::Act(AgentAction::SetMode { mode: ApprovalMode::Deny })),
        |script| script.lapsed(2, DecidedBy::Deadline).interrupt(),
        |script| script.input(Input::FrontEndGone),
    ];
    let states: [fn() -> Script; 4] = [
        three,
        || {
            let mut script = three();
            script.input(together(1)).prepared(3, "/p/c.txt");
            script
        },
        all_three,
        || {
            let mut script = all_three();
            script.patch(2, ReviewDecision::Approved);
            script
        },
    ];
    for (n, state) in states.into_iter().enumerate() {
        for (m, interrupt) in interrupts.into_iter().enumerate() {
            let mut script = state();
            interrupt(&mut script);
            let carried = |script: &Script| {
                script.effects.iter().filter(|effect| matches!(effect, Effect::CarryOut { .. })).count()
            };
            let before = carried(&script);
            script.input(Input::FrontEndGone);
            let lines = script.lines();
            for call in 1..=3 {
                let [began, ended] =
                    ["started", "finished"].map(|word| lines.matches(&format!("log {word} {call} ")).count());
                assert_eq!((began, ended), (1, 1), "state {n}, interrupt {m}, call {call}: {lines}");
            }
            assert!(carried(&script) == before && before <= 1, "state {n}, interrupt {m}: {lines}");
        }
    }
}
