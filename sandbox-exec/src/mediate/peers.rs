//! Denied calls about a process: whether the kernel lets a process like the caller, without capabilities, do that to it.
//!
//! A domain of Landlock that only bounds signals keeps this process from looking into those outside it, so that what the kernel asks
//! is asked here (`__ptrace_may_access` of kernel/ptrace.c): the same user, memory that may be dumped, no capabilities, and no security module
//! that has a say. That the call is there, and that nobody else filters it, shows on this process itself.

use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::ptr;

use nix::errno::Errno;
use nix::libc::{self, c_int, c_long, pid_t};

use super::address::integer;
use super::caller::{duplicate, pidfd_open};
use super::memory::Memory;
use super::status::Status;

/// The last kind of `kcmp(2)` (linux/kcmp.h), and one that both of all processes have.
const LAST_KIND: c_int = 7;
const MEMORY_OF_BOTH: c_int = 1;
/// `MPOL_MF_MOVE` (linux/mempolicy.h): what no other process shares.
const MOVE_OWN: c_int = 2;

/// Says which processes may attach to which, beyond the rest (Yama).
const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// How a process looks into another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Only at what it is.
    Read,
    /// So that it could change it.
    Attach,
}

/// A denied call of a thread, and the process that it is about, if the caller could have done it.
pub(super) fn call(call: c_long, arguments: &[u64; 6], thread: pid_t, caller: &Status) -> Option<String> {
    let [first, second, third, .., flags] = *arguments;
    let told = |name: &str, whom: pid_t| Some(format!("{name}({whom})"));
    let whom = integer(first);
    match call {
        libc::SYS_process_vm_readv if flags == 0 && may_look(Look::Attach, caller, whom) && has_vm(call) => {
            told("process_vm_readv", whom)
        }
        libc::SYS_process_vm_writev if flags == 0 && may_look(Look::Attach, caller, whom) && has_vm(call) => {
            told("process_vm_writev", whom)
        }
        libc::SYS_kcmp if (0..=LAST_KIND).contains(&integer(third)) => {
            let other = integer(second);
            let may = [whom, other].iter().all(|&whom| may_look(Look::Read, caller, whom));
            (may && has_kcmp()).then(|| format!("kcmp({whom}, {other})"))
        }
        libc::SYS_pidfd_getfd if integer(third) == 0 => {
            let whom = held_by(thread, whom)?;
            (may_look(Look::Attach, caller, whom) && has_duplicates()).then(|| format!("pidfd_getfd({whom})"))
        }
        libc::SYS_prlimit64 => may_limit(arguments, thread, caller).then(|| format!("prlimit64({whom})")),
        // Of its own pages a process may always dispose; and of another's who may look at it.
        libc::SYS_move_pages
            if integer(flags) & !MOVE_OWN == 0 && is_own_or_may(caller, whom) && has_moves(call) =>
        {
            told("move_pages", whom)
        }
        libc::SYS_migrate_pages if is_own_or_may(caller, whom) && has_moves(call) => {
            told("migrate_pages", whom)
        }
        _ => None,
    }
}

/// Whether the kernel lets the caller look into a process, by the number of any of its threads.
fn may_look(look: Look, caller: &Status, whom: pid_t) -> bool {
    let Ok(target) = Status::of(whom) else { return false };
    // Itself a process may always look into.
    target.process == caller.process
        || (is_there_without_us(target.process)
            && is_same_user(caller, &target)
            && target.permitted == 0
            && is_dumpable(&target)
            && (look == Look::Read
                || fs::read_to_string(YAMA).map_or_else(is_absent, |scope| scope.trim() == "0"))
            && [caller, &target].into_iter().all(is_unconfined)
            && uid_map(caller).is_some_and(|map| Some(map) == uid_map(&target)))
}

/// Outside, nobody is there instead of this process; or somebody else, by its number in a namespace.
fn is_there_without_us(process: pid_t) -> bool {
    process != std::process::id().cast_signed()
}

fn is_own_or_may(caller: &Status, whom: pid_t) -> bool {
    whom == 0 || may_look(Look::Read, caller, whom)
}

/// One user, and not root: what root could do without capabilities says little of what it could do with its own.
fn is_same_user(caller: &Status, target: &Status) -> bool {
    let (uid, gid) = (caller.uids[0], caller.gids[0]);
    let is_it = |status: &Status| status.uids == [uid; 3] && status.gids == [gid; 3];
    uid != 0 && is_it(caller) && is_it(target)
}

/// Of what may not be dumped the files in `/proc` are root's (`proc(5)`), though not their directory.
fn is_dumpable(target: &Status) -> bool {
    fs::metadata(format!("/proc/{}/status", target.process)).is_ok_and(|place| place.uid() == target.uids[1])
}

/// Whether no security module says what it may do (`proc_pid_attr(5)`): without any, there is no such thing to be read.
fn is_unconfined(status: &Status) -> bool {
    let label = fs::read_to_string(format!("/proc/{}/attr/current", status.process));
    label.map_or_else(
        |error| matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)),
        |label| label.trim_end_matches(['\0', '\n']) == "unconfined",
    )
}

#[expect(clippy::needless_pass_by_value, reason = "it is what a reading failed with")]
fn is_absent(error: std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
}

/// The users that its user namespace knows: another namespace knows others.
fn uid_map(status: &Status) -> Option<String> {
    fs::read_to_string(format!("/proc/{}/uid_map", status.process)).ok()
}

/// The process that a thread holds by this descriptor (`pidfd_open(2)`).
fn held_by(thread: pid_t, descriptor: c_int) -> Option<pid_t> {
    let text = fs::read_to_string(format!("/proc/{thread}/fdinfo/{descriptor}")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Pid:\t"))?.parse().ok()
}

/// Whether limits of another process could be read, and set as they were to be: only root raises them.
fn may_limit(arguments: &[u64; 6], thread: pid_t, caller: &Status) -> bool {
    let [whom, resource, new, ..] = *arguments;
    let mut old = MaybeUninit::<libc::rlimit64>::uninit();
    let (whom, resource) = (integer(whom), integer(resource));
    let nothing = ptr::null::<libc::rlimit64>();
    // SAFETY: the kernel writes the limits, or nothing where it fails.
    let read = unsafe { libc::syscall(libc::SYS_prlimit64, whom, resource, nothing, old.as_mut_ptr()) };
    if read != 0 || caller.uids[0] == 0 || !is_there_without_us(whom) {
        return false;
    }
    // SAFETY: it was written.
    let most = unsafe { old.assume_init() }.rlim_max;
    new == 0
        || Memory(thread).read::<16>(new).is_ok_and(|bytes| {
            let [soft, hard] =
                [0, 8].map(|at| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte])));
            soft <= hard && hard <= most
        })
}

/// Nothing of this process is moved to itself.
fn has_vm(call: c_long) -> bool {
    let nothing = ptr::null::<libc::iovec>();
    // SAFETY: no ranges, of this very process.
    unsafe { libc::syscall(call, std::process::id(), nothing, 0, nothing, 0, 0) == 0 }
}

fn has_kcmp() -> bool {
    let own = std::process::id();
    // SAFETY: integers only.
    unsafe { libc::syscall(libc::SYS_kcmp, own, own, MEMORY_OF_BOTH, 0, 0) == 0 }
}

fn has_duplicates() -> bool {
    use std::os::fd::AsRawFd;
    pidfd_open(std::process::id().cast_signed(), 0).is_ok_and(|own| duplicate(&own, own.as_raw_fd()).is_ok())
}

/// No pages, or none from anywhere: an error that comes only after the call was permitted.
fn has_moves(call: c_long) -> bool {
    let nothing = ptr::null::<libc::c_void>();
    // SAFETY: no pages and no nodes, of this very process.
    let moved = unsafe { libc::syscall(call, 0, 0, nothing, nothing, nothing, 0) };
    Errno::result(moved).map_or_else(|errno| errno == Errno::EINVAL, |_| true)
}
