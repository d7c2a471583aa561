//! The command up to exec, in the memory of its reaper, which waits until it is executed or has ended (`vfork(2)`).

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::libc::{self, pid_t};

use super::reaper::{Failed, Job, at};
use super::signals;
use crate::raw::{self, call};
use crate::stage::Stage;
use crate::system;

/// What a command needs of a stack up to exec, several times over.
#[repr(C, align(16))]
struct Stack([u8; 32 << 10]);

/// A command that was started.
pub(super) struct Started {
    pub(super) command: pid_t,
    /// Why it was not executed, as [`Failed::status`] says it: then it has ended.
    pub(super) failure: Option<c_int>,
}

struct Attempt<'a> {
    job: &'a Job,
    /// What the command tells its reaper; 0 if there is nothing to tell.
    failure: AtomicI32,
}

/// Starts the command: on a stack of its own, and nobody touches its reaper's meanwhile.
pub(super) fn start(job: &Job) -> io::Result<Started> {
    let mut stack = MaybeUninit::<Stack>::uninit();
    let attempt = Attempt { job, failure: AtomicI32::new(0) };
    // SAFETY: the stack is as long as it says, grows downwards, and outlives the child's use of it, for which this process waits; the
    // child calls nothing that uses the thread's storage, and ends by exec or by its answer.
    let command = unsafe {
        let top = stack.as_mut_ptr().add(1).cast();
        let argument = ptr::from_ref(&attempt).cast_mut().cast();
        raw::start(libc::CLONE_VFORK | libc::SIGCHLD, top, enter, argument)
    }?;
    let failure = attempt.failure.load(Ordering::Relaxed);
    Ok(Started { command, failure: (failure != 0).then_some(failure) })
}

/// The command's life up to exec; its exit code when there was none.
extern "C" fn enter(attempt: *mut c_void) -> c_int {
    // SAFETY: it is the one above, whose process waits.
    let attempt = unsafe { &*attempt.cast::<Attempt<'_>>() };
    let failed = execute(attempt.job);
    attempt.failure.store(failed.status(), Ordering::Relaxed);
    failed.0.code().into()
}

fn execute(job: &Job) -> Failed {
    if let Err(failed) = confine(job) {
        return failed;
    }
    let (argv, environment) = (&job.image.argv.pointers, &job.image.environment.pointers);
    // SAFETY: both arrays are null-terminated and point to C strings that the image owns.
    let executed = unsafe { call!(libc::SYS_execve, argv[0], argv.as_ptr(), environment.as_ptr()) };
    Failed(Stage::Execute, executed.err().unwrap_or_else(|| io::Error::from_raw_os_error(0)))
}

fn confine(job: &Job) -> Result<(), Failed> {
    for (from, to) in [(job.null, 0), (job.output, 1), (job.output, 2)] {
        duplicate(from, to).map_err(at(Stage::Descriptors))?;
    }
    system::close_range(3, u32::MAX, true).map_err(at(Stage::Descriptors))?;
    // A process group of its own, so that `kill 0` is its own affair.
    // SAFETY: integers.
    unsafe { call!(libc::SYS_setpgid, 0, 0) }.map_err(at(Stage::Session))?;
    // SAFETY: the path is a C string that the image owns.
    unsafe { call!(libc::SYS_chdir, job.image.cwd.as_c_str()) }.map_err(at(Stage::Directory))?;
    default_signals().map_err(at(Stage::Session))?;
    job.domain.enter().map_err(at(Stage::Landlock))?;
    job.filter.map_or(Ok(()), |filter| filter.attach_only()).map_err(at(Stage::Seccomp))
}

/// Rust ignores SIGPIPE, and ignored signals stay ignored across exec; a command expects neither that nor a blocked mask.
fn default_signals() -> io::Result<()> {
    for signal in [libc::SIGPIPE, libc::SIGCHLD, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
        signals::set_default(signal)?;
    }
    signals::restore(signals::NONE);
    Ok(())
}

/// Replaces a descriptor of this process alone, and keeps it open across exec.
fn duplicate(from: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: integers.
    unsafe { call!(libc::SYS_dup3, from, to, 0) }.map(drop)
}
