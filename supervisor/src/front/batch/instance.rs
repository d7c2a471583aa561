use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ipc::denial::Denial;
use ipc::path::WirePath;
use protocol::cost::Usd;
use protocol::event::RunResult;
use serde::Deserialize;
use tokio::time::Instant;

use super::beneath;
use super::command::{PATCH, Runs, TREE};
use super::contained::{Contained, ContainedEnd, RESULTS, below_results};
use super::output::{BatchOutput, make};
use super::process::{BatchEnded, Files, ProcessStop, run};
use super::state::{BatchState, Status, TaskStage, read_bounded};
use super::task::{BatchTask, TaskSource};
use super::trajectory::{self, LOG};
use crate::process::exit::Exit;
use crate::process::messages::say;

/// Time in seconds that a run has after its time limit to write its patch. Then it is killed.
const GRACE_S: f64 = 60.0;

/// Maximum number of attempts to remove the directory of a run, a tenth of a second apart.
const CLEARINGS: usize = 30;

/// Time limit for making a checkout.
const CHECKOUT_TIME: Duration = Duration::from_mins(30);

/// Exit status of `bailiwick sandbox` if no sandbox can be set up at the moment.
const NO_SANDBOX: i32 = 5;

/// Maximum number of consecutive runs of a task that fail only because of the container engine.
const MOST_ENGINE_LOSSES: u32 = 20;

/// Maximum number of bytes that are read of a result.
const MOST_RESULT: u64 = 16 << 20;

/// Maximum size in bytes of a patch that becomes a prediction.
pub(super) const MOST_PATCH: u64 = 16 << 20;

/// Maximum number of bytes that are copied of a session log that a container wrote.
const MOST_LOG: u64 = 1 << 30;

pub(super) const PROMPT: &str = "prompt";

const RESULT: &str = "result.json";

const ERRORS: &str = "stderr.log";

pub(super) struct Instance<'a> {
    pub output: &'a BatchOutput,
    pub runs: &'a Runs,
    pub task: &'a BatchTask,
    pub stop: ProcessStop,
    /// Number of the run, unique in the batch.
    pub number: usize,
}

/// The part of the output of `exec --output json` that is stored.
#[derive(Deserialize)]
struct InstanceTold {
    data: RunResult,
    #[serde(default)]
    denials: Vec<Denial>,
    log: WirePath,
    cost: Option<Usd>,
}

impl Instance<'_> {
    pub(super) async fn run(self, state: BatchState) -> io::Result<BatchState> {
        let began = Instant::now();
        let BatchState { crashes, engine_losses, .. } = state;
        let before = BatchState {
            attempt: state.attempt + 1,
            crashes,
            engine_losses,
            ..BatchState::queued(&state.id)
        };
        self.output.keep(&BatchState { status: Status::Running, ..before.clone() })?;
        let directory = self.output.work().join(format!("{}.{}", before.id, before.attempt));
        make(&directory)?;
        fs::write(directory.join(PROMPT), &self.task.prompt)?;
        let carried_out = self.carried_out(before.clone(), &directory).await;
        // A failure of one task does not stop the others. The cause may be temporary, such as too many processes.
        let mut state = carried_out.unwrap_or_else(|error| {
            BatchState { crashes: before.crashes + 1, ..before }.failed(TaskStage::Run, error.to_string())
        });
        if !(self.runs.keeps_checkouts() && state.status.is_final()) {
            self.clear(&directory).await;
        }
        state.total_ms = millis(began.elapsed());
        state.ended_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis);
        self.output.keep(&state)?;
        Ok(state)
    }

    async fn carried_out(&self, state: BatchState, directory: &Path) -> io::Result<BatchState> {
        if !matches!(self.task.source, TaskSource::Image { .. }) {
            make(&directory.join(TREE))?;
            let checkout = self.runs.check_out(&self.task.source, directory);
            let files = files(directory, "checkout.log");
            let made = run(checkout, files, Some(CHECKOUT_TIME), self.stop.clone()).await?;
            if !made.status.success() {
                return self.not_made(state, directory, made);
            }
        }
        let began = Instant::now();
        let ended = self.executed(directory).await?;
        let state = BatchState { duration_ms: millis(began.elapsed()), ..state };
        let told = read_bounded(&directory.join(RESULT), MOST_RESULT);
        let told = told.ok().and_then(|text| serde_json::from_slice::<InstanceTold>(&text).ok());
        let kept = match (told, ended) {
            (Some(told), ContainedEnd::Run(_) | ContainedEnd::Engine) => {
                Some(self.kept(state.clone(), told, directory).unwrap_or_else(|error| {
                    state.clone().failed(TaskStage::Results, format!("cannot save the results: {error}"))
                }))
            }
            _ => None,
        };
        // The result of an interrupted run does not count.
        let state = match kept.filter(|kept| kept.status != Status::Interrupted) {
            Some(kept) => kept,
            None => self.without_result(state, directory, ended)?,
        };
        Ok(if self.is_stopped() && !state.status.is_final() {
            BatchState { status: Status::Interrupted, ..state }
        } else {
            state
        })
    }

    fn is_stopped(&self) -> bool {
        self.stop.borrow().is_some()
    }

    /// Runs the agent in the checkout or in a container.
    async fn executed(&self, directory: &Path) -> io::Result<ContainedEnd> {
        let limit = self.runs.timeout_s(self.task).map(|seconds| Duration::from_secs_f64(seconds + GRACE_S));
        let files = files(directory, RESULT);
        let TaskSource::Image { image, project } = &self.task.source else {
            let exec = self.runs.exec(self.task, directory);
            return run(exec, files, limit, self.stop.clone()).await.map(ContainedEnd::Run);
        };
        let engine =
            self.runs.engine().ok_or_else(|| io::Error::other("no container engine is available"))?;
        let contained = Contained {
            engine,
            runs: self.runs,
            task: self.task,
            image: (image, project),
            directory,
            // The relay of a killed batch may still listen, and it removes its socket when it ends.
            socket: self.output.relays().join(format!("{}-{}", std::process::id(), self.number)),
        };
        contained.run(files, limit, self.stop.clone()).await
    }

    fn not_made(&self, state: BatchState, directory: &Path, ended: BatchEnded) -> io::Result<BatchState> {
        if self.is_stopped() {
            return Ok(BatchState { status: Status::Interrupted, ..state });
        }
        let mut why = last_words(&directory.join(ERRORS));
        if self.task.source.path().is_some_and(|path| path.starts_with("/tmp")) {
            why += "; in the full tier, the sandbox that makes the checkout has its own /tmp: move the repository out of /tmp";
        }
        self.keep_file(directory, ERRORS)?;
        // The script was killed or had no sandbox. The repository may be fine, and the next run may succeed.
        let is_crash = !ended.overdue && matches!(ended.status.code(), None | Some(NO_SANDBOX));
        let state = BatchState { crashes: state.crashes + u32::from(is_crash), ..state };
        Ok(state.failed(TaskStage::Checkout, format!("cannot make the checkout: {}: {why}", ended.words())))
    }

    fn without_result(
        &self,
        state: BatchState,
        directory: &Path,
        ended: ContainedEnd,
    ) -> io::Result<BatchState> {
        let interrupted = |state| BatchState { status: Status::Interrupted, ..state };
        if self.is_stopped() {
            return Ok(interrupted(state));
        }
        if ended == ContainedEnd::Engine && state.engine_losses < MOST_ENGINE_LOSSES {
            return Ok(interrupted(BatchState { engine_losses: state.engine_losses + 1, ..state }));
        }
        let why = last_words(&directory.join(ERRORS));
        self.keep_file(directory, ERRORS)?;
        // The run was refused: its command line or settings are invalid, and a retry would fail too.
        let is_refused = matches!(ended, ContainedEnd::Run(ended) if ended.status.code() == Some(Exit::Usage.code().into()));
        let crashes = if is_refused { 0 } else { state.crashes + 1 };
        let how = match ended {
            ContainedEnd::Run(ended) => ended.words(),
            ContainedEnd::Relay => "the relay of the task ended".to_owned(),
            ContainedEnd::Engine => "the container engine ended".to_owned(),
        };
        Ok(BatchState { crashes, ..state }.failed(TaskStage::Crash, format!("no result: {how}: {why}")))
    }

    /// Moves the files of a run to the results of its task, and returns the task's new state.
    fn kept(&self, state: BatchState, told: InstanceTold, directory: &Path) -> io::Result<BatchState> {
        let InstanceTold { data, denials, log, cost } = told;
        for name in [RESULT, ERRORS, PATCH] {
            self.keep_file(directory, name)?;
        }
        let results = self.output.instance(&state.id);
        let log = PathBuf::from(log);
        if matches!(self.task.source, TaskSource::Image { .. }) {
            let out = directory.join(RESULTS);
            beneath::copy(&out, Path::new(PATCH), &results.join(PATCH), MOST_PATCH)?;
            let log = below_results(&log)
                .ok_or_else(|| io::Error::other("the session's log is not among the results"))?;
            beneath::copy(&out, log, &results.join(LOG), MOST_LOG)?;
        } else {
            copy(&log, &results.join(LOG))?;
        }
        let status = Status::of(data.reason);
        let patch = results.join(PATCH);
        let patch_bytes = fs::metadata(&patch)?.len();
        let mut kinds = BTreeMap::new();
        for denial in &denials {
            *kinds.entry(denial.operation.to_string()).or_default() += 1;
        }
        let state = BatchState {
            status,
            crashes: 0,
            engine_losses: 0,
            stage: (status == Status::Failed).then_some(TaskStage::Run),
            reason: Some(data.reason),
            message: data.message,
            steps: data.steps,
            usage: data.usage,
            cost_usd: cost,
            denials: kinds,
            not_enforced: data.not_enforced,
            patch_bytes,
            ..state
        };
        if !status.is_final() {
            return Ok(state);
        }
        Ok(match read_bounded(&patch, MOST_PATCH).map(String::from_utf8) {
            Ok(Ok(patch)) => {
                // The log has everything that a trajectory has.
                if let Err(error) = trajectory::write(&self.output.instance(&state.id), &state.id, &patch) {
                    say(&format!("{}: no trajectory: {error}", state.id));
                }
                state
            }
            Ok(Err(_)) => state.failed(TaskStage::Results, "the patch has bytes that are not UTF-8"),
            Err(error) => state.failed(TaskStage::Results, format!("the patch: {error}")),
        })
    }

    /// Moves one file of a run to the results of its task. A missing file is no error.
    fn keep_file(&self, directory: &Path, name: &str) -> io::Result<()> {
        match fs::rename(directory.join(name), self.output.instance(&self.task.id).join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            moved => moved,
        }
    }

    async fn clear(&self, directory: &Path) {
        if let Err(error) = clear(self.runs, directory).await {
            say(&format!("{error}; the next batch tries this again"));
        }
    }
}

/// Returns the standard streams of a step. Standard input is the prompt's file, which stays locked during the step.
fn files(directory: &Path, output: &str) -> Files {
    Files { input: directory.join(PROMPT), output: directory.join(output), errors: directory.join(ERRORS) }
}

/// Removes the directory of a run, also while the batch is stopping. Retries while processes of the run still write.
pub(super) async fn clear(runs: &Runs, directory: &Path) -> io::Result<()> {
    let (_never, stop) = tokio::sync::watch::channel(None);
    let mut cleared = Ok(());
    // Processes of a killed run may still write for a moment, and for longer on a busy machine.
    for _ in 0..CLEARINGS {
        cleared = clear_once(runs, directory, stop.clone()).await;
        if cleared.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    cleared.map_err(|error| io::Error::other(format!("cannot remove {}: {error}", directory.display())))
}

/// Tries once to remove the directory of a run. A confined process removes the checkout in it.
async fn clear_once(runs: &Runs, directory: &Path, stop: ProcessStop) -> io::Result<()> {
    let input = directory.join(PROMPT);
    let tree = directory.join(TREE);
    if tree.is_dir() {
        fs::File::options().create(true).append(true).open(&input)?.flush()?;
        let errors = directory.join("remove.log");
        let files = Files { input, output: errors.clone(), errors: errors.clone() };
        let ended = run(runs.remove(directory), files, Some(CHECKOUT_TIME), stop).await?;
        if !ended.status.success() {
            return Err(io::Error::other(format!("{}: {}", ended.words(), last_words(&errors))));
        }
        fs::remove_dir(tree)?;
    }
    let out = directory.join(RESULTS);
    if out.is_dir() {
        // The container no longer exists, and symbolic links are not followed.
        fs::remove_dir_all(out)?;
    }
    // The remaining files are ours, without subdirectories.
    for entry in fs::read_dir(directory)? {
        fs::remove_file(entry?.path())?;
    }
    fs::remove_dir(directory)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the last message in a file with a process's standard error, and the hint below that message.
fn last_words(path: &Path) -> String {
    let text = read_bounded(path, MOST_RESULT).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = lines.iter().rposition(|line| !line.starts_with("  ")).unwrap_or(0);
    let words: Vec<_> = lines[last..].iter().map(|line| line.trim()).collect();
    match words.split_first() {
        None => "the process printed no message".to_owned(),
        Some((cause, hint)) if hint.first().is_some_and(|hint| hint.starts_with("hint: ")) => {
            format!("{cause}; {}", hint.join(" "))
        }
        _ => words.last().copied().unwrap_or_default().to_owned(),
    }
}

/// Replaces `to` by a copy of a log.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::copy(from, to).map(drop)
}
