//! What the mediation of sockets costs: connections to a server inside, beside the same ones unconfined.
//!
//! The same program measures itself in both places: `bailiwick bench connect --inside` prints what it took.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::stats::{Report, Row, timed};
use super::{BenchError, Setup};

const ROUNDS: usize = 2000;

/// How many times both places take turns.
const TURNS: usize = 5;

/// How much goes over one connection, and how much of it at once.
const STREAM: usize = 256 << 20;
const PIECE: usize = 64 << 10;

/// What a process measures of itself: the tenth percentile of connections to a unix socket and to loopback, in microseconds, and
/// how long one connection carried its bytes, in milliseconds.
const MEASURED: [([&str; 3], &str); 3] = [
    (
        [
            "connect to a unix socket, unconfined",
            "connect to a unix socket, full",
            "connect to a unix socket, floor",
        ],
        "µs",
    ),
    (["connect to loopback, unconfined", "connect to loopback, full", "connect to loopback, floor"], "µs"),
    (
        ["256 MiB over loopback, unconfined", "256 MiB over loopback, full", "256 MiB over loopback, floor"],
        "ms",
    ),
];

/// Where it does: unconfined first.
const PLACES: [&str; 3] = ["unconfined", "full", "floor"];

/// connect(2) to a unix socket and to loopback, and an established connection, unconfined and in each tier.
pub(super) fn connect(setup: &Setup) -> Result<Report, BenchError> {
    let mut samples: [[Vec<f64>; 3]; 3] = Default::default();
    for _ in 0..TURNS {
        for (place, samples) in PLACES.into_iter().zip(&mut samples) {
            let took = measured(&mut process(setup, place)?)?;
            samples.iter_mut().zip(took).for_each(|(samples, took)| samples.push(took));
        }
    }
    let mut report = Report::default();
    for (measurement, (subjects, unit)) in MEASURED.into_iter().enumerate() {
        let bare = report.rows.len();
        let row = |(subject, samples): (&'static str, &[Vec<f64>; 3])| {
            Row::of(subject, unit, &samples[measurement])
        };
        report.rows.extend(subjects.into_iter().zip(&samples).map(row));
        for ours in [bare + 1, bare + 2] {
            if unit == "µs" {
                let (beyond, subject) =
                    (report.rows[ours].p10 - report.rows[bare].p10, report.rows[ours].subject);
                report.absolute(&format!("{subject} beyond unconfined, µs"), beyond, 40.0);
            } else {
                report.factor(ours, bare, 1.03);
            }
        }
    }
    Ok(report)
}

const INSIDE: [&str; 3] = ["bench", "connect", "--inside"];

/// This program, measuring itself in a place.
fn process(setup: &Setup, place: &str) -> Result<Command, BenchError> {
    let me = std::env::current_exe()?;
    let project = setup.policy.project.as_path();
    let mut command = Command::new(&me);
    if place != PLACES[0] {
        command.args(["sandbox", "--tier", place, "-C"]).arg(project).arg("--").arg(&me);
    }
    command.current_dir(project).args(INSIDE);
    Ok(command)
}

/// What a measuring process prints.
fn measured(command: &mut Command) -> Result<[f64; 3], BenchError> {
    let output = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    numbers.try_into().map_err(|_| {
        format!("the measurement inside failed: {}", String::from_utf8_lossy(&output.stderr)).into()
    })
}

/// Measures connections in this very process and prints what [`MEASURED`] names.
pub(crate) fn inside() -> Result<(), BenchError> {
    // This program hides itself from others, and the broker connects nobody whose memory it cannot read.
    nix::sys::prctl::set_dumpable(true)?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("s");
    let unix = UnixListener::bind(&path)?;
    let tcp = TcpListener::bind("127.0.0.1:0")?;
    let address = tcp.local_addr()?;
    let unix = times(|| UnixStream::connect(&path), || Ok(unix.accept()?.0))?;
    let connections = times(|| TcpStream::connect(address), || Ok(tcp.accept()?.0))?;
    let stream = stream(TcpStream::connect(address)?, tcp.accept()?.0)?.as_secs_f64() * 1e3;
    let p10 = |samples: &[Duration]| Row::of_times("", samples).p10;
    Ok(writeln!(std::io::stdout(), "{} {} {stream}", p10(&unix), p10(&connections))?)
}

/// Times `connect` alone; each connection is accepted and shown to carry a byte.
fn times<C: Write, S: Read>(
    connect: impl Fn() -> std::io::Result<C>,
    accept: impl Fn() -> std::io::Result<S>,
) -> Result<Vec<Duration>, BenchError> {
    let mut samples = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let mut client = None;
        samples.push(timed(|| {
            client = Some(connect()?);
            Ok(())
        })?);
        let mut server = accept()?;
        client.as_mut().ok_or("no connection")?.write_all(b"x")?;
        server.read_exact(&mut [0])?;
    }
    Ok(samples)
}

/// Times what one connection carries.
fn stream(mut client: TcpStream, mut server: TcpStream) -> Result<Duration, BenchError> {
    let sender = std::thread::spawn(move || -> std::io::Result<()> {
        let piece = vec![0; PIECE];
        (0..STREAM / PIECE).try_for_each(|_| client.write_all(&piece))
    });
    let took = timed(|| {
        let mut piece = vec![0; PIECE];
        while server.read(&mut piece)? > 0 {}
        Ok(())
    })?;
    sender.join().map_err(|_| "the sender panicked")??;
    Ok(took)
}
