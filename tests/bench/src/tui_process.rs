//! Benchmarks of the terminal UI on a terminal: its start, and its activity while nothing happens.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use model::replay::{ReplayServer, Script, sse};
use nix::pty::{OpenptyResult, Winsize, openpty};
use supervisor::front::terminal_ui::END;

use super::stats::{BenchReport, Measurement};
use super::tui::{LINE, LINES};
use super::{BenchError, BenchSetup, memory};

const RUNS: usize = 20;
const SIZE: Winsize = Winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };

/// Duration of the measurement in which nothing happens, and of the pause before it, in which earlier activity ends.
const REST: Duration = Duration::from_secs(3);

/// Measures the time from the start of the process until the first frame is on the terminal.
pub(super) fn first_frame(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let server = ReplayServer::start(Script::new())?;
    let mut samples = Vec::new();
    for _ in 0..=RUNS {
        let began = Instant::now();
        let mut ui = BenchUi::start(setup, &server)?;
        ui.until(END)?;
        samples.push(began.elapsed());
        ui.leave()?;
    }
    let mut report = BenchReport {
        rows: vec![Measurement::of_times("process start → first frame", &samples[1..])],
        ..BenchReport::default()
    };
    let p10 = report.rows[0].p10 / 1000.0;
    report.absolute("process start → first frame, ms", p10, 15.0);
    Ok(report)
}

/// Measures the UI's wake-ups while nothing happens, and the UI's memory after a reply of 100,000 lines.
pub(super) fn idle(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let words = format!("{}\n", LINE.replace(' ', "_")).repeat(LINES) + "the_end";
    let reply = sse::message(&[sse::Block::text(words)], "end_turn", sse::Usage::default());
    let server = ReplayServer::start(Script::new().reply(reply))?;
    let mut ui = BenchUi::start(setup, &server)?;
    ui.until(END)?;
    let fresh = ui.wake_ups_at_rest()?;
    let small = memory::pss(ui.child.id())? / 1024.0;
    ui.keyboard.write_all(b"go on\r")?;
    ui.until(b"the_end")?;
    let full = ui.wake_ups_at_rest()?;
    let large = memory::pss(ui.child.id())? / 1024.0;
    ui.leave()?;
    let rows = vec![
        Measurement::of("the UI at its start, PSS", "MiB", &[small]),
        Measurement::of("the UI with a reply of 100,000 lines, PSS", "MiB", &[large]),
    ];
    let mut report = BenchReport { rows, ..BenchReport::default() };
    report.absolute("wake-ups in 3 s of rest, at the start", fresh, 0.0);
    report.absolute("wake-ups in 3 s of rest, after a reply", full, 0.0);
    report.absolute("the UI with 100,000 lines, PSS in MiB", large, 60.0);
    Ok(report)
}

/// `bailiwick` on a new terminal.
struct BenchUi {
    child: Child,
    keyboard: File,
    screen: File,
    seen: Vec<u8>,
    /// The slave side. It is kept open because a terminal that nobody has open forgets its state.
    slave: OwnedFd,
}

impl BenchUi {
    fn start(setup: &BenchSetup, server: &ReplayServer) -> Result<Self, BenchError> {
        let OpenptyResult { master, slave } = openpty(&SIZE, None)?;
        let stream = || slave.try_clone().map(Stdio::from);
        let child = Command::new(setup.program())
            .args(["--base-url", &server.base_url(), "-C"])
            .arg(setup.sandbox().policy.project.as_path())
            .env("ANTHROPIC_API_KEY", "bench")
            .env("TERM", "xterm-256color")
            .env("BAILIWICK_HOME", setup.sandbox().temp.path().join("home"))
            .stdin(stream()?)
            .stdout(stream()?)
            .stderr(stream()?)
            .spawn()?;
        let keyboard = File::from(master);
        let screen = keyboard.try_clone()?;
        Ok(Self { child, keyboard, screen, seen: Vec::new(), slave })
    }

    /// Reads the output until it contains these bytes.
    fn until(&mut self, wanted: &[u8]) -> Result<(), BenchError> {
        let mut buffer = [0; 16 << 10];
        loop {
            let read = self.screen.read(&mut buffer)?;
            self.seen.extend_from_slice(&buffer[..read]);
            if memchr::memmem::find(&self.seen, wanted).is_some() {
                self.seen.clear();
                return Ok(());
            }
            // The end of a read may cut the wanted bytes.
            self.seen.drain(..self.seen.len().saturating_sub(wanted.len()));
        }
    }

    /// Returns the number of wake-ups of the process's threads in [`REST`]: voluntary context switches
    /// (`proc_pid_status(5)`).
    fn wake_ups_at_rest(&self) -> Result<f64, BenchError> {
        thread::sleep(REST);
        let before = self.switches()?;
        thread::sleep(REST);
        Ok(self.switches()? - before)
    }

    fn switches(&self) -> Result<f64, BenchError> {
        let mut sum = 0.0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(thread?.path().join("status"))?;
            let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            sum += line.ok_or("no switches in status")?.trim().parse::<f64>()?;
        }
        Ok(sum)
    }

    fn leave(mut self) -> Result<(), BenchError> {
        self.keyboard.write_all(b":q\r")?;
        // Without a reader of the terminal, the program could not end.
        let mut screen = self.screen;
        let reader = thread::spawn(move || std::io::copy(&mut screen, &mut std::io::sink()));
        let status = self.child.wait()?;
        drop(self.slave);
        let _ = reader.join();
        if status.success() { Ok(()) } else { Err(format!("the UI ended with {status}").into()) }
    }
}
