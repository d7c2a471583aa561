//! A run in a container, with its own relay outside of the container.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::command::{RELAY_CLIENT, Runs};
use super::engine::{Container, Engine, OUT};
use super::output::make;
use super::process::{BatchChild, BatchEnded, Files, ProcessStop, run};
use super::state::read_bounded;
use super::task::BatchTask;

/// Time within which a relay must be ready.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time limit for the container engine to list and remove containers.
const REMOVAL: Duration = Duration::from_mins(5);

/// Number of bytes of a run's standard error that are searched for errors of the engine.
const MOST_ERRORS: u64 = 16 << 20;

/// Directory of a run into which its container writes.
pub(super) const RESULTS: &str = "out";

pub(super) struct Contained<'a> {
    pub engine: &'a Engine,
    pub runs: &'a Runs,
    pub task: &'a BatchTask,
    /// The image, and the path of the project in the image.
    pub image: (&'a str, &'a str),
    pub directory: &'a Path,
    /// Directory for the relay's socket. Its path must be short: a socket's path has at most 107 bytes (unix(7)).
    pub socket: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainedEnd {
    /// The run ended, by itself or by a signal.
    Run(BatchEnded),
    Relay,
    /// The container engine failed, which does not count as a failure of the task.
    Engine,
}

impl Contained<'_> {
    /// Runs the task in a container with a relay. Afterwards removes the container and the relay's socket.
    pub(super) async fn run(
        &self,
        files: Files,
        limit: Option<Duration>,
        stop: ProcessStop,
    ) -> io::Result<ContainedEnd> {
        let out = self.directory.join(RESULTS);
        for directory in [&out, &self.socket] {
            make(directory)?;
        }
        // The image may run as any user, so every user may write. On the host others cannot enter the parent directory.
        fs::set_permissions(&out, fs::Permissions::from_mode(0o777))?;
        let Some(mut relay) = self.relay().await? else {
            fs::remove_dir_all(&self.socket)?;
            return Ok(ContainedEnd::Relay);
        };
        let (image, project) = self.image;
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let relay_socket = self.socket.join(RELAY_CLIENT);
        let container = Container { image, name, project, relay: relay_socket, out };
        let errors = files.errors.clone();
        let command = self.runs.contained(self.engine, self.task, &container);
        let ended = run(command, files, limit, stop.clone()).await;
        let outlived = !relay.has_ended()?;
        // The engine's client may have ended while the container still runs.
        let was_there = self.remove(&container.name, stop).await;
        relay.end().await?;
        fs::remove_dir_all(&self.socket)?;
        let (ended, was_there) = (ended?, was_there?);
        Ok(if !ended.status.success() && (!was_there || tells_of_the_engine(&errors)) {
            ContainedEnd::Engine
        } else if outlived {
            ContainedEnd::Run(ended)
        } else {
            ContainedEnd::Relay
        })
    }

    /// Removes a container until the engine no longer lists it. Returns false if the engine was unreachable meanwhile.
    async fn remove(&self, name: &str, stop: ProcessStop) -> io::Result<bool> {
        let mut was_there = true;
        loop {
            self.ask(self.engine.remove(name), "engine.log").await?;
            // Removal of a container fails while the container is removing itself.
            let listed = self.ask(self.engine.look_for(name), "engine.list").await?;
            let list = self.directory.join("engine.list");
            let text = fs::read_to_string(&list)?;
            fs::remove_file(list)?;
            if listed.status.success() && text.trim().is_empty() {
                return Ok(was_there);
            }
            if listed.status.success() {
                sleep(Duration::from_millis(200)).await;
            } else {
                was_there = false;
                self.runs.presence.wait(self.engine, self.directory, stop.clone()).await?;
            }
            if stop.borrow().is_some() {
                return Ok(was_there);
            }
        }
    }

    /// Starts the relay and waits until clients can connect. `None` if a signal killed the relay.
    async fn relay(&self) -> io::Result<Option<BatchChild>> {
        let output = self.directory.join("relay.out");
        let errors = self.directory.join("relay.log");
        let files = Files { input: "/dev/null".into(), output: output.clone(), errors: errors.clone() };
        let mut relay = BatchChild::start(self.runs.relay(self.task, &self.socket), &files)?;
        let until = Instant::now() + PATIENCE;
        while !fs::read_to_string(&output)?.ends_with('\n') {
            let has_ended = relay.has_ended()?;
            if has_ended || Instant::now() > until {
                let status = relay.end().await?;
                if has_ended && status.signal().is_some() {
                    return Ok(None);
                }
                let why = fs::read_to_string(errors)?;
                let why = why.lines().collect::<Vec<_>>().join("; ");
                return Err(io::Error::other(format!("the relay did not start: {why}")));
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(Some(relay))
    }

    async fn ask(&self, arguments: Vec<OsString>, name: &str) -> io::Result<BatchEnded> {
        ask(Runs::with_engine(self.engine, arguments), &self.directory.join(name)).await
    }
}

/// True if the engine's client reports that it lost the engine. If the task prints this text, the run is repeated.
fn tells_of_the_engine(errors: &Path) -> bool {
    const WORDS: [&str; 4] = [
        "Cannot connect to the Docker daemon",
        "error during connect",
        "unexpected EOF",
        "connection reset by peer",
    ];
    let text = read_bounded(errors, MOST_ERRORS).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rev().take(3).collect::<Vec<_>>();
    WORDS.iter().any(|word| last.iter().any(|line| line.contains(word)))
}

pub(super) async fn ask(command: Command, output: &Path) -> io::Result<BatchEnded> {
    // This command must run also after the batch was told to end, so it gets no stop signal.
    let (_never, stop) = tokio::sync::watch::channel(None);
    let files = Files { input: "/dev/null".into(), output: output.to_owned(), errors: output.to_owned() };
    run(command, files, Some(REMOVAL), stop).await
}

/// Calls the engine and returns its output. Fails if the engine reports an error.
async fn told(engine: &Engine, arguments: Vec<OsString>, root: &Path) -> io::Result<String> {
    let output = root.join("engine.out");
    let ended = ask(Runs::with_engine(engine, arguments), &output).await?;
    let text = fs::read_to_string(&output)?;
    fs::remove_file(&output)?;
    if ended.status.success() {
        return Ok(text);
    }
    let why = text.lines().next_back().unwrap_or("the engine printed no message");
    Err(io::Error::other(format!("cannot use {}: {}: {why}", engine.program, ended.words())))
}

/// Lists the engine's images, one name per line.
pub(super) async fn images(engine: &Engine, root: &Path) -> io::Result<String> {
    told(engine, ["images", "--format", "{{.Repository}}:{{.Tag}}"].map(Into::into).to_vec(), root).await
}

pub(super) async fn remove_all(engine: &Engine, root: &Path) -> io::Result<()> {
    let text = told(engine, engine.list(), root).await?;
    let is_id = |id: &&str| id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let ids: Vec<_> = text.split_whitespace().filter(is_id).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let arguments = ["rm", "--force", "--volumes"].iter().chain(&ids).map(Into::into).collect();
    told(engine, arguments, root).await.map(drop)
}

/// Returns a path relative to the container's directory of results; `None` for a path elsewhere.
pub(super) fn below_results(path: &Path) -> Option<&Path> {
    path.strip_prefix(OUT).ok()
}
