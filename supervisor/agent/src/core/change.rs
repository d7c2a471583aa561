//! Changes of the rights that take something away.

use gate::Change;
use gate::modes::{Position, permits};

/// True if nothing stays approved after a change.
pub(super) fn ends_approvals(change: &Change) -> bool {
    match change {
        Change::Mode(mode) => !permits(Position::FIRST, *mode).keeps_approvals(),
        Change::Rights(_) => false,
    }
}
