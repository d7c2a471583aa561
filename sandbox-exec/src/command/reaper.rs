//! The reaper of a command, from its start to its end: a process in the memory of its worker.
//!
//! Nothing of the worker is copied for it, as fork(2) would, and nothing taken down at its end. In return it leaves the worker's
//! memory alone but for its own stack, never unwinds, calls nothing that allocates or may wait for a lock, and makes its system
//! calls without the C library ([`raw`]): the storage of the thread that started it is that thread's. What it has belongs to it
//! until it is gone.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::libc::{self, pid_t};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use super::start::{Started, start};
use super::{Image, NOT_STARTED, signals};
use crate::descendants::{self, Bound, Waited};
use crate::domain::Layer;
use crate::raw::{self, call};
use crate::seccomp::Program;
use crate::stage::Stage;
use crate::system;

/// Everything that a reaper and its command need, prepared before they start. The descriptors are their copies of the worker's.
pub(super) struct Job {
    pub(super) worker: pid_t,
    pub(super) image: Image,
    pub(super) signals: Option<Layer>,
    pub(super) domain: Layer,
    pub(super) filter: Option<Program>,
    pub(super) null: RawFd,
    pub(super) output: RawFd,
    pub(super) status: RawFd,
}

/// A stage that failed, and why.
pub(super) struct Failed(pub(super) Stage, pub(super) io::Error);

/// A reaper that was started.
#[derive(Debug)]
pub(super) struct Reaper {
    pid: pid_t,
    job: *mut Job,
    stack: *mut Stack,
}

/// What a reaper needs of a stack, several times over; its command's is in it.
#[repr(C, align(16))]
struct Stack([u8; 64 << 10]);

// SAFETY: the pointers are its own, and only used to free what they point to.
unsafe impl Send for Reaper {}
// SAFETY: a shared one shows a number.
unsafe impl Sync for Reaper {}

impl Reaper {
    /// Starts one. Signals are blocked across the start: the worker's handlers must not run in it.
    pub(super) fn start(job: Job) -> io::Result<Self> {
        let before = signals::block()?;
        let (job, stack) = (Box::into_raw(Box::new(job)), Box::into_raw(Box::<Stack>::new_uninit()).cast());
        let mut reaper = Self { pid: 0, job, stack };
        // SAFETY: the stack is as long as it says, and grows downwards. It and the job are freed by `wait` alone, when the process has
        // ended. `enter` keeps to what this module says.
        let started =
            unsafe { raw::start(libc::SIGCHLD, reaper.stack.add(1).cast(), enter, reaper.job.cast()) };
        signals::restore(before);
        match started {
            Ok(pid) => {
                reaper.pid = pid;
                Ok(reaper)
            }
            Err(error) => {
                reaper.free();
                Err(error)
            }
        }
    }

    /// Its process id.
    pub(super) fn pid(&self) -> pid_t {
        self.pid
    }

    /// Waits for its end.
    ///
    /// One that was killed may have left its command on the way to exec, in this memory: then that stays as it is, for good.
    pub(super) fn wait(self) -> io::Result<()> {
        loop {
            match waitpid(Pid::from_raw(self.pid), None) {
                Err(Errno::EINTR) => {}
                Ok(WaitStatus::Exited(..)) => {
                    self.free();
                    return Ok(());
                }
                other => return other.map(drop).map_err(Into::into),
            }
        }
    }

    fn free(self) {
        // SAFETY: both were boxes, and nobody uses them any more: the reaper never was, or has ended by itself, and that after its
        // command was executed or had ended.
        unsafe {
            drop(Box::from_raw(self.job));
            drop(Box::from_raw(self.stack.cast::<std::mem::MaybeUninit<Stack>>()));
        }
    }
}

/// The reaper's life; its exit code.
extern "C" fn enter(job: *mut c_void) -> c_int {
    // SAFETY: it is the one above, which stays until this process has ended, and which nobody changes.
    let job = unsafe { &*job.cast::<Job>() };
    let (status, code) = match job.watch() {
        Ok(status) => (status, 0),
        Err(failed) => (failed.status(), failed.0.code().into()),
    };
    write_status(job.status, status);
    code
}

impl Job {
    fn watch(&self) -> Result<c_int, Failed> {
        let bound = self.prepare()?;
        let Started { command, failure } = start(self).map_err(at(Stage::Start))?;
        // The worker's pipes, and the other ends of the command's, must close when their owners close them. What the command prints
        // on stays open: nobody needs to be woken up because it is closed, before the status comes.
        close_all_but(self.status, self.output).map_err(at(Stage::Descriptors))?;
        let mut status = None;
        let mut note = |pid, ended| {
            if pid == command {
                status = Some(ended);
            }
        };
        let ended = wait_for_the_end(command, &mut note);
        let alive = if ended { 0 } else { command };
        descendants::end_all(bound, alive, note);
        Ok(failure.or(status).unwrap_or(libc::SIGKILL))
    }

    fn prepare(&self) -> Result<Bound, Failed> {
        // SAFETY: no arguments.
        unsafe { call!(libc::SYS_setsid) }.map_err(at(Stage::Session))?;
        // A blocked SIGCHLD is queued even where it would be ignored, but not one that is set to be ignored (`sigaction(2)`).
        signals::set_default(libc::SIGCHLD).map_err(at(Stage::Session))?;
        system::set_subreaper().map_err(at(Stage::Session))?;
        descendants::fence().map_err(at(Stage::Session))?;
        system::set_parent_death_signal(libc::SIGTERM).map_err(at(Stage::Parent))?;
        // SAFETY: no arguments. The worker may have died before the prctl.
        let parent = unsafe { call!(libc::SYS_getppid) }.map_err(at(Stage::Parent))?;
        if pid_t::try_from(parent) != Ok(self.worker) {
            return Err(Failed(Stage::Parent, io::Error::from_raw_os_error(libc::ESRCH)));
        }
        system::set_no_new_privs().map_err(at(Stage::Privileges))?;
        Bound::enter_layer(self.signals, self.worker).map_err(at(Stage::Landlock))
    }
}

impl Failed {
    /// As the status of a command.
    pub(super) fn status(&self) -> c_int {
        let Self(stage, error) = self;
        NOT_STARTED | (error.raw_os_error().unwrap_or(0) & 0xff) << 16 | c_int::from(stage.code()) << 8
    }
}

pub(super) fn at(stage: Stage) -> impl Fn(io::Error) -> Failed {
    move |error| Failed(stage, error)
}

/// Waits until the command has ended, which is true, or SIGTERM says to end it: from the worker, or by its death.
fn wait_for_the_end(command: pid_t, note: &mut dyn FnMut(pid_t, c_int)) -> bool {
    loop {
        // A child may have ended before SIGCHLD had its default action: look first, then wait.
        loop {
            match descendants::reap_one(false) {
                Waited::Ended(pid, status) => {
                    note(pid, status);
                    if pid == command {
                        return true;
                    }
                }
                Waited::Running => break,
                Waited::None => return true,
            }
        }
        if signals::wait(libc::SIGCHLD, libc::SIGTERM) == libc::SIGTERM {
            return false;
        }
    }
}

/// Closes every descriptor but two.
fn close_all_but(one: RawFd, other: RawFd) -> io::Result<()> {
    let (low, high) = (one.min(other).cast_unsigned(), one.max(other).cast_unsigned());
    for (first, last) in [(0, low.wrapping_sub(1)), (low + 1, high.wrapping_sub(1)), (high + 1, u32::MAX)] {
        // Nothing lies below descriptor 0, nor between neighbours.
        if first <= last && (first, last) != (0, u32::MAX) {
            system::close_range(first, last, false)?;
        }
    }
    Ok(())
}

fn write_status(pipe: RawFd, status: c_int) {
    let bytes = status.to_le_bytes();
    // SAFETY: the buffer is valid for its size. So few bytes are written at once or not at all (`pipe(7)`).
    let _written = unsafe { call!(libc::SYS_write, pipe, bytes.as_ptr(), size_of_val(&bytes)) };
}
