//! PID 1 of the full tier's namespaces: builds the file tree, forks the program, reaps every ended process. When it
//! ends, the kernel ends every process in its pid namespace. The kernel kills it when the stub dies, the process that
//! waits in the host's namespaces.

#![expect(unsafe_code, reason = "the program shares the table of descriptors until its filter is attached")]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use ipc::confinement::Confinement;
use ipc::id::Generation;
use ipc::pipe::Outgoing;
use nix::libc::{self, pid_t};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use crate::attempt::Surroundings;
use crate::broker::{self, Reports, exit_code};
use crate::cgroup::Cgroup;
use crate::descendants::{self, Waited};
use crate::domain::{Domain, open_path};
use crate::handover::Handover;
use crate::hosts::{self, Entrances, NamedHosts};
use crate::launch::{Awaited, LaunchedProgram, Ruleset, enter, enter_scopes, give_up};
use crate::mediate::{Listeners, Mediation, Mediator, Refusals};
use crate::namespace::layout::Layout;
use crate::namespace::resolving::host_name;
use crate::namespace::{machine, network, tree};
use crate::privilege;
use crate::stage::{Failure, Stage};
use crate::system;
use crate::system::process::fork_sharing_descriptors;

pub(crate) struct Init<'a> {
    pub(crate) confinement: &'a Confinement,
    pub(crate) command: &'a [OsString],
    pub(crate) ruleset: &'a Ruleset,
    pub(crate) layout: &'a Layout,
    pub(crate) stub: pid_t,
    pub(crate) group: Option<&'a Cgroup>,
    pub(crate) status: &'a Reports,
    pub(crate) gateway: Option<OwnedFd>,
}

impl Init<'_> {
    /// Runs init. It reads a byte from `mapped` once its user ids are mapped, writes failures to `told`, and passes
    /// `meet` to the program, which sends the stub a byte.
    pub(crate) fn run(self, mapped: OwnedFd, told: OwnedFd, meet: OwnedFd, rules: Awaited) -> ! {
        let failure = match self.begin(mapped, &told, meet, rules) {
            Ok(watched) => {
                drop(told);
                // Ends the pid namespace as well.
                system::exit(watched.watch())
            }
            Err(failure) => failure,
        };
        give_up(Outgoing::new(File::from(told), Generation(0)), &failure)
    }

    fn begin(
        mut self,
        mapped: OwnedFd,
        told: &OwnedFd,
        meet: OwnedFd,
        rules: Awaited,
    ) -> Result<Watched, Failure> {
        system::set_parent_death_signal(libc::SIGKILL).map_err(at(Stage::Parent))?;
        // While this process is in the host's network namespace: its unix sockets are reached by their paths.
        let listeners = Listeners::here();
        // The slowest of the namespaces, made while the stub does its part. Needs no ids.
        let gateway = self.gateway.take();
        let hosts = self.ruleset.net.hosts();
        let networks = (!self.ruleset.net.is_the_machines()).then(|| network::separate(hosts)).transpose();
        // The stub lived when it wrote this, and from now on its death is ours.
        File::from(mapped)
            .read_exact(&mut [0])
            .map_err(|_| Stage::Parent.failed("the process that started this one is gone"))?;
        let networks = networks.map_err(|refusal| refusal.failure())?;
        let ports = hosts.map(|hosts| hosts::ports(hosts, self.confinement.asks_hosts));
        let (own, entrances) = machine::prepare(networks, ports.as_ref(), &self.layout.windows)
            .map_err(|refusal| refusal.failure())?;
        let witness = tree::build(self.layout, own).map_err(at(Stage::Mounts))?;
        let awaited: SigSet = [Signal::SIGCHLD, Signal::SIGINT].into_iter().collect();
        // The program has the same descriptors until it executes, but this one closes on exec.
        let signals = SignalFd::with_flags(&awaited, SfdFlags::SFD_CLOEXEC);
        let signals = signals.map_err(at(Stage::Start))?;
        let filter = self.ruleset.mediation.as_ref().map(Mediation::filter);
        let handover = Handover::new().map_err(at(Stage::Start))?;
        // For init and the program.
        system::set_no_new_privs().map_err(at(Stage::Privileges))?;
        if self.ruleset.is_scoped() {
            // From here on nothing can be mounted any more.
            enter_scopes(self.ruleset, |scopes| scopes.map_or(Ok(()), Domain::enter))?;
        }
        privilege::drop_bounds().map_err(at(Stage::Capabilities))?;
        // SAFETY: this process has one thread, and both sides of the handover keep to what it asks.
        let (program, group) = unsafe { fork_sharing_descriptors(self.group) }.map_err(at(Stage::Start))?;
        if let Some(program) = program {
            let listener = handover.take(program).map_err(at(Stage::Broker))?;
            let domain = rules.domain()?;
            drop(rules);
            broker::let_go_of_pipes(true).and_then(|()| broker::retire()).map_err(at(Stage::Broker))?;
            let refusals = broker::refusals(program, self.status, || listeners)?;
            let way = gateway.zip(entrances);
            return Ok(Watched {
                program,
                signals,
                _mediator: self.mediate(listener, domain, refusals, way)?,
            });
        }
        handover.give(filter.as_ref()).map_err(at(Stage::Seccomp))?;
        introduce(meet).map_err(at(Stage::Start))?;
        let surroundings = Surroundings::Full { stub: self.stub, witness: witness.as_fd() };
        let reports = told.try_clone().map_err(at(Stage::Start))?;
        let Self { confinement, command, ruleset, .. } = self;
        enter(&confinement.project, open_path(confinement.project.as_path(), true))?;
        let bounds = group.map(Cgroup::bounds).unwrap_or_default();
        let programs = &ruleset.programs;
        LaunchedProgram { confinement, command, ruleset, surroundings, programs, rules, bounds }.run(reports)
    }

    /// Starts the mediator, and the thread that accepts connections to hosts. Must be called after the last fork, since
    /// a process with threads must not fork.
    fn mediate(
        &self,
        listener: Option<OwnedFd>,
        domain: Domain,
        refusals: Refusals,
        way: Option<(OwnedFd, Entrances)>,
    ) -> Result<Option<Mediator>, Failure> {
        let hosts = self.ruleset.net.hosts().cloned();
        let hosts = hosts.map(|hosts| NamedHosts::new(hosts, host_name()));
        let asks = self.confinement.asks_hosts;
        let hosts = hosts.map(|hosts| Arc::new(if asks { hosts.asking() } else { hosts }));
        let mediation = self.ruleset.mediation.clone().map(|mediation| mediation.with_domain(domain));
        let mediation = mediation.map(|mediation| Mediation { hosts: hosts.clone(), ..mediation });
        let started = listener
            .zip(mediation)
            .map(|(listener, mediation)| Mediator::start(listener, mediation, refusals));
        let mediator = started.transpose().map_err(at(Stage::Broker))?;
        if let Some((hosts, (gateway, entrances))) = hosts.zip(way) {
            hosts::start(entrances, Arc::clone(&hosts), hosts, gateway).map_err(at(Stage::Broker))?;
        }
        Ok(mediator)
    }
}

struct Watched {
    program: Pid,
    signals: SignalFd,
    _mediator: Option<Mediator>,
}

impl Watched {
    fn watch(&self) -> u8 {
        loop {
            while let Waited::Ended(pid, status) = descendants::reap_one(false) {
                if pid == self.program.as_raw() {
                    return exit_code(status);
                }
            }
            match self.signals.read_signal() {
                // Only signals of the stub, which has no number in here: the program, and its descendants,
                // have one each.
                Ok(Some(signal))
                    if signal.ssi_signo == libc::SIGINT.cast_unsigned() && signal.ssi_pid == 0 =>
                {
                    // The program leads its own process group.
                    let _gone = killpg(self.program, Signal::SIGINT);
                }
                _ => {}
            }
        }
    }
}

/// Sends the stub a byte; the kernel attaches this process's pid (`unix(7)`).
fn introduce(meet: OwnedFd) -> io::Result<()> {
    io::Write::write_all(&mut File::from(meet), &[1])
}

fn at<E: std::fmt::Display>(stage: Stage) -> impl Fn(E) -> Failure {
    move |error| stage.failed(error)
}
