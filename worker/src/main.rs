//! NAME
//!     bailiwick-worker — serves the tool calls of one agent
//!
//! SYNOPSIS
//!     bailiwick-worker --generation N
//!     bailiwick-worker --gateway
//!     bailiwick-worker --mcp
//!     bailiwick-worker --fetch
//!     bailiwick-worker --reap
//!
//! DESCRIPTION
//!     Reads frames from standard input and answers on standard output (any pipe or socket), until it is told to drain.
//!     It is started by sandbox-exec, which has confined it; it asks for nothing, and can do nothing beyond its ruleset.
//!     With --gateway it is the gateway of one agent instead, and connects to the hosts that the agent may reach by name: standard
//!     input is a `SOCK_SEQPACKET` socket of arrivals, each with the accepted connection; standard output is a stream socket to the
//!     supervisor, which sends one order and reads reports. It opens no file and starts no program.
//!     With --mcp it is the guest around one MCP server: standard output is a stream socket to the supervisor, whose first order names
//!     the server's program. It starts that as its child, speaks MCP with it, and tells the supervisor the results.
//!     With --fetch it gets one page: standard output is a stream socket to the supervisor, which sends one order and reads reports. It
//!     reads the certificate authorities, and starts no program.
//!     With --reap it is what a worker executes for one command of its own: it starts the command, and ends when nothing of that lives.
//!     Diagnostics go to standard error, at the level that `BAILIWICK_LOG` names (error, warn, info, debug, trace; default
//!     warn).
//!
//! EXIT STATUS
//!     0   it was told to drain, and said goodbye; as a gateway or around an MCP server: the supervisor closed its end; as a
//!         fetch: it reported the end
//!     1   the pipe ended, or something came that is no message; one line on standard error says what
//!     2   the command line is wrong
//!
//! SECURITY
//!     Its first instruction makes it non-dumpable, so that nothing of the same user reads its memory or takes its pipe;
//!     execve(2) had reset that. It holds no secret. Its messages are claims; the kernel holds it to its access.
//!     A gateway and a fetch become dumpable again, so that the broker can judge the addresses that they connect to; other sandboxes are
//!     kept from their memory by a Landlock domain. The names of hosts are held by this program alone.

#![forbid(unsafe_code)]

use std::io::{self, Write, stderr};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};
use ipc::id::Generation;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::prctl::set_dumpable;
use sandbox_exec::command::{REAP, reap};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::runtime::{Builder, Runtime};
use tracing::Level;
use worker::serve::serve;
use worker::{fetch, gateway, mcp};

/// Allocator of the musl build. The C library's own requests and returns memory page by page, which is slow.
#[cfg(target_env = "musl")]
#[global_allocator]
static HEAP: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

// Maximum number of threads for disk access; idle ones end after `KEEP_ALIVE`.
const THREADS: usize = 8;
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// Maximum number of names that a gateway looks up at a time; each lookup needs a thread.
const LOOKUPS: usize = 16;

const USAGE: &str = "usage: bailiwick-worker --generation N | --gateway | --mcp | --fetch";

enum Role {
    Worker(Generation),
    Gateway,
    Mcp,
    Fetch,
}

fn main() -> ExitCode {
    let hidden = set_dumpable(false);
    if std::env::args_os().nth(1).is_some_and(|word| word == REAP) {
        return reap();
    }
    let role = match role(std::env::args().skip(1)) {
        Ok(role) => role,
        Err(error) => return say(&error, 2),
    };
    match hidden.context("cannot become non-dumpable").and_then(|()| run(role)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => say(&error, 1),
    }
}

fn say(error: &anyhow::Error, code: u8) -> ExitCode {
    // Standard error may have no reader.
    let _ = writeln!(stderr(), "bailiwick-worker: {error:#}");
    ExitCode::from(code)
}

fn role(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Role> {
    match (arguments.next().as_deref(), arguments.next(), arguments.next()) {
        (Some("--generation"), Some(number), None) => {
            let number = number.parse().with_context(|| format!("`{number}` is not a generation"))?;
            Ok(Role::Worker(Generation(number)))
        }
        (Some("--gateway"), None, None) => Ok(Role::Gateway),
        (Some("--mcp"), None, None) => Ok(Role::Mcp),
        (Some("--fetch"), None, None) => Ok(Role::Fetch),
        _ => bail!(USAGE),
    }
}

fn run(role: Role) -> anyhow::Result<()> {
    trace();
    let threads = match role {
        Role::Worker(_) => THREADS,
        Role::Gateway | Role::Fetch => LOOKUPS,
        Role::Mcp => 1,
    };
    let runtime = runtime(threads).context("cannot start the runtime")?;
    let served = runtime.block_on(async {
        match role {
            Role::Worker(generation) => {
                let reader = Receiver::from_owned_fd_unchecked(stream(io::stdin())?);
                let writer = Sender::from_owned_fd_unchecked(stream(io::stdout())?);
                let reader = reader.context("standard input is not a pipe")?;
                let writer = writer.context("standard output is not a pipe")?;
                anyhow::Ok(serve(reader, writer, generation).await?)
            }
            Role::Gateway => {
                let (reader, writer) = dialling()?;
                anyhow::Ok(gateway::serve(stream(io::stdin())?, reader, writer).await?)
            }
            Role::Mcp => {
                let (reader, writer) = channel()?;
                anyhow::Ok(mcp::serve(reader, writer, mcp::Patience::default()).await?)
            }
            Role::Fetch => {
                fetch::limit_memory();
                let (reader, writer) = dialling()?;
                anyhow::Ok(fetch::serve(reader, writer).await?)
            }
        }
    });
    // A thread that blocks on a disk or a resolver must not keep a process alive whose supervisor is gone.
    runtime.shutdown_background();
    served
}

/// Returns the receiving and the sending end of the guest's socket to the supervisor.
fn channel() -> anyhow::Result<(Receiver, Sender)> {
    let reader = Receiver::from_owned_fd_unchecked(stream(io::stdout())?);
    let writer = Sender::from_owned_fd_unchecked(stream(io::stdout())?);
    Ok((
        reader.context("standard output is not a socket")?,
        writer.context("standard output is not a socket")?,
    ))
}

/// Makes this process dumpable, as a guest that connects to hosts itself must be. Returns the same as [`channel`].
fn dialling() -> anyhow::Result<(Receiver, Sender)> {
    // Its broker reads the address of each connect(2) from its memory, and answers EPERM if it cannot.
    set_dumpable(true).context("cannot become dumpable")?;
    channel()
}

fn runtime(threads: usize) -> io::Result<Runtime> {
    // One thread: commands are started on it, and their parent-death signal follows the thread (prctl(2)).
    Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(threads)
        .thread_keep_alive(KEEP_ALIVE)
        .build()
}

/// Duplicates a standard stream for tokio and makes it non-blocking.
fn stream(standard: impl AsFd) -> anyhow::Result<OwnedFd> {
    let owned = standard.as_fd().try_clone_to_owned().context("cannot duplicate a standard stream")?;
    let flags = OFlag::from_bits_retain(fcntl(&owned, FcntlArg::F_GETFL)?);
    fcntl(&owned, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(owned)
}

/// Logs to standard error if `BAILIWICK_LOG` names a level. Otherwise does nothing, which saves memory.
fn trace() {
    let level = std::env::var("BAILIWICK_LOG").ok().and_then(|level| Level::from_str(&level).ok());
    if let Some(level) = level {
        tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(stderr)
            .with_ansi(false)
            .without_time()
            .init();
    }
}
