//! Benchmarks of tool calls to a running worker, next to the pipes and processes that they need.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use boundary::monitor::{Worker, WorkerEvent};
use ipc::confinement::TierChoice;
use ipc::id::CallId;
use ipc::message::{CallOutcome, Work};
use ipc::tool::{Access, ReadFile, ShellExec, ToolCall};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::Receiver;

use super::processes::Site;
use super::stats::{BenchReport, BenchSubject, interleaved, timed};
use super::{BenchError, BenchSetup};

const ROUNDS: usize = 2000;
const COMMAND_ROUNDS: usize = 200;

/// Measures `read_file` of 4 KiB, next to a round trip of 200 bytes over two pipes to another process.
pub(super) fn read_file(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let file = setup.sandbox().policy.project.as_path().join("four-kib");
    std::fs::write(&file, [b'x'; 63].iter().chain(b"\n").copied().cycle().take(4096).collect::<Vec<u8>>())?;
    let call = ToolCall::ReadFile(ReadFile {
        path: file.as_os_str().into(),
        offset: None,
        limit: None,
        inside: false,
    });
    let mut warm = Warm::start(setup, TierChoice::Best)?;
    let mut echo = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (mut down, mut up) = (echo.stdin.take().ok_or("no pipe")?, echo.stdout.take().ok_or("no pipe")?);
    let mut buffer = [7; 200];
    let mut subjects: Vec<BenchSubject<'_>> = vec![
        (
            "pipe round trip, 200 B, another process, blocking",
            Box::new(|| {
                timed(|| {
                    down.write_all(&buffer)?;
                    Ok(up.read_exact(&mut buffer)?)
                })
            }),
        ),
        ("read_file of 4 KiB, warm worker", Box::new(|| warm.call(&call))),
    ];
    let rows = interleaved(ROUNDS, &mut subjects)?;
    drop(subjects);
    drop((down, up));
    echo.wait()?;
    let mut report = BenchReport { rows, ..BenchReport::default() };
    let p10 = report.rows[1].p10;
    report.absolute("read_file of 4 KiB, µs", p10, 150.0);
    Ok(report)
}

/// Measures `shell_exec true` within the standing rights, next to a plain `bash -c true`.
pub(super) fn shell_exec(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let (standing, read) = (command("true", Access::Standing), command("true", Access::Read));
    let mut warm = Warm::start(setup, TierChoice::Full)?;
    let mut warm_too = Warm::start(setup, TierChoice::Full)?;
    let mut floor = Warm::start(setup, TierChoice::Floor)?;
    let mut subjects: Vec<BenchSubject<'_>> = vec![
        ("bare bash -c true", Box::new(|| timed(|| Ok(bare()?)))),
        ("shell_exec true, full", Box::new(|| warm.call(&standing))),
        ("shell_exec true, access read, full", Box::new(|| warm_too.call(&read))),
        ("shell_exec true, floor", Box::new(|| floor.call(&standing))),
    ];
    let rows = interleaved(COMMAND_ROUNDS, &mut subjects)?;
    drop(subjects);
    let mut report = BenchReport { rows, ..BenchReport::default() };
    let [bare, full, _, floor] = [0, 1, 2, 3].map(|row: usize| report.rows[row].p10);
    report.absolute("shell_exec true − 1.15 × bare, full, µs", full - 1.15 * bare, 1000.0);
    report.absolute("shell_exec true − 1.15 × bare, floor, µs", floor - 1.15 * bare, 1000.0);
    Ok(report)
}

pub(super) fn command(command: &str, access: Access) -> ToolCall {
    let command = command.to_owned();
    ToolCall::ShellExec(ShellExec { command, access, network: None, cwd: None, timeout_ms: None })
}

fn bare() -> std::io::Result<()> {
    let status = Command::new("bash").args(["-c", "true"]).stdin(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other("bash failed")) }
}

/// Confined worker that is ready, with the runtime to call it.
pub(super) struct Warm<'a> {
    /// Session of the worker. Dropping the session would end the worker's broker.
    _site: Site<'a>,
    runtime: Runtime,
    worker: Worker,
    events: Receiver<WorkerEvent>,
    last: CallId,
}

impl<'a> Warm<'a> {
    pub(super) fn start(setup: &'a BenchSetup, tier: TierChoice) -> Result<Self, BenchError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let site = Site::new(setup, tier)?;
        let (worker, events) = runtime.block_on(site.start())?;
        Ok(Self { _site: site, runtime, worker, events, last: CallId::default() })
    }

    pub(super) fn call(&mut self, call: &ToolCall) -> Result<Duration, BenchError> {
        self.last = self.last.next();
        let work = Work::Run(call.clone());
        // The whole call runs in the runtime, as in the agent core. Outside of it, waking the runtime takes a system
        // call more.
        timed(|| {
            self.runtime.block_on(async {
                self.worker.calls().call(self.last, work);
                outcome(&mut self.events).await
            })
        })
    }
}

async fn outcome(events: &mut Receiver<WorkerEvent>) -> Result<(), BenchError> {
    loop {
        match events.recv().await.ok_or("the worker is gone")? {
            WorkerEvent::Outcome { outcome: CallOutcome::Done(_), .. } => return Ok(()),
            WorkerEvent::Outcome { outcome, .. } => {
                return Err(format!("the call failed: {outcome:?}").into());
            }
            WorkerEvent::Ended { reason, .. } => return Err(reason.to_string().into()),
            WorkerEvent::Output { .. }
            | WorkerEvent::Prepared { .. }
            | WorkerEvent::Refused(_)
            | WorkerEvent::HostsUsed(_)
            | WorkerEvent::HostAsked(_) => {}
        }
    }
}
