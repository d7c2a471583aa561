//! `bailiwick sandbox`: a command under exactly the rights that an agent's command would have.

mod explain;
mod restored;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Duration;

use ipc::confinement::{BrokerReport, Confinement, Tier};
use ipc::id::Generation;
use ipc::pipe::AsyncIncoming;
use ipc::rights::{Network, Rights};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::explain::explain;
use self::restored::restored;
use super::args::{AccessArg, SandboxArgs};
use super::exit::Exit;
use super::setup::{Setup, SetupError};
use super::signals::Endings;
use super::terminal::{Relay, Streams};
use crate::directories::Directories;
use crate::gate::ApprovalMode;
use crate::monitor::{
    BrokerProcess, Ended, Launch, Launched, SpawnError, Stdio, end_orphans, inherit_orphans,
};
use crate::tripwire::Tripwire;

/// How much of the command's errors is read for denials: the end of them.
const REMEMBERED: usize = 16 << 10;

/// Runs the command; gives its status.
pub(super) async fn run(args: SandboxArgs) -> Exit {
    let (setup, running) = match start(args).await {
        Ok(started) => started,
        Err(error) => {
            super::complain(&error);
            return Exit::NoSandbox;
        }
    };
    let rights = running.rights.clone();
    match attend(running).await {
        Ok(Report { status, errors, tier: Some(tier) }) => {
            explain(&setup, rights, tier, status, &errors);
            Exit::Status(status)
        }
        // sandbox-exec has said on standard error at which stage it stopped.
        Ok(Report { tier: None, .. }) => {
            super::say(NOT_STARTED);
            Exit::NoSandbox
        }
        Err(error) => {
            super::complain(&error);
            Exit::Internal
        }
    }
}

/// Why the command was not started.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("cannot keep what the host runs later: {0}")]
    Tripwire(io::Error),
    #[error("cannot look after a command: {0}")]
    System(#[from] io::Error),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

/// A command that runs, and what is to be done when it does no longer.
struct Running {
    rights: Rights,
    launched: Launched,
    relay: Option<Relay>,
    endings: Endings,
    tripwire: Option<Tripwire>,
}

async fn start(args: SandboxArgs) -> Result<(Setup, Running), StartError> {
    let mode = match args.access {
        AccessArg::Write => ApprovalMode::Auto,
        AccessArg::Read => ApprovalMode::Deny,
    };
    let directories = Directories::of_process().map_err(SetupError::from)?;
    let setup = Setup::new(directories, &args.directory, mode, &args.confinement)?;
    // Nothing can have changed yet: a signal ends us here.
    let tripwire = setup.watch.as_ref().map(Tripwire::set).transpose().map_err(StartError::Tripwire)?;
    // From here on none does before what changed is put back.
    let endings = Endings::new()?;
    inherit_orphans().map_err(io::Error::from)?;
    let rights = rights(&setup, args.access);
    let confinement =
        Confinement { read_only: args.access == AccessArg::Read, ..setup.confinement(rights.clone()) };
    let (launched, relay) = launch(&setup, confinement, args.command).await?;
    Ok((setup, Running { rights, launched, relay, endings, tripwire }))
}

fn rights(setup: &Setup, access: AccessArg) -> Rights {
    let standing = setup.policy.standing();
    match access {
        AccessArg::Write => standing,
        AccessArg::Read => Rights { net: Network::Off, ..standing },
    }
}

/// Starts the command, with a terminal of its own if we have one.
async fn launch(
    setup: &Setup,
    confinement: Confinement,
    command: Vec<OsString>,
) -> Result<(Launched, Option<Relay>), SpawnError> {
    let (Streams { stdin, stdout, stderr }, relay) = Relay::prepare(confinement.identity)?;
    let confinement = Confinement { terminal: relay.is_some(), ..confinement };
    let launch = Launch { confinement, command, stdio: Stdio::Given { stdin, stdout, stderr } };
    Ok((setup.spawner.spawn(launch).await?, relay))
}

/// What a person can do about a command that never ran.
const NOT_STARTED: &str =
    "the command was not started\n  next: bailiwick doctor shows what is missing on this machine";

struct Report {
    /// What holds the command; absent if it never started.
    tier: Option<Tier>,
    /// The command's status.
    status: u8,
    /// The end of what it wrote to standard error, or to its terminal.
    errors: Vec<u8>,
}

/// Relays errors, keys and signals until the command is gone, and puts back what the host would run later.
async fn attend(running: Running) -> io::Result<Report> {
    let Running { launched, mut relay, mut endings, tripwire, .. } = running;
    let followed = follow(launched, relay.as_mut(), &mut endings).await;
    if !matches!(followed, Ok(Followed { ended: Ended::Exited(_), .. })) {
        // Broker or supervisor failed: what cleared its own death signal is ours now. The broker ends everything itself
        // otherwise.
        end_orphans();
    }
    // Nothing lives that could change it again. It waits for nobody's terminal, and the runtime has nothing better to do.
    let found = tripwire.map(|mut tripwire| tripwire.check_everything()).unwrap_or_default();
    let shown = rest(relay, &mut endings).await;
    let report = match followed {
        Ok(followed) => Ok(followed.report(shown).await),
        Err(error) => Err(error),
    };
    for line in restored(&found) {
        super::say(&line);
    }
    report
}

/// A command's end.
struct Followed {
    tier: Option<Tier>,
    ended: Ended,
    /// Passes on what is left of its standard error.
    errors: Option<JoinHandle<Tail>>,
}

impl Followed {
    /// Waits until everything is passed on; `shown` is what its terminal showed last.
    async fn report(self, shown: Tail) -> Report {
        let said = match self.errors {
            // Everything that could write is gone, so the pipe ends at once.
            Some(errors) => {
                timeout(Duration::from_secs(2), errors).await.ok().and_then(Result::ok).unwrap_or_default()
            }
            None => shown,
        };
        let status = match self.ended {
            Ended::Exited(code) => code,
            Ended::Signalled(signal) => 128 + signal,
        };
        Report { tier: self.tier, status: u8::try_from(status).unwrap_or(1), errors: said.0.into() }
    }
}

async fn follow(
    launched: Launched,
    mut relay: Option<&mut Relay>,
    endings: &mut Endings,
) -> io::Result<Followed> {
    let broker = BrokerProcess::new(launched.pidfd)?;
    let errors = launched.stderr.map(pipe::Receiver::from_owned_fd).transpose()?;
    let errors = errors.map(|errors| tokio::spawn(pass_on(errors)));
    let mut reports =
        AsyncIncoming::new(pipe::Receiver::from_owned_fd(launched.status)?, Generation::default());
    if let Some(relay) = &mut relay {
        relay.engage()?;
    }
    let (tier, ended) = wait(&broker, &mut reports, endings, relay).await?;
    Ok(Followed { tier, ended, errors })
}

/// Shows what is left on the command's terminal, and gives the user's back.
async fn rest(relay: Option<Relay>, endings: &mut Endings) -> Tail {
    let Some(relay) = relay else { return Tail::default() };
    tokio::select! {
        shown = relay.finish() => shown,
        // The terminal stands still, and nobody wants the rest.
        _ = endings.next() => Tail::default(),
    }
}

/// Waits for the command's end; what would end us ends it first. Also what holds it, if it ever started.
async fn wait(
    broker: &BrokerProcess,
    reports: &mut Reports,
    endings: &mut Endings,
    mut relay: Option<&mut Relay>,
) -> io::Result<(Option<Tier>, Ended)> {
    let mut report = None;
    let ended = loop {
        tokio::select! {
            ended = broker.wait() => break ended?,
            signal = endings.next() => {
                broker.end().await?;
                break Ended::Signalled(signal);
            }
            first = reports.receive(), if report.is_none() => {
                report = Some(note_start(first.ok().flatten(), relay.as_deref_mut()));
            }
            () = attend_terminal(relay.as_deref_mut()) => {}
        }
    };
    let tier = match report {
        Some(tier) => tier,
        None => note_start(reports.receive().await.ok().flatten(), None),
    };
    Ok((tier, ended))
}

type Reports = AsyncIncoming<pipe::Receiver, BrokerReport>;

/// The tier that holds the command, if the broker's first report says that it runs.
fn note_start(report: Option<BrokerReport>, relay: Option<&mut Relay>) -> Option<Tier> {
    let Some(BrokerReport::Started { pid, ruleset }) = report else { return None };
    if let Some(relay) = relay {
        relay.started(pid);
    }
    Some(ruleset.tier)
}

async fn attend_terminal(relay: Option<&mut Relay>) {
    match relay {
        Some(relay) => relay.attend().await,
        None => std::future::pending().await,
    }
}

/// The end of what a command wrote.
#[derive(Debug, Default)]
pub(super) struct Tail(VecDeque<u8>);

impl Tail {
    /// Appends, and forgets what is too long ago.
    pub(super) fn remember(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        let surplus = self.0.len().saturating_sub(REMEMBERED);
        self.0.drain(..surplus);
    }
}

/// Passes standard error on as it comes, and remembers its end.
async fn pass_on(mut stderr: pipe::Receiver) -> Tail {
    let mut tail = Tail::default();
    let mut buffer = [0; 8 << 10];
    while let Ok(read) = stderr.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        // Nobody may be reading any more; the command goes on all the same.
        let _ = io::stderr().write_all(&buffer[..read]);
        tail.remember(&buffer[..read]);
    }
    tail
}
