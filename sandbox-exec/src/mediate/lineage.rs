//! Who descends from whom, as far as signals ask.
//!
//! A process is inside if it descends from the broker, which adopts what is orphaned beneath it: so a process that was inside once
//! is, for as long as it lives. A process can put a [fence](Lineage::fence) around its descendants, which then signal each
//! other and nobody else, neither it nor what is above or beside it. It has to adopt them too
//! (`PR_SET_CHILD_SUBREAPER(2const)`), or they would leave the fence with their parents' death.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::libc::pid_t;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::caller::pidfd_open;
use super::status::Status;

/// How often a line of ancestors is looked at that changes meanwhile.
const TRIES: usize = 64;
/// The most ancestors of a process that can be signalled.
const MOST: usize = 4096;

/// The processes beneath this one, and the fences among them.
#[derive(Debug)]
pub(super) struct Lineage {
    broker: pid_t,
    fences: Mutex<HashMap<pid_t, Arc<OwnedFd>>>,
}

/// How far the signals of a process reach: to what descends from another.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    top: pid_t,
    /// The process of that number, unless it is the broker.
    fence: Option<Arc<OwnedFd>>,
}

impl Lineage {
    /// Of this process.
    pub(super) fn new() -> Self {
        Self { broker: std::process::id().cast_signed(), fences: Mutex::default() }
    }

    /// Bounds the signals of all that descends, and will descend, from a process.
    pub(super) fn fence(&self, process: pid_t) -> Result<(), Errno> {
        let fence = Arc::new(pidfd_open(process, 0)?);
        let mut fences = self.lock();
        fences.retain(|_, fence| lives(fence));
        fences.insert(process, fence);
        Ok(())
    }

    /// How far the signals of a process reach, which must live until afterwards.
    pub(super) fn scope(&self, process: pid_t) -> Result<Scope, Errno> {
        let ancestors = self.ancestors(process)?.ok_or(Errno::EPERM)?;
        let fences = self.lock();
        let nearest = ancestors.into_iter().find_map(|ancestor| {
            let fence = fences.get(&ancestor).filter(|fence| lives(fence))?;
            Some(Scope { top: ancestor, fence: Some(Arc::clone(fence)) })
        });
        Ok(nearest.unwrap_or(Scope { top: self.broker, fence: None }))
    }

    /// Whether signals of this scope reach a process: true only if the process that had this number before, and still has it,
    /// was there.
    pub(super) fn contains(&self, scope: &Scope, process: pid_t) -> Result<bool, Errno> {
        let Some(ancestors) = self.ancestors(process)? else {
            return Ok(false);
        };
        let Scope { top, fence } = scope;
        // If it still lives, it was the one of this number all along.
        Ok(fence.as_ref().is_none_or(|fence| ancestors.contains(top) && lives(fence)))
    }

    /// The ancestors of a process up to the broker, which is left out; nothing if it is outside.
    ///
    /// A number is no process: between two looks a parent can die and its number be given away. But whoever has the same parent
    /// at two times had it in between too, since an orphan's next parent is not younger than itself. So the line is read upwards and
    /// again downwards: what the second look confirms last, that the process has its parent still, makes the looks
    /// in between, at this parent, be at the same one, and so on up.
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

    /// From a process up to the broker, or else to the top of all.
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

/// Whether each is still the child of the next, the last asked first.
fn confirm(line: &[pid_t]) -> bool {
    line.windows(2).rev().all(|pair| Status::of(pair[0]).is_ok_and(|status| status.parent == pair[1]))
}

/// Whether a process has not ended.
fn lives(process: &Arc<OwnedFd>) -> bool {
    let mut ended = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    poll(&mut ended, PollTimeout::ZERO) == Ok(0)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell and its child, both until they are killed.
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
