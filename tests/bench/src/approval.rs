//! Benchmark of an approved command: the time from the approval until the command's shell runs.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use boundary::monitor::GuestLog;
use ipc::confinement::{Confinement, TierChoice};
use ipc::effect::{Effect, Exec};
use ipc::id::{AgentId, CallId, ConversationId, Generation};
use ipc::path::WirePath;
use ipc::rights::Grant;
use ipc::tool::Access;
use protocol::approval::ApprovalMode;
use protocol::event::{EventKind, ObservedBy};
use supervisor::engine::driver::{Journal, OneShot, Processes, Unlogged};
use supervisor::journal::session::SessionLog;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::processes::{REST, Site};
use super::stats::{BenchReport, BenchSubject, rested};
use super::{BenchError, BenchSetup};

const ROUNDS: usize = 100;

/// Command that prints the time of its start. Its output arrives later and in pieces, so the arrival is not measured.
const CLOCK: &str = "echo $EPOCHREALTIME";

/// Measures the time from the approval of a command until the command's shell runs, in both tiers. It includes the
/// start and verification of a worker, and fsync of the log.
pub(super) fn approved_command(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let state = tempfile::tempdir()?;
    let mut log = SessionLog::create(state.path(), &ConversationId::from("bench"))?;
    let log = std::cell::RefCell::new(&mut log);
    let (floor, full) = (Site::new(setup, TierChoice::Floor)?, Site::new(setup, TierChoice::Full)?);
    // The agent that asks for the approval has a standing worker.
    let standing =
        runtime.block_on(async { Ok::<_, BenchError>([floor.start().await?, full.start().await?]) })?;
    let run = |site| approved(setup, &runtime, site, &mut log.borrow_mut());
    let mut subjects: Vec<BenchSubject<'_>> = vec![
        ("approval answered to command started, floor", Box::new(|| run(&floor))),
        ("approval answered to command started, full", Box::new(|| run(&full))),
    ];
    // No person answers sooner than after this pause.
    let rows = rested(ROUNDS, REST, &mut subjects)?;
    drop(standing);
    drop(subjects);
    let [floor, full] = [0, 1].map(|row: usize| rows[row].p10 / 1000.0);
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("approval answered to command started, floor, ms", floor, 10.0);
    report.absolute("approval answered to command started, full, ms", full, 10.0);
    Ok(report)
}

fn approved(
    setup: &BenchSetup,
    runtime: &Runtime,
    site: &Site<'_>,
    log: &mut SessionLog,
) -> Result<Duration, BenchError> {
    let project = &setup.sandbox().policy.project;
    let standing = setup.sandbox().confinement(setup.sandbox().policy.standing_in(ApprovalMode::Ask));
    let grant = Grant { write: vec![project.clone()], ..Grant::default() };
    let effect = Effect::Exec(Exec {
        argv: ["bash", "-c", CLOCK].map(WirePath::from).into(),
        cwd: project.clone(),
        environment: Vec::new(),
        access: Access::Write,
        network: None,
        timeout_ms: 10_000,
    });
    let shot = OneShot {
        agent: AgentId::root(),
        generation: Generation(1),
        standing: Confinement { tier: site.tier, ..standing },
        watch: setup.sandbox().watch.clone(),
        asked: grant.clone(),
        granted: grant,
        call: Some(CallId(1)),
        effect: Arc::new(effect),
        guests: GuestLog::default(),
    };
    let mut notes = Notes { log, printed: Vec::new() };
    let began = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let (_never, cancelled) = oneshot::channel();
    let processes = Processes {
        spawner: site.spawner.clone(),
        programs: setup.sandbox().programs.clone(),
        leftovers: None,
        places: None,
    };
    runtime.block_on(shot.carry_out(&processes, &mut notes, cancelled))?;
    let printed = String::from_utf8(notes.printed)?;
    let (seconds, micros) = printed.trim().split_once(['.', ',']).ok_or("the command printed no time")?;
    let started = Duration::from_secs(seconds.parse()?) + Duration::from_micros(micros.parse()?);
    Ok(started.saturating_sub(began))
}

struct Notes<'a> {
    log: &'a mut SessionLog,
    printed: Vec<u8>,
}

impl Journal for Notes<'_> {
    async fn log(&mut self, kind: EventKind) -> Result<(), Unlogged> {
        self.log.append(&AgentId::root(), ObservedBy::Supervisor, kind).map_err(|_| Unlogged)?;
        self.log.sync().map_err(|_| Unlogged)
    }

    async fn output(&mut self, bytes: Vec<u8>) {
        self.printed.extend(bytes);
    }

    async fn remark(&mut self, _: String) {}
}
