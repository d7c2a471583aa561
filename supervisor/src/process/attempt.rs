//! Attacks that need more than a shell (`bailiwick debug attempt`). A confined command of the demo runs them.
//!
//! An attack that succeeds does no harm, and prints [`GOT_THROUGH`]. Nobody else uses the terminal that it attacks.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;

use clap::Subcommand;
use nix::mount::MsFlags;

use boundary::system;

/// The line that a successful attack prints.
pub const GOT_THROUGH: &str = "GOT THROUGH";

#[derive(Debug, Subcommand)]
pub enum Attempt {
    /// Attaches to a process with ptrace(2)
    Trace {
        pid: i32,
    },
    /// Connects to an abstract Unix socket
    Abstract {
        name: String,
    },
    /// Connects to a Unix socket
    Unix {
        path: String,
    },
    /// Types a key into a terminal (`TIOCSTI`)
    Type {
        /// The path of the terminal.
        path: String,
    },
    Mount,
    /// Loads a kernel module that is empty
    Module,
}

impl Attempt {
    /// Makes the attempt and prints its outcome. Returns true if the attack succeeded.
    pub fn make(&self, out: &mut impl Write) -> io::Result<bool> {
        match self.outcome() {
            Ok(()) => writeln!(out, "{GOT_THROUGH}").map(|()| true),
            Err(error) => writeln!(out, "{}: {error}", self.call()).map(|()| false),
        }
    }

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
            Self::Trace { pid } => system::seize(*pid),
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

fn type_into(terminal: &Path) -> io::Result<()> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOCTTY).open(terminal)?;
    system::type_key(&opened, c"y")
}

fn mount() -> io::Result<()> {
    let none = None::<&str>;
    let mounted = nix::mount::mount(
        Some("tmpfs"),
        "/nonexistent/bailiwick-demo",
        Some("tmpfs"),
        MsFlags::empty(),
        none,
    );
    mounted.map_err(io::Error::from).or_else(|error| only_missing(error, libc::ENOENT))
}

fn module() -> io::Result<()> {
    system::load_empty_module().or_else(|error| only_missing(error, libc::ENOEXEC))
}

/// Treats the error `errno` as success, because the kernel returns it only after it has permitted the call.
fn only_missing(error: io::Error, errno: i32) -> io::Result<()> {
    if error.raw_os_error() == Some(errno) { Ok(()) } else { Err(error) }
}
