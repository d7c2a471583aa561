//! A disk that is full for a while, at each event of a session.

use ipc::frontend::UserActionKind;
use ipc::id::{AgentId, EventId};

use super::imagined::{Imagined, Manner};
use super::model::{Reply, Scripted};
use super::stage::{Ended, Stage, run};
use crate::core::EndReason;
use crate::driver::Turns;

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
    // The result is the last, and a session that is over is not paused any more.
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
        // What was asked by then stood in the file.
        let before = ended.types().into_iter().take(usize::try_from(at).unwrap() - 1);
        assert_eq!(asked, before.filter(|kind| kind == "model_requested").count(), "event {at}");
    }
    assert_eq!(of_type(&whole, "model_requested"), 3);
}
