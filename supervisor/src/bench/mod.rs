//! Our measurements beside their floors: interleaved in one run, given as ratios, each with its target.
//!
//! Times are wall-clock microseconds unless a row says otherwise. The machine is never quiet, so a row gives the tenth
//! percentile (what it costs when nothing is in the way) and the median.

mod agents;
mod approval;
mod calls;
mod connect;
mod fleet;
mod large_log;
mod linking;
mod memory;
mod processes;
mod relay;
mod requests;
mod respawn;
mod session_log;
mod sessions;
mod stats;
mod tax;
mod transcript;
mod tui;
mod tui_process;

use std::io::Write;

use serde::Serialize;

use crate::engine::place::ProjectSandbox;
pub(crate) use connect::inside as connect_inside;
pub(crate) use stats::BenchReport;

/// Why a measurement could not be made.
pub(crate) type BenchError = Box<dyn std::error::Error + Send + Sync>;

type Measure = fn(&ProjectSandbox) -> Result<BenchReport, BenchError>;

/// The measurements, by name.
const ALL: &[(&str, Measure)] = &[
    ("sandbox-exec", processes::sandbox_exec),
    ("worker-ready", processes::worker_ready),
    ("respawn", respawn::respawn),
    ("approved-command", approval::approved_command),
    ("read-file", calls::read_file),
    ("shell-exec", calls::shell_exec),
    ("tax", tax::tax),
    ("connect", connect::connect),
    ("idle-worker", memory::idle_worker),
    ("fleet", fleet::fleet),
    ("session-log", session_log::session_log),
    ("resume", sessions::resume),
    ("large-log", large_log::resume),
    ("sessions-listed", sessions::listed),
    ("looks", sessions::looks),
    ("first-request", requests::first_request),
    ("step-gap", requests::step_gap),
    ("history", transcript::history),
    ("streamed-token", requests::streamed_token),
    ("fast-stream", requests::fast_stream),
    ("relay-first-byte", relay::first_byte),
    ("relay-token", relay::token),
    ("transcript-memory", transcript::memory),
    ("sub-agents", agents::many),
    ("sub-agent-steps", agents::steps),
    ("sub-agent-memory", agents::remembering),
    ("first-frame", tui_process::first_frame),
    ("streaming-frame", tui::streaming_frame),
    ("idle-tui", tui_process::idle),
];

/// Whether any measurement's name contains `filter`.
pub(crate) fn is_known(filter: Option<&str>) -> bool {
    ALL.iter().any(|(name, _)| filter.is_none_or(|filter| name.contains(filter)))
}

/// Runs the measurements whose name contains `filter`, and prints each as it is done.
pub(crate) fn run(setup: &ProjectSandbox, filter: Option<&str>, json: bool) -> Result<(), BenchError> {
    let chosen: Vec<_> =
        ALL.iter().filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter))).collect();
    if chosen.is_empty() {
        let names: Vec<_> = ALL.iter().map(|(name, _)| *name).collect();
        return Err(format!("no measurement of that name; there are: {}", names.join(", ")).into());
    }
    let mut reports = Vec::new();
    for (name, measure) in chosen {
        let report = Named { name, report: measure(setup).map_err(|error| format!("{name}: {error}"))? };
        if !json {
            print(&report)?;
        }
        reports.push(report);
    }
    if json {
        writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&reports)?)?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Named {
    name: &'static str,
    #[serde(flatten)]
    report: BenchReport,
}

fn print(named: &Named) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", named.name)?;
    for row in &named.report.rows {
        writeln!(
            out,
            "  {:<52} p10 {:>10.1}   median {:>10.1}  {}",
            row.subject, row.p10, row.median, row.unit
        )?;
    }
    for ratio in &named.report.ratios {
        let verdict = if ratio.value <= ratio.target { "met" } else { "missed" };
        writeln!(out, "  {:<52} {:>14.2}   target ≤ {:<6} {verdict}", ratio.what, ratio.value, ratio.target)?;
    }
    for note in &named.report.notes {
        writeln!(out, "  note: {note}")?;
    }
    out.flush()
}
