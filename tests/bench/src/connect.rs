//! Benchmark of connections to a server in the same sandbox, next to connections without a sandbox.
//!
//! The program runs itself in each sandbox and without one: `bailiwick-bench connect --inside` prints its own times.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::UsageWho;

use super::stats::{BenchReport, Measurement, cpu_time, timed};
use super::{BenchError, BenchSetup};

/// Number of connections of each kind that a process makes.
const ROUNDS: usize = 2000;

/// Number of times that the measurements run in each of the [`PLACES`].
const TURNS: usize = 5;

// Number of bytes over one connection, number of bytes of one write, and number of streams that a process measures.
const STREAM: usize = 256 << 20;
const PIECE: usize = 64 << 10;
const STREAMS: usize = 6;

/// Names of the measurements. For each kind of measurement there is one name per place, in the order of [`PLACES`].
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

/// Places in which a process measures its connections: without a sandbox, and in each tier.
const PLACES: [&str; 3] = ["unconfined", "full", "floor"];

/// Targets of the measurements: the maximum difference to the unconfined time in microseconds, or a maximum factor. The
/// time of a stream depends on the cores that run its two threads, so only medians of it are compared.
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

/// Times that a process measured, in microseconds and in the order of [`MEASURED`].
type Samples = [Vec<f64>; 6];

/// Measures connect(2) to a unix socket and to loopback, accept(2) of waiting connections, and streams over an
/// established connection, in each of the [`PLACES`].
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

/// Returns the command that runs this program in one of the [`PLACES`].
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

/// Runs a measuring process, and parses its output.
fn measured(command: &mut Command) -> Result<Samples, BenchError> {
    let output = command.stdin(Stdio::null()).output()?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        format!("the measurement inside failed: {}", String::from_utf8_lossy(&output.stderr)).into()
    })
}

/// Measures connections in this process, and prints [`Samples`].
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

/// Times `connect` and `accept` separately. Each connection carries a byte, and is closed only after the next one has
/// started, so that no time includes a close.
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

fn timed_with<T>(act: impl FnOnce() -> std::io::Result<T>) -> Result<(T, Duration), BenchError> {
    let began = Instant::now();
    let given = act()?;
    Ok((given, began.elapsed()))
}

/// Streams [`STREAM`] bytes over a connection. Returns the elapsed time, and the CPU time.
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
