//! Makes attempts in a one-shot worker, for an approved command with the standing access and a grant.

use std::fs;
use std::os::unix::fs::chown;

use boundary::monitor::{GuestLog, PrivateTemp, Programs, Spawner, Temps, Worker, WorkerSpec};
use boundary::policy::{HiddenInodes, Policy};
use gate::ApprovalMode;
use ipc::confinement::{Confinement, Identity};
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::CallOutcome;
use ipc::path::WirePath;
use ipc::rights::{Grant, Network};
use ipc::tool::{Access, ShellExec, ToolCall};
use protocol::event::EventKind;
use supervisor::engine::driver::{Journal, OneShot, Processes, Unlogged, prepare};
use tests::standing::policy;
use tests::{User, World, tier};
use tokio::sync::oneshot;

use crate::attack::{Place, Tried};
use crate::run::{Acts, probe_command};
use crate::victim::Victim;

/// Makes the attempts in one approved command. It may write the project and use the place's network.
pub(crate) fn one_shot_worker(place: &Place, acts: Acts) -> Vec<Tried> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(carry_out(place, &format!("{} > tried", probe_command(acts))));
    Tried::all(&place.world.read("tried"))
}

async fn carry_out(place: &Place<'_>, command: &str) {
    let world = place.world;
    let temp = private_temp(world);
    let ours = tests::Programs::get();
    let programs =
        Programs { sandbox_exec: ours.path("sandbox-exec"), worker: ours.path("bailiwick-worker") };
    let spawner = Spawner::start(programs.sandbox_exec.clone(), HiddenInodes::default()).unwrap();
    let standing = standing(place, &temp);
    let spec = WorkerSpec {
        agent: AgentId::root(),
        generation: Generation(1),
        confinement: standing.clone(),
        program: programs.worker.clone(),
        leftovers: None,
        guests: GuestLog::default(),
    };
    let (worker, mut events) = Worker::start(&spawner, spec).await.unwrap();
    let effect = prepare(&worker, &mut events, CallId(1), shell(command)).await.unwrap();
    let net = if place.net == "on" { Network::On } else { Network::Off };
    let granted = Grant { write: vec![(&world.project()).into()], net, ..Grant::default() };
    let (agent, generation, call) = (AgentId::root(), Generation(2), Some(CallId(1)));
    let (asked, watch) = (granted.clone(), None);
    let guests = GuestLog::default();
    let shot =
        OneShot { agent, generation, standing, watch, asked, granted, call, effect: effect.into(), guests };
    let (_never, cancelled) = oneshot::channel();
    let processes = Processes { spawner, programs, leftovers: None, places: None };
    let outcome = shot.carry_out(&processes, &mut Unwritten, cancelled).await;
    assert!(matches!(outcome, Ok(CallOutcome::Done(_))), "{place}: {outcome:?}");
}

fn private_temp(world: &World) -> PrivateTemp {
    let locks = world.own().join("locks");
    fs::create_dir_all(&locks).unwrap();
    let is_for_another = world.user() == User::Plain;
    let temps = Temps::open(&world.own().join("cache"), is_for_another).unwrap();
    let temp = PrivateTemp::create(&temps, &locks).unwrap();
    if is_for_another {
        chown(temp.path(), Some(world.user().uid()), Some(world.user().uid())).unwrap();
    }
    temp
}

fn standing(place: &Place, temp: &PrivateTemp) -> Confinement {
    let hidden = Victim::hidden(place.world).iter().map(WirePath::from).collect();
    let policy = Policy { hidden, ..policy(place.world, temp.path(), ApprovalMode::Deny) };
    let uid = place.world.user().uid();
    Confinement {
        temp: Some(policy.temp.clone()),
        tier: tier::choice(place.tier),
        identity: (place.world.user() == User::Plain).then_some(Identity { uid, gid: uid }),
        ..Confinement::new(policy.standing(), policy.project)
    }
}

fn shell(command: &str) -> ToolCall {
    ToolCall::ShellExec(ShellExec {
        command: command.to_owned(),
        access: Access::Write,
        network: None,
        cwd: None,
        timeout_ms: None,
    })
}

struct Unwritten;

impl Journal for Unwritten {
    async fn log(&mut self, _: EventKind) -> Result<(), Unlogged> {
        Ok(())
    }

    async fn output(&mut self, _: Vec<u8>) {}

    async fn remark(&mut self, _: String) {}
}
