//! Tests that three agents in one session get the same results in any order of events.

use std::time::Duration;

use agent::core::EndReason;
use ipc::id::AgentId;
use protocol::frontend::{AgentAction, UserActionKind};
use tokio::time::sleep;

use super::imagined::{Imagined, Manner, POISON};
use super::model::{Reply, Scripted};
use super::stage::{Dice, Ended, Stage, run};
use crate::engine::driver::Turns;

const INTERLEAVINGS: u64 = 1000;

fn script(agent: u32) -> Vec<Reply> {
    let reads = |step: u32| match (agent, step) {
        // This ends the second agent's worker.
        (2, 1) => vec![POISON.to_owned()],
        (_, step) => (0..=step).map(|file| format!("{agent}-{step}-{file}.rs")).collect(),
    };
    let reply = |step| Reply {
        text: format!("agent {agent} goes on with step {step}"),
        reads: reads(step),
        ..Reply::default()
    };
    let last = Reply { text: format!("agent {agent} is done"), ..Reply::default() };
    (0..2 + agent).map(reply).chain([last]).collect()
}

fn id(agent: u32) -> AgentId {
    AgentId::from(agent.to_string().as_str())
}

fn task(agent: u32) -> String {
    format!("the task of agent {agent}")
}

struct Solo {
    requests: Vec<String>,
    events: Vec<String>,
}

async fn solo(agent: u32) -> Solo {
    let (boundary, model) = (Imagined::new(Manner::Answering, 7), Scripted::new(script(agent), 7));
    let stage = Stage::open(vec![run(&boundary, &id(agent), &model, Turns::One)], None);
    stage.prompt(None, &task(agent)).await;
    let ended = stage.end().await;
    assert_eq!(ended.end.reason, EndReason::Done);
    Solo { requests: model.requests(), events: ended.of(&id(agent)) }
}

/// Runs a session of three agents, and interrupts the third one at a random time.
async fn trio(seed: u64) -> ([Vec<String>; 3], Ended) {
    let mut dice = Dice::new(seed);
    let boundary = Imagined::new(Manner::Answering, dice.below(u64::MAX));
    let models = [1, 2, 3].map(|agent| Scripted::new(script(agent), dice.below(u64::MAX)));
    let runs = [1, 2, 3].map(|agent| run(&boundary, &id(agent), &models[agent as usize - 1], Turns::One));
    let stage = Stage::open(runs.into(), None);
    // In any order, during the start of workers and later.
    let mut order = vec![1, 2, 3];
    while !order.is_empty() {
        let next = usize::try_from(dice.below(order.len() as u64)).unwrap();
        let agent = order.swap_remove(next);
        stage.prompt(Some(&id(agent)), &task(agent)).await;
        sleep(Duration::from_millis(dice.below(40))).await;
    }
    sleep(Duration::from_millis(dice.below(200))).await;
    stage.act(Some(&id(3)), UserActionKind::Agent(AgentAction::Interrupt)).await;
    let ended = stage.end().await;
    assert_eq!(*boundary.alive.lock().unwrap(), 0, "a worker outlived its session");
    (models.map(|model| model.requests()), ended)
}

#[tokio::test(start_paused = true)]
async fn agents_of_one_session_do_not_notice_each_other() {
    let alone = [solo(1).await, solo(2).await, solo(3).await];
    assert_eq!(alone.each_ref().map(|solo| solo.requests.len()), [4, 5, 6]);
    let (mut cut, mut mixed) = (0, 0);
    for seed in 0..INTERLEAVINGS {
        let (requests, ended) = trio(seed).await;
        assert_eq!(ended.end.reason, EndReason::Done, "seed {seed}");
        assert!(ended.log.is_intact(), "seed {seed}: {:?}", ended.log.faults);
        // The first agent, and the one whose worker crashes.
        for (agent, (requests, alone)) in (1..).zip(requests.iter().zip(&alone).take(2)) {
            assert_eq!(*requests, alone.requests, "seed {seed}, agent {agent}");
            assert_eq!(ended.of(&id(agent)), alone.events, "seed {seed}, agent {agent}");
        }
        // The interrupted agent has the same events up to its interruption.
        assert!(alone[2].requests.starts_with(&requests[2]), "seed {seed}");
        cut += u32::from(requests[2].len() < alone[2].requests.len());
        mixed += u32::from(is_mixed(&ended));
    }
    // Checks the test itself: most interrupts hit a working agent, and most logs are mixed.
    assert!(cut > 500, "{cut} interrupted");
    assert!(mixed > 900, "{mixed} mixed");
}

/// True if the log changes between the agents more often than it would if they ran one after another.
fn is_mixed(ended: &Ended) -> bool {
    let changes = ended.events.windows(2).filter(|pair| pair[0].agent != pair[1].agent);
    changes.count() > 6
}
