//! Floor tier: the broker is the process that was started. It enters a domain of its own that only has
//! scopes, so that at the end it can kill exactly the processes beneath it, and reaches no other program's
//! abstract unix sockets. The program's domain is nested in that one, so that the mediator may still look at
//! the program's memory and duplicate its sockets.

#![expect(unsafe_code, reason = "the program shares the table of descriptors until its filter is attached")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::thread;

use ipc::confinement::NoFullTier;
use ipc::id::Generation;
use ipc::pipe::{FrameReader, Outgoing};
use nix::fcntl::OFlag;
use nix::unistd::{Pid, getpid, getppid, pipe2};

use super::program::{self, LaunchedProgram, enter, no_entry};
use super::rules::{self, Awaited, Awaiting, Making, Seen};
use super::ruleset::Ruleset;
use super::{Launch, at, enter_scopes};
use crate::attempt::{self, Surroundings};
use crate::broker::{self, Broker, Progress, Reports};
use crate::cgroup::Cgroup;
use crate::descendants::Bound;
use crate::domain::{Opened, open_path};
use crate::handover::Handover;
use crate::mediate::{Filter, Listeners, Mediation, Mediator};
use crate::platform::Platform;
use crate::privilege;
use crate::stage::{Failure, Stage};
use crate::system;
use crate::system::process::fork_sharing_descriptors;

/// Starts the program in the floor tier and watches over it; `instead` says why the full tier is not used.
pub(super) fn run(
    launch: &Launch,
    platform: Platform,
    instead: Option<NoFullTier>,
    reports: &mut Reports,
) -> Result<u8, Failure> {
    let seen = Seen::floor(&launch.confinement, platform);
    let mut ruleset = Ruleset::new(&seen)?;
    ruleset.no_full_tier = instead;
    start(launch, &seen, &ruleset, reports)?.watch(reports)
}

fn start(launch: &Launch, seen: &Seen<'_>, ruleset: &Ruleset, status: &Reports) -> Result<Broker, Failure> {
    let child = Child::fork(launch, ruleset)?;
    let Child { program, bound, rules, progress, calls, group } = child;
    let domain = rules.domain();
    let making = Making::new(seen, rules);
    let progress = Progress::new(FrameReader::new(File::from(progress), Generation(0)));
    let attended = domain.and_then(|domain| {
        let mediation = ruleset.mediation.clone().map(|mediation| mediation.with_domain(domain));
        attend(making, calls, program, mediation, status)
    });
    match attended {
        Ok((mediator, opened)) => Ok(Broker::new(program, bound, progress, mediator).with(opened, group)),
        Err(failure) => {
            Broker::new(program, bound, progress, None).abandon();
            Err(failure)
        }
    }
}

/// Child that confines itself up to its rules, and waits for those.
#[derive(Debug)]
struct Child {
    program: Pid,
    bound: Bound,
    rules: Awaiting,
    progress: OwnedFd,
    calls: Calls,
    group: Option<Cgroup>,
}

/// Treatment of a child's calls.
#[derive(Debug)]
struct Calls {
    /// Listener of its mediation filter, on its way to this process.
    handover: Handover,
    /// Objects of the child, dropped here once it has its own.
    theirs: Theirs,
}

/// Reports, rules, socket for the network attempt, and working directory of the child.
type Theirs = (OwnedFd, Awaited, Option<OwnedFd>, File);

impl Child {
    /// Forks the child. Until the listener has arrived, this process closes nothing that is open now.
    fn fork(launch: &Launch, ruleset: &Ruleset) -> Result<Self, Failure> {
        let Launch { confinement, command, .. } = launch;
        let (rules, awaited) = rules::begin(ruleset)?;
        let place = &confinement.project;
        let project = open_path(place.as_path(), true).map_err(|error| no_entry(place, &error))?;
        let (progress, reports) = pipe2(OFlag::O_CLOEXEC).map_err(at(Stage::Start))?;
        let bound = enter_bound(ruleset)?;
        let datagrams = datagrams(ruleset).map_err(at(Stage::Start))?;
        let broker = getpid().as_raw();
        let surroundings = Surroundings::Floor { broker, datagrams: datagrams.as_ref().map(OwnedFd::as_fd) };
        let (filter, programs) = ruleset.joined();
        let handover = Handover::new().map_err(at(Stage::Start))?;
        let group = Cgroup::for_program(ruleset.tier, confinement.bounds);
        // SAFETY: this process has one thread, and both sides of the handover keep to what it asks.
        let forked = unsafe { fork_sharing_descriptors(group) };
        let (forked, group) = forked.map_err(at(Stage::Start))?;
        let Some(program) = forked else {
            let bound = enter(place, Ok(project.as_fd())).and_then(|()| give_up(&handover, filter.as_ref()));
            if let Err(failure) = bound {
                program::give_up(Outgoing::new(File::from(reports), Generation(0)), &failure)
            }
            drop((progress, rules, handover));
            let bounds = group.as_ref().map(Cgroup::bounds).unwrap_or_default();
            LaunchedProgram { confinement, command, ruleset, surroundings, programs, rules: awaited, bounds }
                .run(reports)
        };
        let calls = Calls { handover, theirs: (reports, awaited, datagrams, project) };
        Ok(Self { program, bound, rules, progress, calls, group })
    }
}

/// Gives up system calls, with the handover of the listener, and capabilities: from then on no file of
/// another user can be opened with them. Meanwhile the mediator starts.
fn give_up(handover: &Handover, filter: Option<&Filter>) -> Result<(), Failure> {
    handover.give(filter).map_err(at(Stage::Seccomp))?;
    privilege::drop_capabilities().map_err(at(Stage::Capabilities))
}

/// Enters the domain with scopes, and adopts orphans among the descendants of this process.
fn enter_bound(ruleset: &Ruleset) -> Result<Bound, Failure> {
    system::set_subreaper().map_err(at(Stage::Start))?;
    system::set_no_new_privs().map_err(at(Stage::Privileges))?;
    enter_scopes(ruleset, |scopes| Bound::enter(scopes, getppid().as_raw()))
}

/// Makes the rules, and meanwhile starts the mediator, which answers the program's first attempts.
fn attend(
    mut making: Making<'_>,
    Calls { handover, theirs }: Calls,
    program: Pid,
    mediation: Option<Mediation>,
    status: &Reports,
) -> Result<(Option<Mediator>, Opened), Failure> {
    let refusals = broker::refusals(program, status, Listeners::here)?;
    let (took, taken) = mpsc::channel::<()>();
    let mediate = move || {
        // The mediator's threads need no capabilities for the program's calls: nothing is opened for it with
        // any.
        let cleared = privilege::clear_capabilities().map_err(at(Stage::Broker));
        // After this the child has a table of descriptors of its own.
        let listener = handover.take(program).map_err(at(Stage::Broker));
        drop((took, theirs));
        cleared?;
        let both = mediation.zip(listener?);
        let started = both.map(|(mediation, listener)| Mediator::start(listener, mediation, refusals));
        started.transpose().map_err(at(Stage::Broker))
    };
    // Started after the only fork, since a process with threads must not fork.
    let mediating = thread::Builder::new().spawn(mediate).map_err(at(Stage::Broker))?;
    let opened = making.plan().and_then(|plan| making.add(plan));
    // Until the program has left our table of descriptors, nothing is closed that was open before it began.
    let _has_left: Result<(), mpsc::RecvError> = taken.recv();
    let opened = opened.and_then(|opened| making.tell().map(|()| opened));
    let mediator = mediating.join().unwrap_or_else(|_| Err(Stage::Broker.failed("the mediator panicked")));
    privilege::drop_capabilities().map_err(at(Stage::Broker))?;
    Ok((mediator?, opened?))
}

/// Creates the socket for the program's network attempt, unless only sockets that the mediator made can be
/// used.
fn datagrams(ruleset: &Ruleset) -> io::Result<Option<OwnedFd>> {
    let used = |mediation: &Mediation| !mediation.net.is_the_machines() && !mediation.sockets.are_made();
    ruleset.mediation.as_ref().filter(|mediation| used(mediation)).map(|_| attempt::datagrams()).transpose()
}
