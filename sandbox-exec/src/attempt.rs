//! Forbidden acts, which a start tries in the finished confinement before it executes the program.
//!
//! A layer (Landlock, seccomp, namespaces) may be reported as active and have no effect. So each layer has to deny an
//! act that succeeded before (the control).

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use ipc::confinement::{Attempt, Tier};
use ipc::rights::Network;
use nix::fcntl::{OFlag, openat};
use nix::libc::{self, c_int, pid_t};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};

use crate::compile::Plan;
use crate::descendants;
use crate::platform::{Platform, SCOPES};
use crate::system::forbidden;

/// File that the attempt opens for writing: the user may write it, no rule makes it writable, and nothing is written.
const WITNESS: &str = "/proc/self/comm";

const MARKED: &CStr = c"/proc/self/comm";

/// Path of a file to create in the full tier's own `/dev`. Only the read-only mount denies that, also to root.
const IN_TREE: &str = "/dev/.witness";

/// Address that no machine has (RFC 5737), so that the attempt reveals nothing to anybody.
const ELSEWHERE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);

#[derive(Debug)]
pub struct Attempts<'a> {
    acts: Vec<(&'static str, Act<'a>)>,
    pub untried: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
pub enum Surroundings<'a> {
    Floor {
        broker: pid_t,
        /// Datagram socket from before the filter, with which only the mediator creates any; `None` if none is needed.
        datagrams: Option<BorrowedFd<'a>>,
    },
    Full {
        /// Pid of the stub, the `sandbox-exec` process that stays in the host's pid namespace.
        stub: pid_t,
        /// `/dev`, opened on a mount that is still writable: until Landlock denies it, files can be created there.
        witness: BorrowedFd<'a>,
    },
}

impl Surroundings<'_> {
    /// Returns the broker's pid. In the full tier it is 1: the broker is the init of its pid namespace.
    pub fn broker(self) -> pid_t {
        match self {
            Self::Floor { broker, .. } => broker,
            Self::Full { .. } => 1,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Act<'a> {
    Write,
    CreateIn(BorrowedFd<'a>),
    CreateInTree,
    Read(&'a Path),
    Signal(pid_t),
    Find(pid_t),
    Socket(c_int, c_int),
    Meet,
    Mark,
    Connect(Option<BorrowedFd<'a>>),
    Namespace,
}

impl<'a> Attempts<'a> {
    /// Returns the acts that are denied without Landlock: by seccomp, or by the broker that mediates calls.
    pub fn of_calls(net: &Network, tier: Tier, platform: Platform, surroundings: Surroundings<'a>) -> Self {
        let mut acts = vec![];
        if let (Surroundings::Floor { datagrams, .. }, true) = (surroundings, platform.seccomp()) {
            if tier == Tier::FloorUnmediated {
                acts.push(("open a unix socket", Act::Socket(libc::AF_UNIX, libc::SOCK_STREAM)));
            } else {
                acts.push(("reach a unix socket outside", Act::Meet));
                acts.push(("change an attribute outside the writable directories", Act::Mark));
            }
            match net {
                Network::On => {}
                Network::Off | Network::Hosts(_) if tier == Tier::FloorUnmediated => {
                    acts.push(("open a network socket", Act::Socket(libc::AF_INET, libc::SOCK_DGRAM)));
                }
                Network::Off | Network::Hosts(_) => acts.push(("reach the network", Act::Connect(datagrams))),
            }
        }
        if platform.abi < SCOPES && platform.mediates(tier) {
            // The mediator, which holds this, is at work already.
            acts.push(("signal the broker", Act::Signal(surroundings.broker())));
        }
        if platform.seccomp() {
            acts.push(("make a user namespace", Act::Namespace));
        }
        Self { acts, untried: vec![] }
    }

    /// Returns the acts that Landlock's rules and the namespaces deny. Before Landlock is in force, each act that it
    /// must deny is done once, as the control; an act that fails then is left out.
    pub fn of_rules(plan: &'a Plan, platform: Platform, surroundings: Surroundings<'a>) -> Self {
        let mut attempts = Self { acts: vec![], untried: vec![] };
        match surroundings {
            Surroundings::Floor { .. } if platform.abi > 0 => attempts.floor(plan),
            Surroundings::Floor { .. } => {}
            Surroundings::Full { stub, witness } => attempts.full(plan, platform, stub, witness),
        }
        if platform.abi >= SCOPES {
            attempts.controlled("signal the broker", Act::Signal(surroundings.broker()));
        }
        attempts
    }

    fn floor(&mut self, plan: &'a Plan) {
        self.controlled("write outside the writable directories", Act::Write);
        if let Some(hidden) = plan.hidden_witness.as_deref().filter(|hidden| is_readable(hidden)) {
            self.acts.push(("read a hidden file", Act::Read(hidden)));
        }
    }

    /// Adds the acts of the full tier. As the control, a file is created before Landlock is in force. The hidden file
    /// needs no control: the stub, which is outside of the namespaces, has read it.
    fn full(&mut self, plan: &'a Plan, platform: Platform, stub: pid_t, witness: BorrowedFd<'a>) {
        let create = Act::CreateIn(witness);
        match create.run() {
            Ok(()) => {
                self.acts.push(("write to the read-only tree", Act::CreateInTree));
                if platform.abi > 0 {
                    self.acts.push(("write outside the writable directories", create));
                }
            }
            Err(error) => self.untried.push(format!("nothing could be written without us ({error})")),
        }
        if let Some(hidden) = &plan.hidden_witness {
            self.acts.push(("read a hidden file", Act::Read(hidden)));
        }
        // In a container the stub may have the number of this very namespace's init, or of this process.
        if stub > pid_t::from_ne_bytes(std::process::id().to_ne_bytes()) {
            self.acts.push(("find the process that started this one", Act::Find(stub)));
        }
        if !plan.net.is_the_machines() {
            self.acts.push(("reach the network", Act::Connect(None)));
        }
    }

    fn controlled(&mut self, name: &'static str, act: Act<'a>) {
        match act.run() {
            Ok(()) => self.acts.push((name, act)),
            Err(error) => {
                self.untried.push(format!("\"{name}\" could not be tried: it failed without us ({error})"));
            }
        }
    }

    pub fn run(&self) -> Vec<Attempt> {
        let attempt = |(name, act): &(&str, Act<'_>)| {
            let errno = act.run().err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
            Attempt { act: (*name).to_owned(), denied: act.is_denied_by(errno), errno }
        };
        self.acts.iter().map(attempt).collect()
    }
}

impl Act<'_> {
    fn run(self) -> io::Result<()> {
        match self {
            Self::Write => File::options().write(true).open(WITNESS).map(drop),
            Self::CreateIn(directory) => create_in(directory),
            Self::CreateInTree => File::create_new(IN_TREE).and_then(|_| fs::remove_file(IN_TREE)),
            Self::Read(path) => open_file(path),
            Self::Signal(pid) | Self::Find(pid) => descendants::send(pid, 0),
            Self::Socket(family, kind) => forbidden::socket(family, kind),
            // A process that may write to it gets ECONNREFUSED, since it is no socket.
            Self::Meet => UnixStream::connect("/dev/null").map(drop),
            // Undefined flags: if the call is allowed, it fails with EINVAL.
            Self::Mark => forbidden::set_attribute(MARKED, c"user.witness"),
            Self::Connect(None) => datagrams().and_then(|socket| connect_elsewhere(socket.as_fd())),
            Self::Connect(Some(socket)) => connect_elsewhere(socket),
            // If this is not denied, the caller executes nothing and exits.
            Self::Namespace => Ok(unshare(CloneFlags::CLONE_NEWUSER)?),
        }
    }

    /// True if this error number shows that the layer under test denied the act.
    fn is_denied_by(self, errno: c_int) -> bool {
        match self {
            Self::CreateInTree => errno == libc::EROFS,
            Self::Find(_) => errno == libc::ESRCH,
            // The broker's denial: the kernel itself denies no datagrams. If the loopback device never was
            // up, every address can be bound, and counts as one of this machine.
            Self::Connect(_) => {
                matches!(errno, libc::ENETUNREACH | libc::ECONNREFUSED | libc::EPERM | libc::EACCES)
            }
            _ => errno == libc::EPERM || errno == libc::EACCES,
        }
    }
}

fn create_in(directory: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    drop(openat(directory, ".witness", flags, Mode::empty())?);
    Ok(unlinkat(directory, ".witness", UnlinkatFlags::NoRemoveDir)?)
}

pub(crate) fn is_readable(path: &Path) -> bool {
    open_file(path).is_ok()
}

/// Opens a file if it is a regular one: an agent may have replaced a secret by a fifo or a device.
fn open_file(path: &Path) -> io::Result<()> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

pub(crate) fn datagrams() -> io::Result<OwnedFd> {
    Ok(socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?)
}

/// Connects a datagram socket to [`ELSEWHERE`]. Does not call `bind` before, since that call would be mediated, too.
fn connect_elsewhere(datagrams: BorrowedFd<'_>) -> io::Result<()> {
    UdpSocket::from(datagrams.try_clone_to_owned()?).connect(ELSEWHERE)
}
