//! Processes that share their table of descriptors (`CLONE_FILES` without `CLONE_THREAD`).
//!
//! While the call of a single-threaded process waits, the table of that process can be changed only by a process that
//! shares it. The filter reports each call that creates such a process. Neither the creating process nor its child may
//! create another one, so at most two processes share a table, parent and child. `CLONE_PARENT`, which would hide the
//! parent, is denied.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::libc::{self, c_int, pid_t};
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::status::Status;

/// Number of recorded processes above which those that have ended are removed.
const SLACK: usize = 256;

#[derive(Debug, Default)]
pub(in crate::mediate) struct Tables(Mutex<HashSet<pid_t>>);

impl Tables {
    /// Records that a process creates a child that shares its table. Fails with `EPERM` if the process may not do that.
    pub(in crate::mediate) fn share(&self, status: &Status, flags: c_int) -> Result<(), Errno> {
        let mut makers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if flags & libc::CLONE_PARENT != 0
            || makers.contains(&status.process)
            || makers.contains(&status.parent)
        {
            return Err(Errno::EPERM);
        }
        if makers.len() > SLACK {
            makers.retain(|&maker| kill(Pid::from_raw(maker), None) != Err(Errno::ESRCH));
        }
        makers.insert(status.process);
        Ok(())
    }

    pub(in crate::mediate) fn is_private(&self, status: &Status) -> bool {
        let makers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !makers.contains(&status.process) && !makers.contains(&status.parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(process: pid_t, parent: pid_t) -> Status {
        Status { process, parent, threads: 1, ..Status::default() }
    }

    #[test]
    fn a_table_has_two_processes_at_most_and_both_are_known() {
        let tables = Tables::default();
        let (maker, made, beside) = (process(10, 1), process(11, 10), process(12, 1));
        assert!(tables.is_private(&maker));
        assert_eq!(tables.share(&maker, libc::CLONE_PARENT), Err(Errno::EPERM));
        tables.share(&maker, 0).unwrap();
        assert!(!tables.is_private(&maker) && !tables.is_private(&made) && tables.is_private(&beside));
        for again in [maker, made] {
            assert_eq!(tables.share(&again, 0), Err(Errno::EPERM));
        }
        let adopted = process(11, 1);
        assert!(tables.is_private(&adopted), "its maker is gone");
        assert_eq!(tables.share(&adopted, 0), Ok(()));
    }
}
