//! The floor tier: the broker is the process that was started. It enters a domain of its own that only bounds signals, so that
//! at the end it can kill exactly what is beneath it. The program's domain is nested in that one, so that the mediator may still
//! look at the program's memory and duplicate its sockets.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use ipc::confinement::Confinement;
use ipc::id::Generation;
use ipc::pipe::{Incoming, Outgoing};
use ipc::rights::Network;
use nix::fcntl::OFlag;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, getpid, getppid, pipe2};

use super::attendant::Attendant;
use super::granted::Granted;
use super::program::{self, Program, enter, no_entry};
use super::rules::{self, Awaited, Awaiting, Making, Ordered, Seen};
use super::ruleset::Ruleset;
use super::{Ahead, Launch, at};
use crate::attempt::{self, Surroundings};
use crate::broker::{self, Broker, Progress, Reports};
use crate::cgroup::Cgroup;
use crate::descendants::Bound;
use crate::domain::{Domain, Opened, open_path};
use crate::handover::{Handover, fork_into, fork_sharing_descriptors};
use crate::mediate::{Filter, Hand, Listeners, Mediation, Mediator, Prepared, Refusals, crew};
use crate::platform::Platform;
use crate::privilege;
use crate::spread;
use crate::stage::{Failure, Stage};
use crate::system;

/// Starts the program in the floor tier and watches over it; `instead` says why not in the full one.
pub(super) fn run(
    launch: &Launch,
    ahead: &mut Ahead,
    instead: Option<String>,
    reports: &mut Reports,
) -> Result<u8, Failure> {
    let seen = Seen::floor(&launch.confinement, ahead.ground());
    let mut ruleset = Ruleset::new(&seen, reports.is_some())?;
    ruleset.missing.extend(instead);
    let broker = start(launch, ahead, &seen, &ruleset, reports)?;
    // A broker keeps nothing of what was done ahead of its start.
    ahead.forget();
    broker.watch(reports)
}

fn start(
    launch: &Launch,
    ahead: &mut Ahead,
    seen: &Seen,
    ruleset: &Ruleset,
    status: &Reports,
) -> Result<Broker, Failure> {
    let waiting = ahead.take_child(&launch.confinement, ruleset).map(Ok);
    let child = waiting.unwrap_or_else(|| {
        let granted = ahead.take_granted(ruleset);
        Child::fork(&launch.confinement, ruleset, granted, ahead.bound)
    })?;
    let Child { program, bound, mut rules, progress, calls, group, .. } = child;
    let begun = rules.begin();
    let making = Making::new(seen, ahead.host(), rules);
    let progress = Progress::new(Incoming::new(File::from(progress), Generation(0)));
    let ordered = Ordered::of(launch, ruleset, seen);
    // What is private is known by now.
    let own = seen.private().memory();
    let mediation = ruleset.mediation.clone().map(|mediation| mediation.with_writable(own));
    let attended = begun.and_then(|()| attend((making, ordered), calls, program, mediation, status));
    match attended {
        Ok((mediator, opened)) => Ok(Broker::new(program, bound, progress, mediator).with(opened, group)),
        Err(failure) => {
            Broker::new(program, bound, progress, None).abandon();
            Err(failure)
        }
    }
}

/// A child that confines itself up to its rules, and waits for those.
#[derive(Debug)]
pub(super) struct Child {
    program: Pid,
    bound: Bound,
    pub(super) rules: Awaiting,
    progress: OwnedFd,
    calls: Calls,
    group: Option<Cgroup>,
    /// Which directory it enters: device and inode.
    pub(super) project: (u64, u64),
}

/// How a child's calls will be attended to.
#[derive(Debug)]
struct Calls {
    passing: Passing,
    /// What is the program's, and is let go of once it has its own.
    theirs: Option<Theirs>,
    /// The thread that will, where one waits for that.
    attendant: Option<Attendant>,
}

/// Its reports, its rules, what it will try to reach the network with, and its working directory.
type Theirs = (OwnedFd, Awaited, Option<OwnedFd>, File);

/// The listener of a child's mediation filter, on its way to this process.
#[derive(Debug)]
enum Passing {
    Awaited(Handover),
    Done(Option<OwnedFd>),
}

impl Passing {
    /// Waits for it; then the child has a table of descriptors of its own.
    fn take(self, program: Pid) -> Result<Option<OwnedFd>, Failure> {
        match self {
            Self::Awaited(handover) => handover.take(program).map_err(at(Stage::Broker)),
            Self::Done(listener) => Ok(listener),
        }
    }
}

impl Child {
    /// Forks it. Until [`Child::separate`], or until the listener is there, this process closes nothing that is open now. `bound`
    /// is the domain of signals, where this process has entered that before.
    pub(super) fn fork(
        confinement: &Confinement,
        ruleset: &Ruleset,
        granted: Option<Granted>,
        bound: Option<Bound>,
    ) -> Result<Self, Failure> {
        let (rules, awaited) = rules::begin(ruleset, granted)?;
        let (project, place) = Self::open_project(confinement)?;
        let (progress, reports) = pipe2(OFlag::O_CLOEXEC).map_err(at(Stage::Start))?;
        let bound = bound.map_or_else(|| enter_bound(ruleset.platform), Ok)?;
        let datagrams = datagrams(ruleset).map_err(at(Stage::Start))?;
        let broker = getpid().as_raw();
        let surroundings = Surroundings::Floor { broker, datagrams: datagrams.as_ref().map(OwnedFd::as_fd) };
        let (filter, programs) = ruleset.joined();
        let handover = Handover::new().map_err(at(Stage::Start))?;
        let (forked, group) = fork_into_group().map_err(at(Stage::Start))?;
        let Some(program) = forked else {
            let place = &confinement.project;
            let bound = enter(place, Ok(project.as_fd())).and_then(|()| give_up(&handover, filter.as_ref()));
            if let Err(failure) = bound {
                program::give_up(Outgoing::new(File::from(reports), Generation(0)), &failure)
            }
            drop((progress, rules, handover));
            Program { confinement, ruleset, surroundings, programs, rules: awaited }.run(reports)
        };
        spread::apart(program.as_raw());
        let theirs = Some((reports, awaited, datagrams, project));
        let calls = Calls { passing: Passing::Awaited(handover), theirs, attendant: None };
        Ok(Self { program, bound, rules, progress, calls, group, project: place })
    }

    /// The directory in which a program will be, and which that is.
    pub(super) fn open_project(confinement: &Confinement) -> Result<(File, (u64, u64)), Failure> {
        let project = &confinement.project;
        let open = || {
            let directory = open_path(project.as_path(), true)?;
            let metadata = directory.metadata()?;
            Ok((directory, (metadata.dev(), metadata.ino())))
        };
        open().map_err(|error| no_entry(project, &error))
    }

    /// Waits until the child has a table of descriptors of its own, lets go of what is open for it, and has a thread wait beside it:
    /// this process makes no fork while there is this child.
    pub(super) fn separate(&mut self) -> Result<(), Failure> {
        let passing = mem::replace(&mut self.calls.passing, Passing::Done(None));
        self.calls.passing = Passing::Done(passing.take(self.program)?);
        self.calls.theirs = None;
        self.calls.attendant = Some(Attendant::begin().map_err(at(Stage::Broker))?);
        Ok(())
    }

    pub(super) fn is_alive(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        matches!(waitid(Id::Pid(self.program), flags), Ok(WaitStatus::StillAlive))
    }

    /// Ends it.
    pub(super) fn abandon(self) {
        let progress = Progress::new(Incoming::new(File::from(self.progress), Generation(0)));
        Broker::new(self.program, self.bound, progress, None).abandon();
    }
}

/// Gives up calls, with the listener, and capabilities: none opens what is somebody else's from then on. While they go, the mediator
/// begins.
fn give_up(handover: &Handover, filter: Option<&Filter>) -> Result<(), Failure> {
    handover.give(filter).map_err(at(Stage::Seccomp))?;
    privilege::drop_capabilities().map_err(at(Stage::Capabilities))
}

/// Enters the domain that bounds signals, and adopts what descends from this process.
pub(super) fn enter_bound(platform: Platform) -> Result<Bound, Failure> {
    system::set_subreaper().map_err(at(Stage::Start))?;
    system::set_no_new_privs().map_err(at(Stage::Privileges))?;
    let signals = Domain::of_signals(platform).map_err(at(Stage::Landlock))?;
    Bound::enter(signals.as_ref(), getppid().as_raw()).map_err(at(Stage::Landlock))
}

/// Makes the rules, and beside that gets the mediator ready: what the program tries first of all, it answers.
fn attend(
    (mut making, ordered): (Making<'_>, Ordered),
    Calls { passing, theirs, attendant }: Calls,
    program: Pid,
    mediation: Option<Mediation>,
    status: &Reports,
) -> Result<(Option<Mediator>, Opened), Failure> {
    let tries = Arc::new(AtomicBool::new(true));
    let refusals = broker::refusals(program, status, Arc::clone(&tries), Listeners::here)?;
    let (took, taken) = mpsc::channel();
    let (ready, mediator) = mpsc::channel();
    let life = move || {
        let prepared = prepare(mediation, refusals);
        let listener = passing.take(program);
        drop((took, theirs));
        let begun = listener.and_then(|listener| begin(prepared?, listener));
        let (outcome, first) = match begun {
            Ok(Some((mediator, first))) => (Ok(Some(mediator)), Some(first)),
            Ok(None) => (Ok(None), None),
            Err(failure) => (Err(failure), None),
        };
        // Who waited for it may have failed meanwhile, and ends everything.
        drop(ready.send(outcome));
        first.into_iter().for_each(Hand::work);
    };
    match attendant {
        Some(attendant) => attendant.attend(Box::new(life)),
        // Threads make no forks, so they begin after the only one.
        None => crew::thread(life).map(drop),
    }
    .map_err(at(Stage::Broker))?;
    let opened = making.plan().and_then(|plan| making.add(plan, ordered));
    // Until the program has left our table of descriptors, nothing is closed that was open before it began.
    let _has_left: Result<(), mpsc::RecvError> = taken.recv();
    tries.store(false, Ordering::Release);
    let opened = opened.and_then(|opened| making.tell().map(|()| opened));
    let mediator = mediator.recv().unwrap_or_else(|_| Err(Stage::Broker.failed("the mediator panicked")));
    privilege::drop_capabilities().map_err(at(Stage::Broker))?;
    Ok((mediator?, opened?))
}

/// What the program will try to reach the network with, unless only sockets that the mediator made can be used.
fn datagrams(ruleset: &Ruleset) -> io::Result<Option<OwnedFd>> {
    let used = |mediation: &Mediation| mediation.net == Network::Off && !mediation.sockets.are_made();
    ruleset.mediation.as_ref().filter(|mediation| used(mediation)).map(|_| attempt::datagrams()).transpose()
}

/// Forks as the handover wants it, into a control group of the program's own where there can be one. It is made without
/// capabilities, as it will be removed: where only they would do, nothing is delegated, and it would be left.
fn fork_into_group() -> io::Result<(Option<Pid>, Option<Cgroup>)> {
    let make = |place: PathBuf| privilege::without_effect(|| Cgroup::make(&place)).ok().flatten();
    if let Some(group) = Cgroup::place().and_then(make) {
        // SAFETY: this process has one thread, and both sides of the handover keep to what it asks.
        if let Ok(forked) = unsafe { fork_into(group.as_fd()) } {
            return Ok((forked, Some(group)));
        }
    }
    // SAFETY: as above.
    Ok((unsafe { fork_sharing_descriptors() }?, None))
}

/// What the threads perform for the program needs no capabilities: nothing is opened for it with any, and each thread gives up its
/// own, as this one does.
fn prepare(mediation: Option<Mediation>, refusals: Refusals) -> Result<Option<Prepared>, Failure> {
    privilege::clear_capabilities().map_err(at(Stage::Broker))?;
    mediation.map(|mediation| Prepared::new(mediation, refusals)).transpose().map_err(at(Stage::Broker))
}

fn begin(prepared: Option<Prepared>, listener: Option<OwnedFd>) -> Result<Option<(Mediator, Hand)>, Failure> {
    let both = prepared.zip(listener);
    both.map(|(prepared, listener)| prepared.begin(listener)).transpose().map_err(at(Stage::Broker))
}
