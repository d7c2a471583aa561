//! Benchmarks of starting confined processes, next to unconfined ones and to bubblewrap.

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use boundary::monitor::{GuestLog, Spawner, Started, Worker, WorkerSpec};
use boundary::policy::HiddenInodes;
use ipc::confinement::{Confinement, TierChoice};
use ipc::id::{AgentId, Generation};
use ipc::message::{Hello, ToSupervisor, ToWorker};
use ipc::pipe::{FrameReader, Outgoing};
use supervisor::engine::place::ProjectSandbox;

use super::stats::{BenchReport, interleaved, rested, timed};
use super::{BenchError, BenchSetup, linking};

const ROUNDS: usize = 200;

/// Pause before each start, as between two steps of a session. After the pause, the previous worker is gone, and a
/// sandbox-exec is prestarted. The kernel removes network namespaces long after their last process.
pub(super) const REST: Duration = Duration::from_millis(20);

/// Measures `sandbox-exec -- true` in both tiers, next to a plain `true` and `bwrap --unshare-all true`.
pub(super) fn sandbox_exec(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let ours = setup.sandbox().programs.sandbox_exec.as_os_str();
    let bwrap = bubblewrap();
    let tier = |tier| ["--tier", tier, "--", "/bin/true"].map(OsStr::new);
    let mut subjects: Vec<super::stats::BenchSubject<'_>> = vec![
        ("bare true", Box::new(|| run("/bin/true".as_ref(), &[]))),
        ("sandbox-exec -- true, floor", Box::new(|| run(ours, &tier("floor")))),
        ("sandbox-exec -- true, full", Box::new(|| run(ours, &tier("full")))),
    ];
    if bwrap.is_some() {
        subjects.push((
            "bwrap --unshare-all true",
            Box::new(|| run("bwrap".as_ref(), &BWRAP_TRUE.map(OsStr::new))),
        ));
    }
    let mut report = BenchReport { rows: interleaved(ROUNDS, &mut subjects)?, ..BenchReport::default() };
    report.factor(1, 0, 5.0);
    report.factor(1, 3, 0.8);
    report.factor(2, 3, 1.25);
    report.notes.push(linking::note(setup)?);
    report.notes.extend(missing_bubblewrap(bwrap.as_deref()));
    Ok(report)
}

/// Measures `bailiwick sandbox -- true` in both tiers next to `bwrap --unshare-all true`. The project is empty, because
/// a start of the sandbox reads the project's directories.
pub(super) fn sandbox_command(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let ours = setup.program().as_os_str();
    let bwrap = bubblewrap();
    let project = tempfile::tempdir()?;
    let tier = |tier: &'static str| {
        let first: [&OsStr; 3] = ["sandbox".as_ref(), "-C".as_ref(), project.path().as_os_str()];
        [first.as_slice(), &["--tier", tier, "--", "/bin/true"].map(OsStr::new)].concat()
    };
    let mut subjects: Vec<super::stats::BenchSubject<'_>> = vec![
        ("bare true", Box::new(|| run("/bin/true".as_ref(), &[]))),
        ("bailiwick sandbox -- true, floor", Box::new(|| run(ours, &tier("floor")))),
        ("bailiwick sandbox -- true, full", Box::new(|| run(ours, &tier("full")))),
    ];
    if bwrap.is_some() {
        subjects.push((
            "bwrap --unshare-all true",
            Box::new(|| run("bwrap".as_ref(), &BWRAP_TRUE.map(OsStr::new))),
        ));
    }
    let mut report = BenchReport { rows: rested(ROUNDS, REST, &mut subjects)?, ..BenchReport::default() };
    report.factor(1, 3, 2.5);
    report.factor(2, 3, 2.5);
    report.notes.push(linking::note(setup)?);
    report.notes.extend(missing_bubblewrap(bwrap.as_deref()));
    Ok(report)
}

/// Measures the time from a worker's spawn to its `Ready` frame: without a sandbox, as a session's first confined
/// worker, as a later one, and in bubblewrap.
pub(super) fn worker_ready(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let program = setup.sandbox().programs.worker.as_os_str();
    let bwrap = bubblewrap();
    let (floor, full) = (Site::new(setup, TierChoice::Floor)?, Site::new(setup, TierChoice::Full)?);
    let first = |tier| runtime.block_on(Site::new(setup, tier)?.confined());
    let mut subjects: Vec<super::stats::BenchSubject<'_>> = vec![
        ("worker, unconfined", Box::new(|| Bare::start(setup, &[program]).map(Bare::startup))),
        ("worker, floor", Box::new(|| runtime.block_on(floor.confined()))),
        ("worker, full", Box::new(|| runtime.block_on(full.confined()))),
        ("first worker, floor", Box::new(|| first(TierChoice::Floor))),
        ("first worker, full", Box::new(|| first(TierChoice::Full))),
    ];
    if bwrap.is_some() {
        let arguments: Vec<_> = BWRAP.iter().map(OsStr::new).chain([program]).collect();
        subjects.push((
            "worker in bwrap --unshare-all",
            Box::new(move || Bare::start(setup, &arguments).map(Bare::startup)),
        ));
    }
    let mut report = BenchReport { rows: rested(ROUNDS, REST, &mut subjects)?, ..BenchReport::default() };
    drop(subjects);
    for (floor, full) in [(1, 2), (3, 4)] {
        report.factor(floor, 5, 1.0);
        report.factor(full, 5, 1.25);
    }
    for site in [floor, full] {
        report.notes.push(site.enforced(&runtime)?);
    }
    report.notes.push(linking::note(setup)?);
    report.notes.extend(missing_bubblewrap(bwrap.as_deref()));
    Ok(report)
}

const BWRAP: [&str; 9] =
    ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--"];
const BWRAP_TRUE: [&str; 8] = ["--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--", "/bin/true"];

pub(super) fn run(program: &OsStr, arguments: &[&OsStr]) -> Result<Duration, BenchError> {
    timed(|| {
        let status =
            Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).status()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("{} ended with {status}", program.display()).into())
        }
    })
}

fn bubblewrap() -> Option<String> {
    let output = Command::new("bwrap").args(BWRAP_TRUE).output().ok()?;
    output.status.success().then(|| "bwrap".to_owned())
}

fn missing_bubblewrap(found: Option<&str>) -> Option<String> {
    found
        .is_none()
        .then(|| "bubblewrap is not installed or cannot run here: nothing to compare with".to_owned())
}

/// Session in which workers of one tier are started.
pub(super) struct Site<'a> {
    sandbox: &'a ProjectSandbox,
    pub(super) spawner: Spawner,
    pub(super) tier: TierChoice,
}

impl<'a> Site<'a> {
    pub(super) fn new(setup: &'a BenchSetup, tier: TierChoice) -> Result<Self, BenchError> {
        let sandbox = setup.sandbox();
        let followed = HiddenInodes::of(&sandbox.policy.standing(), Some(&sandbox.policy.temp))?;
        let spawner = Spawner::start(sandbox.programs.sandbox_exec.clone(), followed)?;
        Ok(Self { sandbox, spawner, tier })
    }

    pub(super) async fn start(&self) -> Result<Started, BenchError> {
        let Self { sandbox, spawner, tier } = self;
        let spec = WorkerSpec {
            agent: AgentId::root(),
            generation: Generation(1),
            confinement: Confinement { tier: *tier, ..sandbox.confinement(sandbox.policy.standing()) },
            program: sandbox.programs.worker.clone(),
            leftovers: None,
            guests: GuestLog::default(),
        };
        Ok(Worker::start(spawner, spec).await?)
    }

    /// Starts a worker and ends it again. Returns the time until it was ready.
    async fn confined(&self) -> Result<Duration, BenchError> {
        let (worker, mut events) = self.start().await?;
        let startup = worker.startup;
        worker.calls().drain();
        drop(worker);
        while events.recv().await.is_some() {}
        Ok(startup)
    }

    /// Returns a sentence that shows that the workers of this run are really confined.
    fn enforced(&self, runtime: &tokio::runtime::Runtime) -> Result<String, BenchError> {
        runtime.block_on(async {
            let (worker, _events) = self.start().await?;
            let report = &worker.ruleset;
            let denied = report.attempts.iter().filter(|attempt| attempt.denied).count();
            Ok(format!(
                "confined: {}, Landlock ABI {}, {} rules, {} seccomp rules; {denied} of {} forbidden acts denied",
                report.tier,
                report.landlock_abi,
                report.rules,
                report.seccomp_rules,
                report.attempts.len()
            ))
        })
    }
}

/// Worker without a sandbox. The benchmark speaks with it through blocking pipes.
pub(super) struct Bare {
    child: Child,
    startup: Duration,
}

impl Bare {
    /// Starts a worker by a command line, sends `Hello`, and waits for `Ready`.
    pub(super) fn start(setup: &BenchSetup, command: &[&OsStr]) -> Result<Self, BenchError> {
        let began = Instant::now();
        let [program, arguments @ ..] = command else { return Err("no program".into()) };
        let mut child = Command::new(program)
            .args(arguments)
            .args(["--generation", "1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (reader, writer) = (child.stdout.take(), child.stdin.take());
        let (Some(reader), Some(writer)) = (reader, writer) else { return Err("no pipes".into()) };
        let mut incoming = FrameReader::new(reader, Generation(1));
        let mut outgoing = Outgoing::new(writer, Generation(1));
        outgoing.send(&ToWorker::Hello(hello(setup.sandbox())))?;
        let first: Option<ToSupervisor> = incoming.receive()?;
        if !matches!(first, Some(ToSupervisor::Ready(_))) {
            return Err(io::Error::other("the worker did not become ready").into());
        }
        let startup = began.elapsed();
        // The worker's pipes close here, and the worker ends.
        Ok(Self { child, startup })
    }

    fn startup(mut self) -> Duration {
        let _ = self.child.wait();
        self.startup
    }
}

fn hello(sandbox: &ProjectSandbox) -> Hello {
    Hello {
        agent: AgentId::root(),
        project: sandbox.policy.project.clone(),
        temp: Some(sandbox.policy.temp.clone()),
        rights: sandbox.policy.standing(),
        tier: ipc::confinement::Tier::Floor,
        shell_init: None,
        leftovers: None,
    }
}
