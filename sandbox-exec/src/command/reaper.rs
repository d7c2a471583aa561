//! From the fork to the end of a command: what runs in the child, in the image of a threaded process.
//!
//! Only async-signal-safe calls from here on, and no allocation: another thread may have held any lock at the fork.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;

use nix::libc::{self, c_int, c_void, pid_t};

use super::{Image, NOT_STARTED};
use crate::descendants::{self, Bound, Waited};
use crate::domain::Domain;
use crate::seccomp::Program;
use crate::stage::Stage;
use crate::system::{self, check};

/// Everything that the children need, prepared before the fork. Descriptors stay owned by the caller.
pub(super) struct Job<'a> {
    pub(super) image: &'a Image,
    pub(super) signals: Option<&'a Domain>,
    pub(super) domain: &'a Domain,
    pub(super) filter: Option<&'a Program>,
    pub(super) null: RawFd,
    pub(super) output: RawFd,
    pub(super) status: RawFd,
    pub(super) failure: RawFd,
    pub(super) failed: RawFd,
}

/// What a command needs of a stack up to exec, several times over.
#[repr(C, align(16))]
struct Stack([u8; 32 << 10]);

/// A stage that failed, and why.
struct Failed(Stage, io::Error);

impl Job<'_> {
    /// Forks the reaper. Signals are blocked across the fork: the worker's handlers must not run in its child.
    pub(super) fn start(&self) -> io::Result<pid_t> {
        let worker = std::process::id().cast_signed();
        let before = block_signals()?;
        // SAFETY: the child runs `reaper`, which calls async-signal-safe functions only and never returns.
        let reaper = unsafe { libc::fork() };
        if reaper == 0 {
            exit(self.reaper(worker));
        }
        let error = io::Error::last_os_error();
        restore_signals(&before);
        if reaper < 0 { Err(error) } else { Ok(reaper) }
    }

    /// The reaper's life; its exit code.
    fn reaper(&self, worker: pid_t) -> c_int {
        let ((command, status), code) = match self.watch(worker) {
            Ok(ended) => (ended, 0),
            Err(Failed(stage, error)) => ((0, not_started(stage, &error)), stage.code().into()),
        };
        write_numbers(self.status, [status, command]);
        code
    }

    fn watch(&self, worker: pid_t) -> Result<(pid_t, c_int), Failed> {
        let bound = self.prepare(worker)?;
        let command = self.begin().map_err(at(Stage::Start))?;
        // The worker's pipes, and the other ends of the command's, must close when their owners close them.
        close_all_but(self.status, self.failure).map_err(at(Stage::Descriptors))?;
        let mut status = None;
        let mut note = |pid, ended| {
            if pid == command {
                status = Some(ended);
            }
        };
        let ended = wait_for_the_end(command, &mut note);
        let alive = if ended { 0 } else { command };
        descendants::end_all(bound, alive, note);
        let status = status.unwrap_or(libc::SIGKILL);
        Ok((command, read_failure(self.failure).unwrap_or(status)))
    }

    fn prepare(&self, worker: pid_t) -> Result<Bound, Failed> {
        // SAFETY: no arguments.
        check(unsafe { libc::setsid() }.into()).map_err(at(Stage::Session))?;
        default_child_signal().map_err(at(Stage::Session))?;
        system::set_subreaper().map_err(at(Stage::Session))?;
        descendants::fence().map_err(at(Stage::Session))?;
        system::set_parent_death_signal(libc::SIGTERM).map_err(at(Stage::Parent))?;
        // SAFETY: no arguments. The worker may have died before the prctl.
        if unsafe { libc::getppid() } != worker {
            return Err(Failed(Stage::Parent, io::Error::from_raw_os_error(libc::ESRCH)));
        }
        system::set_no_new_privs().map_err(at(Stage::Privileges))?;
        Bound::enter(self.signals, worker).map_err(at(Stage::Landlock))
    }

    /// Starts the command in the reaper's own memory, which waits until the command is executed or has ended (`vfork(2)`): a second
    /// copy of the worker would be made only to be thrown away. It has a stack of its own, and nobody touches the reaper's meanwhile.
    fn begin(&self) -> io::Result<pid_t> {
        extern "C" fn enter(job: *mut c_void) -> c_int {
            // SAFETY: it is the one below, whose process waits.
            unsafe { &*job.cast::<Job<'_>>() }.command()
        }
        let mut stack = MaybeUninit::<Stack>::uninit();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the stack is as long as it says, grows downwards, and outlives the child, which calls async-signal-safe functions
        // only, and ends by exec or by the end of `enter`, which is `_exit(2)`.
        let child = unsafe {
            let top = stack.as_mut_ptr().add(1).cast();
            libc::clone(enter, top, flags, ptr::from_ref(self).cast_mut().cast())
        };
        if child < 0 { Err(io::Error::last_os_error()) } else { Ok(child) }
    }

    /// The command's life up to exec; its exit code when there was none.
    fn command(&self) -> c_int {
        let Failed(stage, error) = self.execute();
        write_numbers(self.failed, [not_started(stage, &error)]);
        stage.code().into()
    }

    fn execute(&self) -> Failed {
        if let Err(failed) = self.confine() {
            return failed;
        }
        let (argv, environment) = (&self.image.argv.pointers, &self.image.environment.pointers);
        // SAFETY: both arrays are null-terminated and point to C strings that the image owns.
        unsafe { libc::execve(argv[0], argv.as_ptr(), environment.as_ptr()) };
        Failed(Stage::Execute, io::Error::last_os_error())
    }

    fn confine(&self) -> Result<(), Failed> {
        for (from, to) in [(self.null, 0), (self.output, 1), (self.output, 2)] {
            duplicate(from, to).map_err(at(Stage::Descriptors))?;
        }
        system::close_range(3, u32::MAX, true).map_err(at(Stage::Descriptors))?;
        // A process group of its own, so that `kill 0` is its own affair.
        // SAFETY: integers.
        check(unsafe { libc::setpgid(0, 0) }.into()).map_err(at(Stage::Session))?;
        // SAFETY: the path is a C string that the image owns.
        check(unsafe { libc::chdir(self.image.cwd.as_ptr()) }.into()).map_err(at(Stage::Directory))?;
        default_signals().map_err(at(Stage::Session))?;
        self.domain.enter().map_err(at(Stage::Landlock))?;
        match self.filter.map(Program::attach) {
            None | Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(Failed(Stage::Seccomp, io::Error::last_os_error())),
        }
    }
}

fn at(stage: Stage) -> impl Fn(io::Error) -> Failed {
    move |error| Failed(stage, error)
}

fn not_started(stage: Stage, error: &io::Error) -> c_int {
    NOT_STARTED | (error.raw_os_error().unwrap_or(0) & 0xff) << 16 | c_int::from(stage.code()) << 8
}

fn exit(code: c_int) -> ! {
    // SAFETY: ends the process without running handlers of the image that was forked.
    unsafe { libc::_exit(code) }
}

/// Waits until the command has ended, which is true, or SIGTERM says to end it: from the worker, or by its death.
fn wait_for_the_end(command: pid_t, note: &mut dyn FnMut(pid_t, c_int)) -> bool {
    let mut awaited = MaybeUninit::uninit();
    // SAFETY: initialises the set before it is read.
    let awaited = unsafe {
        libc::sigemptyset(awaited.as_mut_ptr());
        libc::sigaddset(awaited.as_mut_ptr(), libc::SIGCHLD);
        libc::sigaddset(awaited.as_mut_ptr(), libc::SIGTERM);
        awaited.assume_init()
    };
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
        // SAFETY: the set is initialised; no information is asked for. Both signals are blocked, so none is lost.
        if unsafe { libc::sigwaitinfo(&raw const awaited, ptr::null_mut()) } == libc::SIGTERM {
            return false;
        }
    }
}

fn block_signals() -> io::Result<libc::sigset_t> {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the set; sigprocmask writes the old mask. Both are per thread.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        match libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) {
            0 => Ok(before.assume_init()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: the mask came from the kernel.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}

/// A blocked SIGCHLD is queued even where it would be ignored, but not one that is set to be ignored (`sigaction(2)`).
fn default_child_signal() -> io::Result<()> {
    set_default(libc::SIGCHLD)
}

/// Rust ignores SIGPIPE, and ignored signals stay ignored across exec; a command expects neither that nor a blocked mask.
fn default_signals() -> io::Result<()> {
    for signal in [libc::SIGPIPE, libc::SIGCHLD, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
        set_default(signal)?;
    }
    let mut none = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        restore_signals(&none.assume_init());
    }
    Ok(())
}

fn set_default(signal: c_int) -> io::Result<()> {
    // SAFETY: installs the default action; no handler is involved.
    if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn duplicate(from: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: replaces a descriptor of this forked process alone.
    check(unsafe { libc::dup2(from, to) }.into())
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

/// What the command reported, if it was not executed; its end of the pipe is closed by now.
fn read_failure(pipe: RawFd) -> Option<c_int> {
    let mut bytes = [0; 4];
    // SAFETY: the buffer is valid for its length.
    let read = unsafe { libc::read(pipe, bytes.as_mut_ptr().cast(), bytes.len()) };
    (read == 4).then(|| c_int::from_le_bytes(bytes))
}

fn write_numbers<const N: usize>(pipe: RawFd, numbers: [c_int; N]) {
    let bytes = numbers.map(c_int::to_le_bytes);
    // SAFETY: the buffer is valid for its size. So few bytes are written at once or not at all (`pipe(7)`).
    unsafe { libc::write(pipe, bytes.as_ptr().cast(), size_of_val(&bytes)) };
}
