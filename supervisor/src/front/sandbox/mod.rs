//! `bailiwick sandbox`: runs a command with exactly the access of an agent's command.

mod explain;
mod restored;
mod stopped;
mod streams;
mod terminal;

use std::io::{self, IsTerminal};
use std::pin::pin;
use std::time::Duration;

use boundary::monitor::{
    BrokerProcess, Ended, Gateway, GatewayError, GuestLog, GuestOwner, HostUses, Launch, Launched,
    SpawnError, StatusPipe, Stdio, end_orphans, inherit_orphans, sandbox_code,
};
use boundary::tripwire::{Tripwire, Watch};
use gate::modes::ApprovalMode;
use ipc::confinement::{BrokerReport, Confinement, Tier};
use ipc::refusal::Refusal;
use ipc::rights::{Network, Rights};
use protocol::error_code::ErrorCode;
use protocol::event::HostUse;
use tokio::time::timeout;

use self::explain::{Finished, explain};
use self::restored::restored;
use self::stopped::{StopAsked, Stopped};
use self::streams::{AllPassed, CommandStreams, SandboxPassage, Tail};
use self::terminal::TerminalRelay;
use crate::engine::driver::{apart, read_down};
use crate::engine::place::{ConfinementOptions, Mode, ProjectSandbox, SetupError};
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::{complain, say, tell};
use crate::process::signals::{Endings, end_with};
use crate::settings::args::{AccessArg, SandboxArgs, of_confinement};
use crate::settings::config::SettingsError;
use crate::settings::config::Sources;

/// Time limit for passing on the remaining output after a signal.
const LEAVING: Duration = Duration::from_secs(2);

pub(crate) async fn run(args: SandboxArgs) -> Exit {
    let command = explain::text_of(&args.command);
    let asked = StopAsked {
        program: args.command.first().cloned().unwrap_or_default(),
        project: args.directory.clone(),
    };
    let (setup, running) = match start(args).await {
        Ok(started) => started,
        Err(SandboxStartError::Signal(signal)) => return Exit::by_signal(signal),
        Err(error) => {
            complain(&error.told());
            return Exit::NoSandbox;
        }
    };
    let rights = running.rights.clone();
    match attend(running).await {
        Ok(SandboxReport { status, errors, held: Ok(tier), refused }) => {
            explain(&setup, rights, tier, Finished { command, status, errors: &errors, refused });
            Exit::Status(status)
        }
        Ok(SandboxReport { held: Err(Stopped { signal: Some(signal), .. }), .. }) => Exit::by_signal(signal),
        // sandbox-exec has printed the failed step of the start on standard error.
        Ok(SandboxReport { held: Err(stopped), errors, .. }) => {
            let text = format!("the command was not started\n  hint: {}", stopped.hint(&asked));
            let code = sandbox_code(&String::from_utf8_lossy(&errors));
            say(&if stopped.is_of_the_machine() { code.mark(&text) } else { text });
            Exit::NoSandbox
        }
        Err(error) => {
            complain(&error);
            Exit::Internal
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum SandboxStartError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("cannot protect files (such as git hooks) that programs outside the sandbox run later: {0}")]
    Tripwire(io::Error),
    #[error("cannot pass the standard streams to the sandbox: {0}")]
    Streams(io::Error),
    #[error("cannot watch the command: {0}")]
    System(#[from] io::Error),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("the gateway to the hosts of --net did not start: {0}")]
    Gateway(GatewayError),
    #[error("ended by signal {0}")]
    Signal(i32),
}

impl SandboxStartError {
    fn told(&self) -> String {
        let is_asked_wrong = match self {
            Self::Settings(_) => true,
            Self::Setup(error) => error.exit() != Exit::NoSandbox,
            _ => false,
        };
        let words = self.to_string();
        if is_asked_wrong { words } else { ErrorCode::NoSandbox.mark(&words) }
    }
}

struct RunningCommand {
    rights: Rights,
    launched: Launched,
    gateway: Option<Gateway>,
    relay: Option<TerminalRelay>,
    passage: SandboxPassage,
    endings: Endings,
    tripwire: Option<Tripwire>,
}

async fn start(args: SandboxArgs) -> Result<(ProjectSandbox, RunningCommand), SandboxStartError> {
    // Signals are handled before anything exists that they could leave behind.
    let mut endings = Endings::new()?;
    args.batch.map_or(Ok(()), end_with)?;
    let mode = match args.access {
        AccessArg::Write => ApprovalMode::Auto,
        AccessArg::Read => ApprovalMode::Deny,
    };
    let directories = Directories::of_process().map_err(SetupError::from)?;
    let wanted = wanted(&directories, &args)?;
    let setup = ProjectSandbox::new(directories, &args.directory, Mode::fixed(mode), &wanted)?;
    let tripwire = match setup.watch.clone() {
        // This may wait until a command of another session has ended.
        Some(watch) => tokio::select! {
            set = apart(move || set(&watch)) => {
                Some(set.and_then(|set| set).map_err(SandboxStartError::Tripwire)?)
            }
            signal = endings.next() => return Err(SandboxStartError::Signal(signal)),
        },
        None => None,
    };
    inherit_orphans().map_err(io::Error::from)?;
    let rights = rights(&setup, args.access);
    let confinement =
        Confinement { read_only: args.access == AccessArg::Read, ..setup.confinement(rights.clone()) };
    if let Some(places) = setup.places() {
        tokio::select! {
            () = read_down(places, &confinement) => {}
            signal = endings.next() => return Err(SandboxStartError::Signal(signal)),
        }
    }
    let (on_terminal, relay) = TerminalRelay::prepare(confinement.identity)?;
    let (streams, passage) =
        SandboxPassage::prepare(on_terminal, confinement.identity).map_err(SandboxStartError::Streams)?;
    let confinement = Confinement { terminal: relay.is_some(), ..confinement };
    let launch = Launch { confinement, command: args.command, arguments: vec![], stdio: given(streams) };
    if let Some(signal) = endings.so_far().await {
        return Err(SandboxStartError::Signal(signal));
    }
    let mut launched = setup.spawner.spawn(launch).await?;
    let gateway = match launched.gateway.take() {
        Some(gateway) => {
            let nowhere = GuestLog::default();
            let ready = Gateway::ready(gateway, GuestOwner::default(), &nowhere);
            Some(ready.await.map_err(SandboxStartError::Gateway)?)
        }
        None => None,
    };
    Ok((setup, RunningCommand { rights, launched, gateway, relay, passage, endings, tripwire }))
}

/// Starts the tripwire: it records the protected files before the command runs.
fn set(watch: &Watch) -> io::Result<Tripwire> {
    let mut tripwire = Tripwire::set(watch)?;
    for line in restored(&tripwire.begin_call()?) {
        say(&line);
    }
    Ok(tripwire)
}

/// Returns the wanted confinement from flags and settings, without a question to the person.
fn wanted(directories: &Directories, args: &SandboxArgs) -> Result<ConfinementOptions, SettingsError> {
    let sources = Sources::read(directories, &args.directory)?;
    let flags = of_confinement(&args.confinement);
    let effective = sources.effective(&flags);
    tell(&sources.notices(&effective, &flags));
    let wanted = ConfinementOptions::new(&effective, &args.confinement).asking();
    let attended = io::stdin().is_terminal();
    Ok(ConfinementOptions { attended, ..wanted.of_batch(args.batch.is_some()) })
}

fn rights(setup: &ProjectSandbox, access: AccessArg) -> Rights {
    let standing = setup.policy.standing();
    match access {
        AccessArg::Write => standing,
        AccessArg::Read => Rights { net: Network::Off, ..standing },
    }
}

fn given(CommandStreams { stdin, stdout, stderr }: CommandStreams) -> Stdio {
    Stdio::Given { stdin, stdout, stderr }
}

struct SandboxReport {
    held: Result<Tier, Stopped>,
    status: u8,
    /// Last part of the command's output on standard error or on its terminal.
    errors: Vec<u8>,
    refused: Vec<Refusal>,
}

/// Passes keys and signals to the command. After its end, restores changed files that programs outside would execute.
async fn attend(running: RunningCommand) -> io::Result<SandboxReport> {
    let RunningCommand { launched, gateway, mut relay, passage, mut endings, tripwire, .. } = running;
    let followed = beside(gateway, follow(launched, relay.as_mut(), &mut endings)).await;
    if !matches!(followed, Ok(FollowedCommand { ended: Ended::Exited(_), .. })) {
        // If the broker or supervisor failed, processes without a death signal may remain. They are now our children.
        // Otherwise the broker ends everything.
        end_orphans();
    }
    // No process remains that could change these files again.
    let found = tripwire.map(|mut tripwire| tripwire.end()).unwrap_or_default();
    let interrupted = matches!(followed, Ok(FollowedCommand { ended: Ended::Signalled(_), .. }));
    let left = rest(relay, passage, &mut endings, interrupted).await;
    for line in restored(&found) {
        say(&line);
    }
    Ok(followed?.report(left))
}

/// Runs the command while its gateway runs. Reports hosts that could not be reached. Then ends the gateway.
async fn beside<T>(gateway: Option<Gateway>, command: impl Future<Output = T>) -> T {
    let Some(mut gateway) = gateway else { return command.await };
    let mut command = pin!(command);
    let mut uses = HostUses::default();
    let ended = loop {
        tokio::select! {
            ended = &mut command => break ended,
            report = gateway.next() => match report.map(|report| uses.count(report)) {
                Some(Some(HostUse { failure: None, .. }) | None) => {}
                Some(Some(failed)) => say(&failed.to_string()),
                None => {
                    say("the gateway to the hosts of --net has ended: no host can be reached");
                    break command.await;
                }
            },
        }
    };
    // An error means that the gateway's process has ended.
    let _ = gateway.end(Vec::new()).await;
    ended
}

struct FollowedCommand {
    started: Result<Tier, Stopped>,
    ended: Ended,
    refused: Vec<Refusal>,
}

impl FollowedCommand {
    fn report(self, Left { said, failure }: Left) -> SandboxReport {
        let status = match self.ended {
            Ended::Exited(code) => u8::try_from(code).unwrap_or(1),
            Ended::Signalled(signal) => Exit::by_signal(signal).code(),
        };
        if let Some(failure) = &failure {
            say(&format!("cannot write to standard output: {failure}"));
        }
        // The command may have succeeded although its output was not passed on completely.
        let status = if failure.is_some() && status == 0 { Exit::Internal.code() } else { status };
        SandboxReport { held: self.started, status, errors: said.into_bytes(), refused: self.refused }
    }
}

async fn follow(
    launched: Launched,
    mut relay: Option<&mut TerminalRelay>,
    endings: &mut Endings,
) -> io::Result<FollowedCommand> {
    let broker = BrokerProcess::new(launched.pidfd)?;
    let mut reports = StatusPipe::new(launched.status)?;
    if let Some(relay) = &mut relay {
        relay.engage()?;
    }
    let (started, ended) = wait(&broker, &mut reports, endings, relay).await?;
    Ok(FollowedCommand { started, ended, refused: reports.take() })
}

#[derive(Default)]
struct Left {
    /// Last part of the command's output on standard error or on its terminal.
    said: Tail,
    /// The error because of which standard output was not passed on completely; `None` if it was.
    failure: Option<io::Error>,
}

/// Passes on the output that remains after the command's end. After a signal this has a time limit.
async fn rest(
    relay: Option<TerminalRelay>,
    passage: SandboxPassage,
    endings: &mut Endings,
    interrupted: bool,
) -> Left {
    let everything = async {
        let shown = match relay {
            Some(relay) => relay.finish().await,
            None => Tail::default(),
        };
        let passed = if interrupted {
            timeout(LEAVING, passage.finish()).await.unwrap_or_default()
        } else {
            passage.finish().await
        };
        let AllPassed { errors, failure } = passed;
        Left { said: errors.unwrap_or(shown), failure }
    };
    tokio::select! {
        left = everything => left,
        // Nobody reads the output, and the person wants to end.
        _ = endings.next() => Left::default(),
    }
}

/// Waits until the command has ended. A signal that ends this process ends the command first.
async fn wait(
    broker: &BrokerProcess,
    reports: &mut StatusPipe,
    endings: &mut Endings,
    mut relay: Option<&mut TerminalRelay>,
) -> io::Result<(Result<Tier, Stopped>, Ended)> {
    let mut report = None;
    let ended = loop {
        // The report of the start is read before a signal is handled.
        tokio::select! {
            biased;
            ended = broker.wait() => break ended?,
            first = reports.started(), if report.is_none() => {
                report = Some(note_start(first.ok().flatten(), relay.as_deref_mut()));
            }
            signal = endings.next() => {
                let is_the_commands = report.is_some() && relay.as_deref().is_some_and(TerminalRelay::leaves_interrupts);
                if signal == libc::SIGINT && is_the_commands {
                    continue;
                }
                broker.end().await?;
                let started = report.unwrap_or_else(|| Err(Stopped::by(signal)));
                return Ok((started, Ended::Signalled(signal)));
            }
            () = attend_terminal(relay.as_deref_mut()) => {}
        }
    };
    let started = match report {
        Some(started) => started,
        None => note_start(reports.started().await.ok().flatten(), None),
    };
    match (started, &ended) {
        // Another process killed the broker. The command may have been running.
        (Err(stopped), Ended::Signalled(signal)) if stopped.stage.is_empty() => {
            say(&format!("the sandbox was ended by signal {signal} before the command was started"));
            Ok((Err(Stopped::by(*signal)), ended))
        }
        (started, _) => Ok((started, ended)),
    }
}

/// Returns the tier of the started command. Fails unless the broker's first report says that the command started.
fn note_start(report: Option<BrokerReport>, relay: Option<&mut TerminalRelay>) -> Result<Tier, Stopped> {
    let (pid, ruleset) = match report {
        Some(BrokerReport::Started { pid, ruleset }) => (pid, ruleset),
        Some(BrokerReport::Failed { stage, .. }) => return Err(Stopped::at(stage)),
        Some(BrokerReport::Ended { .. } | BrokerReport::Refused(_)) | None => return Err(Stopped::default()),
    };
    if let Some(relay) = relay {
        relay.started(pid);
    }
    Ok(ruleset.tier)
}

async fn attend_terminal(relay: Option<&mut TerminalRelay>) {
    match relay {
        Some(relay) => relay.attend().await,
        None => std::future::pending().await,
    }
}
