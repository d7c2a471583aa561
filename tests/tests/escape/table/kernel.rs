//! Attacks on the kernel, the host, and the user's terminal.

use nix::libc::{self, EACCES, ENOENT, ENOSYS, EPERM, EROFS, c_long};

use crate::attack::Group::{Ipc, Kernel, Terminal};
use crate::attack::Held::{Apart, With};
use crate::attack::Unconfined::{Harms, Reaches, Works};
use crate::attack::{Attack, Who, rows};

const FORBIDDEN: &[i32] = &[EPERM];
const ABSENT: &[i32] = &[ENOSYS];

pub(super) fn all() -> Vec<Attack> {
    [
        terminals(),
        namespaces(),
        mounts(),
        files(),
        objects(),
        calls(ABSENT, &ABSENT_CALLS),
        calls(FORBIDDEN, &FORBIDDEN_CALLS),
    ]
    .concat()
}

fn terminals() -> Vec<Attack> {
    // TIOCSTI and TIOCLINUX, asm-generic/ioctls.h.
    let requests = ["root: terminal-input 21522", "root: terminal-input 21532"];
    [
        // A terminal of the sandbox may have the same number.
        rows(Terminal, Harms, Apart, With(&[EACCES]), &["terminal-write {tty}"]),
        rows(Terminal, Works, Apart, With(&[EACCES]), &["open-to-write /dev/ptmx"]),
        // Without a controlling terminal, `/dev/tty` leads nowhere. In `bailiwick sandbox`, it leads to the sandbox's
        // terminal.
        rows(Terminal, Reaches, Apart, With(&[EACCES]), &["open-to-write /dev/tty"]),
        rows(Terminal, Reaches, With(&[ENOENT]), With(&[EACCES]), &["root: open-to-write /dev/console"]),
        rows(Terminal, Reaches, With(FORBIDDEN), With(FORBIDDEN), &requests),
    ]
    .concat()
}

fn namespaces() -> Vec<Attack> {
    let user = libc::CLONE_NEWUSER;
    let acts = [
        format!("unshare {user}"),
        format!("unshare {}", user | libc::CLONE_NEWNET),
        format!("clone {user}"),
        format!("root: unshare {}", libc::CLONE_NEWNS),
        format!("root: clone {}", libc::CLONE_NEWPID),
    ];
    let acts: Vec<_> = acts.iter().map(String::as_str).collect();
    rows(Kernel, Works, With(FORBIDDEN), With(FORBIDDEN), &acts)
}

fn mounts() -> Vec<Attack> {
    let acts = [
        "root: mount {o}/empty",
        "root: bind-mount {o}/dir {o}/empty",
        "root: chroot {o}/dir",
        "root: mknod-block {p}/taken",
        "root: host-name",
    ];
    rows(Kernel, Works, With(FORBIDDEN), With(FORBIDDEN), &acts)
}

fn files() -> Vec<Attack> {
    let proc = [
        "root: open-to-write /proc/sys/kernel/domainname",
        "root: open-to-write /proc/sys/kernel/core_pattern",
        "root: open-to-write /proc/sys/vm/drop_caches",
        "root: open-to-write /proc/self/oom_score_adj",
    ];
    let devices = ["root: open-to-write /dev/kmsg"];
    [
        rows(Kernel, Works, With(&[EROFS, EACCES, ENOENT]), With(&[EACCES]), &proc),
        rows(Kernel, Works, With(&[ENOENT]), With(&[EACCES]), &devices),
    ]
    .concat()
}

/// Attacks by new objects in the host's IPC namespace. The full tier has its own namespace; in the floor tier the
/// broker separates the objects, or the call is denied.
fn objects() -> Vec<Attack> {
    let acts = ["shared-memory", "message-queue-sysv", "semaphore-sysv"];
    let queue = ["message-queue"];
    [rows(Ipc, Works, Apart, Apart, &acts), rows(Ipc, Works, Apart, With(FORBIDDEN), &queue)].concat()
}

fn calls(errnos: &'static [i32], calls: &[(bool, c_long, &str)]) -> Vec<Attack> {
    let row = |(root, number, arguments): &(bool, c_long, &str)| Attack {
        group: Kernel,
        act: format!("call {number} {arguments}").trim_end().to_owned(),
        who: if *root { Who::Root } else { Who::Anybody },
        unconfined: Reaches,
        full: With(errnos),
        floor: With(errnos),
    };
    calls.iter().map(row).collect()
}

/// System calls that fail as if the kernel lacked them. True stands for a call that only root can make.
const ABSENT_CALLS: [(bool, c_long, &str); 7] = [
    (false, libc::SYS_io_uring_setup, "1"),
    (false, libc::SYS_io_uring_register, "-1"),
    (false, libc::SYS_clone3, ""),
    (true, libc::SYS_open_tree, "-100"),
    (true, libc::SYS_fsopen, ""),
    (true, libc::SYS_move_mount, "-1"),
    (true, libc::SYS_mount_setattr, "-1"),
];

/// Forbidden system calls, with invalid addresses and descriptors as arguments. True stands for a call that only root
/// can make.
const FORBIDDEN_CALLS: [(bool, c_long, &str); 25] = [
    (true, libc::SYS_bpf, "0 1 8"),
    (true, libc::SYS_perf_event_open, "1 0 -1 -1"),
    (true, libc::SYS_userfaultfd, "-1"),
    (false, libc::SYS_keyctl, "-1"),
    (false, libc::SYS_add_key, "1 1"),
    (false, libc::SYS_request_key, "1 1"),
    (true, libc::SYS_pivot_root, "1 1"),
    (true, libc::SYS_umount2, "1"),
    (true, libc::SYS_kexec_load, "0 0 0 65535"),
    (true, libc::SYS_reboot, "1 1 1"),
    (true, libc::SYS_init_module, "1 0 1"),
    (true, libc::SYS_finit_module, "-1"),
    (true, libc::SYS_delete_module, "1"),
    (true, libc::SYS_swapon, "1"),
    (true, libc::SYS_swapoff, "1"),
    (true, libc::SYS_acct, "1"),
    (true, libc::SYS_clock_settime, "0 1"),
    (true, libc::SYS_syslog, "10"),
    (true, libc::SYS_open_by_handle_at, "-1"),
    (true, libc::SYS_fanotify_init, "-1"),
    (false, libc::SYS_quotactl, "0 1"),
    (false, libc::SYS_move_pages, "0 1 1"),
    (false, libc::SYS_migrate_pages, "0 1 1 1"),
    (false, libc::SYS_personality, "4194304"),
    (true, libc::SYS_setdomainname, "1 1"),
];
