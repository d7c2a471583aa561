//! Asks a worker for the exact effect that a tool call would have, without carrying it out.

use ipc::effect::{Assembler, Effect, EffectError};
use ipc::id::CallId;
use ipc::message::{CallOutcome, Work};
use ipc::tool::{ToolCall, ToolError};
use protocol::event::WorkerEnd;
use tokio::sync::mpsc;

use boundary::monitor::{Worker, WorkerEvent};

/// Error because of which there is no effect.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error("{}", .0.message)]
    Tool(ToolError),
    /// The worker's data is not a valid effect.
    #[error("the data of the prepared change is invalid: {0}")]
    Effect(#[from] EffectError),
    /// The worker finished without an effect.
    #[error("the worker prepared no change")]
    Missing,
    #[error("the worker ended before the change was prepared: {0}")]
    Lost(WorkerEnd),
}

/// Returns the effect that a call would have. The worker must have no other open call: this consumes all its events.
pub async fn prepare(
    worker: &Worker,
    events: &mut mpsc::Receiver<WorkerEvent>,
    call: CallId,
    tool: ToolCall,
) -> Result<Effect, PrepareError> {
    worker.calls().call(call, Work::Prepare(tool));
    let (mut assembler, mut effect) = (Assembler::default(), None);
    while let Some(event) = events.recv().await {
        match event {
            WorkerEvent::Prepared { part, .. } => effect = assembler.push(part)?,
            WorkerEvent::Outcome { outcome: CallOutcome::Prepared, .. } => {
                return effect.ok_or(PrepareError::Missing);
            }
            WorkerEvent::Outcome { outcome: CallOutcome::Failed(error), .. } => {
                return Err(PrepareError::Tool(error));
            }
            WorkerEvent::Outcome { .. } => return Err(PrepareError::Missing),
            WorkerEvent::Ended { reason, .. } => return Err(PrepareError::Lost(reason)),
            WorkerEvent::Output { .. }
            | WorkerEvent::Refused(_)
            | WorkerEvent::HostsUsed(_)
            | WorkerEvent::HostAsked(_) => {}
        }
    }
    Err(PrepareError::Lost(WorkerEnd::ReaderGone))
}
