//! Runs a limited number of tasks at once, repeats tasks that crashed, and can stop at any time.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::pin::pin;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use protocol::cost::Usd;
use tokio::sync::watch;

use super::command::Runs;
use super::contained::remove_all;
use super::instance::{Instance, PROMPT, clear};
use super::output::{BatchOutput, Manifest};
use super::predictions::Predictions;
use super::process::{ProcessStop, left_alone};
use super::progress::BatchProgress;
use super::state::{BatchState, Status};
use super::task::BatchTask;
use crate::engine::opening::Refusal;
use crate::process::exit::Exit;
use crate::process::messages::{complain, say};
use crate::process::signals::Endings;
use crate::settings::args::BatchRunsArgs;

/// Number of consecutive crashes after which a task is not run again.
const MOST_CRASHES: u32 = 3;

#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    jobs: usize,
    max_failures: u32,
    budget: Option<Usd>,
}

impl From<&BatchRunsArgs> for Bounds {
    fn from(args: &BatchRunsArgs) -> Self {
        Self { jobs: args.jobs.into(), max_failures: args.max_failures, budget: args.budget }
    }
}

pub(super) struct Schedule {
    pub output: BatchOutput,
    pub runs: Runs,
    pub manifest: Manifest,
    pub progress: BatchProgress,
    pub endings: Endings,
    pub limits: Bounds,
}

/// The reason why no further tasks are begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    Failures,
    Budget,
}

struct BatchAccount {
    states: Vec<BatchState>,
    waiting: VecDeque<usize>,
    failures_in_a_row: u32,
}

impl Schedule {
    pub(super) async fn run(mut self, tasks: Vec<BatchTask>) -> Result<Exit, Refusal> {
        let (tell, stop) = watch::channel(None);
        let signals = std::mem::replace(&mut self.endings, Endings::new().map_err(Refusal::internal)?);
        let mut attended = pin!(attend(signals, tell));
        let mut batch = pin!(self.carry_out(tasks, stop));
        tokio::select! {
            ended = &mut batch => ended,
            // This future never ends. The signal makes the batch end by itself.
            () = &mut attended => batch.await,
        }
        .map_err(Refusal::internal)
    }

    async fn carry_out(&mut self, tasks: Vec<BatchTask>, stop: ProcessStop) -> io::Result<Exit> {
        self.clear_up(stop.clone()).await?;
        let states = tasks.iter().map(|task| self.output.state(&task.id));
        let states = states.collect::<io::Result<Vec<_>>>()?;
        let predictions = Predictions::new(&self.output, &self.manifest.name);
        predictions.restore(&super::output::states(self.output.root())?)?;
        let waiting = (0..tasks.len()).filter(|index| !states[*index].status.is_final()).collect();
        let mut account = BatchAccount { states, waiting, failures_in_a_row: 0 };
        self.progress.begin(&account.states)?;
        let paused = self.run_all(&tasks, &mut account, &stop).await?;
        self.remove_containers(&stop).await?;
        let predictions = Predictions::new(&self.output, &self.manifest.name);
        predictions.finish(&super::output::states(self.output.root())?)?;
        self.progress.end(&account.states)?;
        if let Some(pause) = paused.filter(|_| !account.waiting.is_empty()) {
            say(&pause.words(&self.limits, account.waiting.len()));
        }
        Ok(exit(&account.states, *stop.borrow()))
    }

    async fn run_all(
        &mut self,
        tasks: &[BatchTask],
        account: &mut BatchAccount,
        stop: &ProcessStop,
    ) -> io::Result<Option<Pause>> {
        let Self { output, runs, manifest, progress, limits, .. } = self;
        let predictions = Predictions::new(output, &manifest.name);
        let mut running = FuturesUnordered::new();
        let mut number = 0;
        let mut paused = None;
        loop {
            paused = paused.or_else(|| account.pause(limits));
            while running.len() < limits.jobs && paused.is_none() && stop.borrow().is_none() {
                let Some(index) = account.waiting.pop_front() else { break };
                number += 1;
                let instance = Instance { output, runs, task: &tasks[index], stop: stop.clone(), number };
                let before = account.states[index].clone();
                account.states[index].status = Status::Running;
                progress.started(&account.states, index)?;
                running.push(async move { (index, instance.run(before).await) });
            }
            let Some((index, state)) = progress.while_waiting(&account.states, running.next()).await else {
                return Ok(paused);
            };
            let state = state?;
            if state.status.is_final() {
                predictions.add(&state.id)?;
            }
            account.finished(index, state, stop.borrow().is_some());
            progress.finished(&account.states, index)?;
        }
    }

    /// Waits for processes that an earlier batch left, and removes the directories of their runs.
    async fn clear_up(&self, mut stop: ProcessStop) -> io::Result<()> {
        for entry in fs::read_dir(self.output.work())? {
            let directory = entry?.path();
            if self.runs.keeps_checkouts() && self.is_over(&directory) {
                continue;
            }
            let input = directory.join(PROMPT);
            tokio::select! {
                _ = stop.wait_for(Option::is_some) => return Ok(()),
                alone = left_alone(&input) => alone?,
            }
            // A directory that remains does no harm, because each run has its own.
            if let Err(error) = clear(&self.runs, &directory).await {
                complain(&error);
            }
        }
        Ok(())
    }

    async fn remove_containers(&self, stop: &ProcessStop) -> io::Result<()> {
        let Some(engine) = self.runs.engine() else { return Ok(()) };
        self.runs.presence.wait(engine, self.output.root(), stop.clone()).await?;
        if let Err(error) = remove_all(engine, self.output.root()).await {
            if stop.borrow().is_none() {
                return Err(error);
            }
            say(&format!("{error}; the next batch removes the containers of this one"));
        }
        match fs::remove_dir_all(self.output.relays()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// True if the run in this directory was the last run of its task, and the task has its final status.
    fn is_over(&self, directory: &std::path::Path) -> bool {
        let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some((id, attempt)) = name.rsplit_once('.') else { return false };
        let state = self.output.state(id);
        state.is_ok_and(|state| state.status.is_final() && attempt == state.attempt.to_string())
    }
}

impl BatchAccount {
    fn finished(&mut self, index: usize, state: BatchState, is_stopped: bool) {
        let is_crash = state.status == Status::Failed && state.crashes > 0;
        // The engine failed during the run and is back now.
        let is_lost = state.status == Status::Interrupted && !is_stopped;
        if is_lost || is_crash && state.crashes < MOST_CRASHES {
            self.waiting.push_back(index);
        } else if state.status == Status::Failed {
            self.failures_in_a_row += 1;
        } else if state.status.is_final() {
            self.failures_in_a_row = 0;
        }
        self.states[index] = state;
    }

    fn pause(&self, limits: &Bounds) -> Option<Pause> {
        let spent =
            self.states.iter().filter_map(|state| state.cost_usd).fold(Usd::ZERO, |all, one| all + one);
        if self.failures_in_a_row >= limits.max_failures {
            Some(Pause::Failures)
        } else if limits.budget.is_some_and(|budget| spent >= budget) {
            Some(Pause::Budget)
        } else {
            None
        }
    }
}

impl Pause {
    fn words(self, limits: &Bounds, left: usize) -> String {
        let tasks = if left == 1 { "1 task was".to_owned() } else { format!("{left} tasks were") };
        match self {
            Self::Failures => format!(
                "{tasks} not started, after {} failures in a row\n  hint: bailiwick batch report shows the causes; run the same command again to continue",
                limits.max_failures
            ),
            Self::Budget => {
                let budget = limits.budget.unwrap_or(Usd::ZERO);
                format!(
                    "{tasks} not started: the budget of {budget} is spent\n  hint: run the same command with a larger --budget to continue"
                )
            }
        }
    }
}

/// Reports the first signal to the batch. Never returns.
async fn attend(mut endings: Endings, tell: watch::Sender<Option<i32>>) {
    let signal = endings.next().await;
    tell.send_replace(Some(signal));
    // The signal handlers must stay, so that further signals do nothing while the runs end.
    std::future::pending::<()>().await;
}

fn exit(states: &[BatchState], signal: Option<i32>) -> Exit {
    match signal {
        Some(libc::SIGINT) => Exit::Interrupted,
        Some(libc::SIGHUP) => Exit::HungUp,
        Some(_) => Exit::Terminated,
        None if states.iter().all(|state| state.status.is_final()) => Exit::Done,
        None => Exit::GaveUp,
    }
}
