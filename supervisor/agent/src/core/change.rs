use gate::Change;
use gate::modes::{Position, permits};

/// True if the change ends all approvals of the session.
pub(super) fn ends_approvals(change: &Change) -> bool {
    match change {
        Change::Mode(mode) => !permits(Position::FIRST, *mode).keeps_approvals(),
        Change::Rights(_) => false,
    }
}
