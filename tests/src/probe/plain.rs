//! Carries out actions as a normal program would. Prints an error on standard error as `name: subject: strerror(3)`.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use nix::libc::{self, c_long};

use super::carry_out;

/// Numbers and names of the system calls that actions make by number.
const NUMBERED: [(c_long, &str); 32] = [
    (libc::SYS_io_uring_setup, "io_uring_setup"),
    (libc::SYS_io_uring_register, "io_uring_register"),
    (libc::SYS_clone3, "clone3"),
    (libc::SYS_open_tree, "open_tree"),
    (libc::SYS_fsopen, "fsopen"),
    (libc::SYS_move_mount, "move_mount"),
    (libc::SYS_mount_setattr, "mount_setattr"),
    (libc::SYS_bpf, "bpf"),
    (libc::SYS_perf_event_open, "perf_event_open"),
    (libc::SYS_userfaultfd, "userfaultfd"),
    (libc::SYS_keyctl, "keyctl"),
    (libc::SYS_add_key, "add_key"),
    (libc::SYS_request_key, "request_key"),
    (libc::SYS_pivot_root, "pivot_root"),
    (libc::SYS_umount2, "umount2"),
    (libc::SYS_kexec_load, "kexec_load"),
    (libc::SYS_reboot, "reboot"),
    (libc::SYS_init_module, "init_module"),
    (libc::SYS_finit_module, "finit_module"),
    (libc::SYS_delete_module, "delete_module"),
    (libc::SYS_swapon, "swapon"),
    (libc::SYS_swapoff, "swapoff"),
    (libc::SYS_acct, "acct"),
    (libc::SYS_clock_settime, "clock_settime"),
    (libc::SYS_syslog, "syslog"),
    (libc::SYS_open_by_handle_at, "open_by_handle_at"),
    (libc::SYS_fanotify_init, "fanotify_init"),
    (libc::SYS_quotactl, "quotactl"),
    (libc::SYS_move_pages, "move_pages"),
    (libc::SYS_migrate_pages, "migrate_pages"),
    (libc::SYS_personality, "personality"),
    (libc::SYS_setdomainname, "setdomainname"),
];

/// Actions that depend on one system call, each with that call's name in error messages.
const STEPS: [(&str, &str); 19] = [
    ("unshare", "unshare"),
    ("clone", "clone"),
    ("namespace-remount", "unshare"),
    ("namespace-bind", "unshare"),
    ("namespace-open-tree", "unshare"),
    ("namespace-root", "unshare"),
    ("namespace-unmask", "unshare"),
    ("chroot", "chroot"),
    ("chroot-write", "chroot"),
    ("mount", "mount"),
    ("bind-mount", "mount"),
    ("host-name", "sethostname"),
    ("vm-read", "process_vm_readv"),
    ("vm-write", "process_vm_writev"),
    ("pidfd-getfd", "pidfd_getfd"),
    ("kcmp", "kcmp"),
    ("process-madvise", "process_madvise"),
    ("setns", "setns"),
    ("handle-read", "open_by_handle_at"),
];

/// Returns the name of the system call on which an action depends. `None` if error messages do not name it.
pub fn call_of(act: &str, first: Option<&str>) -> Option<&'static str> {
    let find = |name: &str| STEPS.iter().find(|(act, _)| *act == name).map(|(_, call)| *call);
    match act {
        "call" => {
            let number: c_long = first?.parse().ok()?;
            NUMBERED.iter().find(|(known, _)| *known == number).map(|(_, call)| *call)
        }
        "key-read" => Some("keyctl"),
        "socket" | "mptcp" => Some("socket"),
        "io-uring-truncate" | "io-uring-connect" => Some("io_uring_setup"),
        _ => find(act),
    }
}

/// Carries out one action, and exits as a normal program does.
pub(super) fn run(act: &[OsString]) -> ExitCode {
    let Err(error) = carry_out(act) else { return ExitCode::SUCCESS };
    let words: Vec<_> = act.iter().map(|word| word.to_string_lossy()).collect();
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    let _ = io::Write::write_all(&mut io::stderr(), complaint(&words, &error).as_bytes());
    ExitCode::FAILURE
}

fn complaint(act: &[&str], error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let name = act.first().copied().unwrap_or_default();
    if let Some(call) = call_of(name, act.get(1).copied()) {
        return format!("{name}: {call}: {text}\n");
    }
    let first = act.get(1).copied().unwrap_or_default();
    // The names of programs that do such actions, with the subjects that they would print.
    let (name, of_a_process) = match (name, act.get(2)) {
        ("set-uid", _) => ("chmod", None),
        ("pidfd-signal" | "procfd-signal", _) => ("pidfd_send_signal", None),
        ("proc" | "proc-links" | "proc-list", Some(file)) => (name, Some(format!("/proc/{first}/{file}"))),
        ("proc-mem", _) => (name, Some(format!("/proc/{first}/mem"))),
        ("out-of-memory", _) => (name, Some(format!("/proc/{first}/oom_score_adj"))),
        _ => (name, None),
    };
    if let Some(path) = of_a_process {
        return format!("{name}: {path}: {text}\n");
    }
    let paths: Vec<_> = act.iter().skip(1).filter(|word| word.starts_with('/')).collect();
    match (paths.as_slice(), act.get(1)) {
        ([from, to, ..], _) => format!("{name}: cannot {name} '{from}' to '{to}': {text}\n"),
        ([path], _) => format!("{name}: {path}: {text}\n"),
        ([], Some(about)) => format!("{name}: {about}: {text}\n"),
        ([], None) => format!("{name}: {text}\n"),
    }
}
