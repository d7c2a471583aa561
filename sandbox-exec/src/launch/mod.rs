//! Start of a confined program: all steps up to `exec`, in the order of [`crate::stage`].
//!
//! * `ruleset`: the preparations before the fork: everything that the child needs except the Landlock rules.
//! * `rules`: Landlock rules, made by the parent while the child prepares itself.
//! * `program`: steps of the child up to `exec`.
//! * `floor`: this process becomes the broker, its child the program.
//! * `full`: this process becomes the stub, which waits in the host's namespaces. Its child becomes the broker and the
//!   init of new ones, and init's child the program.

mod execute;
mod floor;
mod full;
mod program;
mod rules;
mod ruleset;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use ipc::confinement::{Confinement, NoFullTier, TierChoice};
use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{SockType, UnixAddr, getsockname, getsockopt, sockopt};
use nix::unistd::{Pid, getppid};

pub(crate) use self::program::{LaunchedProgram, default_signals, enter, give_up};
pub(crate) use self::rules::Awaited;
pub(crate) use self::ruleset::Ruleset;
pub use crate::broker::Reports;
use crate::broker::SIGNALS;
use crate::domain::Domain;
use crate::mediate::{self, Stranger};
use crate::platform::Platform;
use crate::privilege;
use crate::stage::{Failure, Stage};
use crate::system;

#[derive(Debug)]
pub struct Launch {
    pub confinement: Confinement,
    /// True if the program has to end when the parent of this process ends.
    pub die_with_parent: bool,
    pub command: Vec<OsString>,
    pub gateway: Option<OwnedFd>,
}

impl Launch {
    pub fn new(confinement: Confinement, command: Vec<OsString>) -> Self {
        Self { confinement, die_with_parent: false, command, gateway: None }
    }

    /// Runs the program. Returns its exit status after the end of all descendants.
    ///
    /// If the best tier is wanted and namespaces cannot be created, uses the floor tier. Any other failure is returned.
    pub fn run(mut self, reports: &mut Reports) -> Result<u8, Failure> {
        let parent = getppid();
        let mut gateway = self.gateway()?;
        if let Some(identity) = self.confinement.identity {
            privilege::become_user(identity).map_err(at(Stage::Identity))?;
        }
        // Exactly these signals: the parent may have blocked those that stop this process until it is
        // executed. A hang-up that is ignored stays so, as under nohup(1): blocked, it would be kept for a
        // process that waits for it.
        let heeded = |signal: &Signal| *signal != Signal::SIGHUP || !system::is_ignored(*signal);
        let heeded: SigSet = SIGNALS.into_iter().filter(heeded).collect();
        heeded.thread_set_mask().map_err(at(Stage::Start))?;
        self.arrange_death(parent)?;
        let platform = Platform { listener: mediate::has_listener(), ..Platform::probe() };
        if self.confinement.tier == TierChoice::Floor {
            return floor::run(&self, platform, None, gateway, reports);
        }
        match full::run(&self, platform, &mut gateway, reports) {
            Err(Failure { stage: Stage::Namespaces, detail, refusal })
                if self.confinement.tier == TierChoice::Best =>
            {
                floor::run(&self, platform, Some(NoFullTier { refusal, detail }), gateway, reports)
            }
            outcome => outcome,
        }
    }

    /// Returns the socket to the gateway; `None` if the rights have no hosts. Fails if hosts could not be reached.
    fn gateway(&mut self) -> Result<Option<OwnedFd>, Failure> {
        let socket = self.gateway.take();
        if self.confinement.rights.net.hosts().is_none() {
            return Ok(None);
        }
        let socket = socket.filter(is_for_messages).ok_or_else(|| {
            Stage::Rights
                .failed("a network of some hosts needs a gateway: --gateway-fd, a socket for messages")
        })?;
        Ok(Some(socket))
    }

    fn arrange_death(&self, parent: Pid) -> Result<(), Failure> {
        if !self.die_with_parent {
            return Ok(());
        }
        system::set_parent_death_signal(libc::SIGTERM).map_err(at(Stage::Parent))?;
        if getppid() == parent {
            return Ok(());
        }
        Err(Stage::Parent.failed("the process that started this one is gone"))
    }
}

/// Calls `enter` to put the broker into a domain that only bounds signals and abstract unix sockets. Later processes
/// and threads inherit it. Fails if the domain should deny the host's abstract unix sockets and does not.
pub(crate) fn enter_scopes<T>(
    ruleset: &Ruleset,
    enter: impl FnOnce(Option<&Domain>) -> io::Result<T>,
) -> Result<T, Failure> {
    let scopes = Domain::of_scopes(ruleset.platform).map_err(at(Stage::Landlock))?;
    let stranger = ruleset.is_scoped().then(Stranger::new).transpose().map_err(at(Stage::Landlock))?;
    let entered = enter(scopes.as_ref()).map_err(at(Stage::Landlock))?;
    if stranger.is_some_and(|stranger| !stranger.is_denied()) {
        return Err(Stage::Attempt
            .failed("\"reach an abstract unix socket of the host\" was not denied to the broker"));
    }
    Ok(entered)
}

/// True for a unix socket that keeps message boundaries (`SOCK_SEQPACKET`, unix(7)).
fn is_for_messages(socket: &OwnedFd) -> bool {
    let is_unix = getsockname::<UnixAddr>(socket.as_raw_fd()).is_ok();
    is_unix && getsockopt(socket, sockopt::SockType) == Ok(SockType::SeqPacket)
}

fn at<E: std::fmt::Display>(stage: Stage) -> impl Fn(E) -> Failure {
    move |error| stage.failed(error)
}
