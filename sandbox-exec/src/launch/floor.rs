//! The floor tier: the broker is the process that was started. It enters a domain of its own that only bounds signals, so that
//! at the end it can kill exactly what is beneath it. The program's domain is nested in that one, so that the mediator may still
//! look at the program's memory and duplicate its sockets.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use ipc::id::Generation;
use ipc::pipe::{Incoming, Outgoing};
use nix::fcntl::OFlag;
use nix::unistd::{Pid, getpid, getppid, pipe2};

use super::program::{Program, give_up};
use super::rules::{self, Seen};
use super::ruleset::Ruleset;
use super::{Launch, at};
use crate::attempt::Surroundings;
use crate::broker::{self, Broker, Progress, Reports};
use crate::cgroup::Cgroup;
use crate::descendants::Bound;
use crate::domain::Domain;
use crate::handover::{Handover, fork_into, fork_sharing_descriptors};
use crate::mediate::{Mediation, Mediator, Refusals};
use crate::privilege;
use crate::stage::{Failure, Stage};
use crate::system;

/// Starts the program in the floor tier and watches over it; `instead` says why not in the full one.
pub(super) fn run(launch: &Launch, instead: Option<String>, reports: &mut Reports) -> Result<u8, Failure> {
    let seen = Seen::floor(&launch.confinement);
    let mut ruleset = Ruleset::new(&seen)?;
    ruleset.missing.extend(instead);
    start(launch, &seen, &ruleset, reports)?.watch(reports)
}

fn start(launch: &Launch, seen: &Seen, ruleset: &Ruleset, status: &Reports) -> Result<Broker, Failure> {
    let (making, awaited) = rules::begin(seen, ruleset)?;
    let (progress, reports) = pipe2(OFlag::O_CLOEXEC).map_err(at(Stage::Start))?;
    system::set_subreaper().map_err(at(Stage::Start))?;
    system::set_no_new_privs().map_err(at(Stage::Privileges))?;
    let signals = Domain::of_signals(ruleset.platform).map_err(at(Stage::Landlock))?;
    let bound = Bound::enter(signals.as_ref(), getppid().as_raw()).map_err(at(Stage::Landlock))?;
    let surroundings = Surroundings::Floor { broker: getpid().as_raw() };
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
    // Beside the child, which attaches the filter.
    let plan = making.plan();
    let taken = handover.take(program);
    drop((reports, awaited));
    let progress = Progress::new(Incoming::new(File::from(progress), Generation(0)));
    let ready = taken.map_err(at(Stage::Broker)).and_then(|listener| {
        // Gets ready while the rules are added: what the program tries first of all, it answers.
        let mediator = mediate(ruleset, listener, broker::refusals(program, status)?)?;
        let opened = making.finish(plan?)?;
        privilege::drop_capabilities().map_err(at(Stage::Broker))?;
        Ok((mediator, opened))
    });
    match ready {
        Ok((mediator, opened)) => Ok(Broker::new(program, bound, progress, mediator).with(opened, group)),
        Err(failure) => {
            Broker::new(program, bound, progress, None).abandon();
            Err(failure)
        }
    }
}

/// Forks as the handover wants it, into a control group of the program's own where there can be one. It is made without
/// capabilities, as it will be removed: where only they would do, nothing is delegated, and it would be left.
fn fork_into_group() -> io::Result<(Option<Pid>, Option<Cgroup>)> {
    if let Ok(Some(group)) = privilege::without_effect(Cgroup::make) {
        // SAFETY: this process has one thread, and both sides of the handover keep to what it asks.
        if let Ok(forked) = unsafe { fork_into(group.as_fd()) } {
            return Ok((forked, Some(group)));
        }
    }
    // SAFETY: as above.
    Ok((unsafe { fork_sharing_descriptors() }?, None))
}

/// Threads make no forks, so they begin after the only one. What they perform for the program needs no capabilities: nothing is
/// opened for it with any, and each thread gives up its own.
fn mediate(
    ruleset: &Ruleset,
    listener: Option<OwnedFd>,
    refusals: Refusals,
) -> Result<Option<Mediator>, Failure> {
    let start = || {
        listener
            .zip(ruleset.mediation.clone())
            .map(|(listener, mediation)| Mediator::start(listener, mediation, refusals))
            .transpose()
    };
    privilege::without_effect(start).map_err(at(Stage::Broker))?.map_err(at(Stage::Broker))
}
