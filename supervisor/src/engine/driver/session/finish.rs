//! End of a session: workers end, the tripwire checks files, the change set is taken, and the result is logged.

use agent::core::{EndReason, RunEnd};
use ipc::id::AgentId;
use protocol::error_code::ErrorCode;
use protocol::event::{EventKind, NoticeCode, RunResult};
use protocol::frontend::UserAction;
use tokio::time::Instant;

use super::super::approvals::too_late;
use super::super::observer::ObserverError;
use super::super::tripwire::events;
use super::super::{ChangeTracker, SessionError, Shared, millis};
use super::agents::SessionAgents;
use super::runs::AgentRuns;
use crate::process::messages::one_line;

/// Ends the workers, has the tripwire check files, and takes the change set. Returns the session's end, which is a
/// failure if a requested patch could not be written.
pub(super) async fn finish(
    shared: &mut Shared,
    agents: &mut SessionAgents,
    mut end: RunEnd,
) -> Result<RunEnd, SessionError> {
    agents.end_subtree(shared).await?;
    let runs = agents.runs_mut();
    runs.wind_up(shared).await?;
    check_everything(shared, runs).await?;
    if let Some(snapshots) = &mut shared.snapshots {
        let changes = snapshots.finish().await;
        changes.into_iter().try_for_each(|changed| runs.record(shared, EventKind::FilesChanged(changed)))?;
    }
    let changes = shared.changes.take();
    // A successful run with a patch waits for the base snapshot, and reports its error.
    let is_due = end.reason == EndReason::Done && changes.as_ref().is_some_and(ChangeTracker::writes_patch);
    if let Some(tracker) = changes
        && let Err(error) = take_changes(shared, runs, tracker, is_due).await?
        && is_due
    {
        // Scripts must not take a run without its patch for a success.
        end.reason = EndReason::Internal;
        end.message = Some(error);
    }
    Ok(end)
}

/// Logs the actions that came too late, and then the session's result as the last event.
pub(super) fn log_result(
    shared: &mut Shared,
    runs: &mut AgentRuns,
    late: impl IntoIterator<Item = UserAction>,
    end: RunEnd,
    began: Instant,
) -> Result<RunEnd, SessionError> {
    for UserAction { agent, kind, .. } in late {
        let agent = agent.unwrap_or_else(AgentId::root);
        if let Some((code, message)) = too_late(&agent, &kind) {
            runs.notice(shared, code, &message)?;
        }
    }
    let Some(first) = runs.first_mut() else { return Err(SessionError::NoEnd) };
    let result = RunResult {
        exit_code: end.reason.exit_code(),
        reason: end.reason,
        error: end.message.as_deref().and_then(ErrorCode::of),
        message: end.message.clone(),
        no_full_tier: first.worker().no_full_tier().map(str::to_owned),
        not_enforced: first.worker().not_enforced().to_vec(),
        text: end.text.clone(),
        output: end.output.clone(),
        steps: end.steps,
        usage: end.usage,
        cost_usd: end.cost,
        duration_ms: millis(began.elapsed()),
    };
    first.record(shared, EventKind::Result(result))?;
    shared.log.write_held()?;
    Ok(end)
}

async fn check_everything(shared: &mut Shared, runs: &mut AgentRuns) -> Result<(), SessionError> {
    let Some(guard) = shared.tripwire.take_if(|guard| !guard.is_setting()) else { return Ok(()) };
    let (checks, report) = guard.check_everything().await?;
    for check in checks {
        runs.take_check(shared, check)?;
    }
    events(None, &[], report).into_iter().try_for_each(|event| runs.record(shared, event))
}

/// Continues the session without a list of changed files after `error`. If the user wants a patch, returns the error.
pub(super) fn give_up_list(
    shared: &mut Shared,
    runs: &mut AgentRuns,
    error: ObserverError,
) -> Result<(), SessionError> {
    match shared.changes.take_if(|tracker| !tracker.writes_patch()) {
        Some(tracker) => {
            runs.notice(shared, NoticeCode::ChangeSet, &format!("{}: {error}", tracker.failure()))
        }
        None => Err(error.into()),
    }
}

/// Logs the change set. If the base snapshot is still open and `is_due` is false, lists no changes. The inner error
/// says why a patch is missing.
async fn take_changes(
    shared: &mut Shared,
    runs: &mut AgentRuns,
    tracker: ChangeTracker,
    is_due: bool,
) -> Result<Result<(), String>, SessionError> {
    let failed = tracker.failure();
    let unchanged = tracker.base_is_open() && !is_due;
    let taken = if unchanged { tracker.finish_unchanged() } else { tracker.finish().await };
    match taken {
        Ok(taken) => {
            for note in taken.notes {
                runs.notice(shared, NoticeCode::ChangeSet, &one_line(&note))?;
            }
            runs.record(shared, EventKind::ChangeSet { files: taken.files, patch: taken.patch })?;
            Ok(Ok(()))
        }
        Err(error) => {
            let message = format!("{failed}: {error}");
            runs.notice(shared, NoticeCode::ChangeSet, &message)?;
            Ok(Err(message))
        }
    }
}
