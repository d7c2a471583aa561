//! `bailiwick sandbox`: a command under exactly the rights that an agent's command would have.

use std::collections::VecDeque;
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
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use super::args::{AccessArg, SandboxArgs};
use super::exit::Exit;
use super::setup::{Setup, SetupError};
use crate::directories::Directories;
use crate::gate::{ApprovalMode, Standing};
use crate::monitor::{BrokerProcess, Ended, Launch, Launched, Stdio};

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
    let launch = Launch {
        confinement: Confinement {
            read_only: args.access == AccessArg::Read,
            ..setup.confinement(rights.clone())
        },
        command: args.command,
        stdio: Stdio::Terminal,
    };
    let launched = match setup.spawner.spawn(launch).await {
        Ok(launched) => launched,
        Err(error) => {
            super::complain(&error);
            return Exit::NoSandbox;
        }
    };
    match attend(launched).await {
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

struct Report {
    /// What holds the command; absent if it never started.
    tier: Option<Tier>,
    /// The command's status.
    status: u8,
    /// The end of what it wrote to standard error.
    errors: Vec<u8>,
}

/// Relays errors and signals until the command is gone.
async fn attend(launched: Launched) -> io::Result<Report> {
    let broker = BrokerProcess::new(launched.pidfd)?;
    let stderr = launched.stderr.ok_or(io::ErrorKind::BrokenPipe)?;
    let relay = tokio::spawn(relay(pipe::Receiver::from_owned_fd(stderr)?));
    let mut reports: AsyncIncoming<_, BrokerReport> =
        AsyncIncoming::new(pipe::Receiver::from_owned_fd(launched.status)?, Generation::default());
    let tier = match reports.receive().await {
        Ok(Some(BrokerReport::Started { ruleset, .. })) => Some(ruleset.tier),
        _ => None,
    };
    let ended = wait(&broker).await?;
    // Everything that could write is gone, so the pipe ends at once.
    let errors = timeout(Duration::from_secs(2), relay).await;
    let errors = errors.ok().and_then(Result::ok).unwrap_or_default();
    let status = match ended {
        Ended::Exited(code) => code,
        Ended::Signalled(signal) => 128 + signal,
    };
    Ok(Report { tier, status: u8::try_from(status).unwrap_or(1), errors })
}

/// Waits for the command's end; what would end us ends it first.
async fn wait(broker: &BrokerProcess) -> io::Result<Ended> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::select! {
        ended = broker.wait() => ended,
        _ = interrupt.recv() => { broker.end().await?; Ok(Ended::Signalled(libc::SIGINT)) }
        _ = terminate.recv() => { broker.end().await?; Ok(Ended::Signalled(libc::SIGTERM)) }
        _ = hangup.recv() => { broker.end().await?; Ok(Ended::Signalled(libc::SIGHUP)) }
    }
}

/// Passes standard error on as it comes, and remembers its end.
async fn relay(mut stderr: pipe::Receiver) -> Vec<u8> {
    let mut remembered = VecDeque::new();
    let mut buffer = [0; 8 << 10];
    while let Ok(read) = stderr.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        // Nobody may be reading any more; the command goes on all the same.
        let _ = io::stderr().write_all(&buffer[..read]);
        remembered.extend(&buffer[..read]);
        let surplus = remembered.len().saturating_sub(REMEMBERED);
        remembered.drain(..surplus);
    }
    remembered.into()
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
