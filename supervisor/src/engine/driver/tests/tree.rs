//! Tests of sub-agents without processes, in virtual time and in random orders of events.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::core::{EndReason, NewAgent, Planning, TreeLimits};
use gate::StandingRights;
use ipc::id::AgentId;
use ipc::rights::{Network, Rights, RightsChange};
use protocol::event::{EventKind, SessionEvent, SubAgentStatus};
use protocol::frontend::{AgentAction, UserActionKind};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::imagined::{Imagined, Manner, POISON};
use super::model::{Reply, Scripted};
use super::stage::{Dice, Ended, Stage, run_under};
use crate::engine::driver::{NotOpened, OpenedAgent, OpensAgents, Turns};

const INTERLEAVINGS: u64 = 200;

#[derive(Clone, Default)]
struct Scripts(Arc<BTreeMap<AgentId, Vec<Reply>>>);

struct Opener {
    boundary: Arc<Imagined>,
    scripts: Scripts,
    dice: Dice,
    models: Arc<Mutex<HashMap<AgentId, Arc<Scripted>>>>,
}

impl OpensAgents for Opener {
    fn planning(&self, _: StandingRights) -> Option<Planning> {
        None
    }

    fn open(&mut self, id: &AgentId, agent: &NewAgent) -> Result<OpenedAgent, NotOpened> {
        let model = Scripted::new(self.scripts.of(id), self.dice.below(u64::MAX));
        self.models.lock().unwrap().insert(id.clone(), Arc::clone(&model));
        let run = run_under(&self.boundary, id, &model, Turns::One, agent.rights.clone());
        Ok(OpenedAgent { run, model: "m".to_owned(), rights_digest: String::new() })
    }
}

impl Scripts {
    fn new(scripts: &[(&str, Vec<Reply>)]) -> Self {
        Self(Arc::new(scripts.iter().map(|(id, replies)| (AgentId::from(*id), replies.clone())).collect()))
    }

    fn of(&self, id: &AgentId) -> Vec<Reply> {
        let plain = || vec![reads(&[&format!("{id}.rs")]), says(&format!("{id} is done"))];
        self.0.get(id).cloned().unwrap_or_else(plain)
    }
}

fn says(text: &str) -> Reply {
    Reply { text: text.to_owned(), ..Reply::default() }
}

fn reads(paths: &[&str]) -> Reply {
    Reply { reads: paths.iter().map(|path| (*path).to_owned()).collect(), ..says("reading") }
}

fn executes(command: &str) -> Reply {
    Reply { commands: vec![command.to_owned()], ..says("writing") }
}

fn spawns(calls: &[Value]) -> Reply {
    Reply { spawns: calls.to_vec(), ..says("delegating") }
}

fn task(text: &str) -> Value {
    json!({ "task": text })
}

struct Played {
    ended: Ended,
    models: HashMap<AgentId, Arc<Scripted>>,
}

struct Play {
    stage: Stage,
    boundary: Arc<Imagined>,
    models: Arc<Mutex<HashMap<AgentId, Arc<Scripted>>>>,
}

fn rights() -> Rights {
    let write = vec!["/p".into()];
    Rights { read: vec!["/".into()], write, net: Network::On, ..Rights::default() }.normalised()
}

impl Play {
    fn open(scripts: &Scripts, seed: u64, limits: TreeLimits) -> Self {
        Self::of(scripts, seed, (limits, Manner::Answering), Turns::One)
    }

    fn of(scripts: &Scripts, seed: u64, (limits, manner): (TreeLimits, Manner), turns: Turns) -> Self {
        let mut dice = Dice::new(seed);
        let boundary = Imagined::new(manner, dice.below(u64::MAX));
        let root = AgentId::root();
        let model = Scripted::new(scripts.of(&root), dice.below(u64::MAX));
        let models = Arc::new(Mutex::new(HashMap::from([(root.clone(), Arc::clone(&model))])));
        let first = run_under(&boundary, &root, &model, turns, rights());
        let opener = Opener {
            boundary: Arc::clone(&boundary),
            scripts: scripts.clone(),
            dice: dice.split(),
            models: Arc::clone(&models),
        };
        let stage = Stage::open_tree(first, Box::new(opener), limits);
        Self { stage, boundary, models }
    }

    async fn end(self) -> Played {
        let ended = self.stage.end().await;
        assert_eq!(*self.boundary.alive.lock().unwrap(), 0, "a worker outlived its session");
        assert!(ended.log.is_intact(), "{:?}", ended.log.faults);
        let models = self.models.lock().unwrap().clone();
        Played { ended, models }
    }
}

impl Played {
    fn requests(&self, agent: &str) -> Vec<String> {
        self.models[&AgentId::from(agent)].requests()
    }

    fn statuses(&self) -> Vec<(String, SubAgentStatus)> {
        let results = self.ended.events.iter().filter_map(|event| match &event.kind {
            EventKind::SubAgentResult(result) => Some((result.agent.to_string(), result.status)),
            _ => None,
        });
        results.collect()
    }

    fn place_of(&self, is: impl Fn(&SessionEvent) -> bool) -> usize {
        self.ended.events.iter().position(is).expect("an event")
    }
}

async fn play(scripts: &Scripts, seed: u64) -> Played {
    let play = Play::open(scripts, seed, TreeLimits::default());
    play.stage.prompt(None, "the task").await;
    play.end().await
}

#[tokio::test(start_paused = true)]
async fn sub_agents_work_side_by_side_and_their_results_go_back_in_the_order_of_the_calls() {
    let scripts = Scripts::new(&[(
        "1",
        vec![spawns(&[task("find the bug"), task("find the test")]), says("all is known")],
    )]);
    let played = play(&scripts, 1).await;
    assert_eq!(played.ended.end.reason, EndReason::Done);
    let requests = played.requests("1");
    assert_eq!(requests.len(), 2);
    let [first, second] = ["1.1 is done", "1.2 is done"].map(|text| requests[1].find(text).expect(text));
    assert!(first < second);
    // Each knows only its own task, not its parent's conversation.
    let asked = |agent: &str| played.requests(agent)[0].clone();
    assert!(asked("1.1").contains("find the bug") && !asked("1.1").contains("the task"));
    assert!(asked("1.2").contains("find the test") && !asked("1.2").contains("find the bug"));
    // Four replies of 15 tokens below, two above.
    assert_eq!(played.ended.end.usage.total(), 6 * 15);
    assert_eq!(played.ended.end.steps, 2);
}

fn wide() -> Scripts {
    let wave = |names: &[&str]| spawns(&names.iter().map(|name| task(name)).collect::<Vec<_>>());
    Scripts::new(&[
        ("1", vec![wave(&["a", "b", "c"]), reads(&["x.rs"]), wave(&["d"]), says("done")]),
        ("1.2", vec![wave(&["deep", "deeper", "deepest"]), reads(&["1.2.rs"]), says("1.2 is done")]),
        ("1.3", vec![reads(&[POISON]), reads(&["1.3.rs"]), says("1.3 is done")]),
    ])
}

#[tokio::test(start_paused = true)]
async fn what_each_agent_asks_does_not_depend_on_how_the_others_get_on() {
    let scripts = wide();
    let first = play(&scripts, 0).await;
    assert_eq!(first.models.len(), 8);
    let expected: BTreeMap<_, _> =
        first.models.iter().map(|(id, model)| (id.clone(), model.requests())).collect();
    for seed in 1..INTERLEAVINGS {
        let played = play(&scripts, seed).await;
        for (id, expected) in &expected {
            assert_eq!(played.models[id].requests(), *expected, "seed {seed}, agent {id}");
        }
        let all = played.statuses();
        assert!(all.len() == 7 && all.iter().all(|(_, status)| *status == SubAgentStatus::Done), "{all:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_everything_below() {
    let scripts = wide();
    let mut cut = 0;
    for seed in 0..100 {
        let mut dice = Dice::new(seed);
        let play = Play::open(&scripts, seed, TreeLimits::default());
        play.stage.prompt(None, "the task").await;
        sleep(Duration::from_millis(dice.below(1_200))).await;
        play.stage.act(None, UserActionKind::Agent(AgentAction::Interrupt)).await;
        let played = play.end().await;
        let started = played.ended.types().iter().filter(|kind| *kind == "sub_agent_spawned").count();
        let statuses = played.statuses();
        assert_eq!(statuses.len(), started, "seed {seed}: every sub-agent has its end");
        cut += usize::from(statuses.iter().any(|(_, status)| *status == SubAgentStatus::Interrupted));
        assert!(matches!(played.ended.end.reason, EndReason::Interrupted | EndReason::Done), "seed {seed}");
    }
    assert!(cut > 30, "{cut} interrupted with sub-agents at work");
}

#[tokio::test(start_paused = true)]
async fn one_sub_agent_is_stopped_alone() {
    let scripts = Scripts::new(&[("1", vec![spawns(&[task("a"), task("b")]), says("done")])]);
    let play = Play::of(&scripts, 3, (TreeLimits::default(), Manner::Answering), Turns::One);
    play.stage.prompt(None, "the task").await;
    play.stage.event(|event| matches!(event.kind, EventKind::SubAgentSpawned(_))).await;
    play.stage.act(Some(&"1.1".into()), UserActionKind::Agent(AgentAction::Interrupt)).await;
    let played = play.end().await;
    let mut statuses = played.statuses();
    statuses.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(
        statuses,
        [("1.1".to_owned(), SubAgentStatus::Interrupted), ("1.2".to_owned(), SubAgentStatus::Done)]
    );
    assert_eq!(played.ended.end.reason, EndReason::Done, "its parent goes on");
}

#[tokio::test(start_paused = true)]
async fn no_two_agents_write_the_same_place_not_even_while_one_is_ended() {
    let write = |text: &str| json!({ "task": text, "write": ["src"] });
    let writer = || vec![executes("one"), executes("two"), says("done")];
    let scripts = Scripts::new(&[
        ("1", vec![spawns(&[write("a"), write("b"), write("c")]), executes("three"), says("done")]),
        ("1.1", writer()),
        ("1.2", writer()),
        ("1.3", writer()),
    ]);
    let (mut cut, mut waited) = (0, 0);
    for seed in 0..100 {
        let mut dice = Dice::new(seed);
        let play = Play::open(&scripts, seed, TreeLimits::default());
        play.stage.prompt(None, "the task").await;
        sleep(Duration::from_millis(dice.below(300))).await;
        play.stage.act(Some(&"1.1".into()), UserActionKind::Agent(AgentAction::Interrupt)).await;
        let boundary = Arc::clone(&play.boundary);
        let played = play.end().await;
        assert_eq!(*boundary.clashes.lock().unwrap(), 0, "seed {seed}");
        let interrupted = |(_, status): &(String, SubAgentStatus)| *status == SubAgentStatus::Interrupted;
        cut += usize::from(played.statuses().iter().any(interrupted));
        waited += usize::from(played.ended.types().iter().any(|kind| kind == "write_turn_awaited"));
    }
    assert!(cut > 25 && waited > 50, "{cut} interrupted, {waited} waited");
}

#[tokio::test(start_paused = true)]
async fn others_wait_for_a_place_and_too_many_are_not_started() {
    let eleven: Vec<_> = (0..11).map(|number| task(&format!("task {number}"))).collect();
    let scripts = Scripts::new(&[("1", vec![spawns(&eleven), says("done")])]);
    let limits = TreeLimits { at_once: 2, per_turn: 9, ..TreeLimits::default() };
    let play = Play::open(&scripts, 5, limits);
    play.stage.prompt(None, "the task").await;
    let played = play.end().await;
    let (mut at_work, mut most) = (0, 0);
    for event in &played.ended.events {
        match &event.kind {
            EventKind::SubAgentSpawned(_) => at_work += 1,
            EventKind::SubAgentResult(result) if result.steps > 0 => at_work -= 1,
            _ => {}
        }
        most = most.max(at_work);
    }
    assert_eq!(most, 2);
    let crashed = |(_, status): &&(String, SubAgentStatus)| *status == SubAgentStatus::Crashed;
    assert_eq!(played.statuses().iter().filter(crashed).count(), 2);
    let last = played.requests("1").pop().unwrap();
    assert!(last.contains("this turn has started 9 sub-agents"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_taken_from_an_agent_is_taken_from_everything_below_first() {
    let write = |names: &str| json!({ "task": names, "access": "write", "network": true });
    let scripts = Scripts::new(&[
        ("1", vec![spawns(&[write("a")]), says("done")]),
        ("1.1", vec![spawns(&[write("deep")]), says("1.1 is done")]),
    ]);
    // All agents lose the access, whichever agent is named.
    for (seed, named) in (0..25).zip([None, Some("1.1.1"), Some("1.1"), Some("1.9")].into_iter().cycle()) {
        let play = Play::of(&scripts, seed, (TreeLimits::default(), Manner::Silent), Turns::Many);
        play.stage.prompt(None, "the task").await;
        // Workers that answer nothing: even the wait for the project's instructions ends.
        play.stage.event(|event| event.agent == "1.1.1".into() && is_started(event)).await;
        let change = RightsChange::Network { net: Network::Off, reach: None };
        play.stage
            .act(named.map(AgentId::from).as_ref(), UserActionKind::Agent(AgentAction::SetRights { change }))
            .await;
        play.stage.event(|event| event.agent == AgentId::root() && is_changed(event)).await;
        play.stage.act(None, UserActionKind::Agent(AgentAction::Quit)).await;
        let played = play.end().await;
        let changed = played.place_of(|event| event.agent == AgentId::root() && is_changed(event));
        let ended = |agent: &str| {
            played.place_of(|event| {
                event.agent == agent.into() && matches!(event.kind, EventKind::WorkerEnded { .. })
            })
        };
        let order: Vec<_> =
            played.ended.events.iter().map(|event| format!("{} {:?}", event.agent, event.kind)).collect();
        assert!(ended("1.1.1") < changed && ended("1.1") < changed, "seed {seed}: {order:#?}");
    }
}

fn random_tree(dice: &mut Dice) -> Scripts {
    let any = |dice: &mut Dice| {
        let write: Vec<_> = ["a", "a/b", "c"].into_iter().filter(|_| dice.below(3) == 0).collect();
        let mut call = json!({"task": "t", "network": dice.below(2) == 0});
        if !write.is_empty() {
            call["write"] = json!(write);
        } else if dice.below(2) == 0 {
            call["access"] = json!("write");
        }
        call
    };
    let scripts = ["1", "1.1", "1.2", "1.3"].map(|id| {
        let wave: Vec<_> = (0..=dice.below(3)).map(|_| any(dice)).collect();
        (id, vec![spawns(&wave), executes("work"), says("done")])
    });
    Scripts::new(&scripts)
}

fn random_action(dice: &mut Dice) -> (Option<AgentId>, UserActionKind) {
    let path = ["/p", "/p/a", "/q"][dice.at(3)].into();
    let net = if dice.below(2) == 0 { Network::Off } else { Network::On };
    let change = match dice.below(4) {
        0 => RightsChange::AddWrite { path },
        1 => RightsChange::RemoveWrite { path },
        2 => RightsChange::Network { net, reach: None },
        _ => {
            let agent = ["1.1", "1.2", "1.1.1"][dice.at(3)];
            return (Some(agent.into()), UserActionKind::Agent(AgentAction::Interrupt));
        }
    };
    (None, UserActionKind::Agent(AgentAction::SetRights { change }))
}

#[tokio::test(start_paused = true)]
async fn no_worker_begins_with_more_than_one_above_it_or_less_than_one_below_it() {
    let mut replaced = 0;
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let scripts = random_tree(&mut dice);
        let play = Play::of(&scripts, seed, (TreeLimits::default(), Manner::Answering), Turns::Many);
        play.stage.prompt(None, "the task").await;
        for _ in 0..4 {
            sleep(Duration::from_millis(dice.below(150))).await;
            let (agent, action) = random_action(&mut dice);
            play.stage.act(agent.as_ref(), action).await;
        }
        play.stage.event(|event| matches!(event.kind, EventKind::TurnFinished(_))).await;
        play.stage.act(None, UserActionKind::Agent(AgentAction::Quit)).await;
        let boundary = Arc::clone(&play.boundary);
        let played = play.end().await;
        let order: Vec<_> =
            played.ended.events.iter().map(|event| format!("{} {:?}", event.agent, event.kind)).collect();
        assert_eq!(*boundary.wider.lock().unwrap(), [""; 0], "seed {seed}: {order:#?}");
        let below = |event: &&SessionEvent| !event.agent.is_top_level() && is_changed(event);
        replaced += played.ended.events.iter().filter(below).count();
    }
    assert!(replaced > 100, "{replaced} sub-agents had their rights changed");
}

fn is_started(event: &SessionEvent) -> bool {
    matches!(event.kind, EventKind::WorkerStarted(_))
}

fn is_changed(event: &SessionEvent) -> bool {
    matches!(event.kind, EventKind::RightsChanged(_))
}
