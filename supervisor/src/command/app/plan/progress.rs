//! The progress of a plan's execution, read from the session's log, which is right even after a crash.

use std::path::Path;

use ipc::id::ConversationId;

use crate::engine::opening::finished_steps;
use crate::journal::plans::KeptPlan;
use crate::journal::session::{find, is_held, read_needed};
use crate::process::directories::Directories;

pub(super) struct PlanProgress {
    pub session: Option<ConversationId>,
    pub done: u32,
}

impl PlanProgress {
    /// Returns the progress; `None` if the plan's current text was never executed.
    pub(super) fn of(kept: &KeptPlan, directories: &Directories) -> Result<Option<Self>, String> {
        let record = kept.record.as_ref().filter(|record| record.digest == kept.digest);
        let Some((record, session)) = record.and_then(|record| Some((record, record.execution.as_ref()?)))
        else {
            return Ok(None);
        };
        let log = find(&directories.sessions(), Some(&session.0), Path::new(""))
            .map_err(|_| format!("the log of the plan's last session, {session}, is missing"))?;
        let is_at_it = is_held(&log)
            .map_err(|error| format!("cannot tell whether a process uses {}: {error}", log.display()))?;
        let events = read_needed(&log, None, &mut |_, _| ()).map_err(|error| error.to_string())?.events;
        let in_log = finished_steps(&events, &kept.digest);
        let done = in_log.into_iter().chain(record.done).max().unwrap_or(0);
        Ok(Some(Self { session: is_at_it.then(|| session.clone()), done }))
    }
}
