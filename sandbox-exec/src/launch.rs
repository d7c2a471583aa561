//! A start, from rights to exec: the order of [`crate::stage`].
//!
//! The process that was started becomes the broker; its child is confined and becomes the program. The broker enters a domain
//! of its own that only bounds signals, so that at the end it can kill exactly what is beneath it.

use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ipc::confinement::{Attempt, BrokerReport, Confinement, RulesetReport, Tier};
use ipc::id::Generation;
use ipc::pipe::{Incoming, Outgoing};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc::{self, pid_t};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{ForkResult, execve, fork, getpid, getppid, pipe2, setsid};

use crate::attempt::Attempts;
pub use crate::broker::Reports;
use crate::broker::{Broker, SIGNALS};
use crate::compile::{self, Plan};
use crate::descendants::Bound;
use crate::domain::Domain;
use crate::environment;
use crate::platform::Platform;
use crate::privilege;
use crate::seccomp::{Policy, Program};
use crate::stage::{Failure, Stage};
use crate::system;
use crate::terminal;
use crate::tree::Host;

/// What a start needs beside the rights.
#[derive(Debug)]
pub struct Launch {
    /// What to confine to.
    pub confinement: Confinement,
    /// Whether to end with the process that started this one.
    pub die_with_parent: bool,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// Everything that the child needs, made before the fork.
struct Ruleset {
    environment: Vec<(OsString, OsString)>,
    platform: Platform,
    plan: Plan,
    domain: Domain,
    /// The standing program, and for one that only reads the one that is stacked on it.
    programs: Vec<Program>,
    missing: Vec<String>,
}

impl Launch {
    /// Confines and executes the program; its exit status once it and its descendants are gone.
    pub fn run(self, reports: &mut Reports) -> Result<u8, Failure> {
        self.start()?.watch(reports)
    }

    fn start(&self) -> Result<Broker, Failure> {
        let parent = getppid();
        let ruleset = self.compile()?;
        let (progress, reports) = pipe2(OFlag::O_CLOEXEC).map_err(at(Stage::Start))?;
        SIGNALS.iter().copied().collect::<SigSet>().thread_block().map_err(at(Stage::Start))?;
        system::set_subreaper().map_err(at(Stage::Start))?;
        if self.die_with_parent {
            system::set_parent_death_signal(libc::SIGTERM).map_err(at(Stage::Parent))?;
            if getppid() != parent {
                return Err(Stage::Parent.failed("the process that started this one is gone"));
            }
        }
        system::set_no_new_privs().map_err(at(Stage::Privileges))?;
        let signals = Domain::of_signals(ruleset.platform).map_err(at(Stage::Landlock))?;
        let bound = Bound::enter(signals.as_ref(), parent.as_raw()).map_err(at(Stage::Landlock))?;
        let broker = getpid().as_raw();
        // SAFETY: this process has one thread, so that its image is whole in the child.
        match unsafe { fork() }.map_err(at(Stage::Start))? {
            ForkResult::Parent { child } => {
                drop(reports);
                Ok(Broker::new(child, bound, Incoming::new(File::from(progress), Generation(0))))
            }
            ForkResult::Child => {
                drop(progress);
                self.become_program(&ruleset, broker, reports)
            }
        }
    }

    fn compile(&self) -> Result<Ruleset, Failure> {
        let Confinement { rights, temp, environment, allow_degraded, hidden_files, .. } = &self.confinement;
        let temp = temp.as_ref().map(AsRef::as_ref);
        let environment = environment::build(std::env::vars_os(), environment, temp);
        let platform = Platform::probe();
        let absent = platform.absent_layers();
        if !absent.is_empty() && !allow_degraded {
            let layers = absent.join("; ");
            return Err(Stage::Platform.failed(format!("{layers}; --allow-degraded starts all the same")));
        }
        let mut plan =
            compile::compile(rights, hidden_files, Tier::FloorUnmediated, &Host).map_err(at(Stage::Rules))?;
        if self.confinement.terminal {
            plan.allow_terminal(terminal::paths());
        }
        let domain = Domain::build(&plan, platform).map_err(at(Stage::Rules))?;
        let policy = Policy::of(rights.net, platform, Tier::FloorUnmediated);
        let mut programs = vec![];
        if platform.seccomp {
            programs.push(Program::standing(policy));
            if self.confinement.read_only {
                programs.push(Program::read_only(policy));
            }
        }
        let missing = platform.missing(rights);
        Ok(Ruleset { environment, platform, plan, domain, programs, missing })
    }

    /// The child's whole life before exec.
    fn become_program(&self, ruleset: &Ruleset, broker: pid_t, reports: OwnedFd) -> ! {
        let mut reports = Outgoing::new(File::from(reports), Generation(0));
        let Err(failure) = self.confine_and_execute(ruleset, broker, &mut reports);
        let (stage, code) = (failure.stage.to_string(), failure.stage.code());
        // The broker prints it and reports it; without a broker nobody is left to tell.
        drop(reports.send(&BrokerReport::Failed { code, stage, detail: failure.detail }));
        // SAFETY: ends the child without running what belongs to the parent's image.
        unsafe { libc::_exit(code.into()) }
    }

    fn confine_and_execute(
        &self,
        ruleset: &Ruleset,
        broker: pid_t,
        reports: &mut Outgoing<File, BrokerReport>,
    ) -> Result<Infallible, Failure> {
        setsid().map_err(at(Stage::Session))?;
        if self.confinement.terminal {
            terminal::take_control().map_err(at(Stage::Session))?;
        }
        default_signals().map_err(at(Stage::Session))?;
        privilege::no_core_dumps().map_err(at(Stage::Limits))?;
        system::set_parent_death_signal(libc::SIGKILL).map_err(at(Stage::Parent))?;
        if getppid().as_raw() != broker {
            return Err(Stage::Parent.failed("the broker is gone"));
        }
        let project = &self.confinement.project;
        crate::domain::open_path(project.as_path(), true)
            .and_then(|directory| Ok(nix::unistd::fchdir(directory)?))
            .map_err(|error| Stage::Directory.failed(format!("cannot enter {project}: {error}")))?;
        system::set_no_new_privs().map_err(at(Stage::Privileges))?;
        privilege::drop_capabilities().map_err(at(Stage::Capabilities))?;
        let attempts = Attempts::choose(&ruleset.plan, ruleset.platform, broker);
        ruleset.domain.enter().map_err(at(Stage::Landlock))?;
        ruleset.programs.iter().try_for_each(Program::attach).map_err(at(Stage::Seccomp))?;
        let report = self.attempt(ruleset, &attempts)?;
        reports
            .send(&BrokerReport::Started { pid: std::process::id(), ruleset: report })
            .map_err(at(Stage::Report))?;
        execute(&self.command, &ruleset.environment)
    }

    /// Tries what must fail; the report, if it failed.
    fn attempt(&self, ruleset: &Ruleset, attempts: &Attempts<'_>) -> Result<RulesetReport, Failure> {
        let degraded = self.confinement.allow_degraded;
        if let (Some(untried), false) = (attempts.untried.first(), degraded) {
            return Err(Stage::Attempt.failed(untried));
        }
        let tried = attempts.run();
        if let Some(attempt) = tried.iter().find(|attempt| !attempt.denied) {
            let Attempt { act, errno, .. } = attempt;
            return Err(Stage::Attempt.failed(format!("\"{act}\" was not denied (error {errno})")));
        }
        let mut missing = ruleset.missing.clone();
        missing.extend(attempts.untried.iter().cloned());
        Ok(RulesetReport {
            tier: Tier::FloorUnmediated,
            landlock_abi: ruleset.platform.abi,
            rules: ruleset.domain.rules(),
            seccomp_rules: ruleset.programs.iter().map(Program::rules).sum(),
            missing,
            attempts: tried,
        })
    }
}

fn at<E: std::fmt::Display>(stage: Stage) -> impl Fn(E) -> Failure {
    move |error| stage.failed(error)
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

/// Executes, searching `PATH` of the new environment as execvp(3) does.
fn execute(command: &[OsString], environment: &[(OsString, OsString)]) -> Result<Infallible, Failure> {
    let refuse = |name: &OsStr, error: &dyn std::fmt::Display| {
        Stage::Execute.failed(format!("cannot execute {}: {error}", name.display()))
    };
    let name = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let c_string = |bytes: &[u8]| CString::new(bytes).map_err(|_| refuse(name, &"a word holds a NUL byte"));
    let arguments = command.iter().map(|word| c_string(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
    let variables = environment
        .iter()
        .map(|(name, value)| c_string(&[name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect::<Result<Vec<_>, _>>()?;
    let mut worst = Errno::ENOENT;
    for candidate in candidates(name, environment) {
        let Err(errno) = execve(&c_string(candidate.as_os_str().as_bytes())?, &arguments, &variables);
        match errno {
            Errno::ENOENT | Errno::ENOTDIR => {}
            Errno::EACCES => worst = errno,
            _ => return Err(refuse(name, &io::Error::from(errno))),
        }
    }
    Err(refuse(name, &io::Error::from(worst)))
}

fn candidates(name: &OsStr, environment: &[(OsString, OsString)]) -> Vec<std::path::PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return vec![name.into()];
    }
    let path =
        environment.iter().find(|(variable, _)| variable == "PATH").map(|(_, value)| value.as_os_str());
    // What execvp(3) searches without PATH.
    let path = path.unwrap_or(OsStr::new("/bin:/usr/bin"));
    std::env::split_paths(path).map(|directory| Path::new(&directory).join(name)).collect()
}
