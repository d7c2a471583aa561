//! `bailiwick sandbox`: a command under exactly the rights that an agent's command would have.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Duration;

use ipc::confinement::{BrokerReport, Confinement, Tier};
use ipc::denial::{Denial, Object, Operation};
use ipc::id::Generation;
use ipc::pipe::AsyncIncoming;
use ipc::rights::{Network, Rights};
use ipc::tool::{Access, CommandExit, CommandResult, ShellExec};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::args::{AccessArg, SandboxArgs};
use super::exit::Exit;
use super::setup::{Setup, SetupError};
use super::signals::Endings;
use super::terminal::{Relay, Streams};
use crate::directories::Directories;
use crate::gate::{ApprovalMode, Standing};
use crate::monitor::{
    BrokerProcess, Ended, Launch, Launched, SpawnError, Stdio, end_orphans, inherit_orphans,
};

/// How much of the command's errors is read for denials: the end of them.
const REMEMBERED: usize = 16 << 10;

/// Runs the command; gives its status.
pub(super) async fn run(args: SandboxArgs) -> Exit {
    let mode = match args.access {
        AccessArg::Write => ApprovalMode::Auto,
        AccessArg::Read => ApprovalMode::Deny,
    };
    let setup = Directories::of_process()
        .map_err(SetupError::from)
        .and_then(|directories| Setup::new(directories, &args.directory, mode, &args.confinement));
    let setup = match setup {
        Ok(setup) => setup,
        Err(error) => {
            super::complain(&error);
            // Whatever went wrong, the command was not started.
            return Exit::NoSandbox;
        }
    };
    let rights = rights(&setup, args.access);
    let confinement =
        Confinement { read_only: args.access == AccessArg::Read, ..setup.confinement(rights.clone()) };
    let (launched, relay) = match launch(&setup, confinement, args.command).await {
        Ok(launched) => launched,
        Err(error) => {
            super::complain(&error);
            return Exit::NoSandbox;
        }
    };
    match attend(launched, relay).await {
        Ok(report) => match report.tier {
            Some(tier) => {
                explain(&setup, rights, tier, &report);
                Exit::Status(report.status)
            }
            // sandbox-exec has said on standard error at which stage it stopped.
            None => Exit::NoSandbox,
        },
        Err(error) => {
            super::complain(&error);
            Exit::Internal
        }
    }
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
    let (Streams { stdin, stdout, stderr }, relay) = Relay::prepare()?;
    let confinement = Confinement { terminal: relay.is_some(), ..confinement };
    let launch = Launch { confinement, command, stdio: Stdio::Given { stdin, stdout, stderr } };
    Ok((setup.spawner.spawn(launch).await?, relay))
}

struct Report {
    /// What holds the command; absent if it never started.
    tier: Option<Tier>,
    /// The command's status.
    status: u8,
    /// The end of what it wrote to standard error, or to its terminal.
    errors: Vec<u8>,
}

/// Relays errors, keys and signals until the command is gone.
async fn attend(launched: Launched, mut relay: Option<Relay>) -> io::Result<Report> {
    let broker = BrokerProcess::new(launched.pidfd)?;
    let errors = launched.stderr.map(pipe::Receiver::from_owned_fd).transpose()?;
    let errors = errors.map(|errors| tokio::spawn(pass_on(errors)));
    let mut reports =
        AsyncIncoming::new(pipe::Receiver::from_owned_fd(launched.status)?, Generation::default());
    let mut endings = Endings::new()?;
    if let Some(relay) = &mut relay {
        relay.engage()?;
    }
    inherit_orphans()?;
    let (tier, ended) = wait(&broker, &mut reports, &mut endings, relay.as_mut()).await?;
    if !matches!(ended, Ended::Exited(_)) {
        // The broker was killed: what cleared its own death signal is ours now. It ends everything itself otherwise.
        end_orphans();
    }
    let mut said = Tail::default();
    if let Some(relay) = relay {
        tokio::select! {
            shown = relay.finish() => said = shown,
            // The terminal stands still, and nobody wants the rest.
            _ = endings.next() => {}
        }
    }
    if let Some(errors) = errors {
        // Everything that could write is gone, so the pipe ends at once.
        said = timeout(Duration::from_secs(2), errors).await.ok().and_then(Result::ok).unwrap_or_default();
    }
    let status = match ended {
        Ended::Exited(code) => code,
        Ended::Signalled(signal) => 128 + signal,
    };
    Ok(Report { tier, status: u8::try_from(status).unwrap_or(1), errors: said.0.into() })
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

/// Says which right a failed command seems to have lacked.
fn explain(setup: &Setup, rights: Rights, tier: Tier, Report { status, errors, .. }: &Report) {
    let standing = Standing { rights, ..setup.standing() }.seen_in(tier);
    let call = ShellExec {
        command: String::new(),
        access: Access::Standing,
        network: None,
        cwd: None,
        timeout_ms: None,
    };
    let result = CommandResult {
        exit: CommandExit::Code((*status).into()),
        head: String::from_utf8_lossy(errors).into_owned(),
        omitted_bytes: 0,
        tail: String::new(),
        duration_ms: 0,
    };
    if let Some(mut denial) = standing.likely(&call, &result) {
        denial.grant = grant(&denial, &standing);
        super::say(&format!("{denial} · rights: {}", standing.line()));
    }
}

/// What would allow it, in the words of this command: a flag of ours, with a path that exists.
fn grant(denial: &Denial, standing: &Standing) -> Option<String> {
    match (&denial.object, denial.operation) {
        (Object::Path(path), Operation::Write) if path.is_within(&standing.project) => {
            denial.grant.as_ref().map(|_| "--access write".to_owned())
        }
        (Object::Path(path), Operation::Write) => {
            // The command is the user's own, and so is the look at what exists.
            let nearest = path.as_path().ancestors().find(|place| place.exists())?;
            denial.grant.as_ref().and_then(|_| standing.write_grant(&nearest.into()))
        }
        _ => denial.grant.clone(),
    }
}
