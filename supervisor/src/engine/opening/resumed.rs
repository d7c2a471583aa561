//! The third step of opening a session: its earlier runs are closed, and its observer is prepared.

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
    /// The earlier runs; `None` in a new session.
    pub(super) past: Option<Past>,
    /// Notices about interrupted work.
    pub(super) cut_off: Vec<EventKind>,
    pub(super) site: Site,
}

/// Identity of a session, with the boundary and observer that start its processes.
pub(super) struct Site {
    pub(super) conversation: ConversationId,
    pub(super) boundary: Arc<dyn Boundary>,
    pub(super) observer: SnapshotTaker,
    /// Removed from the disk when the session is over.
    pub(super) observer_temp: PrivateTemp,
    /// The plan whose execution continues.
    pub(super) plan: Option<CutOffPlan>,
}

impl Resumed {
    /// Opens the log of a session that continues, and closes open calls and turns in it.
    pub(super) fn new(prepared: &PreparedSession) -> Result<Self, OpenError> {
        let PreparedSession { options, setup, standing, .. } = prepared;
        let mut past = Past::of(options.resume.as_ref(), &standing.project, &setup.directories.state)?;
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

/// Returns the plan to continue, if the first agent is a planner and somebody can approve plans.
fn cut_off_plan(options: &SessionOptions, past: Option<&Past>) -> Option<CutOffPlan> {
    let decides = options.turns == Turns::Many || matches!(options.plan.approver, Approver::Flags { .. });
    past.filter(|_| options.activity == Activity::Plan && decides)
        .and_then(|past| CutOffPlan::of(past.events()))
}

fn new_conversation() -> ConversationId {
    ConversationId(uuid::Uuid::now_v7().to_string())
}
