//! Implementations of the tools.

pub mod again;
pub mod attributes;
pub mod closest;
pub mod command;
pub mod commit;
pub mod content;
pub mod difference;
pub mod environment;
pub mod found;
pub mod head_tail;
pub mod ignore_rules;
pub mod leftovers;
pub mod lines;
pub mod list_directory;
pub mod named;
pub mod patch;
pub mod place;
pub mod read_file;
pub mod replace;
pub mod save;
pub mod search_files;
pub mod shell_exec;
pub mod snapshot;
pub mod text;

use std::io;
use std::sync::Arc;

use ipc::effect::{Effect, EffectError, Exec, Patch};
use ipc::message::{CallOutcome, Work};
use ipc::rights::Execution;
use ipc::tool::{ToolCall, ToolErrorKind, ToolOutput};
use sandbox_exec::command::deny_execution;
use tokio::task::spawn_blocking;

use self::read_file::Opened;
use self::shell_exec::Commands;
use crate::assignment::Assignment;
use crate::fault::{Result, Stop, failed};
use crate::open_call::OpenCall;

#[derive(Debug)]
pub enum Job {
    Work(Work),
    /// Change that the user or a rule has approved.
    Commit(Effect),
}

#[derive(Debug, thiserror::Error)]
pub enum ToolsError {
    /// The agent may not run programs, and the kernel rejected the filter that enforces this.
    #[error("cannot deny the execution of programs: {0}")]
    DenyExecution(#[from] io::Error),
}

#[derive(Debug)]
pub struct Tools {
    assignment: Assignment,
    commands: Commands,
}

impl Tools {
    /// Creates the tools. If the rights deny commands, makes the kernel deny program execution to this process. Must be
    /// called before a second thread exists, since seccomp(2) filters are per thread.
    pub fn new(assignment: Assignment) -> std::result::Result<Self, ToolsError> {
        if assignment.rights.exec == Execution::Denied {
            deny_execution()?;
        }
        Ok(Self { assignment, commands: Commands::default() })
    }

    /// Reads a small file on the calling thread, which saves a thread. `None` for another call or a large file.
    pub fn at_once(&self, job: &Job) -> Option<CallOutcome> {
        let Job::Work(Work::Run(ToolCall::ReadFile(call))) = job else {
            return None;
        };
        let read = match Opened::open(&self.assignment, call) {
            Ok(opened) if opened.is_small() => opened.read(call, || Ok(())),
            Ok(_) => return None,
            Err(stop) => Err(stop),
        };
        Some(outcome(read))
    }

    pub async fn perform(self: Arc<Self>, job: Job, open: OpenCall) -> CallOutcome {
        let done = match job {
            Job::Work(Work::Run(call)) => self.run(call, open).await,
            Job::Work(Work::Prepare(call)) => return self.prepare(call, open).await,
            Job::Work(Work::Snapshot { contents }) => self.snapshot(contents, open).await,
            Job::Work(Work::Fetch { paths }) => {
                blocking(move || snapshot::fetch(&self.assignment, &paths, &open))
                    .await
                    .map(ToolOutput::Snapshot)
            }
            Job::Commit(Effect::Patch(patch)) => commit(move || Ok(patch)).await,
            Job::Commit(Effect::Exec(exec)) => match shell_exec::shown_directory(&exec) {
                Ok(()) => self.command(&exec, open).await,
                Err(stop) => Err(stop),
            },
        };
        outcome(done)
    }

    async fn run(self: Arc<Self>, call: ToolCall, open: OpenCall) -> Result<ToolOutput> {
        match call {
            ToolCall::WriteFile(call) => commit(move || patch::of_write(&self.assignment, &call)).await,
            ToolCall::EditFile(call) => commit(move || patch::of_edit(&self.assignment, &call)).await,
            ToolCall::ShellExec(call) => match shell_exec::effect(&self.assignment, &call) {
                Ok(exec) => self.command(&exec, open).await,
                Err(stop) => Err(stop),
            },
            ToolCall::ReadFile(_) | ToolCall::ListDirectory(_) | ToolCall::SearchFiles(_) => {
                blocking(move || self.read(&call, &open)).await
            }
        }
    }

    fn read(&self, call: &ToolCall, open: &OpenCall) -> Result<ToolOutput> {
        let assignment = &self.assignment;
        match call {
            ToolCall::ReadFile(call) => Opened::open(assignment, call)?.read(call, || open.check()),
            ToolCall::ListDirectory(call) => {
                list_directory::list_directory(assignment, call, open).map(ToolOutput::Listing)
            }
            ToolCall::SearchFiles(call) => {
                search_files::search_files(assignment, call, open).map(ToolOutput::Matches)
            }
            ToolCall::WriteFile(_) | ToolCall::EditFile(_) | ToolCall::ShellExec(_) => {
                Err(nothing_to_prepare(call))
            }
        }
    }

    async fn command(&self, exec: &Exec, open: OpenCall) -> Result<ToolOutput> {
        self.commands.run(&self.assignment, exec, open).await.map(ToolOutput::Command)
    }

    async fn prepare(self: Arc<Self>, call: ToolCall, open: OpenCall) -> CallOutcome {
        match blocking(move || self.send_effect(&call, &open)).await {
            Ok(()) => CallOutcome::Prepared,
            Err(stop) => stopped(stop),
        }
    }

    fn send_effect(&self, call: &ToolCall, open: &OpenCall) -> Result<()> {
        let effect = match call {
            ToolCall::WriteFile(call) => Effect::Patch(patch::of_write(&self.assignment, call)?),
            ToolCall::EditFile(call) => Effect::Patch(patch::of_edit(&self.assignment, call)?),
            ToolCall::ShellExec(call) => Effect::Exec(shell_exec::effect(&self.assignment, call)?),
            _ => return Err(nothing_to_prepare(call)),
        };
        effect.to_parts().map_err(too_large)?.into_iter().try_for_each(|part| open.prepared(part))
    }

    async fn snapshot(self: Arc<Self>, contents: bool, open: OpenCall) -> Result<ToolOutput> {
        let tracked = self.commands.tracked(&self.assignment, open.clone()).await?;
        let summary = blocking(move || snapshot::snapshot(&self.assignment, tracked, contents, &open)).await;
        summary.map(ToolOutput::Snapshot)
    }
}

pub fn broken() -> CallOutcome {
    stopped(failed(ToolErrorKind::System, "The tool failed because of an internal error; try another way."))
}

fn outcome(done: Result<ToolOutput>) -> CallOutcome {
    done.map_or_else(stopped, CallOutcome::Done)
}

fn stopped(stop: Stop) -> CallOutcome {
    match stop {
        Stop::Failed(error) => CallOutcome::Failed(error),
        Stop::Cancelled => CallOutcome::Cancelled,
    }
}

fn nothing_to_prepare(call: &ToolCall) -> Stop {
    failed(ToolErrorKind::InvalidArgument, format!("{} does not prepare a change.", call.name()))
}

fn too_large(error: EffectError) -> Stop {
    failed(
        ToolErrorKind::Unreadable,
        format!("The change is too large to be shown ({error}); use shell_exec."),
    )
}

/// Computes a change and writes it. Once started, this cannot be cancelled.
async fn commit(patch: impl FnOnce() -> Result<Patch> + Send + 'static) -> Result<ToolOutput> {
    blocking(move || commit::commit(&patch()?)).await.map(ToolOutput::Written)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|_| {
        Err(failed(ToolErrorKind::System, "The tool failed because of an internal error; try another way."))
    })
}
