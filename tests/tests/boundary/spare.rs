//! Tests the prestarted sandbox-exec, which waits for the next start of a worker.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use boundary::monitor::{
    GuestLog, PrivateTemp, Programs, Spawner, StartError, Started, Temps, Worker, WorkerEvent, WorkerSpec,
};
use boundary::policy::HiddenInodes;
use gate::ApprovalMode;
use ipc::confinement::{Confinement, TierChoice};
use ipc::id::{AgentId, Generation};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tests::standing::policy;
use tests::{User, World, alive, wait_until};
use tokio::sync::mpsc::Receiver;

struct Site {
    world: World,
    temp: PrivateTemp,
    programs: Programs,
    spawner: Spawner,
}

impl Site {
    fn new() -> Self {
        let world = World::new(User::Myself);
        let locks = world.own().join("locks");
        fs::create_dir(&locks).unwrap();
        let temps = Temps::open(&world.own().join("cache"), false).unwrap();
        let temp = PrivateTemp::create(&temps, &locks).unwrap();
        let ours = tests::Programs::get();
        let programs =
            Programs { sandbox_exec: ours.path("sandbox-exec"), worker: ours.path("bailiwick-worker") };
        let spawner = Spawner::start(programs.sandbox_exec.clone(), HiddenInodes::default()).unwrap();
        Self { world, temp, programs, spawner }
    }

    fn spec(&self, generation: u32) -> WorkerSpec {
        let policy = policy(&self.world, self.temp.path(), ApprovalMode::Deny);
        let confinement = Confinement {
            temp: Some(policy.temp.clone()),
            tier: TierChoice::Floor,
            ..Confinement::new(policy.standing(), policy.project)
        };
        WorkerSpec {
            agent: AgentId::root(),
            generation: Generation(generation),
            confinement,
            program: self.programs.worker.clone(),
            leftovers: None,
            guests: GuestLog::default(),
        }
    }

    async fn start(&self, generation: u32) -> (Worker, Receiver<WorkerEvent>) {
        Worker::start(&self.spawner, self.spec(generation)).await.unwrap()
    }

    /// Makes a sandbox-exec wait for the next start of this program.
    fn announce(&self, WorkerSpec { program, .. }: WorkerSpec) {
        self.spawner.prepare(vec![program.into()]);
    }

    /// Starts a worker with the waiting sandbox-exec, but kills this process (`waiting`) before it has read its order.
    async fn start_in_what_ends(&self, spec: WorkerSpec, waiting: u32) -> Result<Started, StartError> {
        let waiting = Pid::from_raw(waiting.cast_signed());
        kill(waiting, Signal::SIGSTOP).unwrap();
        let before = writing_ends();
        let ending = thread::spawn(move || {
            // The sandbox-exec process has been given its order.
            wait_until("it is ordered", || writing_ends() < before);
            kill(waiting, Signal::SIGKILL).unwrap();
        });
        let started = Worker::start(&self.spawner, spec).await;
        ending.join().unwrap();
        started
    }
}

/// Returns the number of pipes that this process can write to.
fn writing_ends() -> usize {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let is_pipe = |path: &PathBuf| {
        fs::read_link(path).is_ok_and(|target| target.to_string_lossy().starts_with("pipe:"))
    };
    // `lstat(2)` of a descriptor has its modes.
    let is_written = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| meta.mode() & 0o200 != 0);
    descriptors.filter(|path| is_pipe(path) && is_written(path)).count()
}

/// Returns the pids of the living children of this process that run sandbox-exec.
fn children() -> BTreeSet<u32> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let listed = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("children")).ok());
    let all =
        listed.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>());
    all.filter(|pid| alive(*pid) && name(*pid).as_deref() == Some("sandbox-exec")).collect()
}

fn name(pid: u32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned())
}

fn parent(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    line.trim().parse().unwrap()
}

async fn end((worker, mut events): (Worker, Receiver<WorkerEvent>)) {
    worker.kill();
    while events.recv().await.is_some() {}
}

/// Returns the pid of the waiting sandbox-exec: the child of this process that is no worker's broker.
fn spare(brokers: &[u32]) -> u32 {
    let patience = Instant::now() + Duration::from_mins(1);
    loop {
        let waiting: Vec<_> = children().into_iter().filter(|child| !brokers.contains(child)).collect();
        if let [spare] = waiting[..] {
            return spare;
        }
        assert!(Instant::now() < patience, "{waiting:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// All checks are one test, because they inspect all children of this process.
#[tokio::test]
async fn the_next_worker_begins_in_what_waits_and_nothing_is_left_of_it() {
    let site = Site::new();
    // The first worker uses the prestarted process.
    site.announce(site.spec(1));
    let announced = spare(&[]);
    let first = site.start(1).await;
    let broker = parent(first.0.pid);
    assert_eq!(broker, announced);
    let next = spare(&[broker]);
    assert_ne!(next, broker);

    // The waiting process becomes the next worker's broker, whatever its generation, and another one waits.
    let second = site.start(7).await;
    assert_eq!((parent(second.0.pid), second.0.generation), (next, Generation(7)));
    let denied = second.0.ruleset.attempts.iter().filter(|attempt| attempt.denied).count();
    assert_eq!(second.0.ruleset.attempts, first.0.ruleset.attempts);
    assert!(denied >= 5 && second.0.ruleset.rules == first.0.ruleset.rules, "{:?}", second.0.ruleset);
    let another = spare(&[broker, next]);

    // A waiting process that was killed is replaced.
    kill(Pid::from_raw(another.cast_signed()), Signal::SIGKILL).unwrap();
    wait_until("it is dead", || !alive(another));
    let third = site.start(8).await;
    let last = spare(&[broker, next, parent(third.0.pid)]);
    assert!(last != another && parent(third.0.pid) != another);

    // If the waiting process ends before it has read its order, the start continues with another one.
    let fourth = site.start_in_what_ends(site.spec(9), last).await.unwrap();
    assert!(parent(fourth.0.pid) != last && fourth.0.generation == Generation(9));
    for worker in [first, second, third, fourth] {
        end(worker).await;
    }

    // An error of the repeated start is reported.
    let nowhere = WorkerSpec { program: "/nowhere/worker".into(), ..site.spec(10) };
    let last = spare(&[]);
    site.announce(nowhere.clone());
    wait_until("it is replaced", || !alive(last));
    let last = spare(&[]);
    let failed = site.start_in_what_ends(nowhere, last).await.unwrap_err();
    assert!(matches!(&failed, StartError::Sandbox { stage, .. } if stage == "execute"), "{failed}");
    site.announce(site.spec(11));
    let last = spare(&[]);
    drop(site);
    assert!(!alive(last) && children().is_empty(), "{:?} are left", children());
}
