//! # NAME
//!
//! bailiwick-bench — measures bailiwick beside its floors (the same work without Bailiwick)
//!
//! # SYNOPSIS
//!
//! ```text
//! bailiwick-bench [NAME] [--json] [--program PATH]
//! ```
//!
//! # DESCRIPTION
//!
//! Measurements and their floors are interleaved in one run and given as ratios, each with its target. The program
//! under measurement is the `bailiwick` beside this one or that of `--program`, with the worker and the sandbox-exec
//! beside it; parts of the supervisor are measured as the library that this program links.
//!
//! Times are wall-clock microseconds unless a row says otherwise. The machine is never quiet, so a row gives the tenth
//! percentile (what it costs when nothing is in the way) and the median.
//!
//! # EXIT STATUS
//!
//! 0 the measurements are done · 1 a measurement failed · 2 usage.

#![forbid(unsafe_code)]

mod agents;
mod approval;
mod calls;
mod connect;
mod fleet;
mod hosts;
mod large_log;
mod linking;
mod memory;
mod processes;
mod relay;
mod requests;
mod respawn;
mod session_log;
mod sessions;
mod setup;
mod stats;
mod tax;
mod transcript;
mod tui;
mod tui_process;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use serde::Serialize;

use setup::BenchSetup;
use stats::BenchReport;

/// Reason why a measurement failed.
pub(crate) type BenchError = Box<dyn std::error::Error + Send + Sync>;

type Measure = fn(&BenchSetup) -> Result<BenchReport, BenchError>;

/// Measures bailiwick beside its floors (the same work without it), in one run
#[derive(Debug, Parser)]
#[command(name = "bailiwick-bench")]
struct Cli {
    /// Only the measurements whose name contains this
    name: Option<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
    /// The program to measure [default: the `bailiwick` beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Measures connections in this process: `connect` and `hosts` execute it confined and unconfined
    #[arg(long, hide = true)]
    inside: bool,
    /// The host that this process connects to with `--inside`
    #[arg(long, hide = true, requires = "inside")]
    to: Option<String>,
}

const ALL: &[(&str, Measure)] = &[
    ("sandbox-exec", processes::sandbox_exec),
    ("sandbox-command", processes::sandbox_command),
    ("worker-ready", processes::worker_ready),
    ("respawn", respawn::respawn),
    ("approved-command", approval::approved_command),
    ("read-file", calls::read_file),
    ("shell-exec", calls::shell_exec),
    ("tax", tax::tax),
    ("connect", connect::connect),
    ("hosts", hosts::hosts),
    ("hosts-start", hosts::starts),
    ("idle-worker", memory::idle_worker),
    ("fleet", fleet::fleet),
    ("session-log", session_log::session_log),
    ("resume", sessions::resume),
    ("large-log", large_log::resume),
    ("sessions-listed", sessions::listed),
    ("looks", sessions::looks),
    ("first-request", requests::first_request),
    ("mcp-servers", requests::with_servers),
    ("step-gap", requests::step_gap),
    ("history", transcript::history),
    ("streamed-token", requests::streamed_token),
    ("fast-stream", requests::fast_stream),
    ("relay-first-byte", relay::first_byte),
    ("relay-token", relay::token),
    ("transcript-memory", transcript::memory),
    ("headless-memory", transcript::headless),
    ("sub-agents", agents::many),
    ("sub-agent-steps", agents::steps),
    ("sub-agent-memory", agents::remembering),
    ("first-frame", tui_process::first_frame),
    ("streaming-frame", tui::streaming_frame),
    ("idle-tui", tui_process::idle),
];

fn main() -> ExitCode {
    let cli = Cli::parse();
    let chosen = chosen(cli.name.as_deref());
    if chosen.is_empty() {
        let names: Vec<_> = ALL.iter().map(|(name, _)| *name).collect();
        let text = format!("no measurement of that name; there are: {}", names.join(", "));
        Cli::command().error(ErrorKind::InvalidValue, text).exit();
    }
    let done = match &cli.to {
        Some(to) => hosts::inside(to),
        None if cli.inside => connect::inside(),
        None => run(&chosen, &cli),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may be closed.
            let _ = writeln!(std::io::stderr(), "bailiwick-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the measurements whose name contains `filter`.
fn chosen(filter: Option<&str>) -> Vec<(&'static str, Measure)> {
    ALL.iter().copied().filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter))).collect()
}

/// Runs measurements, and prints each as soon as it is done.
fn run(chosen: &[(&'static str, Measure)], cli: &Cli) -> Result<(), BenchError> {
    // As in a supervisor, this process is not dumpable, so that its workers cost the same.
    supervisor::command::app::harden().map_err(|_| "cannot measure as a supervisor does")?;
    let setup = BenchSetup::new(cli.program.as_deref())?;
    let mut reports = Vec::new();
    for (name, measure) in chosen {
        let report = Named { name, report: measure(&setup).map_err(|error| format!("{name}: {error}"))? };
        if !cli.json {
            print(&report)?;
        }
        reports.push(report);
    }
    if cli.json {
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
