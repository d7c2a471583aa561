//! Ancestry of processes, as far as signals need it.
//!
//! A process is inside the sandbox if it descends from the broker, which adopts orphans. A process inside that also
//! adopts orphans (`PR_SET_CHILD_SUBREAPER(2const)`) can put a [fence](Lineage::fence) around its descendants: these
//! may then signal only each other.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::libc::pid_t;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::mediate::call::caller::pidfd_open;
use crate::mediate::kernel::status::Status;

/// Number of attempts to read ancestors that change meanwhile.
const TRIES: usize = 64;
/// Maximum length of an ancestry; processes with more ancestors can neither send signals nor get any.
const MOST: usize = 4096;

/// Ancestry of the processes below the broker, and the fences among them.
#[derive(Debug)]
pub(super) struct Lineage {
    broker: pid_t,
    fences: Mutex<HashMap<pid_t, Arc<OwnedFd>>>,
}

#[derive(Clone, Debug)]
pub(super) struct Scope {
    top: pid_t,
    /// Pidfd of the fenced process that is the root of the scope; `None` if the root is the broker.
    fence: Option<Arc<OwnedFd>>,
}

impl Lineage {
    pub(super) fn new() -> Self {
        Self { broker: std::process::id().cast_signed(), fences: Mutex::default() }
    }

    pub(super) fn fence(&self, process: pid_t) -> Result<(), Errno> {
        let fence = Arc::new(pidfd_open(process, 0)?);
        let mut fences = self.lock();
        fences.retain(|_, fence| lives(fence));
        fences.insert(process, fence);
        Ok(())
    }

    pub(super) fn scope(&self, process: pid_t) -> Result<Scope, Errno> {
        let ancestors = self.ancestors(process)?.ok_or(Errno::EPERM)?;
        let fences = self.lock();
        let nearest = ancestors.into_iter().find_map(|ancestor| {
            let fence = fences.get(&ancestor).filter(|fence| lives(fence))?;
            Some(Scope { top: ancestor, fence: Some(Arc::clone(fence)) })
        });
        Ok(nearest.unwrap_or(Scope { top: self.broker, fence: None }))
    }

    /// True if this scope contains a process, so that its signals may reach the process. Valid only if the process
    /// still has this number afterwards.
    pub(super) fn contains(&self, scope: &Scope, process: pid_t) -> Result<bool, Errno> {
        let Some(ancestors) = self.ancestors(process)? else {
            return Ok(false);
        };
        let Scope { top, fence } = scope;
        // If the root still lives, it had this number all along.
        Ok(fence.as_ref().is_none_or(|fence| ancestors.contains(top) && lives(fence)))
    }

    /// Returns the ancestors of a process below the broker; `None` if it does not descend from the broker.
    ///
    /// A parent can die between two reads, and another process can get its number. But a process that has the same
    /// parent at two times had it all the time between them, since an orphan's new parent is never younger than the
    /// orphan. So the line of ancestors is read upwards and then downwards. The last read confirms that the process
    /// still has the same parent, so the two reads of the parent in between saw the same process; the same holds for
    /// each further ancestor.
    fn ancestors(&self, process: pid_t) -> Result<Option<Vec<pid_t>>, Errno> {
        for _ in 0..TRIES {
            let parent = Status::of(process)?.parent;
            if let Some(mut line) = self.climb(process, parent)
                && confirm(&line)
            {
                let top = line.pop();
                line.remove(0);
                return Ok((top == Some(self.broker)).then_some(line));
            }
        }
        Err(Errno::EPERM)
    }

    fn climb(&self, process: pid_t, mut parent: pid_t) -> Option<Vec<pid_t>> {
        let mut line = vec![process, parent];
        while parent != self.broker && parent > 1 && line.len() < MOST {
            parent = Status::of(parent).ok()?.parent;
            line.push(parent);
        }
        Some(line)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<pid_t, Arc<OwnedFd>>> {
        self.fences.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if each process is still the child of the next one. The check starts with the last, the oldest ancestor.
fn confirm(line: &[pid_t]) -> bool {
    line.windows(2).rev().all(|pair| Status::of(pair[0]).is_ok_and(|status| status.parent == pair[1]))
}

fn lives(process: &Arc<OwnedFd>) -> bool {
    let mut ended = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    poll(&mut ended, PollTimeout::ZERO) == Ok(0)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    struct Family {
        parent: Child,
        child: pid_t,
    }

    impl Family {
        fn new() -> Self {
            let mut parent = Command::new("/bin/sh")
                .args(["-c", "sleep 1000 & echo $!; wait"])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            let output = parent.stdout.take().unwrap();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
            Self { parent, child: line.trim().parse().unwrap() }
        }

        fn parent(&self) -> pid_t {
            self.parent.id().cast_signed()
        }
    }

    impl Drop for Family {
        fn drop(&mut self) {
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.child), nix::sys::signal::Signal::SIGKILL)
                .unwrap();
            self.parent.wait().unwrap();
        }
    }

    #[test]
    fn what_descends_is_inside_and_nothing_else_is() {
        let (family, lineage) = (Family::new(), Lineage::new());
        let scope = lineage.scope(family.child).unwrap();
        for inside in [family.parent(), family.child] {
            assert_eq!(lineage.contains(&scope, inside), Ok(true));
        }
        let own = std::process::id().cast_signed();
        for outside in [own, nix::unistd::getppid().as_raw(), 1] {
            assert_eq!(lineage.contains(&scope, outside), Ok(false), "{outside}");
        }
        assert_eq!(lineage.contains(&scope, pid_t::MAX), Err(Errno::ESRCH));
        assert_eq!(lineage.scope(own).map(|scope| scope.top), Err(Errno::EPERM));
    }

    #[test]
    fn a_fence_bounds_what_is_beneath_it_and_not_itself() {
        let (fenced, beside, lineage) = (Family::new(), Family::new(), Lineage::new());
        lineage.fence(fenced.parent()).unwrap();
        let reaches = |from, to| lineage.contains(&lineage.scope(from).unwrap(), to).unwrap();
        assert!(reaches(fenced.child, fenced.child));
        for outside in [fenced.parent(), beside.parent(), beside.child] {
            assert!(!reaches(fenced.child, outside));
            assert!(reaches(fenced.parent(), outside));
        }
        assert!(reaches(fenced.parent(), fenced.child));
        assert!(reaches(beside.child, fenced.child));
    }

    #[test]
    fn the_fence_of_a_process_that_ended_is_none() {
        let lineage = Lineage::new();
        let mut ended = Command::new("/bin/true").spawn().unwrap();
        lineage.fence(ended.id().cast_signed()).unwrap();
        ended.wait().unwrap();
        lineage.fence(Family::new().parent()).unwrap();
        assert_eq!(lineage.lock().len(), 1);
    }
}
