//! The floor tier: the broker is the process that was started. It enters a domain of its own that only bounds signals, so that
//! at the end it can kill exactly what is beneath it. The program's domain is nested in that one, so that the mediator may still
//! look at the program's memory and duplicate its sockets.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::mpsc;

use ipc::id::Generation;
use ipc::pipe::{Incoming, Outgoing};
use ipc::rights::Network;
use nix::fcntl::OFlag;
use nix::unistd::{Pid, getpid, getppid, pipe2};

use super::program::{Program, give_up};
use super::rules::{self, Making, Seen};
use super::ruleset::Ruleset;
use super::{Ahead, Launch, at};
use crate::attempt::{self, Surroundings};
use crate::broker::{self, Broker, Progress, Reports};
use crate::cgroup::Cgroup;
use crate::descendants::Bound;
use crate::domain::{Domain, Opened};
use crate::handover::{Handover, fork_into, fork_sharing_descriptors};
use crate::mediate::{Hand, Listeners, Mediation, Mediator, Refusals, crew};
use crate::privilege;
use crate::stage::{Failure, Stage};
use crate::system;

/// Starts the program in the floor tier and watches over it; `instead` says why not in the full one.
pub(super) fn run(
    launch: &Launch,
    ahead: &mut Ahead,
    instead: Option<String>,
    reports: &mut Reports,
) -> Result<u8, Failure> {
    let seen = Seen::floor(&launch.confinement);
    let mut ruleset = Ruleset::new(&seen, reports.is_some())?;
    ruleset.missing.extend(instead);
    start(launch, ahead, &seen, &ruleset, reports)?.watch(reports)
}

fn start(
    launch: &Launch,
    ahead: &mut Ahead,
    seen: &Seen,
    ruleset: &Ruleset,
    status: &Reports,
) -> Result<Broker, Failure> {
    let (making, awaited) = rules::begin(seen, ahead, ruleset)?;
    let (progress, reports) = pipe2(OFlag::O_CLOEXEC).map_err(at(Stage::Start))?;
    system::set_subreaper().map_err(at(Stage::Start))?;
    system::set_no_new_privs().map_err(at(Stage::Privileges))?;
    let signals = Domain::of_signals(ruleset.platform).map_err(at(Stage::Landlock))?;
    let bound = Bound::enter(signals.as_ref(), getppid().as_raw()).map_err(at(Stage::Landlock))?;
    let datagrams = datagrams(ruleset).map_err(at(Stage::Start))?;
    let surroundings =
        Surroundings::Floor { broker: getpid().as_raw(), datagrams: datagrams.as_ref().map(OwnedFd::as_fd) };
    let filter = ruleset.mediation.as_ref().map(Mediation::filter);
    let handover = Handover::new().map_err(at(Stage::Start))?;
    // For both of us. What is opened for a rule needs other capabilities.
    privilege::drop_bounds().map_err(at(Stage::Capabilities))?;
    let (forked, group) = fork_into_group().map_err(at(Stage::Start))?;
    let Some(program) = forked else {
        if let Err(failure) = handover.give(filter.as_ref()).map_err(at(Stage::Seccomp)) {
            give_up(Outgoing::new(File::from(reports), Generation(0)), &failure)
        }
        drop((progress, making));
        Program { launch, ruleset, surroundings, rules: awaited }.run(reports)
    };
    let progress = Progress::new(Incoming::new(File::from(progress), Generation(0)));
    match attend(making, handover, program, ruleset, status, (reports, awaited, datagrams)) {
        Ok((mediator, opened)) => Ok(Broker::new(program, bound, progress, mediator).with(opened, group)),
        Err(failure) => {
            Broker::new(program, bound, progress, None).abandon();
            Err(failure)
        }
    }
}

/// Makes the rules, and beside that gets the mediator ready: what the program tries first of all, it answers. `theirs` is the
/// program's, and is let go of once it has its own.
fn attend(
    mut making: Making<'_>,
    handover: Handover,
    program: Pid,
    ruleset: &Ruleset,
    status: &Reports,
    theirs: impl Send + 'static,
) -> Result<(Option<Mediator>, Opened), Failure> {
    let refusals = broker::refusals(program, status, Listeners::here())?;
    let mediation = ruleset.mediation.clone();
    let (took, taken) = mpsc::channel();
    let (ready, mediator) = mpsc::channel();
    // Threads make no forks, so they begin after the only one.
    crew::thread(move || {
        let listener = handover.take(program).map_err(at(Stage::Broker));
        drop((took, theirs));
        let (outcome, first) = match listener.and_then(|listener| mediate(mediation, listener, refusals)) {
            Ok(Some((mediator, first))) => (Ok(Some(mediator)), Some(first)),
            Ok(None) => (Ok(None), None),
            Err(failure) => (Err(failure), None),
        };
        // Who waited for it may have failed meanwhile, and ends everything.
        drop(ready.send(outcome));
        first.into_iter().for_each(Hand::work);
    })
    .map_err(at(Stage::Broker))?;
    let opened = making.plan().and_then(|plan| making.add(plan));
    // Until the program has left our table of descriptors, nothing is closed that was open before it began.
    let _has_left: Result<(), mpsc::RecvError> = taken.recv();
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
fn mediate(
    mediation: Option<Mediation>,
    listener: Option<OwnedFd>,
    refusals: Refusals,
) -> Result<Option<(Mediator, Hand)>, Failure> {
    privilege::clear_capabilities().map_err(at(Stage::Broker))?;
    listener
        .zip(mediation)
        .map(|(listener, mediation)| Mediator::begin(listener, mediation, refusals))
        .transpose()
        .map_err(at(Stage::Broker))
}
