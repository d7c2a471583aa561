//! Attacks on other processes, and on objects that processes of the host share.

use nix::libc::{EACCES, EINVAL, ENOENT, EPERM, ESRCH};

use crate::attack::Group::{Information, Ipc, Processes};
use crate::attack::Held::{Apart, Open, With};
use crate::attack::Unconfined::{Harms, Works};
use crate::attack::{Attack, rows};

/// Errors for other processes. In the full tier they do not exist.
const NOBODY: &[i32] = &[ESRCH, EPERM];
const NOTHING: &[i32] = &[ENOENT];
const DENIED: &[i32] = &[EPERM, EACCES];

pub(super) fn all() -> Vec<Attack> {
    [signals(), memory(), schedules(), ipc(), information()].concat()
}

fn signals() -> Vec<Attack> {
    let acts = [
        "kill {v} 10",
        "kill {v} 9",
        "kill {v} 1",
        "killpg {v} 15",
        "tgkill {v} 10",
        "tkill {v} 10",
        "sigqueue {v} 10",
        "pidfd-signal {v} 15",
    ];
    [
        rows(Processes, Harms, With(NOBODY), With(&[EPERM]), &acts),
        rows(Processes, Harms, With(NOTHING), With(&[EPERM]), &["procfd-signal {v} 15"]),
        // The kernel drops a SIGIO that may not be sent, without an error.
        rows(Processes, Harms, Apart, Apart, &["sigio {v} 29"]),
    ]
    .concat()
}

fn memory() -> Vec<Attack> {
    let harm_calls = ["vm-read {v} {a}", "pidfd-getfd {v} {fd}"];
    let harm_files = ["proc-mem {v} {a}", "proc {v} environ", "out-of-memory {v}"];
    let calls = [
        "ptrace-attach {v}",
        "ptrace-seize {v}",
        "vm-write {v} {a}",
        "kcmp {v}",
        "root: process-madvise {v}",
        "root: setns {v}",
    ];
    let files = [
        "proc {v} maps",
        "proc {v} auxv",
        "proc {v} fd/{fd}",
        "proc-links {v} fd/{fd}",
        "proc-links {v} cwd",
        "proc-links {v} root",
        "proc-links {v} exe",
        "proc-list {v} map_files",
    ];
    [
        rows(Processes, Harms, With(NOBODY), With(DENIED), &harm_calls),
        rows(Processes, Harms, With(NOTHING), With(DENIED), &harm_files),
        rows(Processes, Works, With(NOBODY), With(DENIED), &calls),
        rows(Processes, Works, With(NOTHING), With(DENIED), &files),
    ]
    .concat()
}

fn schedules() -> Vec<Attack> {
    const REASON: &str = "the kernel asks for no more than the same user";
    let acts = ["setpriority {v}", "affinity {v}", "scheduler {v}", "io-priority {v}"];
    let by = |who: &str| acts.map(|act| format!("{who}: {act}"));
    let (capable, powerless) = (by("capable"), by("powerless"));
    [
        rows(Processes, Harms, With(NOBODY), With(DENIED), &["prlimit {v}"]),
        // A process without capabilities may not do this to a process of the same user that has some (commoncap.c,
        // `cap_safe_nice`).
        rows(Processes, Harms, With(NOBODY), With(&[EPERM]), &capable.each_ref().map(String::as_str)),
        rows(Processes, Harms, With(NOBODY), Open(REASON), &powerless.each_ref().map(String::as_str)),
    ]
    .concat()
}

fn ipc() -> Vec<Attack> {
    let objects = [
        "shm-read {shm}",
        "shm-write {shm}",
        "shm-remove {shm}",
        "message-receive {msg}",
        "message-send {msg}",
        "semaphore-set {sem}",
    ];
    [
        rows(Ipc, Harms, With(&[EINVAL]), With(&[EINVAL]), &objects),
        rows(Ipc, Harms, With(NOTHING), With(DENIED), &["queue-send /{name}", "queue-remove /{name}"]),
        rows(Ipc, Harms, With(&[EPERM]), With(&[EPERM]), &["key-read bailiwick-victim"]),
    ]
    .concat()
}

fn information() -> Vec<Attack> {
    const REASON: &str = "/proc shows every process of the machine, and Landlock hides none";
    let facts =
        ["find-process {v}", "proc {v} status", "proc {v} stat", "proc-list {v} fd", "proc-list {v} task"];
    [
        rows(Information, Harms, With(NOTHING), Open(REASON), &["proc {v} cmdline"]),
        rows(Information, Works, With(NOTHING), Open(REASON), &facts),
    ]
    .concat()
}
