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

/// connect(2) to a unix socket and to loopback, unconfined and in the full tier.
pub(super) fn connect(setup: &Setup) -> Result<Report, BenchError> {
    let me = std::env::current_exe()?;
    let project = setup.policy.project.as_path();
    let mut bare = Command::new(&me);
    bare.current_dir(project).args(INSIDE);
    let mut ours = Command::new(&me);
    ours.args(["sandbox", "--tier", "full", "-C"]).arg(project).arg("--").arg(&me).args(INSIDE);
    let [mut unix, mut tcp] = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
    for _ in 0..TURNS {
        for (place, command) in [&mut bare, &mut ours].into_iter().enumerate() {
            let [took_unix, took_tcp] = measured(command)?;
            unix[place].push(took_unix);
            tcp[place].push(took_tcp);
        }
    }
    let names = [
        ["connect to a unix socket, unconfined", "connect to a unix socket, full"],
        ["connect to loopback, unconfined", "connect to loopback, full"],
    ];
    let mut report = Report::default();
    for (names, samples) in names.into_iter().zip([unix, tcp]) {
        let [bare, ours] = [0, 1].map(|place: usize| Row::of(names[place], "µs", &samples[place]));
        report.absolute(&format!("{} beyond unconfined, µs", ours.subject), ours.p10 - bare.p10, 40.0);
        report.rows.extend([bare, ours]);
    }
    Ok(report)
}

const INSIDE: [&str; 3] = ["bench", "connect", "--inside"];

/// The tenth percentiles that a measuring process prints, in microseconds: unix, TCP.
fn measured(command: &mut Command) -> Result<[f64; 2], BenchError> {
    let output = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    numbers.try_into().map_err(|_| {
        format!("the measurement inside failed: {}", String::from_utf8_lossy(&output.stderr)).into()
    })
}

/// Measures connections in this very process and prints the tenth percentiles, in microseconds: unix, then loopback.
pub(crate) fn inside() -> Result<(), BenchError> {
    // This program hides itself from others, and the broker connects nobody whose memory it cannot read.
    nix::sys::prctl::set_dumpable(true)?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("s");
    let unix = UnixListener::bind(&path)?;
    let tcp = TcpListener::bind("127.0.0.1:0")?;
    let address = tcp.local_addr()?;
    let unix = times(|| UnixStream::connect(&path), || Ok(unix.accept()?.0))?;
    let tcp = times(|| TcpStream::connect(address), || Ok(tcp.accept()?.0))?;
    let p10 = |samples: &[Duration]| Row::of_times("", samples).p10;
    Ok(writeln!(std::io::stdout(), "{} {}", p10(&unix), p10(&tcp))?)
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
