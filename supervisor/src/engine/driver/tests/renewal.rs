//! Tests of a worker that is renewed: its open calls end, and the next worker serves calls that arrive meanwhile.

use std::sync::Arc;
use std::time::Duration;

use boundary::monitor::WorkerEvent;
use boundary::policy::Environments;
use ipc::confinement::{Confinement, Environment};
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::{CallOutcome, Work};
use ipc::rights::Rights;
use ipc::tool::{ReadFile, ToolCall};
use tokio::time::timeout;

use super::imagined::{Imagined, Manner};
use crate::engine::driver::worker::WorkerUpdate;
use crate::engine::driver::{Boundary, ModePlaces, SessionWorker};

fn worker(manner: Manner) -> SessionWorker {
    let mut modes = ModePlaces::new(None, Environments::new(Environment::default()));
    let confined = modes.confine(Confinement::new(Rights::default(), "/p".into())).unwrap();
    SessionWorker::new(Imagined::new(manner, 7) as Arc<dyn Boundary>, AgentId::root(), confined)
}

fn read() -> Work {
    Work::Run(ToolCall::ReadFile(ReadFile { path: "a.txt".into(), offset: None, limit: None, inside: false }))
}

/// Returns the worker's starts, outcomes and ends until it reports nothing more.
async fn told(worker: &mut SessionWorker) -> Vec<String> {
    told_within(worker, Duration::from_secs(1)).await
}

async fn told_within(worker: &mut SessionWorker, quiet: Duration) -> Vec<String> {
    let mut told = Vec::new();
    while let Ok(update) = timeout(quiet, worker.next()).await {
        told.push(match update {
            WorkerUpdate::Started => format!("started {}", worker.generation().0),
            WorkerUpdate::Event { event: WorkerEvent::Outcome { call, outcome }, generation } => {
                assert!(matches!(outcome, CallOutcome::Done(_)));
                format!("{} answered {}", generation.0, call.0)
            }
            WorkerUpdate::Event { event: WorkerEvent::Ended { open, .. }, generation } => {
                let open = if open.is_empty() { "" } else { " in the middle of a call" };
                format!("{} ended{open}", generation.0)
            }
            WorkerUpdate::Event { .. } | WorkerUpdate::NotStarted(..) | WorkerUpdate::Closed { .. } => {
                "something else".to_owned()
            }
        });
    }
    told
}

#[tokio::test(start_paused = true)]
async fn one_that_is_idle_is_renewed_at_once_and_one_that_works_when_it_is_done() {
    let mut worker = worker(Manner::Answering);
    worker.renew();
    assert_eq!(told(&mut worker).await, [""; 0], "there is none: the next call's begins with everything");
    worker.call(CallId(1), read());
    assert_eq!(told(&mut worker).await, ["started 1", "1 answered 1"]);
    worker.renew();
    assert_eq!(told(&mut worker).await, ["1 ended", "started 2"]);
    worker.call(CallId(2), read());
    worker.renew();
    worker.renew();
    worker.call(CallId(3), read());
    assert_eq!(told(&mut worker).await, ["2 answered 2", "2 ended", "started 3", "3 answered 3"]);
    assert_eq!(worker.generation(), Generation(3));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_on_its_way_is_renewed_before_it_serves() {
    let mut worker = worker(Manner::Answering);
    worker.call(CallId(1), read());
    worker.renew();
    assert_eq!(told(&mut worker).await, ["started 1", "1 ended", "started 2", "2 answered 1"]);
}

/// Tests that the renewal of a silent worker waits until the time limit of the open call, and no longer.
#[tokio::test(start_paused = true)]
async fn one_that_says_nothing_is_renewed_when_its_time_is_over() {
    let mut worker = worker(Manner::Silent);
    worker.call(CallId(1), read());
    assert_eq!(told(&mut worker).await, ["started 1"]);
    worker.renew();
    worker.call(CallId(2), read());
    assert_eq!(told(&mut worker).await, [""; 0], "its call is open");
    let late = told_within(&mut worker, Duration::from_secs(299)).await;
    assert_eq!(late[..2], ["1 ended in the middle of a call", "started 2"]);
}

#[tokio::test(start_paused = true)]
async fn an_end_ends_a_worker_that_is_being_renewed() {
    let mut worker = worker(Manner::Answering);
    worker.call(CallId(1), read());
    assert_eq!(told(&mut worker).await, ["started 1", "1 answered 1"]);
    worker.renew();
    assert_eq!(worker.end().await.len(), 1);
    assert_eq!(told(&mut worker).await, [""; 0]);
}
