//! Forbidden acts, tried inside the finished confinement before anything is executed there.
//!
//! A layer that says it is in force and is not has happened: "best effort" once applied nothing and reported success. So
//! each layer has to refuse something. What is tried was possible before (the control), so that a refusal is the layer's own.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ipc::confinement::Attempt;
use ipc::rights::Network;
use nix::libc::{self, c_int, pid_t};

use crate::compile::Plan;
use crate::descendants;
use crate::platform::{Platform, SCOPES};
use crate::system::check;

/// A file that its owner may write, that no rule makes writable (`/proc` never is), and that makes no litter.
const WITNESS: &str = "/proc/self/comm";

/// The acts that will be tried; made before the confinement.
#[derive(Debug)]
pub struct Attempts<'a> {
    acts: Vec<(&'static str, Act<'a>)>,
    /// What could not be tried, one sentence each.
    pub untried: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Act<'a> {
    Write,
    Read(&'a Path),
    Signal(pid_t),
    Socket(c_int, c_int),
    Namespace,
}

impl<'a> Attempts<'a> {
    /// Chooses what to try; each act of Landlock is carried out once as the control.
    pub fn choose(plan: &'a Plan, platform: Platform, broker: pid_t) -> Self {
        let mut attempts = Self { acts: vec![], untried: vec![] };
        if platform.abi > 0 {
            attempts.controlled("write outside the write roots", Act::Write);
            if let Some(hidden) = plan.hidden_witness.as_deref().filter(|hidden| open_file(hidden).is_ok()) {
                attempts.acts.push(("read a hidden file", Act::Read(hidden)));
            }
        }
        if platform.abi >= SCOPES {
            attempts.controlled("signal the broker", Act::Signal(broker));
        }
        if platform.seccomp {
            attempts.acts.push(("open a unix socket", Act::Socket(libc::AF_UNIX, libc::SOCK_STREAM)));
            attempts.acts.push(("make a user namespace", Act::Namespace));
            if plan.net == Network::Off {
                attempts.acts.push(("open a network socket", Act::Socket(libc::AF_INET, libc::SOCK_DGRAM)));
            }
        }
        attempts
    }

    fn controlled(&mut self, name: &'static str, act: Act<'a>) {
        match act.run() {
            Ok(()) => self.acts.push((name, act)),
            Err(error) => {
                self.untried.push(format!("\"{name}\" could not be tried: it failed without us ({error})"));
            }
        }
    }

    /// Tries them.
    pub fn run(&self) -> Vec<Attempt> {
        let attempt = |(name, act): &(&str, Act<'_>)| {
            let errno = act.run().err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
            Attempt { act: (*name).to_owned(), denied: errno == libc::EPERM || errno == libc::EACCES, errno }
        };
        self.acts.iter().map(attempt).collect()
    }
}

impl Act<'_> {
    fn run(self) -> io::Result<()> {
        match self {
            Self::Write => File::options().write(true).open(WITNESS).map(drop),
            Self::Read(path) => open_file(path),
            Self::Signal(pid) => descendants::send(pid, 0),
            Self::Socket(family, kind) => socket(family, kind),
            // SAFETY: takes flags. Where it is not refused, the caller executes nothing and exits.
            Self::Namespace => check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into()),
        }
    }
}

/// Opens a regular file and nothing else: an agent may have put a fifo or a device where a secret was.
fn open_file(path: &Path) -> io::Result<()> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn socket(family: c_int, kind: c_int) -> io::Result<()> {
    // SAFETY: integers; where it is not refused, the descriptor closes on exec, which does not come.
    check(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, 0) }.into())
}
