//! A full disk: the session pauses, so that nothing follows an event that the log does not have.

use ipc::id::AgentId;
use protocol::frontend::UiEventKind;

use super::super::{AgentRun, SessionError, Shared};
use super::runs::AgentRuns;
use super::user_actions::{UserActions, Woken};

/// Waits while the log's disk is full, and delays actions of the user. Returns the log's error if the session ends
/// during the wait.
pub(super) async fn pause(
    shared: &mut Shared,
    runs: &mut AgentRuns,
    actions: &mut UserActions,
) -> Result<(), SessionError> {
    // Continuing may fill the disk again.
    while shared.log.is_full() {
        let mut asked = true;
        while let Err(error) = shared.log.write_held() {
            if asked {
                say_paused(shared);
            }
            asked = match actions.wait_paused().await {
                Woken::Itself => false,
                Woken::Asked => true,
                Woken::Ends => return Err(error.into()),
            };
        }
        // Approved effects wait until their events are on the disk, also those that were approved before the pause.
        if let Err(error) = shared.log.sync() {
            if !shared.log.take_back(&error)? {
                return Err(error.into());
            }
            say_paused(shared);
            if let Woken::Ends = actions.wait_paused().await {
                return Err(error.into());
            }
            continue;
        }
        shared.show(&AgentId::root(), UiEventKind::LogGoesOn);
        runs.for_each(shared, AgentRun::go_on)?;
        runs.for_each(shared, AgentRun::release)?;
    }
    Ok(())
}

fn say_paused(shared: &Shared) {
    let log = &shared.log;
    let last = log.last_safe();
    let (path, free) = (log.path().into(), log.free_bytes());
    shared.show(&AgentId::root(), UiEventKind::LogPaused { path, free, last });
}
