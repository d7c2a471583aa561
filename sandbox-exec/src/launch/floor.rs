//! Floor tier: this process is the broker. It enters a Landlock domain that only bounds signals and abstract unix
//! sockets, so that it can kill exactly the processes below it. The program's domain is nested in that domain. So the
//! mediator may read the program's memory and duplicate its sockets.

#![expect(unsafe_code, reason = "the program shares the table of descriptors until its filter is attached")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::thread;

use ipc::confinement::NoFullTier;
use ipc::id::Generation;
use ipc::pipe::{FrameReader, Outgoing};
use ipc::rights::Hosts;
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
use crate::hosts;
use crate::mediate::{Filter, Led, Listeners, Mediation, Mediator};
use crate::platform::Platform;
use crate::privilege;
use crate::stage::{Failure, Stage};
use crate::system;
use crate::system::process::fork_sharing_descriptors;

/// Runs the program in the floor tier; returns its exit status. `instead` tells why it is not the full tier.
pub(super) fn run(
    launch: &Launch,
    platform: Platform,
    instead: Option<NoFullTier>,
    gateway: Option<OwnedFd>,
    reports: &mut Reports,
) -> Result<u8, Failure> {
    let seen = Seen::floor(&launch.confinement, platform);
    let mut ruleset = Ruleset::new(&seen)?;
    ruleset.no_full_tier = instead;
    if gateway.is_some() && ruleset.mediation.is_none() {
        let why = "without a listener of seccomp the floor tier cannot limit the network to some hosts";
        return Err(Stage::Platform.failed(why));
    }
    start(launch, &seen, &ruleset, gateway, reports)?.watch(reports)
}

fn start(
    launch: &Launch,
    seen: &Seen<'_>,
    ruleset: &Ruleset,
    gateway: Option<OwnedFd>,
    status: &Reports,
) -> Result<Broker, Failure> {
    let child = Child::fork(launch, ruleset)?;
    let Child { program, bound, rules, progress, calls, group } = child;
    let domain = rules.domain();
    let making = Making::new(seen, rules);
    let progress = Progress::new(FrameReader::new(File::from(progress), Generation(0)));
    let attended = domain.and_then(|domain| {
        let mediation = ruleset.mediation.clone().map(|mediation| mediation.with_domain(domain));
        let asks = launch.confinement.asks_hosts;
        let hosts = ruleset.net.hosts().cloned().zip(gateway);
        let way = hosts.map(|(hosts, gateway)| HostsPath { hosts, asks, gateway });
        attend(making, calls, program, mediation.map(|mediation| (mediation, way)), status)
    });
    match attended {
        Ok((mediator, opened)) => Ok(Broker::new(program, bound, progress, mediator).with(opened, group)),
        Err(failure) => {
            Broker::new(program, bound, progress, None).abandon();
            Err(failure)
        }
    }
}

#[derive(Debug)]
struct Child {
    program: Pid,
    bound: Bound,
    rules: Awaiting,
    progress: OwnedFd,
    calls: Calls,
    group: Option<Cgroup>,
}

#[derive(Debug)]
struct Calls {
    handover: Handover,
    /// Descriptors of the child. This process closes its own once the child has a separate table of descriptors.
    theirs: Theirs,
}

#[derive(Debug)]
struct HostsPath {
    hosts: Hosts,
    asks: bool,
    gateway: OwnedFd,
}

type Theirs = (OwnedFd, Awaited, Option<OwnedFd>, File);

impl Child {
    /// Forks the child, which at first shares this process's table of descriptors. This process must close no
    /// descriptor until it has taken the child's listener.
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

fn give_up(handover: &Handover, filter: Option<&Filter>) -> Result<(), Failure> {
    handover.give(filter).map_err(at(Stage::Seccomp))?;
    privilege::drop_capabilities().map_err(at(Stage::Capabilities))
}

/// Makes this process a subreaper, and enters a Landlock domain that only bounds signals and abstract unix sockets.
fn enter_bound(ruleset: &Ruleset) -> Result<Bound, Failure> {
    system::set_subreaper().map_err(at(Stage::Start))?;
    system::set_no_new_privs().map_err(at(Stage::Privileges))?;
    enter_scopes(ruleset, |scopes| Bound::enter(scopes, getppid().as_raw()))
}

/// Sends the program its Landlock rules, and starts the mediator. Also returns the files opened for the rules.
fn attend(
    mut making: Making<'_>,
    Calls { handover, theirs }: Calls,
    program: Pid,
    mediation: Option<(Mediation, Option<HostsPath>)>,
    status: &Reports,
) -> Result<(Option<Mediator>, Opened), Failure> {
    let refusals = broker::refusals(program, status, Listeners::here)?;
    let (took, taken) = mpsc::channel::<()>();
    let mediate = move || {
        // The mediator's threads must not use capabilities when they open files for the program.
        let cleared = privilege::clear_capabilities().map_err(at(Stage::Broker));
        // After this the child has a table of descriptors of its own.
        let listener = handover.take(program).map_err(at(Stage::Broker));
        drop((took, theirs));
        cleared?;
        let both = mediation.zip(listener?);
        let started = both
            .map(|((mediation, way), listener)| Mediator::start(listener, lead(mediation, way)?, refusals));
        started.transpose().map_err(at(Stage::Broker))
    };
    // Started after the only fork, since a process with threads must not fork.
    let mediating = thread::Builder::new().spawn(mediate).map_err(at(Stage::Broker))?;
    let opened = making.plan().and_then(|plan| making.add(plan));
    // Descriptors from before the fork stay open until the program has left the shared table.
    let _has_left: Result<(), mpsc::RecvError> = taken.recv();
    let opened = opened.and_then(|opened| making.tell().map(|()| opened));
    let mediator = mediating.join().unwrap_or_else(|_| Err(Stage::Broker.failed("the mediator panicked")));
    privilege::drop_capabilities().map_err(at(Stage::Broker))?;
    Ok((mediator?, opened?))
}

fn lead(mediation: Mediation, way: Option<HostsPath>) -> io::Result<Mediation> {
    let Some(HostsPath { hosts, asks, gateway }) = way else { return Ok(mediation) };
    let (led, entrances) = Led::open(hosts, asks)?;
    let led = Arc::new(led);
    hosts::start(entrances, Arc::clone(led.hosts()), Arc::<Led>::clone(&led), gateway)?;
    Ok(Mediation { led: Some(led), ..mediation })
}

/// Creates the socket with which the program tests that the network is denied. `None` if the test needs none: without
/// mediation, with the machine's network, or if only the mediator creates sockets.
fn datagrams(ruleset: &Ruleset) -> io::Result<Option<OwnedFd>> {
    let used = |mediation: &Mediation| !mediation.net.is_the_machines() && !mediation.sockets.are_made();
    ruleset.mediation.as_ref().filter(|mediation| used(mediation)).map(|_| attempt::datagrams()).transpose()
}
