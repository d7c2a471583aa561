//! Benchmark of the memory of an idle worker.

use std::fs;
use std::time::Duration;

use ipc::confinement::TierChoice;

use super::processes::Site;
use super::stats::{BenchReport, Measurement};
use super::{BenchError, BenchSetup};

/// Time after which a worker is idle. A worker frees pages after a tenth of a second without work.
const REST: Duration = Duration::from_millis(400);

/// Measures the proportional set size of a confined worker that waits for its first call, and of its broker.
pub(super) fn idle_worker(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let site = Site::new(setup, TierChoice::Best)?;
    let (mut workers, mut brokers) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (worker, _events) = runtime.block_on(site.start())?;
        std::thread::sleep(REST);
        workers.push(pss(worker.pid)?);
        brokers.push(pss(parent(worker.pid)?)?);
    }
    let rows = vec![
        Measurement::of("idle worker, PSS", "KiB", &workers),
        Measurement::of("its broker, PSS", "KiB", &brokers),
    ];
    let value = rows[0].median;
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("idle worker, PSS in KiB", value, 1536.0);
    Ok(report)
}

/// Returns the proportional set size of a process in KiB (`Pss` of `smaps_rollup`, `proc_pid_smaps(5)`).
pub(super) fn pss(pid: u32) -> Result<f64, BenchError> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let value = text.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB"));
    Ok(value.ok_or("no Pss in smaps_rollup")?.parse()?)
}

pub(super) fn parent(pid: u32) -> Result<u32, BenchError> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let value = text.lines().find_map(|line| line.strip_prefix("PPid:"));
    Ok(value.ok_or("no PPid in status")?.trim().parse()?)
}

/// Returns the `Pss` in KiB of a worker and of the sandbox-exec processes between the worker and the supervisor: one
/// such process, or two in the full tier.
pub(super) fn family(worker: u32, supervisor: u32) -> Result<f64, BenchError> {
    let mut pid = worker;
    let mut sum = 0.0;
    while pid > 1 && pid != supervisor {
        sum += pss(pid)?;
        pid = parent(pid)?;
    }
    Ok(sum)
}
