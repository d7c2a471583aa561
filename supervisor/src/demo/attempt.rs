//! Attacks that take more than a shell: `bailiwick debug attempt`, run by a confined command of the demo.
//!
//! Each is harmless where it succeeds, and says so by [`GOT_THROUGH`]. The terminal of the demo belongs to nobody.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::ptr;

use clap::Subcommand;

/// The line of an attack that succeeded.
pub const GOT_THROUGH: &str = "GOT THROUGH";

/// An attack.
#[derive(Debug, Subcommand)]
pub enum Attempt {
    /// Attaches to a process with ptrace(2)
    Trace {
        /// The process.
        pid: i32,
    },
    /// Connects to an abstract Unix socket
    Abstract {
        /// The name.
        name: String,
    },
    /// Connects to a Unix socket
    Unix {
        /// The path.
        path: String,
    },
    /// Types a key into a terminal (`TIOCSTI`)
    Type {
        /// The path of the terminal.
        path: String,
    },
    /// Mounts a file system on a directory that does not exist
    Mount,
    /// Loads a kernel module of no bytes
    Module,
}

impl Attempt {
    /// Makes the attempt and prints its outcome.
    pub fn make(&self, out: &mut impl Write) -> io::Result<bool> {
        match self.outcome() {
            Ok(()) => writeln!(out, "{GOT_THROUGH}").map(|()| true),
            Err(error) => writeln!(out, "{}: {error}", self.call()).map(|()| false),
        }
    }

    /// The system call, as its manual page is called.
    const fn call(&self) -> &'static str {
        match self {
            Self::Trace { .. } => "ptrace(2)",
            Self::Abstract { .. } | Self::Unix { .. } => "connect(2)",
            Self::Type { .. } => "ioctl(2) TIOCSTI",
            Self::Mount => "mount(2)",
            Self::Module => "init_module(2)",
        }
    }

    fn outcome(&self) -> io::Result<()> {
        match self {
            Self::Trace { pid } => trace(*pid),
            Self::Abstract { name } => {
                UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?).map(drop)
            }
            Self::Unix { path } => UnixStream::connect(path).map(drop),
            Self::Type { path } => type_into(Path::new(path)),
            Self::Mount => mount(),
            Self::Module => module(),
        }
    }
}

fn trace(pid: i32) -> io::Result<()> {
    let nothing = ptr::null_mut::<libc::c_void>();
    // SAFETY: PTRACE_SEIZE takes integers, does not stop the tracee, and ends with this process.
    done(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, nothing, nothing) })
}

fn type_into(terminal: &Path) -> io::Result<()> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOCTTY).open(terminal)?;
    // SAFETY: TIOCSTI reads one byte, which lives as long as the call.
    done(unsafe { libc::ioctl(opened.as_raw_fd(), libc::TIOCSTI, c"y".as_ptr()) }.into())
}

fn mount() -> io::Result<()> {
    let kind = c"tmpfs".as_ptr();
    let target = c"/nonexistent/bailiwick-demo".as_ptr();
    // SAFETY: C strings; no data.
    let mounted = unsafe { libc::mount(kind, target, kind, 0, ptr::null()) };
    done(mounted.into()).or_else(|error| only_missing(error, libc::ENOENT))
}

fn module() -> io::Result<()> {
    // SAFETY: an image of no bytes, which is none of a module, and an empty C string.
    let loaded = unsafe { libc::syscall(libc::SYS_init_module, ptr::null::<u8>(), 0, c"".as_ptr()) };
    done(loaded).or_else(|error| only_missing(error, libc::ENOEXEC))
}

/// An error that comes only after the kernel permitted the call counts as a success.
fn only_missing(error: io::Error, errno: i32) -> io::Result<()> {
    if error.raw_os_error() == Some(errno) { Ok(()) } else { Err(error) }
}

fn done(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
