//! Benchmark of many workers at once.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use ipc::confinement::TierChoice;

use super::processes::Site;
use super::stats::{BenchReport, Measurement};
use super::{BenchError, BenchSetup, memory};

const FLEET: usize = 200;

/// Time after which a worker is idle. A worker frees pages after a tenth of a second without work.
const REST: Duration = Duration::from_millis(600);

/// Measures the time until 200 confined workers of the best tier are ready, and the memory of all their processes.
pub(super) fn fleet(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let site = Site::new(setup, TierChoice::Best)?;
    let began = Instant::now();
    let fleet = try_join_all((0..FLEET).map(|_| site.start()));
    let workers = runtime.block_on(fleet)?;
    let ready = began.elapsed();
    std::thread::sleep(REST);
    let mut kib = Vec::new();
    for (worker, _) in &workers {
        kib.push(memory::family(worker.pid, std::process::id())?);
    }
    let tier = workers.first().map(|(worker, _)| worker.ruleset.tier.to_string()).unwrap_or_default();
    let all = kib.iter().sum::<f64>() / 1024.0;
    let rows = vec![
        Measurement::of_times("200 workers ready", &[ready]),
        Measurement::of("one of them with its brokers, PSS", "KiB", &kib),
    ];
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("200 workers ready, s", ready.as_secs_f64(), 1.5);
    report.absolute("200 workers with their brokers, PSS in MiB", all, 400.0);
    report.notes.push(format!("tier: {tier}"));
    Ok(report)
}
