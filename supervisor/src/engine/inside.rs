//! Runs a program in a confinement to its end, to test or report the confinement.

use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use boundary::monitor::{BrokerProcess, Launch, Launched, SpawnError, StatusPipe, Stdio};
use ipc::confinement::{Attempt, BrokerReport, Confinement, FullTierRefusal, RulesetReport};
use ipc::probe::{Outcome, Probe};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::time::timeout;

use crate::engine::place::ProjectSandbox;

/// Time limit for a run. Runs take milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct ChildSaid {
    pub ruleset: RulesetReport,
    pub output: String,
}

/// Error because of which a confined run has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InsideError {
    #[error(transparent)]
    System(#[from] io::Error),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A step of `sandbox-exec` before the program failed; `stage` is the name of the step.
    #[error("{stage}: {detail}")]
    Refused {
        stage: String,
        detail: String,
        /// Reason why the machine cannot have the full tier; `None` if it can, or if another step failed.
        refusal: Option<FullTierRefusal>,
    },
    #[error("sandbox-exec ended too early, or its output is invalid: {0}")]
    Broken(String),
    #[error("sandbox-exec did not end within {} s", PATIENCE.as_secs())]
    Late,
}

/// Runs `sandbox-exec` in the confinement, with these arguments and this standard input.
pub(crate) async fn run(
    setup: &ProjectSandbox,
    confinement: Confinement,
    arguments: impl IntoIterator<Item = OsString>,
    input: Vec<u8>,
) -> Result<ChildSaid, InsideError> {
    let program = setup.programs.sandbox_exec.clone().into_os_string();
    run_program(setup, confinement, [program].into_iter().chain(arguments).collect(), input).await
}

/// Runs a command in the confinement, with `input` on its standard input. Fails after [`PATIENCE`].
pub(crate) async fn run_program(
    setup: &ProjectSandbox,
    confinement: Confinement,
    command: Vec<OsString>,
    input: Vec<u8>,
) -> Result<ChildSaid, InsideError> {
    let launch = Launch { confinement, command, arguments: vec![], stdio: Stdio::Piped };
    timeout(PATIENCE, run_to_its_end(setup, launch, input)).await.unwrap_or(Err(InsideError::Late))
}

/// Objects outside the sandbox that the self-test tries to access.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SelfTestTargets<'a> {
    pub hidden: Option<&'a Path>,
    /// Name of an abstract Unix socket on which a process listens; `None` skips the attempt to connect to it.
    pub abstract_name: Option<&'a str>,
}

/// Starts a confined process that attempts accesses that no setting allows. Returns the outcome of each attempt.
pub(crate) async fn self_test(
    setup: &ProjectSandbox,
    confinement: Confinement,
    targets: SelfTestTargets<'_>,
) -> Result<(RulesetReport, Vec<Attempt>), InsideError> {
    let hidden = targets.hidden.map(|path| ["--self-test-hidden".into(), path.into()]);
    let name = targets.abstract_name.map(|name| ["--self-test-abstract", name].map(OsString::from));
    let net = confinement.rights.net.is_the_machines().then(|| ["--net", "on"].map(OsString::from));
    let given = [hidden, name, net].into_iter().flatten().flatten();
    let arguments: Vec<_> = ["--self-test".into()].into_iter().chain(given).collect();
    let ChildSaid { ruleset, output } = run(setup, confinement, arguments, Vec::new()).await?;
    let attempts = output.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    Ok((ruleset, attempts.map_err(|error| broke_off(&error))?))
}

/// Starts a confined process that attempts these accesses. Returns their outcomes in the same order.
pub(crate) async fn try_all(
    setup: &ProjectSandbox,
    confinement: Confinement,
    probes: &[Probe],
) -> Result<(RulesetReport, Vec<Outcome>), InsideError> {
    let mut input = Vec::new();
    for probe in probes {
        serde_json::to_writer(&mut input, probe).map_err(io::Error::from)?;
        input.push(b'\n');
    }
    let ChildSaid { ruleset, output } = run(setup, confinement, ["--probe".into()], input).await?;
    let outcomes: Vec<Outcome> = output
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .map_err(|error| broke_off(&error))?;
    if outcomes.len() != probes.len() {
        return Err(InsideError::Broken(format!(
            "got {} answers to {} attempts",
            outcomes.len(),
            probes.len()
        )));
    }
    Ok((ruleset, outcomes))
}

async fn run_to_its_end(
    setup: &ProjectSandbox,
    launch: Launch,
    input: Vec<u8>,
) -> Result<ChildSaid, InsideError> {
    let Launched { pidfd, stdin, stdout, stderr, status, .. } = setup.spawner.spawn(launch).await?;
    let broker = BrokerProcess::new(pidfd)?;
    let ruleset = match StatusPipe::new(status)?.started().await.map_err(|error| broke_off(&error))? {
        Some(BrokerReport::Started { ruleset, .. }) => ruleset,
        Some(BrokerReport::Failed { stage, detail, refusal, .. }) => {
            return Err(InsideError::Refused { stage, detail, refusal });
        }
        Some(BrokerReport::Ended { .. } | BrokerReport::Refused(_)) | None => {
            return Err(InsideError::Broken(last_words(stderr).await));
        }
    };
    let (stdin, stdout) = stdin.zip(stdout).ok_or_else(|| broke_off(&"no streams"))?;
    let mut stdin = pipe::Sender::from_owned_fd(stdin)?;
    let mut stdout = pipe::Receiver::from_owned_fd(stdout)?;
    let mut output = String::new();
    let give = async move {
        // A program that does not read all its input reports that itself.
        let _ = stdin.write_all(&input).await;
    };
    let ((), read) = tokio::join!(give, stdout.read_to_string(&mut output));
    read?;
    broker.end().await?;
    Ok(ChildSaid { ruleset, output })
}

fn broke_off(error: &dyn Display) -> InsideError {
    InsideError::Broken(error.to_string())
}

async fn last_words(stderr: Option<OwnedFd>) -> String {
    let mut text = Vec::new();
    if let Some(Ok(mut stderr)) = stderr.map(pipe::Receiver::from_owned_fd) {
        let _ = stderr.read_to_end(&mut text).await;
    }
    let text = String::from_utf8_lossy(&text);
    text.trim()
        .lines()
        .next_back()
        .unwrap_or("sandbox-exec ended without a message")
        .escape_debug()
        .to_string()
}
