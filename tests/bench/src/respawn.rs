//! Benchmark of a change of access: a worker is killed with its descendants, and the next generation becomes ready.

use std::time::{Duration, Instant};

use boundary::monitor::{Worker, WorkerEvent};
use ipc::confinement::TierChoice;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::Receiver;

use super::processes::{REST, Site};
use super::stats::{BenchReport, BenchSubject, rested};
use super::{BenchError, BenchSetup};

const ROUNDS: usize = 200;

/// Measures the time from the order to end a worker until its successor has sent `Ready`, in both tiers.
pub(super) fn respawn(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut floor = BenchAgent::start(setup, &runtime, TierChoice::Floor)?;
    let mut full = BenchAgent::start(setup, &runtime, TierChoice::Full)?;
    let mut subjects: Vec<BenchSubject<'_>> = vec![
        ("change of rights by respawn, floor", Box::new(|| floor.respawn())),
        ("change of rights by respawn, full", Box::new(|| full.respawn())),
    ];
    let rows = rested(ROUNDS, REST, &mut subjects)?;
    drop(subjects);
    let [floor, full] = [0, 1].map(|row: usize| rows[row].p10 / 1000.0);
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("change of rights by respawn, floor, ms", floor, 8.0);
    report.absolute("change of rights by respawn, full, ms", full, 12.0);
    Ok(report)
}

struct BenchAgent<'a> {
    site: Site<'a>,
    runtime: &'a Runtime,
    alive: (Worker, Receiver<WorkerEvent>),
}

impl<'a> BenchAgent<'a> {
    fn start(setup: &'a BenchSetup, runtime: &'a Runtime, tier: TierChoice) -> Result<Self, BenchError> {
        let site = Site::new(setup, tier)?;
        let alive = runtime.block_on(site.start())?;
        Ok(Self { site, runtime, alive })
    }

    fn respawn(&mut self) -> Result<Duration, BenchError> {
        let began = Instant::now();
        self.runtime.block_on(async {
            self.alive.0.kill();
            // The channel closes when the broker, and all processes below the broker, have been reaped.
            while self.alive.1.recv().await.is_some() {}
            self.alive = self.site.start().await?;
            Ok(began.elapsed())
        })
    }
}
