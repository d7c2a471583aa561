use gate::Change;
use gate::modes::{Position, permits};

/// True if no approval is valid after a change.
pub(super) fn ends_approvals(change: &Change) -> bool {
    match change {
        Change::Mode(mode) => !permits(Position::FIRST, *mode).keeps_approvals(),
        Change::Rights(_) => false,
    }
}
