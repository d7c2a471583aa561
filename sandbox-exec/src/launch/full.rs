//! Full tier: this process, called the stub, stays in the host's namespaces. Its child is the init of new ones.

#![expect(unsafe_code, reason = "init is a clone of the stub")]

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use ipc::confinement::Confinement;
use ipc::id::Generation;
use ipc::pipe::FrameReader;
use nix::fcntl::OFlag;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};
use nix::unistd::{Pid, getpid, pipe2};

use super::rules::{self, Making, Seen};
use super::ruleset::Ruleset;
use super::{Launch, at};
use crate::broker::{Progress, Reports};
use crate::cgroup::Cgroup;
use crate::init::Init;
use crate::namespace;
use crate::namespace::layout::Layout;
use crate::namespace::machine::Refusal;
use crate::platform::Platform;
use crate::stage::{Failure, Stage};
use crate::stub::Stub;
use crate::system::process;

/// Flags for the new namespaces of init. Init creates the network namespace itself, since that takes longest.
///
/// A cloned init stays dumpable, so the stub can write its id maps; `unshare(2)` would make it non-dumpable.
const SEPARATE: libc::c_int =
    libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// Runs the program in the full tier; returns its exit status. Fails at stage `Namespaces` if they are denied.
pub(super) fn run(
    launch: &Launch,
    platform: Platform,
    gateway: &mut Option<OwnedFd>,
    reports: &mut Reports,
) -> Result<u8, Failure> {
    let layout = layout(&launch.confinement, &launch.command);
    let seen = Seen::full(&launch.confinement, platform, &layout);
    let ruleset = Ruleset::new(&seen)?;
    let (child, awaited) = rules::begin(&ruleset)?;
    let mut making = Making::new(&seen, child);
    let stub = getpid().as_raw();
    let (progress, told) = pipe2(OFlag::O_CLOEXEC).map_err(at(Stage::Start))?;
    let (mapped, map) = pipe2(OFlag::O_CLOEXEC).map_err(at(Stage::Start))?;
    let (met, introduced) = introduction().map_err(at(Stage::Start))?;
    let group = Cgroup::for_program(ruleset.tier, launch.confinement.bounds);
    // SAFETY: this process has one thread, and these flags share nothing.
    match unsafe { process::clone(SEPARATE) } {
        Err(error) => Err(Refusal::new("make namespaces", error).failure()),
        Ok(None) => {
            drop((progress, map, met, making));
            let Launch { confinement, command, .. } = launch;
            let (group, gateway) = (group.as_ref(), gateway.take());
            let (ruleset, layout, status) = (&ruleset, &layout, reports);
            Init { confinement, command, ruleset, layout, stub, group, status, gateway }
                .run(mapped, told, introduced, awaited)
        }
        Ok(Some(init)) => {
            drop((mapped, told, introduced, awaited));
            let progress = Progress::new(FrameReader::new(File::from(progress), Generation(0)));
            let stub = Stub::new(init, progress, met, group);
            release(init, map)?;
            let plan = making.plan()?;
            let opened = making.add(plan)?;
            making.tell()?;
            drop(opened);
            stub.watch(gateway, reports)
        }
    }
}

fn release(init: Pid, map: OwnedFd) -> Result<(), Failure> {
    namespace::map(init).map_err(|error| Refusal::new("map the ids of a user namespace", error).failure())?;
    File::from(map).write_all(&[1]).map_err(at(Stage::Start))
}

/// Returns a pair of sockets. A message to the first one carries the pid of the process that sent it.
fn introduction() -> nix::Result<(OwnedFd, OwnedFd)> {
    let (met, introduced) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
    setsockopt(&met, sockopt::PassCred, &true)?;
    Ok((met, introduced))
}

/// Returns the parts of the program's file tree that differ from the host's.
pub(super) fn layout(confinement: &Confinement, command: &[OsString]) -> Layout {
    Layout::new(confinement, program(confinement, command).as_deref())
}

/// Returns the program's path; `None` if the command has a name without a slash.
fn program(confinement: &Confinement, command: &[OsString]) -> Option<PathBuf> {
    let name = PathBuf::from(command.first()?);
    (name.components().count() > 1).then(|| confinement.project.as_path().join(name))
}
