//! Benchmark of the cost of confinement while a command runs: a build and a `git status`, next to unconfined ones.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ipc::confinement::TierChoice;
use ipc::tool::{Access, ToolCall};

use super::calls::{Warm, command};
use super::stats::{BenchReport, BenchSubject, interleaved, timed};
use super::{BenchError, BenchSetup};

const BUILDS: usize = 20;
const WALKS: usize = 40;

// Number of files that git examines, and number of files in one directory.
const FILES: usize = 20_000;
const IN_ONE: usize = 50;

const MODULES: usize = 60;

/// Measures `cargo check` of a small crate that has changed, and `git status` of 20,000 files.
pub(super) fn tax(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let mut report = BenchReport::default();
    let project = setup.sandbox().policy.project.as_path();
    if let Err(why) = small_crate(&project.join("crate")) {
        report.notes.push(format!("no cargo check: {why}"));
    } else {
        let check = "cd crate && echo >> src/m0.rs && cargo check -q --offline";
        measure(setup, &mut report, BUILDS, check, NAMES[0], 1.03)?;
    }
    if let Err(why) = tree(&project.join("tree")) {
        report.notes.push(format!("no git status: {why}"));
    } else {
        measure(setup, &mut report, WALKS, "cd tree && git status --porcelain", NAMES[1], 1.15)?;
    }
    Ok(report)
}

const NAMES: [[&str; 3]; 2] = [
    ["cargo check, unconfined", "cargo check, floor", "cargo check, full"],
    ["git status of 20,000 files, unconfined", "git status, floor", "git status, full"],
];

fn measure(
    setup: &BenchSetup,
    report: &mut BenchReport,
    rounds: usize,
    text: &str,
    names: [&'static str; 3],
    target: f64,
) -> Result<(), BenchError> {
    let call: ToolCall = command(text, Access::Standing);
    let mut floor = Warm::start(setup, TierChoice::Floor)?;
    let mut full = Warm::start(setup, TierChoice::Full)?;
    let project = setup.sandbox().policy.project.as_path();
    let mut subjects: Vec<BenchSubject<'_>> = vec![
        (names[0], Box::new(|| bare(project, text))),
        (names[1], Box::new(|| floor.call(&call))),
        (names[2], Box::new(|| full.call(&call))),
    ];
    let first = report.rows.len();
    report.rows.extend(interleaved(rounds, &mut subjects)?);
    drop(subjects);
    report.factor(first + 1, first, target);
    report.factor(first + 2, first, target);
    Ok(())
}

fn bare(project: &Path, text: &str) -> Result<Duration, BenchError> {
    timed(|| {
        let mut bash = Command::new("bash");
        bash.args(["-c", text]).current_dir(project).stdin(Stdio::null()).stdout(Stdio::null());
        let status = bash.status()?;
        if status.success() { Ok(()) } else { Err(format!("{text} ended with {status}").into()) }
    })
}

fn small_crate(place: &Path) -> Result<(), BenchError> {
    std::fs::create_dir_all(place.join("src"))?;
    let manifest = "[package]\nname = \"small\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n";
    std::fs::write(place.join("Cargo.toml"), manifest)?;
    let modules: Vec<_> = (0..MODULES).map(|module| format!("pub mod m{module};\n")).collect();
    std::fs::write(place.join("src/lib.rs"), modules.concat())?;
    let function = |number: usize| {
        format!("pub fn f{number}(v: &[u64]) -> u64 {{ v.iter().map(|x| x ^ {number}).sum() }}\n")
    };
    let functions: Vec<_> = (0..40).map(function).collect();
    for module in 0..MODULES {
        std::fs::write(place.join(format!("src/m{module}.rs")), functions.concat())?;
    }
    let status = Command::new("cargo")
        .args(["check", "-q", "--offline"])
        .current_dir(place)
        .stderr(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { Err("cargo does not check a crate here".into()) }
}

fn tree(place: &Path) -> Result<(), BenchError> {
    for directory in 0..FILES / IN_ONE {
        let directory = place.join(format!("d{}/e{directory}", directory % 20));
        std::fs::create_dir_all(&directory)?;
        for file in 0..IN_ONE {
            std::fs::write(directory.join(format!("f{file}")), [b'x'; 100])?;
        }
    }
    for arguments in [&["init", "-q"][..], &["add", "-A"]] {
        let status = Command::new("git").args(arguments).current_dir(place).status()?;
        if !status.success() {
            return Err(format!("git {arguments:?} ended with {status}").into());
        }
    }
    Ok(())
}
