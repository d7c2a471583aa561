//! Binding unix sockets to paths, which makes files: on a thread of its own, inside a Landlock domain in which sockets can be
//! made in the write roots only.
//!
//! The path has to be the very one that the caller gave, since `getsockname` shows it to the caller and its peers; so it cannot
//! be resolved beforehand, and whatever it leads to when it is bound, the domain judges.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::{io, thread};

use landlock::{
    AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError,
};
use nix::errno::Errno;
use nix::libc::mode_t;
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, umask};
use nix::unistd::fchdir;

use super::address::Address;
use super::socket;
use crate::system;

/// A socket to bind.
#[derive(Debug)]
pub(super) struct Binding {
    /// The socket.
    pub(super) socket: OwnedFd,
    /// Where it is bound.
    pub(super) address: Address,
    /// What the path begins at.
    pub(super) directory: OwnedFd,
    /// The caller's mask of new files.
    pub(super) mask: mode_t,
}

type Request = (Binding, SyncSender<Result<(), Errno>>);

/// The thread that binds.
#[derive(Debug)]
pub(super) struct Binder(Mutex<mpsc::Sender<Request>>);

impl Binder {
    /// Starts it; where there is no Landlock, nothing may be bound.
    pub(super) fn start(roots: &[PathBuf]) -> io::Result<Option<Self>> {
        if system::landlock_abi() == 0 {
            return Ok(None);
        }
        let ruleset = ruleset(roots).map_err(io::Error::other)?;
        let (sender, receiver) = mpsc::channel();
        thread::Builder::new().name("binder".into()).spawn(move || work(ruleset, &receiver))?;
        Ok(Some(Self(Mutex::new(sender))))
    }

    /// Binds a socket. Making a file takes no longer than for the caller itself.
    pub(super) fn bind(&self, binding: Binding) -> Result<(), Errno> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let sent = self.0.lock().unwrap_or_else(PoisonError::into_inner).send((binding, sender));
        sent.map_err(|_| Errno::EACCES)?;
        receiver.recv().unwrap_or(Err(Errno::EACCES))
    }
}

fn ruleset(roots: &[PathBuf]) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::MakeSock)?
        .create()?;
    for root in roots.iter().filter(|root| root.is_dir()) {
        // A root that cannot be opened is one in which nothing is bound.
        if let Ok(root) = PathFd::new(root) {
            ruleset = ruleset.add_rule(PathBeneath::new(root, AccessFs::MakeSock))?;
        }
    }
    Ok(ruleset)
}

fn work(ruleset: RulesetCreated, requests: &Receiver<Request>) {
    let confined = super::waiting::allow_interruption().is_ok()
        // The working directory and the mask are this thread's alone from here on.
        && unshare(CloneFlags::CLONE_FS).is_ok()
        && system::set_no_new_privs().is_ok()
        && ruleset.restrict_self().is_ok_and(|status| status.ruleset == landlock::RulesetStatus::FullyEnforced);
    if confined {
        for (binding, answer) in requests {
            // Nobody waits for the answer of a call whose mediation failed.
            let _answered = answer.send(bind(&binding));
        }
    }
}

fn bind(binding: &Binding) -> Result<(), Errno> {
    fchdir(&binding.directory)?;
    umask(Mode::from_bits_truncate(binding.mask));
    socket::bind(&binding.socket, &binding.address)
}
