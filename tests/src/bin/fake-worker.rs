//! A compromised worker. Tests start it instead of `bailiwick-worker`, confined in the same way. The variable `FAKE`
//! chooses its misbehaviour: at its start, after the model's first call (`call-`), or after an approved change
//! (`commit-`).

use std::io::{self, Write};
use std::process::ExitCode;

use ipc::frame;
use ipc::id::{CallId, Generation};
use ipc::image::{Image, MediaType};
use ipc::message::{
    CallOutcome, Chunk, MOST_ENTRIES, Ready, SnapshotEntry, SnapshotKind, Stamp, ToSupervisor, ToWorker,
};
use ipc::pipe::{FrameReader, Outgoing};
use ipc::tool::{CommandExit, CommandResult, SnapshotSummary, ToolError, ToolErrorKind, ToolOutput};

type Said<T> = Result<T, Box<dyn std::error::Error>>;

/// Bit in the ids of the supervisor's own calls. Calls of the model do not have it.
const OWN: u64 = 1 << 63;

/// A valid picture of 48 by 32 pixels.
const PNG: &[u8] = include_bytes!("../../../fixtures/images/shapes.png");

fn main() -> ExitCode {
    // The supervisor has closed the pipe.
    match live() {
        Ok(()) | Err(_) => ExitCode::SUCCESS,
    }
}

fn live() -> Said<()> {
    let generation: u32 = std::env::args().nth(2).unwrap_or_default().parse()?;
    let mut fake = Fake { generation: Generation(generation), call: CallId(0) };
    let behaviour = std::env::var("FAKE")?;
    let mut incoming = FrameReader::<_, ToWorker>::new(io::stdin(), fake.generation);
    if !behaviour.starts_with("call-") && !behaviour.starts_with("commit-") {
        fake.misbehave(&behaviour)?;
        return wait();
    }
    while let Some(message) = incoming.receive()? {
        match message {
            ToWorker::Hello(_) => fake.say(&ready())?,
            ToWorker::Call { call, .. } if call.0 & OWN != 0 && behaviour != "call-silence-at-once" => {
                let kind = ToolErrorKind::NotFound;
                let error = ToolError { kind, message: "you have none".to_owned(), access: None };
                fake.say(&ToSupervisor::Outcome { call, outcome: CallOutcome::Failed(error) })?;
            }
            ToWorker::Call { call, .. } => {
                fake.call = call;
                fake.misbehave(behaviour.trim_start_matches("call-"))?;
            }
            ToWorker::Commit { call, part } if part.last && behaviour.starts_with("commit-") => {
                fake.call = call;
                fake.misbehave(behaviour.trim_start_matches("commit-"))?;
            }
            ToWorker::Commit { .. } | ToWorker::Cancel { .. } | ToWorker::Drain => {}
        }
    }
    Ok(())
}

struct Fake {
    generation: Generation,
    call: CallId,
}

impl Fake {
    fn misbehave(&self, how: &str) -> Said<()> {
        let call = self.call;
        let unopened = CallId(self.call.0 + 77);
        match how {
            "silence" | "silence-at-once" => Ok(()),
            "end" => std::process::exit(7),
            "kill" => Ok(nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL)?),
            "ready" => self.say(&ready()),
            "bye" => self.say(&ToSupervisor::Bye),
            "output" => self.say(&output(call, Chunk::Text(b"x".to_vec()))),
            "output-unopened" => self.say(&output(unopened, Chunk::Text(b"x".to_vec()))),
            "entry" => self.say(&output(call, entries(1))),
            "no-entries" => self.say(&output(call, entries(0))),
            "crowd" => self.say(&output(call, entries(MOST_ENTRIES + 1))),
            "outcome" | "outcome-unopened" => self.say(&done(unopened)),
            "outcome-twice" => self.say(&done(call)).and_then(|()| self.say(&done(call))),
            "prepared" => self.say(&ToSupervisor::Outcome { call, outcome: CallOutcome::Prepared }),
            "other-output" => self.say(&snapshot(call)),
            "cut-picture" => self.say(&picture(call, MediaType::Png, (48, 32), &PNG[..PNG.len() - 1])?),
            "other-picture" => self.say(&picture(call, MediaType::Gif, (48, 32), PNG)?),
            "stretched-picture" => self.say(&picture(call, MediaType::Png, (48, 33), PNG)?),
            "no-picture" => self.say(&picture(call, MediaType::Png, (48, 32), b"<svg/>")?),
            "huge-outcome" => self.say(&huge(call)),
            "endless-output" => self.endless(),
            "garbage" => raw(&[0xa5; 64]),
            "oversized" => raw(&u32::MAX.to_le_bytes()),
            "just-oversized" => raw(&u32::try_from(frame::MAX_FRAME + 1)?.to_le_bytes()),
            "empty-frame" => raw(&0u32.to_le_bytes()),
            "short-frame" => raw(&[3, 0, 0, 0, 1, 1, 0]),
            "version" => self.frame(|body| body[0] = 9),
            "generation" => self.frame(|body| body[1] = body[1].wrapping_add(1)),
            "variant" => self.frame(|body| body[frame::HEADER] = 99),
            "trailing" => self.frame(|body| body.push(0)),
            "cut-payload" => self.frame(|body| body.truncate(body.len() - 1)),
            "long-string" => self.frame(|body| {
                // The length in the version says that more bytes follow than a frame may have.
                let length = frame::HEADER + 8;
                body[length..length + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            }),
            "truncated" => {
                raw(&[200, 0, 0, 0, 1, 1, 0, 0, 0, 9])?;
                std::process::exit(0)
            }
            other => Err(format!("no such misbehaviour: {other}").into()),
        }
    }

    fn say(&self, message: &ToSupervisor) -> Said<()> {
        Ok(Outgoing::new(io::stdout(), self.generation).send(message)?)
    }

    /// Sends a `Ready` frame whose bytes `spoil` has changed.
    fn frame(&self, spoil: impl FnOnce(&mut Vec<u8>)) -> Said<()> {
        let mut body = frame::seal(self.generation, &ready())?;
        spoil(&mut body);
        let length = u32::try_from(body.len())?.to_le_bytes();
        raw(&[length.as_slice(), &body].concat())
    }

    fn endless(&self) -> Said<()> {
        loop {
            self.say(&output(self.call, Chunk::Text(vec![b'x'; 1 << 20])))?;
        }
    }
}

/// Keeps the pipes open until the supervisor closes the connection.
fn wait() -> Said<()> {
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

fn raw(bytes: &[u8]) -> Said<()> {
    io::stdout().write_all(bytes)?;
    Ok(io::stdout().flush()?)
}

fn ready() -> ToSupervisor {
    ToSupervisor::Ready(Ready { pid: std::process::id(), version: "0".to_owned() })
}

fn output(call: CallId, chunk: Chunk) -> ToSupervisor {
    ToSupervisor::Output { call, chunk }
}

fn command(head: String) -> ToolOutput {
    let exit = CommandExit::Code(0);
    let tail = head.clone();
    ToolOutput::Command(CommandResult {
        exit,
        head,
        omitted_bytes: 0,
        tail,
        saved: None,
        named: Vec::new(),
        process: 0,
        refused: Vec::new(),
        duration_ms: 1,
    })
}

fn done(call: CallId) -> ToSupervisor {
    ToSupervisor::Outcome { call, outcome: CallOutcome::Done(command(String::new())) }
}

/// Returns a snapshot as the result of a call, whose result must have another type.
fn snapshot(call: CallId) -> ToSupervisor {
    let summary = SnapshotSummary::default();
    ToSupervisor::Outcome { call, outcome: CallOutcome::Done(ToolOutput::Snapshot(summary)) }
}

/// Returns a picture that claims this media type and size.
fn picture(call: CallId, kind: MediaType, size: (u32, u32), bytes: &[u8]) -> Said<ToSupervisor> {
    let output = ToolOutput::Image(Image::new(kind, size, bytes)?);
    Ok(ToSupervisor::Outcome { call, outcome: CallOutcome::Done(output) })
}

/// Returns a result of a call that fills a whole frame.
fn huge(call: CallId) -> ToSupervisor {
    let output = command("\u{1b}[31m\u{7}".repeat(frame::MAX_FRAME / 13));
    ToSupervisor::Outcome { call, outcome: CallOutcome::Done(output) }
}

fn entries(count: usize) -> Chunk {
    let entry = SnapshotEntry {
        path: "x".into(),
        born_ns: None,
        kind: SnapshotKind::File { mode: 0o644, size: 0, omitted: false },
        stamp: Stamp { inode: 1, modified_ns: 0, changed_ns: 0 },
    };
    Chunk::Entries(vec![entry; count])
}
