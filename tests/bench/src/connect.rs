//! Benchmark of the mediation of sockets: connections to a server inside, next to unconfined ones.
//!
//! This program measures itself in both places: `bailiwick-bench connect --inside` prints its samples.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::UsageWho;

use super::stats::{BenchReport, Measurement, cpu_time, timed};
use super::{BenchError, BenchSetup};

/// Connections of each kind that a process makes.
const ROUNDS: usize = 2000;

/// Turns of each place.
const TURNS: usize = 5;

/// Bytes that go over one connection, bytes of one write, and the connections that a process measures.
const STREAM: usize = 256 << 20;
const PIECE: usize = 64 << 10;
const STREAMS: usize = 6;

/// Measurements in each of [`PLACES`].
const MEASURED: [[&str; 3]; 6] = [
    [
        "connect to a unix socket, unconfined",
        "connect to a unix socket, full",
        "connect to a unix socket, floor",
    ],
    [
        "accept on a unix socket, unconfined",
        "accept on a unix socket, full",
        "accept on a unix socket, floor",
    ],
    ["connect to loopback, unconfined", "connect to loopback, full", "connect to loopback, floor"],
    ["accept on loopback, unconfined", "accept on loopback, full", "accept on loopback, floor"],
    ["256 MiB over loopback, unconfined", "256 MiB over loopback, full", "256 MiB over loopback, floor"],
    [
        "CPU of 256 MiB over loopback, unconfined",
        "CPU of 256 MiB over loopback, full",
        "CPU of 256 MiB over loopback, floor",
    ],
];

/// The places in which a process measures itself, unconfined first.
const PLACES: [&str; 3] = ["unconfined", "full", "floor"];

/// The targets: microseconds beyond unconfined, or a factor. Streams depend on the cores of their two threads, so the
/// best values of one place say nothing about another.
const TARGETS: [Target; 6] = [
    Target::Beyond(40.0),
    Target::None,
    Target::Beyond(40.0),
    Target::None,
    Target::FactorOfMedians(1.03),
    Target::FactorOfMedians(1.03),
];

enum Target {
    Beyond(f64),
    FactorOfMedians(f64),
    None,
}

/// A process's samples of itself, in the order of [`MEASURED`], in microseconds.
type Samples = [Vec<f64>; 6];

/// connect(2) to a unix socket and to loopback, accept(2) of what waits there, and an established connection, unconfined and in
/// each tier.
pub(super) fn connect(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let mut samples: [Samples; 3] = Default::default();
    for _ in 0..TURNS {
        for (place, samples) in PLACES.into_iter().zip(&mut samples) {
            let took = measured(&mut process(setup, place)?)?;
            samples.iter_mut().zip(took).for_each(|(samples, took)| samples.extend(took));
        }
    }
    let mut report = BenchReport::default();
    for (measurement, (subjects, target)) in MEASURED.into_iter().zip(TARGETS).enumerate() {
        let bare = report.rows.len();
        let row = |(subject, samples): (&'static str, &Samples)| {
            Measurement::of(subject, "µs", &samples[measurement])
        };
        report.rows.extend(subjects.into_iter().zip(&samples).map(row));
        for ours in [bare + 1, bare + 2] {
            match target {
                Target::Beyond(most) => {
                    let (beyond, subject) =
                        (report.rows[ours].p10 - report.rows[bare].p10, report.rows[ours].subject);
                    report.absolute(&format!("{subject} beyond unconfined, µs"), beyond, most);
                }
                Target::FactorOfMedians(most) => report.factor_of_medians(ours, bare, most),
                Target::None => {}
            }
        }
    }
    Ok(report)
}

const INSIDE: [&str; 2] = ["connect", "--inside"];

/// This program, measuring itself in a place.
fn process(setup: &BenchSetup, place: &str) -> Result<Command, BenchError> {
    let me = std::env::current_exe()?;
    let project = setup.sandbox().policy.project.as_path();
    let mut command;
    if place == PLACES[0] {
        command = Command::new(me);
    } else {
        command = Command::new(setup.program());
        command.args(["sandbox", "--tier", place, "-C"]).arg(project).arg("--").arg(me);
    }
    command.current_dir(project).args(INSIDE);
    Ok(command)
}

/// Output of a measuring process.
fn measured(command: &mut Command) -> Result<Samples, BenchError> {
    let output = command.stdin(Stdio::null()).output()?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        format!("the measurement inside failed: {}", String::from_utf8_lossy(&output.stderr)).into()
    })
}

/// Measures connections in this very process and prints [`Samples`].
pub(crate) fn inside() -> Result<(), BenchError> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("s");
    let unix = UnixListener::bind(&path)?;
    let tcp = TcpListener::bind("127.0.0.1:0")?;
    let address = tcp.local_addr()?;
    let [to_unix, on_unix] = times(|| UnixStream::connect(&path), || Ok(unix.accept()?.0))?;
    let [to_loopback, on_loopback] = times(|| TcpStream::connect(address), || Ok(tcp.accept()?.0))?;
    let streams = (0..STREAMS).map(|_| stream(TcpStream::connect(address)?, tcp.accept()?.0));
    let (streams, busy): (Vec<_>, Vec<_>) =
        streams.collect::<Result<Vec<_>, BenchError>>()?.into_iter().unzip();
    let microseconds = |samples: Vec<Duration>| samples.iter().map(|took| took.as_secs_f64() * 1e6).collect();
    let samples: Samples = [to_unix, on_unix, to_loopback, on_loopback, streams, busy].map(microseconds);
    Ok(serde_json::to_writer(std::io::stdout(), &samples)?)
}

/// Times `connect` and `accept` separately. Each connection must carry a byte, and is closed after the start of the
/// next one, so that no measurement includes its end.
fn times<C: Write, S: Read>(
    connect: impl Fn() -> std::io::Result<C>,
    accept: impl Fn() -> std::io::Result<S>,
) -> Result<[Vec<Duration>; 2], BenchError> {
    let mut samples = [const { Vec::new() }; 2];
    let mut before = None;
    for _ in 0..ROUNDS {
        let (client, connecting) = timed_with(&connect)?;
        drop(before.take());
        let (server, accepting) = timed_with(&accept)?;
        let (client, server) = before.insert((client, server));
        client.write_all(b"x")?;
        server.read_exact(&mut [0])?;
        samples.iter_mut().zip([connecting, accepting]).for_each(|(samples, took)| samples.push(took));
    }
    Ok(samples)
}

/// Result of an act, and its duration.
fn timed_with<T>(act: impl FnOnce() -> std::io::Result<T>) -> Result<(T, Duration), BenchError> {
    let began = Instant::now();
    let given = act()?;
    Ok((given, began.elapsed()))
}

/// Times a stream over one connection: its duration, and the processor time.
fn stream(mut client: TcpStream, mut server: TcpStream) -> Result<(Duration, Duration), BenchError> {
    let before = cpu_time(UsageWho::RUSAGE_SELF)?;
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
    Ok((took, cpu_time(UsageWho::RUSAGE_SELF)?.saturating_sub(before)))
}
