//! Tests of a disk that is full for a while, at each event of a session: nothing is lost or repeated.

use agent::core::EndReason;
use ipc::id::{AgentId, EventId};
use protocol::event::{EventKind, SessionEvent, ToolCallStatus};
use protocol::frontend::{AgentAction, UserActionKind};

use super::imagined::{Imagined, Manner};
use super::model::{Reply, Scripted};
use super::stage::{Ended, Stage, run, run_in};
use crate::engine::driver::Turns;

fn script() -> Vec<Reply> {
    let reads = |step| Reply {
        text: format!("step {step}"),
        reads: (0..=step).map(|file| format!("{step}-{file}.rs")).collect(),
        ..Reply::default()
    };
    vec![reads(0), reads(1), Reply { text: "done".to_owned(), ..Reply::default() }]
}

fn of_type(ended: &Ended, kind: &str) -> usize {
    ended.types().iter().filter(|of| *of == kind).count()
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_paused_at_any_event_comes_to_what_it_would_have_come_to() {
    let id = AgentId::root();
    let begin = |at| {
        let (boundary, model) = (Imagined::new(Manner::Answering, 7), Scripted::new(script(), 7));
        let first = run(&boundary, &id, &model, Turns::One);
        (Stage::open_full(first, EventId(at)), model)
    };
    let (stage, model) = begin(0);
    stage.prompt(None, "go").await;
    let whole = stage.end().await;
    // Without the last event, the result, at which a session does not pause any more.
    let events = whole.events.len() as u64 - 1;
    assert!(events > 12, "{events}");
    for at in 1..events {
        let (stage, paused) = begin(at);
        stage.prompt(None, "go").await;
        assert_eq!(stage.paused().await as u64, at - 1, "the file has what came before event {at}");
        let asked = paused.requests().len();
        stage.act(None, UserActionKind::RetryLog).await;
        let ended = stage.end().await;
        assert_eq!(ended.end.reason, EndReason::Done, "event {at}");
        assert!(ended.log.is_intact() && ended.log.tree.len() == ended.events.len(), "event {at}");
        assert_eq!(ended.of(&id), whole.of(&id), "event {at}");
        assert_eq!(paused.requests(), model.requests(), "event {at}");
        // Questions that were shown by then were in the file.
        let before = ended.types().into_iter().take(usize::try_from(at).unwrap() - 1);
        assert_eq!(asked, before.filter(|kind| kind == "model_requested").count(), "event {at}");
    }
    assert_eq!(of_type(&whole, "model_requested"), 3);
}

/// Runs a session in which the user starts a command.
async fn with_a_command(stage: Stage, pauses: bool) -> Ended {
    stage.act(None, UserActionKind::Agent(AgentAction::RunCommand { command: "make".to_owned() })).await;
    if pauses {
        stage.paused().await;
        stage.act(None, UserActionKind::RetryLog).await;
    }
    stage.event(|event| matches!(event.kind, EventKind::TurnFinished(_))).await;
    stage.act(None, UserActionKind::Agent(AgentAction::Quit)).await;
    stage.end().await
}

// Syncs run on a thread of their own, during which virtual time would advance.
#[tokio::test]
async fn a_disk_that_is_full_when_the_log_is_brought_there_pauses_the_session_too() {
    let id = AgentId::root();
    let project = tempfile::tempdir().unwrap();
    let first = || {
        let (boundary, model) = (Imagined::new(Manner::Answering, 7), Scripted::new(script(), 7));
        run_in(project.path(), &boundary, &model, Turns::Many)
    };
    let whole = with_a_command(Stage::open_unsynced(first(), 0), false).await;
    let done = |event: &SessionEvent| {
        matches!(event.kind, EventKind::ToolCallFinished { status: ToolCallStatus::Completed, .. })
    };
    assert!(whole.events.iter().any(done), "{:?}", whole.events);
    // The first call that fails is the one before the command, the second the one at the end of the pause.
    let ended = with_a_command(Stage::open_unsynced(first(), 2), true).await;
    assert!(ended.log.is_intact() && ended.log.tree.len() == ended.events.len());
    assert_eq!(ended.of(&id), whole.of(&id));
}
