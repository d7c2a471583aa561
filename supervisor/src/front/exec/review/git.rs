//! Git in the project, confined like the reviewer, without write access and network. Git may therefore execute programs
//! that the repository's configuration names.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, pipe};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use boundary::monitor::{BrokerProcess, Ended, Launch, Launched, SpawnError, StatusPipe, Stdio};
use gate::modes::ApprovalMode;
use ipc::confinement::{BrokerReport, Confinement};
use ipc::rights::{Network, Rights};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use crate::engine::place::{ConfinementOptions, GIT_READS, Mode, ProjectSandbox, SetupError};
use crate::process::directories::Directories;

/// Time limit of a git command.
const PATIENCE: Duration = Duration::from_mins(1);

/// Maximum size in bytes of a stored error message of git.
const MOST_SAID: u64 = 4096;

/// Options that keep git from executing programs that the repository names. Clean and smudge filters cannot be turned
/// off; they run confined.
const OPTIONS: [&str; 8] = [
    "git",
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.quotePath=false",
];

#[derive(Debug, thiserror::Error)]
pub(super) enum GitError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("cannot run git in the sandbox: {0}")]
    Spawn(#[from] SpawnError),
    #[error("cannot run git in the sandbox: {0}")]
    System(#[from] io::Error),
    #[error("cannot run git in the sandbox: git was not started ({0})")]
    NotStarted(String),
    #[error("`git {command}` did not end within {} s", PATIENCE.as_secs())]
    TooSlow { command: String },
    #[error("there is no commit `{name}`")]
    NoCommit { name: String },
    #[error("`git {command}`: {said}")]
    Failed { command: String, said: String },
}

#[derive(Debug)]
pub(super) struct GitOutput {
    pub(super) bytes: Vec<u8>,
    /// True if the output was longer than the limit.
    pub(super) is_cut: bool,
}

impl GitOutput {
    pub(super) fn line(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim_end_matches('\n').to_owned()
    }
}

#[derive(Debug)]
pub(super) struct ProjectGit {
    sandbox: ProjectSandbox,
    rights: Rights,
}

impl ProjectGit {
    pub(super) fn new(
        directories: Directories,
        project: &Path,
        wanted: &ConfinementOptions,
    ) -> Result<Self, GitError> {
        let sandbox = ProjectSandbox::new(directories, project, Mode::fixed(ApprovalMode::Deny), wanted)?;
        let rights = Rights { net: Network::Off, ..sandbox.policy.standing() };
        Ok(Self { sandbox, rights })
    }

    /// Returns pathspecs that apply the magic word to the project's hidden paths. Git fails if it opens a hidden path.
    pub(super) fn hidden(&self, magic: &str) -> Vec<String> {
        let project = self.sandbox.policy.project.as_path();
        let inside =
            self.rights.hidden.iter().filter_map(|hidden| hidden.as_path().strip_prefix(project).ok());
        inside.filter_map(Path::to_str).map(|path| format!(":({magic}){path}")).collect()
    }

    /// Runs a git command and returns at most `most` bytes of its output. Fails if the command fails.
    pub(super) async fn read(&self, words: &[&str], most: usize) -> Result<GitOutput, GitError> {
        let command = || words.first().copied().unwrap_or_default().to_owned();
        let run = timeout(PATIENCE, self.run(words, most)).await;
        let GitRun { output, status, said } = run.map_err(|_| GitError::TooSlow { command: command() })??;
        match status {
            Ended::Exited(0) => Ok(output),
            // A command whose output is cut is ended by a signal.
            _ if output.is_cut => Ok(output),
            _ => {
                let said = said.lines().last().unwrap_or("the command failed without a message").to_owned();
                Err(GitError::Failed { command: command(), said })
            }
        }
    }

    async fn run(&self, words: &[&str], most: usize) -> Result<GitRun, GitError> {
        let (answers, stdout) = pipe()?;
        let (errors, stderr) = pipe()?;
        let nothing = File::open("/dev/null")?;
        let stdio = Stdio::Given { stdin: nothing.into(), stdout: stdout.into(), stderr: stderr.into() };
        let mut confinement =
            Confinement { read_only: true, ..self.sandbox.confinement(self.rights.clone()) };
        let set = GIT_READS.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
        confinement.environment.set.extend(set);
        let command = OPTIONS.iter().chain(words).map(OsString::from).collect();
        let launch = Launch { confinement, command, arguments: Vec::new(), stdio };
        let Launched { pidfd, status, .. } = self.sandbox.spawner.spawn(launch).await?;
        // Dropping the broker ends the command.
        let broker = BrokerProcess::new(pidfd)?;
        let mut reports = StatusPipe::new(status)?;
        let (output, said) = tokio::join!(bounded(answers.into(), most), said(errors.into()));
        let (output, said) = (output?, said?);
        let ended = if output.is_cut { broker.end().await? } else { broker.wait().await? };
        match reports.started().await.ok().flatten() {
            Some(BrokerReport::Started { .. }) => Ok(GitRun { output, status: ended, said }),
            Some(BrokerReport::Failed { stage, .. }) => Err(GitError::NotStarted(stage)),
            _ => Err(GitError::NotStarted(said)),
        }
    }
}

struct GitRun {
    output: GitOutput,
    status: Ended,
    /// The beginning of the command's standard error.
    said: String,
}

async fn bounded(pipe: OwnedFd, most: usize) -> io::Result<GitOutput> {
    let mut bytes = Vec::new();
    Receiver::from_owned_fd(pipe)?.take(most as u64 + 1).read_to_end(&mut bytes).await?;
    let is_cut = bytes.len() > most;
    bytes.truncate(most);
    Ok(GitOutput { bytes, is_cut })
}

/// Returns the beginning of standard error. Reads the pipe to the end, because a full pipe would stop the command.
async fn said(pipe: OwnedFd) -> io::Result<String> {
    let mut pipe = Receiver::from_owned_fd(pipe)?;
    let mut said = Vec::new();
    (&mut pipe).take(MOST_SAID).read_to_end(&mut said).await?;
    tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    Ok(String::from_utf8_lossy(&said).trim_end().to_owned())
}
