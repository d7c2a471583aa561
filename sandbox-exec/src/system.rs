#![expect(
    unsafe_code,
    reason = "they take integers, C strings and structures of this process that outlive them; \
              descriptors that the kernel has just made get their owner here"
)]

pub mod file;
pub(crate) mod forbidden;
pub mod process;

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::slice;

use nix::errno::Errno;
use nix::libc::{self, c_uint};
use nix::sys::prctl;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::utsname::uname;
use seccompiler::sock_filter;

/// Flag of `landlock_create_ruleset(2)` that asks for the ABI: `LANDLOCK_CREATE_RULESET_VERSION`.
const CREATE_RULESET_VERSION: libc::c_ulong = 1;

/// Type of a rule on a path: `LANDLOCK_RULE_PATH_BENEATH` of linux/landlock.h.
const RULE_PATH_BENEATH: libc::c_int = 1;

/// Returns the major and minor version of the running Linux (`uname(2)`); `None` if they cannot be read.
pub fn release() -> Option<(u32, u32)> {
    let name = uname().ok()?;
    let mut numbers = name.release().to_str()?.split(|byte: char| !byte.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Returns the ABI version of Landlock (`landlock_create_ruleset(2)`). Fails with `ENOSYS` if the kernel lacks
/// Landlock, with `EOPNOTSUPP` if it is disabled, or with the error of a seccomp filter that denies the call.
pub fn landlock_abi() -> Result<u32, Errno> {
    // SAFETY: with the version flag the kernel wants a null pointer and size 0, and reads no memory.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<libc::c_void>(),
            0 as libc::size_t,
            CREATE_RULESET_VERSION,
        )
    };
    Ok(u32::try_from(Errno::result(version)?).unwrap_or(0))
}

/// Checks that the kernel accepts seccomp programs (`seccomp(2)`): passes a null pointer, which has to fail with
/// `EFAULT`. Any other answer is returned as an error.
pub fn seccomp() -> Result<(), Errno> {
    takes_filters(0)
}

/// True if the kernel knows seccomp listeners (Linux 5.0).
pub fn has_listeners() -> bool {
    takes_filters(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER).is_ok()
}

/// True if the kernel can make a received call interruptible by fatal signals alone (Linux 5.19).
pub fn waits_undisturbed() -> bool {
    let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    takes_filters(listener | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV).is_ok()
}

fn takes_filters(flags: libc::c_ulong) -> Result<(), Errno> {
    // SAFETY: the null pointer is refused by the kernel; nothing is read or changed.
    let answer = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, ptr::null::<libc::c_void>())
    };
    match Errno::result(answer) {
        Ok(_) | Err(Errno::EFAULT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Adds a rule to a ruleset that allows `rights` on the file of `path` and everything beneath (`landlock_add_rule(2)`).
pub(crate) fn landlock_add_path(
    ruleset: BorrowedFd<'_>,
    path: BorrowedFd<'_>,
    rights: u64,
) -> io::Result<()> {
    let rule = PathBeneath { allowed_access: rights, parent_fd: path.as_raw_fd() };
    // SAFETY: the structure is what the kernel expects for this type of rule, and outlives the call.
    check(unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), RULE_PATH_BENEATH, &raw const rule, 0)
    })
}

/// Landlock rule for a path: `struct landlock_path_beneath_attr` of linux/landlock.h.
#[repr(C, packed)]
struct PathBeneath {
    allowed_access: u64,
    parent_fd: libc::c_int,
}

/// Confines this thread to a ruleset. Async-signal-safe. `no_new_privs` must be set.
pub(crate) fn landlock_restrict_self(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes a descriptor and no flags, touches no memory of this process.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) })
}

/// Attaches a seccomp program to this thread. Async-signal-safe. `no_new_privs` must be set.
pub(crate) fn attach_filter(instructions: &[sock_filter]) -> io::Result<()> {
    let length = u16::try_from(instructions.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog { len: length, filter: instructions.as_ptr().cast_mut().cast() };
    // SAFETY: the instructions are as many as it says, laid out as in linux/filter.h, and only read.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) })
}

/// Sets `no_new_privs` for this thread. Async-signal-safe.
pub fn set_no_new_privs() -> io::Result<()> {
    Ok(prctl::set_no_new_privs()?)
}

/// Makes this process adopt its orphaned descendants (`PR_SET_CHILD_SUBREAPER(2const)`).
pub fn set_subreaper() -> io::Result<()> {
    Ok(prctl::set_child_subreaper(true)?)
}

pub fn set_name(name: &CStr) {
    // SAFETY: a prctl that reads a C string. It cannot fail on a valid one.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Makes the kernel send `signal` to this process at the end of the *thread* that created it.
pub fn set_parent_death_signal(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: a prctl with integer arguments.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) }.into())
}

/// Makes this process non-dumpable: it leaves no core dump, and `/proc/self` belongs to root. execve(2) undoes this.
pub fn make_undumpable() -> io::Result<()> {
    // SAFETY: a prctl with integer arguments.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) }.into())
}

/// Makes this process dumpable, after [`make_undumpable`] or a change of ids.
pub fn make_dumpable() -> io::Result<()> {
    // SAFETY: a prctl with integer arguments.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }.into())
}

/// Opens a pidfd, close-on-exec (`pidfd_open(2)`, Linux 5.3). It becomes readable when the process ends.
pub(crate) fn open_process(pid: libc::pid_t) -> io::Result<OwnedFd> {
    Ok(pidfd_open(pid, 0)?)
}

pub(crate) fn pidfd_open(thread: libc::pid_t, flags: libc::c_int) -> Result<OwnedFd, Errno> {
    // SAFETY: integers only.
    own(unsafe { libc::syscall(libc::SYS_pidfd_open, thread, flags) })
}

/// Duplicates a descriptor of a process (`pidfd_getfd(2)`, Linux 5.6).
pub(crate) fn pidfd_getfd(process: &OwnedFd, number: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: integers only.
    own(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) })
}

/// Duplicates a descriptor to the lowest free number from `lowest` on, close-on-exec (`F_DUPFD_CLOEXEC(2const)`).
pub(crate) fn duplicate_above(descriptor: BorrowedFd<'_>, lowest: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: integers only.
    let number = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest) };
    own(number.into())
}

fn own(answer: libc::c_long) -> Result<OwnedFd, Errno> {
    let number = RawFd::try_from(Errno::result(answer)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made this descriptor, and nothing else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Signals one thread of a process (`tgkill(2)`), unless it is gone.
pub(crate) fn signal_thread(process: libc::pid_t, thread: libc::pid_t, signal: libc::c_int) {
    // SAFETY: integers only.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
}

pub(crate) fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: changes nothing, and writes the structure; one of zeros is valid too.
    let action = unsafe {
        libc::sigaction(signal as libc::c_int, ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}

pub(crate) fn reset_action(signal: Signal) -> nix::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: installs the default action; no handler is involved.
    unsafe { sigaction(signal, &default) }.map(drop)
}

/// Ends this process without exit handlers or destructors.
pub(crate) fn exit(code: u8) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code.into()) }
}

/// Attaches a seccomp program, and returns its listener. `no_new_privs` must be set.
pub(crate) fn attach_with_listener(
    instructions: &[libc::sock_filter],
    flags: libc::c_ulong,
) -> io::Result<OwnedFd> {
    let length = u16::try_from(instructions.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog { len: length, filter: instructions.as_ptr().cast_mut() };
    // SAFETY: the kernel copies `length` instructions and keeps no pointer.
    Ok(own(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    })?)
}

/// Sets the securebits of this thread (`PR_SET_SECUREBITS(2const)`).
pub(crate) fn set_securebits(bits: libc::c_ulong) -> io::Result<()> {
    // SAFETY: a prctl with integer arguments.
    check(unsafe { libc::prctl(libc::PR_SET_SECUREBITS, bits, 0, 0, 0) }.into())
}

/// True if the bounding set has the capability (`PR_CAPBSET_READ(2const)`). True also if that cannot be read.
pub(crate) fn may_bound(capability: libc::c_ulong) -> bool {
    // SAFETY: a prctl with integer arguments.
    unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) != 0 }
}

/// Drops a capability from the bounding set (`PR_CAPBSET_DROP(2const)`). `EINVAL` above the kernel's last one.
pub(crate) fn drop_bound(capability: libc::c_ulong) -> io::Result<()> {
    // SAFETY: a prctl with integer arguments.
    check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }.into())
}

/// Makes a terminal the session's controlling terminal (`TIOCSCTTY`). Fails if another session has it.
pub(crate) fn control_terminal(terminal: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes an integer argument; 0 means not to steal it.
    check(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) }.into())
}

pub(crate) fn standard_streams() -> [BorrowedFd<'static>; 3] {
    // SAFETY: the standard streams are open for as long as the process is; a call on one that is not fails.
    [0, 1, 2].map(|number| unsafe { BorrowedFd::borrow_raw(number) })
}

/// Closes the descriptors `first..=last` (`close_range(2)`, Linux 5.9).
pub(crate) fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: closes descriptors; callers own everything in the range, or are about to execute.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })
}

#[derive(Debug)]
pub struct Received {
    pub length: usize,
    pub descriptors: Vec<OwnedFd>,
    /// True if neither bytes nor descriptors of the message were cut off.
    pub is_whole: bool,
}

/// Takes the next message without waiting (`recvmsg(2)`). Unlike nix, this owns every descriptor that the kernel
/// installed, also those of a message that was cut off.
pub fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<Received, Errno> {
    // Room for as many descriptors as a message can carry, `SCM_MAX_FD` of net/scm.h, aligned as its header wants it.
    let mut control = [0_u64; 160];
    let mut data = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: a structure of integers and pointers, for which zeros are valid.
    let mut header = unsafe { MaybeUninit::<libc::msghdr>::zeroed().assume_init() };
    header.msg_iov = &raw mut data;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: the header points to `bytes` and `control`, with their lengths, and both outlive the call.
    let answer = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    let length = usize::try_from(Errno::result(answer)?).unwrap_or(0);
    let is_whole = header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) == 0;
    Ok(Received { length, descriptors: descriptors(&header), is_whole })
}

#[allow(clippy::unnecessary_cast, reason = "the length is narrower where the C library is musl")]
fn descriptors(header: &libc::msghdr) -> Vec<OwnedFd> {
    let mut owned = Vec::new();
    // SAFETY: the control data are what the kernel wrote, as long as it says. Each number is of a descriptor that it
    // has just made, and nothing else knows of it.
    unsafe {
        let mut part = libc::CMSG_FIRSTHDR(header);
        while let Some(found) = part.as_ref() {
            if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let size = (found.cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                let numbers = slice::from_raw_parts(libc::CMSG_DATA(found), size);
                let (numbers, _) = numbers.as_chunks::<{ size_of::<RawFd>() }>();
                owned
                    .extend(numbers.iter().map(|&number| OwnedFd::from_raw_fd(RawFd::from_ne_bytes(number))));
            }
            part = libc::CMSG_NXTHDR(header, part);
        }
    }
    owned
}

/// Replaces the table of descriptors that this process shares by a copy of its own (`CLOSE_RANGE_UNSHARE`, Linux 5.9).
/// Container engines allow this call, unlike unshare(2).
pub(crate) fn leave_descriptors() -> io::Result<()> {
    // SAFETY: closes what cannot be open, numbers being positive integers.
    check(unsafe { libc::syscall(libc::SYS_close_range, u32::MAX, u32::MAX, libc::CLOSE_RANGE_UNSHARE) })
}

pub(crate) fn check(answer: libc::c_long) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Converts a request number of ioctl(2) to the C library's type. The kernel reads 32 bits.
pub(crate) fn ioctl_command(command: c_uint) -> libc::Ioctl {
    #[cfg(target_env = "musl")]
    return command.cast_signed();
    #[cfg(not(target_env = "musl"))]
    return command.into();
}
