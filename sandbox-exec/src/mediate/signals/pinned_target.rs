//! Pinned process or thread: a signal reaches exactly this one, and no later process or thread with the same id.

use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc::{self, c_int, pid_t};
use nix::unistd::pipe2;

use crate::mediate::call::caller::{PIDFD_THREAD, pidfd_open};
use crate::mediate::call::memory::Memory;
use crate::mediate::kernel::status::Status;
use crate::system::process;

/// Highest signal number (`_NSIG`).
pub(super) const MAX_SIGNAL: c_int = 64;

// `F_OWNER_TID` and `F_SETSIG` (asm-generic/fcntl.h).
const OWNER_THREAD: c_int = 0;
const F_SETSIG: c_int = 10;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Info([u8; 128]);

impl Info {
    pub(in crate::mediate) fn read(memory: Memory, start: u64) -> Result<Self, Errno> {
        memory.read(start).map(Self)
    }

    pub(super) fn of_signal(mut self, number: c_int) -> Self {
        self.0[..4].copy_from_slice(&number.to_ne_bytes());
        self
    }

    pub(super) fn signal(&self) -> c_int {
        self.0.first_chunk().map_or(0, |&number| c_int::from_ne_bytes(number))
    }
}

#[derive(Debug)]
pub(super) struct PinnedTarget(Held);

#[derive(Debug)]
enum Held {
    Descriptor(OwnedFd),
    /// Thread, on a kernel without pidfds of threads: the two ends of a pipe, the first of which the thread owns.
    Owner(OwnedFd, OwnedFd),
}

impl PinnedTarget {
    /// Pins the process or thread that has this id now. What was looked up by the id is true of this target if the
    /// target can still be signalled afterwards.
    pub(super) fn take(process: pid_t, thread: Option<pid_t>) -> Result<Self, Errno> {
        let held = match thread {
            None => Held::Descriptor(pidfd_open(process, 0)?),
            Some(thread) => {
                let held = match pidfd_open(thread, PIDFD_THREAD) {
                    Err(Errno::EINVAL) => own(thread)?,
                    descriptor => Held::Descriptor(descriptor?),
                };
                if Status::of(thread)?.process != process {
                    return Err(Errno::ESRCH);
                }
                held
            }
        };
        Ok(Self(held))
    }

    pub(super) fn is_there(&self) -> bool {
        self.fire(0, None) != Err(Errno::ESRCH)
    }

    pub(super) fn fire(&self, number: c_int, info: Option<Info>) -> Result<(), Errno> {
        match &self.0 {
            Held::Descriptor(descriptor) => {
                process::signal_by(descriptor.as_fd(), number, info.as_ref().map(|info| &info.0))
            }
            // Signal 0 only checks for existence.
            Held::Owner(..) if number == 0 => Ok(()),
            Held::Owner(read, write) => raise(read, write, number),
        }
    }
}

/// Makes a thread the owner of a pipe. The kernel records the thread itself, not its id (fcntl(2), `F_SETOWN_EX`).
fn own(thread: pid_t) -> Result<Held, Errno> {
    let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    let owner = [OWNER_THREAD, thread];
    process::set_owner(read.as_fd(), owner)?;
    Ok(Held::Owner(read, write))
}

/// Signals the thread that owns a pipe: puts data into the pipe, at which the kernel sends the signal.
fn raise(read: &OwnedFd, write: &OwnedFd, number: c_int) -> Result<(), Errno> {
    process::control(read.as_fd(), F_SETSIG, number)?;
    process::control(read.as_fd(), libc::F_SETFL, libc::O_NONBLOCK | libc::O_ASYNC)?;
    nix::unistd::write(write, &[0])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use nix::sys::signal::{SigSet, Signal};

    use super::*;

    /// Signals by the target of `aim` a thread that waits for signals, which all others block. Returns the signal.
    fn reached(aim: impl Fn(pid_t, pid_t) -> PinnedTarget) -> Signal {
        let awaited = SigSet::from_iter([Signal::SIGUSR1, Signal::SIGUSR2]);
        awaited.thread_block().unwrap();
        let (tell, told) = channel();
        let waiting = std::thread::spawn(move || {
            tell.send(nix::unistd::gettid().as_raw()).unwrap();
            awaited.wait().unwrap()
        });
        let aim = aim(std::process::id().cast_signed(), told.recv().unwrap());
        aim.fire(0, None).unwrap();
        aim.fire(libc::SIGUSR2, None).unwrap();
        waiting.join().unwrap()
    }

    #[test]
    fn a_thread_is_reached_with_and_without_a_descriptor_of_it() {
        let take = |process, thread| PinnedTarget::take(process, Some(thread)).unwrap();
        let own = |_, thread| PinnedTarget(own(thread).unwrap());
        assert_eq!((reached(take), reached(own)), (Signal::SIGUSR2, Signal::SIGUSR2));
    }

    #[test]
    fn what_has_ended_is_not_there() {
        let mut child =
            std::process::Command::new("/bin/cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let aim = PinnedTarget::take(child.id().cast_signed(), None).unwrap();
        assert!(aim.is_there());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!aim.is_there());
        assert_eq!(aim.fire(libc::SIGKILL, None), Err(Errno::ESRCH));
    }

    #[test]
    fn a_thread_is_taken_only_in_its_process() {
        let other = nix::unistd::getppid().as_raw();
        let thread = nix::unistd::gettid().as_raw();
        assert_eq!(PinnedTarget::take(other, Some(thread)).map(drop), Err(Errno::ESRCH));
    }
}
