//! The child's whole life before exec, the same in both tiers.

use std::convert::Infallible;
use std::fs::File;
use std::os::fd::OwnedFd;

use ipc::confinement::{Attempt, BrokerReport, RulesetReport};
use ipc::id::Generation;
use ipc::pipe::Outgoing;
use nix::libc::{self, pid_t};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{fchdir, getppid, setsid};

use super::execute::execute;
use super::rules::Awaited;
use super::ruleset::Ruleset;
use super::{Launch, at};
use crate::attempt::{Attempts, Surroundings};
use crate::privilege;
use crate::seccomp;
use crate::stage::{Failure, Stage};
use crate::system;
use crate::terminal;

/// A process on its way to become the program.
pub(crate) struct Program<'a> {
    pub(crate) launch: &'a Launch,
    pub(crate) ruleset: &'a Ruleset,
    pub(crate) surroundings: Surroundings<'a>,
    /// Its rules, which its parent makes.
    pub(crate) rules: Awaited,
}

impl Program<'_> {
    /// Confines this process and executes the program; what fails is reported.
    pub(crate) fn run(self, reports: OwnedFd) -> ! {
        let mut reports = Outgoing::new(File::from(reports), Generation(0));
        let Self { launch, ruleset, surroundings, rules } = self;
        let start = Start { launch, ruleset, surroundings };
        let Err(failure) = start.confine_and_execute(rules, &mut reports);
        give_up(reports, &failure)
    }
}

struct Start<'a> {
    launch: &'a Launch,
    ruleset: &'a Ruleset,
    surroundings: Surroundings<'a>,
}

impl Start<'_> {
    fn confine_and_execute(
        &self,
        rules: Awaited,
        reports: &mut Outgoing<File, BrokerReport>,
    ) -> Result<Infallible, Failure> {
        setsid().map_err(at(Stage::Session))?;
        if self.launch.confinement.terminal {
            terminal::take_control().map_err(at(Stage::Session))?;
        }
        default_signals().map_err(at(Stage::Session))?;
        privilege::no_core_dumps().map_err(at(Stage::Session))?;
        die_with(self.surroundings.broker())?;
        self.enter_project()?;
        system::set_no_new_privs().map_err(at(Stage::Privileges))?;
        let early = matches!(self.surroundings, Surroundings::Floor { .. });
        if early {
            // The broker opens everything that a rule is on, and is still at it.
            self.give_up_calls()?;
        }
        let (domain, plan) = rules.finish(self.ruleset)?;
        if !early {
            self.give_up_calls()?;
        }
        let attempts = Attempts::choose(&plan, self.ruleset.platform, self.surroundings);
        // In the full tier the mounts refuse first.
        let domain = domain.recorded(early && self.launch.confinement.recorded);
        domain.enter().map_err(at(Stage::Landlock))?;
        let ruleset = self.attempt(&attempts, domain.rules())?;
        reports
            .send(&BrokerReport::Started { pid: std::process::id(), ruleset })
            .map_err(at(Stage::Report))?;
        execute(&self.launch.command, &self.ruleset.environment)
    }

    /// What makes rules has been opened by now: the filters have no openat2 for root, and no capability opens what is somebody
    /// else's.
    fn give_up_calls(&self) -> Result<(), Failure> {
        privilege::drop_capabilities().map_err(at(Stage::Capabilities))?;
        self.ruleset.programs.iter().try_for_each(seccomp::Program::attach).map_err(at(Stage::Seccomp))
    }

    fn enter_project(&self) -> Result<(), Failure> {
        let project = &self.launch.confinement.project;
        crate::domain::open_path(project.as_path(), true)
            .and_then(|directory| Ok(fchdir(directory)?))
            .map_err(|error| Stage::Directory.failed(format!("cannot enter {project}: {error}")))
    }

    /// Tries what must fail; the report, if it failed.
    fn attempt(&self, attempts: &Attempts<'_>, rules: u32) -> Result<RulesetReport, Failure> {
        let degraded = self.launch.confinement.allow_degraded;
        if let (Some(untried), false) = (attempts.untried.first(), degraded) {
            return Err(Stage::Attempt.failed(untried));
        }
        let tried = attempts.run();
        if let Some(attempt) = tried.iter().find(|attempt| !attempt.denied) {
            let Attempt { act, errno, .. } = attempt;
            return Err(Stage::Attempt.failed(format!("\"{act}\" was not denied (error {errno})")));
        }
        let mut missing = self.ruleset.missing.clone();
        missing.extend(attempts.untried.iter().cloned());
        Ok(RulesetReport {
            tier: self.ruleset.tier,
            landlock_abi: self.ruleset.platform.abi,
            rules,
            seccomp_rules: self.ruleset.seccomp_rules(),
            missing,
            attempts: tried,
        })
    }
}

/// Says why there will be no program, and ends this process.
pub(crate) fn give_up(mut reports: Outgoing<File, BrokerReport>, failure: &Failure) -> ! {
    // The broker prints it and reports it; without a broker nobody is left to tell.
    drop(reports.send(&failure.report()));
    // SAFETY: ends the child without running what belongs to the parent's image.
    unsafe { libc::_exit(failure.stage.code().into()) }
}

fn die_with(broker: pid_t) -> Result<(), Failure> {
    system::set_parent_death_signal(libc::SIGKILL).map_err(at(Stage::Parent))?;
    if getppid().as_raw() == broker { Ok(()) } else { Err(Stage::Parent.failed("the broker is gone")) }
}

/// Rust ignores SIGPIPE, and the broker blocks what it waits for; a program expects neither.
fn default_signals() -> nix::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in
        [Signal::SIGPIPE, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP, Signal::SIGTERM, Signal::SIGCHLD]
    {
        // SAFETY: installs the default action; no handler is involved.
        unsafe { sigaction(signal, &default) }?;
    }
    SigSet::empty().thread_set_mask()
}
