#![expect(
    unsafe_code,
    reason = "after fork(2) and clone(2) two processes have one image, and may share a table of \
              descriptors; the other calls take integers, and structures of this process that the kernel reads or fills in"
)]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{self, c_int, c_long, c_uint, pid_t};
use nix::unistd::{ForkResult, Pid, fork};

use super::{check, exit, ioctl_command};

/// Flag of clone3(2) that puts the child into a control group: `CLONE_INTO_CGROUP` (linux/sched.h).
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Command of fcntl(2) that sets a descriptor's owner: `F_SETOWN_EX` (asm-generic/fcntl.h).
const SET_OWNER: c_int = 15;

/// Number of descriptors for which a table gets room before it is shared: the usual maximum of a process.
const ROOM: c_int = 1024;

/// Arguments of clone3(2): `struct clone_args` (linux/sched.h).
#[derive(Default)]
#[repr(C, align(8))]
struct Arguments {
    flags: u64,
    process: u64,
    child_thread: u64,
    parent_thread: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    threads: u64,
    threads_size: u64,
    cgroup: u64,
}

/// Forks a child that calls `work` and exits with its result. The caller must have one thread: a lock that another
/// thread holds would never be released in the child.
pub(crate) fn in_child(work: impl FnOnce() -> u8) -> io::Result<Pid> {
    // SAFETY: the child has an image of its own, and ends in this function: nothing is dropped twice.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => exit(work()),
    }
}

/// Forks a child that shares the caller's table of descriptors, and puts it into the control group if possible. The
/// returned pid is `None` in the child. The returned group is `None` if the child is not in it.
///
/// # Safety
///
/// The caller must have one thread. Until the child has left the shared table, neither process may close a descriptor
/// that was open before the fork.
pub(crate) unsafe fn fork_sharing_descriptors<G: AsFd>(
    group: Option<G>,
) -> io::Result<(Option<Pid>, Option<G>)> {
    make_room();
    // A group that cannot be entered is closed before the child exists.
    if let Some(group) = group {
        // SAFETY: by the caller's promise.
        if let Ok(forked) = unsafe { fork_into(group.as_fd()) } {
            return Ok((forked, Some(group)));
        }
    }
    // SAFETY: by the caller's promise.
    Ok((unsafe { clone(libc::CLONE_FILES) }?, None))
}

/// Grows the table of descriptors before it is shared. To grow a shared table beyond 256 descriptors, the kernel waits
/// for every processor (`synchronize_rcu`), which takes five to twenty milliseconds.
fn make_room() {
    // Under a lower limit the table grows when it has to.
    if let Ok(last) = fcntl(io::stdin(), FcntlArg::F_DUPFD_CLOEXEC(ROOM - 1)) {
        // SAFETY: it was just made, and nobody else has it.
        drop(unsafe { OwnedFd::from_raw_fd(last) });
    }
}

/// Forks a child that shares the table of descriptors into a control group (`clone3(2)`, Linux 5.7).
///
/// # Safety
///
/// As for [`fork_sharing_descriptors`].
unsafe fn fork_into(group: BorrowedFd<'_>) -> io::Result<Option<Pid>> {
    let arguments = Arguments {
        flags: u64::from(libc::CLONE_FILES.cast_unsigned()) | CLONE_INTO_CGROUP,
        exit_signal: u64::from(libc::SIGCHLD.cast_unsigned()),
        cgroup: u64::from(group.as_raw_fd().cast_unsigned()),
        ..Arguments::default()
    };
    // SAFETY: the kernel reads the structure; without a stack the child goes on with a copy of this one.
    forked(unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<Arguments>()) })
}

/// Forks with these flags of clone(2). Returns `None` in the child.
///
/// # Safety
///
/// The caller must have one thread, and no flag may share memory. Other shared state is the caller's responsibility.
pub(crate) unsafe fn clone(flags: c_int) -> io::Result<Option<Pid>> {
    // SAFETY: without a stack the child goes on with a copy of this one, as after fork(2).
    forked(unsafe { libc::syscall(libc::SYS_clone, c_long::from(flags | libc::SIGCHLD), 0, 0, 0, 0) })
}

fn forked(answer: c_long) -> io::Result<Option<Pid>> {
    check(answer)?;
    Ok(pid_t::try_from(answer).ok().filter(|pid| *pid > 0).map(Pid::from_raw))
}

/// Calls `kill(2)`; `signal` may be a number that is no signal.
pub(crate) fn kill(process: pid_t, signal: c_int) -> io::Result<()> {
    // SAFETY: integers only.
    check(unsafe { libc::kill(process, signal) }.into())
}

/// Calls `waitpid(2)` for any child. Returns the pid of a child that has changed (0 if none has), and its wait status.
pub(crate) fn wait_for_any(options: c_int) -> Result<(pid_t, c_int), Errno> {
    let mut status = 0;
    // SAFETY: the status is a valid place for an integer.
    let child = Errno::result(unsafe { libc::waitpid(-1, &raw mut status, options) })?;
    Ok((child, status))
}

/// Detaches a stopped, traced child, and delivers `signal` if it is not 0 (`PTRACE_DETACH`).
pub(crate) fn detach(child: pid_t, signal: c_long) {
    // SAFETY: no memory of this process is named.
    let _detached = unsafe { libc::ptrace(libc::PTRACE_DETACH, child, ptr::null::<libc::c_void>(), signal) };
}

/// Sends a signal to the process or thread of a pidfd, with a `siginfo_t` if one is given (`pidfd_send_signal(2)`).
pub(crate) fn signal_by(
    target: BorrowedFd<'_>,
    signal: c_int,
    info: Option<&[u8; 128]>,
) -> Result<(), Errno> {
    let info = info.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the kernel reads the 128 bytes of a `siginfo_t`, if there is one.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, target.as_raw_fd(), signal, info, 0) };
    Errno::result(sent).map(drop)
}

/// Sets the receiver of a descriptor's signals. `owner` is a kind and an id (`F_SETOWN_EX`, fcntl(2)).
pub(crate) fn set_owner(open: BorrowedFd<'_>, owner: [c_int; 2]) -> Result<c_int, Errno> {
    // SAFETY: the kernel reads a `struct f_owner_ex`, which is two integers.
    Errno::result(unsafe { libc::fcntl(open.as_raw_fd(), SET_OWNER, owner.as_ptr()) })
}

/// Sets the receiver of a descriptor's signals by ioctl(2). A negative `owner` means a process group.
pub(crate) fn set_owner_by(open: BorrowedFd<'_>, command: c_uint, owner: c_int) -> Result<c_int, Errno> {
    // SAFETY: the kernel reads an integer.
    Errno::result(unsafe { libc::ioctl(open.as_raw_fd(), ioctl_command(command), &raw const owner) })
}

pub(crate) fn control(open: BorrowedFd<'_>, command: c_int, argument: c_int) -> Result<c_int, Errno> {
    // SAFETY: integers only; commands that take addresses fail on such small ones.
    Errno::result(unsafe { libc::fcntl(open.as_raw_fd(), command, argument) })
}

/// Makes a signal interrupt system calls and do nothing else.
pub(crate) fn let_interrupt(signal: c_int) -> Result<(), Errno> {
    extern "C" fn nothing(_: c_int) {}
    // SAFETY: a structure of integers and pointers, which may be null; without SA_RESTART calls are
    // interrupted.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(c_int) as usize;
    // SAFETY: the handler does nothing.
    Errno::result(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) }).map(drop)
}

/// Changes this thread's signal mask: by one signal, or by all signals but that one if `others` is true.
pub(crate) fn mask(how: c_int, signal: c_int, others: bool) -> Result<(), Errno> {
    // SAFETY: signal sets are plain memory, filled by these calls.
    let answer = unsafe {
        let mut set = mem::zeroed();
        if others {
            libc::sigfillset(&raw mut set);
            libc::sigdelset(&raw mut set, signal);
        } else {
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, signal);
        }
        libc::pthread_sigmask(how, &raw const set, ptr::null_mut())
    };
    if answer == 0 { Ok(()) } else { Err(Errno::from_raw(answer)) }
}

/// True if this thread has a seccomp filter. True also on a kernel without seccomp, which answers `EINVAL`.
pub(crate) fn is_filtered() -> bool {
    // SAFETY: asks for a number.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) != 0 }
}
