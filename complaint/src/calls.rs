//! System calls that a command's output says were refused.

use super::{Complaint, NOT_THERE};

/// A call that confined programs are denied whatever their rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeniedCall {
    /// Its name, as in `syscalls(2)`.
    pub name: &'static str,
    /// Without which capability the kernel may refuse it to anybody (`capabilities(7)`); absent where it takes none.
    pub capability: Option<u8>,
    /// When it is denied.
    pub when: When,
}

/// When a call is denied, and with which answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Whatever its arguments, with EPERM.
    Always,
    /// Whatever its arguments, with ENOSYS, as on a kernel without it; programs mostly fall back. Every kernel that has
    /// Landlock has it, but for `io_uring`.
    AsIfAbsent,
    /// By its arguments, with EPERM, which a line does not tell.
    Sometimes,
}

const fn call(name: &'static str, capability: u8) -> DeniedCall {
    DeniedCall { name, capability: Some(capability), when: When::Always }
}

const fn open_to_all(name: &'static str) -> DeniedCall {
    DeniedCall { name, capability: None, when: When::Always }
}

const fn absent(name: &'static str, capability: Option<u8>) -> DeniedCall {
    DeniedCall { name, capability, when: When::AsIfAbsent }
}

const fn sometimes(name: &'static str, capability: Option<u8>) -> DeniedCall {
    DeniedCall { name, capability, when: When::Sometimes }
}

// linux/capability.h
const DAC_READ_SEARCH: u8 = 2;
const NET_RAW: u8 = 13;
const SYS_MODULE: u8 = 16;
const SYS_CHROOT: u8 = 18;
const SYS_PTRACE: u8 = 19;
const SYS_PACCT: u8 = 20;
const SYS_ADMIN: u8 = 21;
const SYS_BOOT: u8 = 22;
const SYS_NICE: u8 = 23;
const SYS_TIME: u8 = 25;
const SYS_TTY_CONFIG: u8 = 26;
const SYSLOG: u8 = 34;
const PERFMON: u8 = 38;
const BPF: u8 = 39;

/// All of them.
pub const DENIED_CALLS: [DeniedCall; 54] = [
    sometimes("clone", Some(SYS_ADMIN)),
    absent("clone3", None),
    absent("fsconfig", Some(SYS_ADMIN)),
    absent("fsmount", Some(SYS_ADMIN)),
    absent("fsopen", Some(SYS_ADMIN)),
    absent("fspick", Some(SYS_ADMIN)),
    absent("io_uring_enter", None),
    absent("io_uring_register", None),
    absent("io_uring_setup", None),
    absent("mount_setattr", Some(SYS_ADMIN)),
    absent("move_mount", Some(SYS_ADMIN)),
    absent("open_tree", Some(SYS_ADMIN)),
    sometimes("personality", None),
    sometimes("socket", Some(NET_RAW)),
    call("acct", SYS_PACCT),
    open_to_all("add_key"),
    call("adjtimex", SYS_TIME),
    call("bpf", BPF),
    call("chroot", SYS_CHROOT),
    call("clock_adjtime", SYS_TIME),
    call("clock_settime", SYS_TIME),
    call("delete_module", SYS_MODULE),
    call("fanotify_init", SYS_ADMIN),
    call("finit_module", SYS_MODULE),
    call("init_module", SYS_MODULE),
    call("kcmp", SYS_PTRACE),
    call("kexec_file_load", SYS_BOOT),
    call("kexec_load", SYS_BOOT),
    open_to_all("keyctl"),
    call("migrate_pages", SYS_NICE),
    call("mount", SYS_ADMIN),
    call("move_pages", SYS_NICE),
    call("open_by_handle_at", DAC_READ_SEARCH),
    call("perf_event_open", PERFMON),
    call("pidfd_getfd", SYS_PTRACE),
    call("pivot_root", SYS_ADMIN),
    call("process_madvise", SYS_NICE),
    call("process_vm_readv", SYS_PTRACE),
    call("process_vm_writev", SYS_PTRACE),
    call("quotactl", SYS_ADMIN),
    call("quotactl_fd", SYS_ADMIN),
    call("reboot", SYS_BOOT),
    open_to_all("request_key"),
    call("setdomainname", SYS_ADMIN),
    call("sethostname", SYS_ADMIN),
    call("setns", SYS_ADMIN),
    call("settimeofday", SYS_TIME),
    call("swapoff", SYS_ADMIN),
    call("swapon", SYS_ADMIN),
    call("syslog", SYSLOG),
    call("umount2", SYS_ADMIN),
    call("unshare", SYS_ADMIN),
    call("userfaultfd", SYS_PTRACE),
    call("vhangup", SYS_TTY_CONFIG),
];

/// The call that a line says was refused: `unshare: unshare failed: …`, `bpf: …`, `perf_event_open(…) returned with 1 (…)`.
pub fn denied_call(line: &str) -> Option<DeniedCall> {
    let complaint = Complaint::of_a_call(line)?;
    let before = complaint.before().trim_end_matches([' ', ':', '(']);
    let said = before.rsplit_once(": ").map_or(before, |(_, said)| said);
    let is_it = |call: &DeniedCall| {
        let is_absent = complaint.phrase() == NOT_THERE;
        said.strip_prefix(call.name).is_some_and(is_no_more) && (call.when == When::AsIfAbsent) == is_absent
    };
    DENIED_CALLS.into_iter().find(is_it)
}

/// Whether no more than a call's arguments, or that it failed, follow on its name.
fn is_no_more(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('(') || rest.starts_with(" failed")
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
