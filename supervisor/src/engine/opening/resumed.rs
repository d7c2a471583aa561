//! The third step of opening a session: closes open calls and turns of earlier runs, and prepares the observer.

use std::sync::Arc;

use agent::core::Approver;
use boundary::monitor::PrivateTemp;
use gate::activity::Activity;
use ipc::id::ConversationId;
use protocol::event::EventKind;

use super::cut_off_plan::CutOffPlan;
use super::error::OpenError;
use super::options::SessionOptions;
use super::past::Past;
use super::prepared::{PreparedSession, observer};
use crate::engine::driver::{Boundary, SnapshotTaker, Turns};

pub(super) struct Resumed {
    /// The earlier session; `None` for a new one.
    pub(super) past: Option<Past>,
    /// Notices about work that was cut off.
    pub(super) cut_off: Vec<EventKind>,
    pub(super) site: Site,
}

/// Ids of a session, and the values that start its workers and observers.
pub(super) struct Site {
    pub(super) conversation: ConversationId,
    pub(super) boundary: Arc<dyn Boundary>,
    pub(super) observer: SnapshotTaker,
    /// Temp directory of observers. Dropping this removes the directory.
    pub(super) observer_temp: PrivateTemp,
    /// Plan whose execution continues; `None` if there is none.
    pub(super) plan: Option<CutOffPlan>,
}

impl Resumed {
    /// Opens the log of a session that continues, and logs the ends of open calls and turns.
    pub(super) fn new(prepared: &PreparedSession) -> Result<Self, OpenError> {
        let PreparedSession { options, setup, standing, .. } = prepared;
        let mut past = Past::of(options.resume.as_ref(), standing.project(), &setup.directories.state)?;
        let conversation = past.as_ref().map_or_else(new_conversation, Past::session);
        let leftovers = past.as_ref().and_then(Past::leftovers);
        let observer_temp = setup.another_temp()?;
        let boundary = setup.boundary(leftovers);
        let observer = observer(setup, &boundary, &observer_temp);
        let plan = cut_off_plan(options, past.as_ref());
        let cut_off = past.as_mut().map(|past| past.close(setup, &observer, plan.as_ref())).transpose()?;
        let site = Site { conversation, boundary, observer, observer_temp, plan };
        Ok(Self { past, cut_off: cut_off.unwrap_or_default(), site })
    }
}

/// Returns the cut-off plan to continue; `None` unless the first agent is a planner and a user can approve plans.
fn cut_off_plan(options: &SessionOptions, past: Option<&Past>) -> Option<CutOffPlan> {
    let decides = options.turns == Turns::Many || matches!(options.plan.approver, Approver::Flags { .. });
    past.filter(|_| options.activity == Activity::Plan && decides)
        .and_then(|past| CutOffPlan::of(past.events()))
}

fn new_conversation() -> ConversationId {
    ConversationId(uuid::Uuid::now_v7().to_string())
}
