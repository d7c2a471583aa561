use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use ipc::confinement::{Attempt, Bounds, BrokerReport, Confinement, RulesetReport, Tier};
use ipc::id::Generation;
use ipc::path::WirePath;
use ipc::pipe::Outgoing;
use nix::libc::{self, pid_t};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{fchdir, getppid, setsid};

use super::at;
use super::execute::execute;
use super::rules::Awaited;
use super::ruleset::Ruleset;
use crate::attempt::{Attempts, Surroundings};
use crate::privilege;
use crate::seccomp;
use crate::stage::{Failure, Stage};
use crate::system;
use crate::terminal;

pub(crate) struct LaunchedProgram<'a> {
    pub(crate) confinement: &'a Confinement,
    pub(crate) command: &'a [OsString],
    pub(crate) ruleset: &'a Ruleset,
    pub(crate) surroundings: Surroundings<'a>,
    pub(crate) programs: &'a [seccomp::Program],
    pub(crate) rules: Awaited,
    pub(crate) bounds: Bounds,
}

impl LaunchedProgram<'_> {
    /// Confines this process and executes the program. On failure, sends a report to the broker and exits.
    pub(crate) fn run(self, reports: OwnedFd) -> ! {
        let mut reports = Outgoing::new(File::from(reports), Generation(0));
        let Err(failure) = self.confine_and_execute(&mut reports);
        give_up(reports, &failure)
    }

    fn confine_and_execute(self, reports: &mut Outgoing<File, BrokerReport>) -> Result<Infallible, Failure> {
        setsid().map_err(at(Stage::Session))?;
        if self.confinement.terminal {
            terminal::take_control().map_err(at(Stage::Session))?;
        }
        default_signals().map_err(at(Stage::Session))?;
        privilege::no_core_dumps().map_err(at(Stage::Session))?;
        let mut bounds = self.bounds;
        if let (Some(most), Tier::Full) = (self.confinement.bounds.processes, self.ruleset.tier) {
            let limited = privilege::limit_processes(most).map_err(at(Stage::Session))?;
            bounds.processes = limited.into_iter().chain(bounds.processes).min();
        }
        die_with(self.surroundings.broker())?;
        system::set_no_new_privs().map_err(at(Stage::Privileges))?;
        let Self { confinement, ruleset, surroundings, programs, rules, command, .. } = self;
        let of_calls =
            || try_all(&Attempts::of_calls(&ruleset.net, ruleset.tier, ruleset.platform, surroundings));
        let early = matches!(surroundings, Surroundings::Floor { .. });
        let mut tried = vec![];
        if early {
            // Attached before the rules arrive: the broker, not this process, opens the files of the rules.
            give_up_calls(programs)?;
            // The mediator reads the memory of this process.
            system::make_dumpable().map_err(at(Stage::Start))?;
            tried.extend(of_calls()?);
        }
        let (domain, plan) = rules.finish(ruleset)?;
        if !early {
            privilege::drop_capabilities().map_err(at(Stage::Capabilities))?;
            give_up_calls(programs)?;
        }
        let of_rules = Attempts::of_rules(&plan, ruleset.platform, surroundings);
        domain.enter().map_err(at(Stage::Landlock))?;
        if let (Some(untried), false) = (of_rules.untried.first(), confinement.allow_degraded) {
            return Err(Stage::Attempt.failed(untried));
        }
        tried.extend(try_all(&of_rules)?);
        if !early {
            tried.extend(of_calls()?);
        }
        let report = RulesetReport {
            tier: ruleset.tier,
            landlock_abi: ruleset.platform.abi,
            rules: domain.rules(),
            seccomp_rules: ruleset.seccomp_rules(),
            bounds,
            no_full_tier: ruleset.no_full_tier.clone(),
            missing: ruleset.missing.iter().chain(&of_rules.untried).cloned().collect(),
            attempts: tried,
        };
        reports
            .send(&BrokerReport::Started { pid: std::process::id(), ruleset: report })
            .map_err(at(Stage::Report))?;
        execute(command, &ruleset.environment)
    }
}

/// Changes to the project directory. Fails if it could not be opened or cannot be entered.
pub(crate) fn enter(project: &WirePath, directory: io::Result<impl AsFd>) -> Result<(), Failure> {
    let entered = directory.and_then(|directory| Ok(fchdir(directory)?));
    entered.map_err(|error| no_entry(project, &error))
}

pub(super) fn no_entry(project: &WirePath, error: &io::Error) -> Failure {
    Stage::Directory.failed(format!("cannot enter {project}: {error}"))
}

/// Attaches seccomp filters. To root, they deny openat2, so files of rules must have been opened before.
fn give_up_calls(programs: &[seccomp::Program]) -> Result<(), Failure> {
    programs.iter().try_for_each(seccomp::Program::attach).map_err(at(Stage::Seccomp))
}

/// Tries acts that the confinement forbids. Fails if one of them is not denied.
fn try_all(attempts: &Attempts<'_>) -> Result<Vec<Attempt>, Failure> {
    let tried = attempts.run();
    if let Some(Attempt { act, errno, .. }) = tried.iter().find(|attempt| !attempt.denied) {
        return Err(Stage::Attempt.failed(format!("\"{act}\" was not denied (error {errno})")));
    }
    Ok(tried)
}

pub(crate) fn give_up(mut reports: Outgoing<File, BrokerReport>, failure: &Failure) -> ! {
    // The broker prints and reports the failure; without a broker there is no reader.
    drop(reports.send(&failure.report()));
    system::exit(failure.stage.code())
}

fn die_with(broker: pid_t) -> Result<(), Failure> {
    system::set_parent_death_signal(libc::SIGKILL).map_err(at(Stage::Parent))?;
    if getppid().as_raw() == broker { Ok(()) } else { Err(Stage::Parent.failed("the broker is gone")) }
}

/// Resets the program's signals: Rust ignores SIGPIPE, and the broker blocks the signals that it waits for.
pub(crate) fn default_signals() -> nix::Result<()> {
    for signal in
        [Signal::SIGPIPE, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP, Signal::SIGTERM, Signal::SIGCHLD]
    {
        system::reset_action(signal)?;
    }
    SigSet::empty().thread_set_mask()
}
