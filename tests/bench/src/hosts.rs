//! Benchmark of access to hosts by name: connections and streams through the gateway next to direct ones, and the start
//! of a command with a list of allowed hosts.
//!
//! The host is this process on loopback, with a name from a private hosts file. The client is this program again:
//! `bailiwick-bench hosts --inside --to NAME:PORT` prints the times that it measures.

use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::unistd::geteuid;

use super::stats::{BenchReport, BenchSubject, Measurement, rested, timed};
use super::{BenchError, BenchSetup, linking, processes};

// Name of the host, and name of a host that is not on the list.
const NAME: &str = "bench.example";
const OTHER: &str = "other.example";

// Number of connections of a process, number of its streams in each direction, and number of runs in each place.
const ROUNDS: usize = 500;
const STREAMS: usize = 4;
const TURNS: usize = 5;

// Number of bytes of a stream, and of one write.
const STREAM: usize = 256 << 20;
const PIECE: usize = 64 << 10;

/// Number of starts of a command with each kind of network access.
const STARTS: usize = 100;

// First byte of a request: for an answer of one byte, for a stream, or before a stream from the client.
const ANSWER: u8 = b'a';
const DOWN: u8 = b'd';
const UP: u8 = b'u';

/// Names of the measurements: for each kind, the one without the gateway, then the one through the gateway.
const MEASURED: [[&str; 2]; 3] = [
    ["connection and an answer, direct", "connection and an answer, hosts"],
    ["256 MiB from a host, direct", "256 MiB from a host, hosts"],
    ["256 MiB to a host, direct", "256 MiB to a host, hosts"],
];

/// Times that a process measured, in microseconds and in the order of [`MEASURED`].
type Samples = [Vec<f64>; 3];

/// Shell line that runs a command with the hosts file that its first argument names.
const WITH_HOSTS: &str = r#"mount --bind "$0" /etc/hosts && exec "$@""#;

/// Measures connections to a host by name, and 256 MiB from the host and to it: directly, and through the gateway.
pub(super) fn hosts(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let directory = tempfile::tempdir()?;
    let names = directory.path().join("hosts");
    fs::write(&names, format!("127.0.0.1 localhost {NAME} {OTHER}\n"))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // A connection that fails is seen by the client.
            std::thread::spawn(move || serve(connection).ok());
        }
    });
    let mut report = BenchReport::default();
    let mut samples: [Samples; 2] = Default::default();
    for _ in 0..TURNS {
        let [direct, ours] = &mut samples;
        for (samples, mut command) in [(direct, direct_client(port)?), (ours, client(setup, &names, port)?)] {
            let took = measured(&mut command)?;
            samples.iter_mut().zip(took).for_each(|(samples, took)| samples.extend(took));
        }
    }
    for (measurement, subjects) in MEASURED.into_iter().enumerate() {
        let row = |(subject, samples): (&'static str, &Samples)| {
            Measurement::of(subject, "µs", &samples[measurement])
        };
        report.rows.extend(subjects.into_iter().zip(&samples).map(row));
    }
    let beyond = report.rows[1].p10 - report.rows[0].p10;
    report.absolute("a connection by name beyond a direct one, µs", beyond, 1000.0);
    report.factor_of_medians(3, 2, 2.0);
    report.factor_of_medians(5, 4, 2.0);
    report.notes.push(format!("{OTHER} was refused in each run with the list"));
    report.notes.push(linking::note(setup)?);
    Ok(report)
}

/// Measures `bailiwick sandbox -- true` in the full tier: with the network off, with a list of hosts, and with it on.
pub(super) fn starts(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let ours = setup.program().as_os_str();
    let project = tempfile::tempdir()?;
    let start = |net: &'static str| {
        let first: [&OsStr; 3] = ["sandbox".as_ref(), "-C".as_ref(), project.path().as_os_str()];
        let rest = ["--tier", "full", "--net", net, "--", "/bin/true"].map(OsStr::new);
        processes::run(ours, &[first.as_slice(), &rest].concat())
    };
    let mut subjects: Vec<BenchSubject<'_>> = vec![
        ("sandbox -- true, network off", Box::new(|| start("off"))),
        ("sandbox -- true, network on", Box::new(|| start("on"))),
        ("sandbox -- true, hosts", Box::new(|| start(NAME))),
    ];
    let mut report =
        BenchReport { rows: rested(STARTS, processes::REST, &mut subjects)?, ..BenchReport::default() };
    report.factor(2, 1, 1.5);
    report.factor(2, 0, 1.5);
    report.notes.push(linking::note(setup)?);
    Ok(report)
}

fn direct_client(port: u16) -> Result<Command, BenchError> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["hosts", "--inside", "--to", &format!("127.0.0.1:{port}")]);
    Ok(command)
}

/// Returns this program as a client that may only reach the host by name.
fn client(setup: &BenchSetup, names: &Path, port: u16) -> Result<Command, BenchError> {
    let project = setup.sandbox().policy.project.as_path();
    let entry = format!("{NAME}:{port}");
    let mut command = Command::new("unshare");
    command.arg(if geteuid().is_root() { "-m" } else { "-Urm" }).args(["sh", "-c", WITH_HOSTS]).arg(names);
    command.arg(setup.program()).args(["sandbox", "--tier", "full", "--reach", "host", "--net", &entry]);
    command.arg("-C").arg(project).arg("--").arg(std::env::current_exe()?);
    command.args(["hosts", "--inside", "--to", &entry]).current_dir(project);
    Ok(command)
}

fn measured(command: &mut Command) -> Result<Samples, BenchError> {
    let output = command.stdin(Stdio::null()).output()?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        format!("the measurement inside failed: {}", String::from_utf8_lossy(&output.stderr)).into()
    })
}

/// Serves one connection. The client's first byte chooses an answer of one byte, or a stream and its direction.
fn serve(mut connection: TcpStream) -> std::io::Result<()> {
    let mut wanted = [0];
    connection.read_exact(&mut wanted)?;
    match wanted {
        [DOWN] => send(&mut connection),
        [UP] => {
            receive(&mut connection)?;
            connection.write_all(b"x")
        }
        _ => connection.write_all(b"x"),
    }
}

fn send(to: &mut TcpStream) -> std::io::Result<()> {
    let piece = vec![0; PIECE];
    (0..STREAM / PIECE).try_for_each(|_| to.write_all(&piece))
}

fn receive(from: &mut TcpStream) -> std::io::Result<()> {
    let mut piece = vec![0; PIECE];
    let mut left = STREAM;
    while left > 0 {
        match from.read(&mut piece)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}

/// Measures this process as a client of the host `to`, and prints [`Samples`].
pub(crate) fn inside(to: &str) -> Result<(), BenchError> {
    if to.starts_with(NAME) && TcpStream::connect(to.replace(NAME, OTHER)).is_ok() {
        return Err("a host that is not on the list was reached".into());
    }
    let ask = |wanted: u8| -> Result<TcpStream, BenchError> {
        let mut connection = TcpStream::connect(to)?;
        connection.set_nodelay(true)?;
        connection.write_all(&[wanted])?;
        Ok(connection)
    };
    let answered = |mut connection: TcpStream| Ok(connection.read_exact(&mut [0])?);
    let answers = (0..ROUNDS).map(|_| timed(|| answered(ask(ANSWER)?)));
    let down = (0..STREAMS).map(|_| timed(|| Ok(receive(&mut ask(DOWN)?)?)));
    let up = (0..STREAMS).map(|_| {
        timed(|| {
            let mut connection = ask(UP)?;
            send(&mut connection)?;
            answered(connection)
        })
    });
    let microseconds = |took: Vec<Duration>| took.iter().map(|took| took.as_secs_f64() * 1e6).collect();
    let samples: Samples = [
        answers.collect::<Result<Vec<_>, _>>()?,
        down.collect::<Result<Vec<_>, _>>()?,
        up.collect::<Result<Vec<_>, _>>()?,
    ]
    .map(microseconds);
    Ok(serde_json::to_writer(std::io::stdout(), &samples)?)
}
