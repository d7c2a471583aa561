//! The floor tier: the broker is the process that was started. It enters a domain of its own that only bounds signals, so that
//! at the end it can kill exactly what is beneath it.

use std::fs::File;

use ipc::id::Generation;
use ipc::pipe::Incoming;
use nix::fcntl::OFlag;
use nix::unistd::{ForkResult, fork, getpid, getppid, pipe2};

use super::program::Program;
use super::rules::{self, Seen};
use super::ruleset::Ruleset;
use super::{Launch, at};
use crate::attempt::Surroundings;
use crate::broker::{Broker, Progress, Reports};
use crate::descendants::Bound;
use crate::domain::Domain;
use crate::stage::{Failure, Stage};
use crate::system;
use crate::tree::Host;

/// Starts the program in the floor tier and watches over it; `instead` says why not in the full one.
pub(super) fn run(launch: &Launch, instead: Option<String>, reports: &mut Reports) -> Result<u8, Failure> {
    let seen = Seen::floor(&launch.confinement);
    let mut ruleset = Ruleset::new(&seen)?;
    ruleset.missing.extend(instead);
    start(launch, &seen, &ruleset)?.watch(reports)
}

fn start(launch: &Launch, seen: &Seen, ruleset: &Ruleset) -> Result<Broker, Failure> {
    let (making, awaited) = rules::begin(seen, ruleset)?;
    let (progress, reports) = pipe2(OFlag::O_CLOEXEC).map_err(at(Stage::Start))?;
    system::set_subreaper().map_err(at(Stage::Start))?;
    system::set_no_new_privs().map_err(at(Stage::Privileges))?;
    let signals = Domain::of_signals(ruleset.platform).map_err(at(Stage::Landlock))?;
    let bound = Bound::enter(signals.as_ref(), getppid().as_raw()).map_err(at(Stage::Landlock))?;
    let surroundings = Surroundings::Floor { broker: getpid().as_raw() };
    // SAFETY: this process has one thread, so that its image is whole in the child.
    match unsafe { fork() }.map_err(at(Stage::Start))? {
        ForkResult::Parent { child } => {
            drop((reports, awaited));
            let progress = Progress::new(Incoming::new(File::from(progress), Generation(0)));
            let broker = Broker::new(child, bound, progress);
            match making.finish(&Host::default()) {
                Ok(()) => Ok(broker),
                Err(failure) => {
                    broker.abandon();
                    Err(failure)
                }
            }
        }
        ForkResult::Child => {
            drop((progress, making));
            Program { launch, ruleset, surroundings, rules: awaited }.run(reports)
        }
    }
}
