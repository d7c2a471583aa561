//! System calls that a command's output reports as denied.

use libc::{ENOSYS, EPERM};

use self::When::{Always, AsIfAbsent, Sometimes};
use super::ErrorLine;

/// A system call that the sandbox denies, at least with some arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeniedCall {
    /// Name as in `syscalls(2)`.
    pub name: &'static str,
    /// Number of the capability without which the kernel may deny the call outside the sandbox too (`capabilities(7)`).
    pub capability: Option<u8>,
    pub when: When,
}

/// Condition under which the sandbox denies a system call, and the error that the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Denied with EPERM, whatever the arguments.
    Always,
    /// Denied with ENOSYS, whatever the arguments, as on a kernel without the call. Every kernel with Landlock has
    /// these calls, except those of `io_uring`.
    AsIfAbsent,
    /// Denied with EPERM for some arguments. Output does not show the arguments, so it does not show the cause either.
    Sometimes,
}

/// Denied system calls, in groups: the condition, the number of the capability (linux/capability.h), and the names.
const DENIED: &[(When, Option<u8>, &str)] = &[
    (Sometimes, None, "personality"),
    (Sometimes, Some(13 /* NET_RAW */), "socket"),
    (Sometimes, Some(21 /* SYS_ADMIN */), "clone"),
    (AsIfAbsent, None, "clone3 io_uring_enter io_uring_register io_uring_setup"),
    (AsIfAbsent, Some(21 /* SYS_ADMIN */), "fsconfig fsmount fsopen fspick"),
    (AsIfAbsent, Some(21 /* SYS_ADMIN */), "mount_setattr move_mount open_tree"),
    (Always, None, "add_key keyctl request_key"),
    (Always, Some(2 /* DAC_READ_SEARCH */), "open_by_handle_at"),
    (Always, Some(16 /* SYS_MODULE */), "delete_module finit_module init_module"),
    (Always, Some(18 /* SYS_CHROOT */), "chroot"),
    (Always, Some(19 /* SYS_PTRACE */), "kcmp pidfd_getfd process_vm_readv process_vm_writev userfaultfd"),
    (Always, Some(20 /* SYS_PACCT */), "acct"),
    (Always, Some(21 /* SYS_ADMIN */), "fanotify_init mount pivot_root quotactl quotactl_fd"),
    (Always, Some(21 /* SYS_ADMIN */), "setdomainname sethostname setns swapoff swapon umount2 unshare"),
    (Always, Some(22 /* SYS_BOOT */), "kexec_file_load kexec_load reboot"),
    (Always, Some(23 /* SYS_NICE */), "migrate_pages move_pages process_madvise"),
    (Always, Some(25 /* SYS_TIME */), "adjtimex clock_adjtime clock_settime settimeofday"),
    (Always, Some(26 /* SYS_TTY_CONFIG */), "vhangup"),
    (Always, Some(34 /* SYSLOG */), "syslog"),
    (Always, Some(38 /* PERFMON */), "perf_event_open"),
    (Always, Some(39 /* BPF */), "bpf"),
];

/// Lower-case phrases with which programs report a failed system call, each with the error number of the call.
const PHRASES: [(&str, i32); 2] = [("operation not permitted", EPERM), ("function not implemented", ENOSYS)];

pub fn denied_calls() -> impl Iterator<Item = DeniedCall> {
    DENIED.iter().flat_map(|&(when, capability, names)| {
        names.split(' ').map(move |name| DeniedCall { name, capability, when })
    })
}

/// Returns the system call that the line reports as denied. Examples: `unshare: unshare failed: …`, `bpf: …`,
/// `perf_event_open(…) returned with 1 (…)`.
pub fn denied_call(line: &str) -> Option<DeniedCall> {
    let complaint = ErrorLine::of(line, &PHRASES)?;
    let before = complaint.before().trim_end_matches([' ', ':', '(']);
    let said = before.rsplit_once(": ").map_or(before, |(_, said)| said);
    let is_absent = complaint.errno == ENOSYS;
    let is_no_more = |rest: &str| rest.is_empty() || rest.starts_with('(') || rest.starts_with(" failed");
    let is_said = |name: &str| said.strip_prefix(name).is_some_and(is_no_more);
    denied_calls().find(|call| is_said(call.name) && (call.when == AsIfAbsent) == is_absent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_name_the_call_that_failed() {
        let table = [
            ("unshare: unshare failed: Operation not permitted", "unshare"),
            ("bpf: Operation not permitted", "bpf"),
            ("bwrap: pivot_root: Operation not permitted", "pivot_root"),
            ("runc: unshare(CLONE_NEWUSER): Operation not permitted", "unshare"),
            ("perf_event_open(..., PERF_FLAG) failed: Operation not permitted", "perf_event_open"),
            ("perf_event_open(...) returned with 1 (Operation not permitted)", "perf_event_open"),
            ("tool: keyctl() failed: Operation not permitted", "keyctl"),
            ("ping: socket: Operation not permitted", "socket"),
            ("fsopen: Function not implemented", "fsopen"),
        ];
        for (line, name) in table {
            assert_eq!(denied_call(line).map(|call| call.name), Some(name), "{line}");
        }
        for other in [
            "unshare: Permission denied",
            "unshared: Operation not permitted",
            "chown: changing ownership of 'mount': Operation not permitted",
            "websocket: Operation not permitted",
            "fsopen: Operation not permitted",
            "unshare: Function not implemented",
            "git clone: Operation not permitted",
            "test mount: Operation not permitted ... FAILED",
            "log.txt:1:bpf: Operation not permitted",
            "",
        ] {
            assert_eq!(denied_call(other), None, "{other}");
        }
    }
}
