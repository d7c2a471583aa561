//! Tests that a session reacts from its start to its user, its deadline, and the loss of its front end.

use std::time::Duration;

use agent::core::EndReason;
use ipc::id::{AgentId, ApprovalId};
use protocol::approval::{ApprovalAnswer, ExecCommandApprovalResponse, ReviewDecision};
use protocol::event::{EventKind, NoticeCode};
use protocol::frontend::{AgentAction, UserActionKind};
use tokio::time::sleep;

use super::imagined::{Imagined, Manner};
use super::model::{Reply, Scripted};
use super::stage::{Ended, Stage, run};
use crate::engine::driver::Turns;

const NOT_BEGUN: [Manner; 3] = [Manner::NeverReady, Manner::ReadyAnyway, Manner::Silent];

fn says(text: &str) -> Vec<Reply> {
    vec![Reply { text: text.to_owned(), ..Reply::default() }]
}

/// Runs a session whose worker behaves like `manner`. A turn waits, and the user does `does` half a second later.
async fn session(manner: Manner, turns: Turns, does: Option<UserActionKind>, limit: Option<u64>) -> Ended {
    let (boundary, model) = (Imagined::new(manner, 1), Scripted::new(says("done"), 1));
    let agent = AgentId::from("1");
    let stage = Stage::open(vec![run(&boundary, &agent, &model, turns)], limit.map(Duration::from_millis));
    stage.prompt(None, "do it").await;
    if let Some(kind) = does {
        sleep(Duration::from_millis(500)).await;
        stage.act(None, kind).await;
    }
    let ended = stage.end().await;
    assert!(model.requests().is_empty(), "{manner:?}: the model was asked although nothing had begun");
    assert_eq!(*boundary.alive.lock().unwrap(), 0, "{manner:?}: a worker outlived its session");
    assert_eq!(ended.types().last().unwrap(), "result", "{manner:?}");
    assert!(ended.log.is_intact());
    ended
}

#[tokio::test(start_paused = true)]
async fn what_ends_a_session_ends_it_while_it_starts() {
    for manner in NOT_BEGUN {
        for (kind, reason) in [
            (UserActionKind::Agent(AgentAction::Interrupt), EndReason::Interrupted),
            (UserActionKind::Agent(AgentAction::Quit), EndReason::Closed),
            (UserActionKind::Agent(AgentAction::InterruptSession), EndReason::Interrupted),
            (UserActionKind::Agent(AgentAction::Terminate), EndReason::Terminated),
            (UserActionKind::Agent(AgentAction::HangUp), EndReason::HungUp),
        ] {
            let ended = session(manner, Turns::One, Some(kind.clone()), None).await;
            assert_eq!(ended.end.reason, reason, "{manner:?}, {kind:?}");
            assert!(ended.lived < Duration::from_millis(600), "{manner:?}, {kind:?}: {:?}", ended.lived);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_counts_while_a_session_starts() {
    for manner in NOT_BEGUN {
        let ended = session(manner, Turns::One, None, Some(1500)).await;
        assert_eq!(ended.end.reason, EndReason::TimeLimit, "{manner:?}");
        let lived = ended.lived.as_millis();
        assert!((1500..1600).contains(&lived), "{manner:?}: {lived} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_front_end_that_goes_ends_a_start() {
    for manner in NOT_BEGUN {
        let (boundary, model) = (Imagined::new(manner, 1), Scripted::new(says("done"), 1));
        let stage =
            Stage::open(vec![run(&boundary, &AgentId::from("1"), &model, Turns::Many)], None).without_user();
        let ended = stage.end().await;
        assert!(ended.lived < Duration::from_millis(600), "{manner:?}: {:?}", ended.lived);
        assert!(model.requests().is_empty());
    }
}

/// Tests that an interrupt during the start ends the waiting turn, but not the session.
#[tokio::test(start_paused = true)]
async fn after_an_interrupted_start_the_next_turn_goes_on() {
    let (boundary, model) = (Imagined::new(Manner::Answering, 1), Scripted::new(says("done"), 1));
    let stage = Stage::open(vec![run(&boundary, &AgentId::from("1"), &model, Turns::Many)], None);
    stage.prompt(None, "not this").await;
    stage.act(None, UserActionKind::Agent(AgentAction::Interrupt)).await;
    sleep(Duration::from_secs(1)).await;
    assert!(model.requests().is_empty(), "{:?}", model.requests());
    stage.prompt(None, "this").await;
    sleep(Duration::from_secs(1)).await;
    stage.act(None, UserActionKind::Agent(AgentAction::Quit)).await;
    let ended = stage.end().await;
    assert_eq!(ended.end.text, "done");
    let [request] = &model.requests()[..] else { panic!("one request") };
    assert!(request.contains("this") && request.contains("what stands in AGENTS.md"), "{request}");
    let types = ended.types();
    assert_eq!(types.iter().filter(|kind| *kind == "turn_finished").count(), 2, "{types:?}");
}

#[tokio::test(start_paused = true)]
async fn instructions_that_do_not_come_are_not_waited_for() {
    let (boundary, model) = (Imagined::new(Manner::Silent, 1), Scripted::new(says("done"), 1));
    let agent = AgentId::from("1");
    let stage = Stage::open(vec![run(&boundary, &agent, &model, Turns::One)], None);
    stage.prompt(None, "do it").await;
    let ended = stage.end().await;
    assert_eq!(ended.end.reason, EndReason::Done);
    assert!((10_000..11_000).contains(&ended.lived.as_millis()), "{:?}", ended.lived);
    assert_eq!(model.requests().len(), 1);
    assert_eq!(boundary.started.lock().unwrap()[&agent], 2);
    let is_notice =
        |kind: &EventKind| matches!(kind, EventKind::Notice { code: NoticeCode::NoInstructions, .. });
    let notices = ended.events.iter().filter(|event| is_notice(&event.kind));
    assert_eq!(notices.count(), 1);
}

/// Tests that a silent worker delays a run no longer than the time limit of its calls.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_answered_is_lost_and_the_run_goes_on() {
    let read = Reply { reads: vec!["a.txt".to_owned()], ..Reply::default() };
    let replies = [vec![read], says("done")].concat();
    let (boundary, model) = (Imagined::new(Manner::Silent, 1), Scripted::new(replies, 1));
    let stage = Stage::open(vec![run(&boundary, &AgentId::from("1"), &model, Turns::One)], None);
    stage.prompt(None, "do it").await;
    let ended = stage.end().await;
    assert_eq!((ended.end.reason, ended.end.text.as_str()), (EndReason::Done, "done"));
    // The search for instructions, which has a shorter limit, and the call.
    assert!((310..312).contains(&ended.lived.as_secs()), "{:?}", ended.lived);
    let request = model.requests().pop().unwrap();
    assert!(request.contains("its worker killed: no answer in time"), "{request}");
    assert_eq!(*boundary.alive.lock().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_or_a_message_that_comes_too_late_has_a_line_in_the_log() {
    let (boundary, model) = (Imagined::new(Manner::Answering, 1), Scripted::new(says("done"), 1));
    let stage = Stage::open(vec![run(&boundary, &AgentId::from("1"), &model, Turns::Many)], None);
    stage.act(None, UserActionKind::Agent(AgentAction::Quit)).await;
    let answer = ApprovalAnswer::Exec(ExecCommandApprovalResponse {
        decision: ReviewDecision::Approved,
        digest: None,
    });
    stage.act(Some(&"1.2".into()), UserActionKind::Answer { id: ApprovalId(4), answer }).await;
    stage.prompt(None, "one more thing").await;
    let ended = stage.end().await;
    let notices: Vec<_> = ended.events.iter().filter_map(|event| notice(&event.kind)).collect();
    assert_eq!(
        notices,
        [
            "agent 1.2: request 4 is no longer open: ignored the answer (approved)",
            "no agent 1 is working: a message to this agent was not read",
        ]
    );
    assert_eq!(ended.types().last().unwrap(), "result");
}

fn notice(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::Notice { message, .. } => Some(message),
        _ => None,
    }
}
