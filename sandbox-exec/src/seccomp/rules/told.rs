//! The calls whose denial is told: a program's own words do not say what was asked for, and whether the kernel itself would have
//! refused that depends on it.
//!
//! Where a broker has somebody to tell, these denials are its: the standing program leaves them to the program that notifies it, and
//! it answers with the same error. Calls that are made often are not among them, but for arguments that are denied.

use super::calls::{self, Call};

/// Of them, every denial is left to the broker, or none.
pub(super) const TOLD: &[Call] = &[
    calls::CLONE,
    calls::UNSHARE,
    calls::SOCKET,
    calls::PROCESS_VM_READV,
    calls::PROCESS_VM_WRITEV,
    calls::PIDFD_GETFD,
    calls::KCMP,
    calls::PRLIMIT64,
    calls::MOVE_PAGES,
    calls::MIGRATE_PAGES,
];
