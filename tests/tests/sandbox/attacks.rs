//! The table: what is tried, what it does unconfined, and how it is denied. Placeholders are the victim's.

use nix::libc::{self, c_long};

/// What an act does unconfined: the proof that the denial is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unconfined {
    /// It harms the victim.
    Harms,
    /// It succeeds.
    Works,
    /// The kernel looks at it, and finds its arguments wrong or its module missing: an error that is not the denial's.
    Reaches,
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Attack {
    pub(crate) act: String,
    pub(crate) unconfined: Unconfined,
    /// Whether only root can do it unconfined.
    pub(crate) root: bool,
    pub(crate) denied_with: Vec<i32>,
}

use Unconfined::{Harms, Reaches, Works};

fn rows(unconfined: Unconfined, denied_with: &[i32], acts: &[&str]) -> Vec<Attack> {
    let row = |act: &&str| {
        let (root, act) = act.strip_prefix("root: ").map_or((false, *act), |act| (true, act));
        Attack { act: act.to_owned(), unconfined, root, denied_with: denied_with.to_vec() }
    };
    acts.iter().map(row).collect()
}

fn calls(denied_with: i32, calls: &[(bool, c_long, &str)]) -> Vec<Attack> {
    let row = |(root, number, arguments): &(bool, c_long, &str)| Attack {
        act: format!("call {number} {arguments}").trim_end().to_owned(),
        unconfined: Reaches,
        root: *root,
        denied_with: vec![denied_with],
    };
    calls.iter().map(row).collect()
}

/// Every attack that this tier holds, with the network off.
pub(crate) fn all() -> Vec<Attack> {
    [writes(), reads(), processes(), network(), unix_sockets(), terminals(), kernel(), set_id()].concat()
}

fn writes() -> Vec<Attack> {
    let mut all = rows(
        Harms,
        &[libc::EACCES],
        &[
            "write {o}/new",
            "write {o}/file",
            "append {o}/file",
            "truncate {o}/file",
            "truncating-read {o}/file",
            "unlink {o}/file",
            "rmdir {o}/empty",
            "mkdir {o}/new",
            "symlink /nowhere {o}/new",
            "mkfifo {o}/new",
            "write {p}/link",
            "write {p}/dirlink/new",
            "write {p}/../outside/file",
            "write /proc/self/root{o}/file",
            "write {p}/dirlink/../file",
            "reopen-path {o}/file",
            "reopen-read-only {o}/file",
            "truncate {p}/link",
            "unlink {p}/dirlink/inner",
            "write /proc/{v}/cwd/new",
            "write /proc/{v}/root{o}/file",
        ],
    );
    // Across directories the kernel answers EXDEV where the right to link or move is missing on either side.
    all.extend(rows(
        Harms,
        &[libc::EACCES, libc::EXDEV],
        &[
            "rename {o}/file {p}/moved",
            "rename {p}/mine {o}/new",
            "rename {p}/mine {o}/file",
            "rename {o}/file {o}/renamed",
            "rename {o}/dir {p}/moved",
            "exchange {p}/mine {o}/file",
            "link {o}/file {p}/taken",
            "link {p}/mine {o}/new",
        ],
    ));
    // Net off denies the socket before the name is looked at.
    all.extend(rows(Harms, &[libc::EPERM, libc::EACCES], &["bind-unix {o}/new"]));
    all.extend(rows(Works, &[libc::EACCES], &["write /dev/shm/bailiwick-probe"]));
    all
}

fn reads() -> Vec<Attack> {
    rows(
        Harms,
        &[libc::EACCES],
        &[
            "read {o}/hidden",
            "read {p}/hiddenlink",
            "read {p}/../outside/hidden",
            "read /proc/self/root{o}/hidden",
            "read /proc/{v}/cwd/hidden",
            "read {p}/dirlink/../hidden",
        ],
    )
}

fn processes() -> Vec<Attack> {
    let signals = &[
        "kill {v} 10",
        "kill {v} 9",
        "kill {v} 1",
        "tgkill {v} 10",
        "sigqueue {v} 10",
        "pidfd-signal {v} 15",
        "sigio {v} 29",
    ];
    // The kernel drops a SIGIO that may not be sent, and tells nobody: the victim is the judge.
    let mut all = rows(Harms, &[libc::EPERM], signals);
    for attack in all.iter_mut().filter(|attack| attack.act.starts_with("sigio")) {
        attack.denied_with = vec![0, libc::EPERM];
    }
    let memory = ["vm-read {v} {a}", "proc-mem {v} {a}", "pidfd-getfd {v} {fd}", "proc {v} environ"];
    all.extend(rows(Harms, &[libc::EPERM, libc::EACCES], &memory));
    all.extend(rows(
        Works,
        &[libc::EPERM, libc::EACCES],
        &[
            "ptrace-attach {v}",
            "ptrace-seize {v}",
            "vm-write {v} {a}",
            "proc {v} maps",
            "proc {v} auxv",
            "proc-links {v} fd/{fd}",
            "proc {v} fd/{fd}",
            "proc-links {v} cwd",
            "proc-links {v} root",
            "proc-links {v} exe",
            "proc-list {v} map_files",
            "prlimit {v}",
            "kcmp {v}",
            "root: process-madvise {v}",
            "root: setns {v}",
        ],
    ));
    all
}

fn network() -> Vec<Attack> {
    let denied = &[libc::EPERM, libc::EACCES];
    let mut all = rows(
        Harms,
        denied,
        &[
            "tcp {tcp4}",
            "tcp {tcp6}",
            "tcp [::ffff:127.0.0.1]:{port}",
            "tcp 0.0.0.0:{port}",
            "tcp-fast-open {tcp4}",
            "mptcp {tcp4}",
            "udp {udp}",
            "udp-connected {udp}",
        ],
    );
    all.extend(rows(Works, denied, &["tcp-listen"]));
    for (root, family, kind, protocol) in [
        (true, libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        (true, libc::AF_PACKET, libc::SOCK_RAW, 0),
        (true, libc::AF_PACKET, libc::SOCK_DGRAM, 0),
        (true, libc::AF_INET, 10, 0),
        (false, libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER),
        (false, libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT),
        (false, libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        (false, libc::AF_ALG, libc::SOCK_SEQPACKET, 0),
        (false, libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP),
        (true, libc::AF_KEY, libc::SOCK_RAW, 2),
        (false, libc::AF_BLUETOOTH, libc::SOCK_RAW, 1),
        (false, libc::AF_TIPC, libc::SOCK_RDM, 0),
        (true, libc::AF_XDP, libc::SOCK_RAW, 0),
        (false, libc::AF_CAN, libc::SOCK_RAW, 1),
        (false, libc::AF_RDS, libc::SOCK_SEQPACKET, 0),
    ] {
        let act = format!("socket {family} {kind} {protocol}");
        all.push(Attack { act, unconfined: Reaches, root, denied_with: denied.to_vec() });
    }
    all
}

fn unix_sockets() -> Vec<Attack> {
    rows(
        Harms,
        &[libc::EPERM, libc::EACCES],
        &[
            "unix-stream {o}/stream",
            "unix-stream {p}/../outside/stream",
            "unix-seqpacket {o}/packets",
            "unix-datagram {o}/datagram",
            "unix-datagram-sendmsg {o}/datagram",
            "socketpair-sendto {o}/datagram 2",
            "socketpair-sendto {o}/datagram 3",
            "abstract-stream {abstract}",
            "abstract-datagram {abstract}-d",
        ],
    )
}

fn terminals() -> Vec<Attack> {
    let mut all = rows(Works, &[libc::EACCES], &["open-to-write {tty}", "open-to-write /dev/ptmx"]);
    all.extend(rows(
        Reaches,
        &[libc::EACCES],
        &["open-to-write /dev/tty", "root: open-to-write /dev/console"],
    ));
    // TIOCSTI and TIOCLINUX, asm-generic/ioctls.h.
    let requests = ["root: terminal-input 21522", "root: terminal-input 21532"];
    all.extend(rows(Reaches, &[libc::EPERM], &requests));
    all
}

fn kernel() -> Vec<Attack> {
    let user = libc::CLONE_NEWUSER;
    let namespaces = [
        format!("unshare {user}"),
        format!("unshare {}", user | libc::CLONE_NEWNET),
        format!("clone {user}"),
        format!("root: unshare {}", libc::CLONE_NEWNS),
        format!("root: clone {}", libc::CLONE_NEWPID),
    ];
    let namespaces: Vec<_> = namespaces.iter().map(String::as_str).collect();
    let mut all = rows(Works, &[libc::EPERM], &namespaces);
    all.extend(rows(
        Works,
        &[libc::EPERM],
        &[
            "root: mount {o}/empty",
            "root: bind-mount {o}/dir {o}/empty",
            "root: chroot {o}/dir",
            "root: mknod-block {p}/taken",
            "root: host-name",
            "shared-memory",
            "message-queue-sysv",
            "semaphore-sysv",
            "message-queue",
        ],
    ));
    all.extend(rows(
        Works,
        &[libc::EACCES],
        &[
            "root: open-to-write /proc/sys/kernel/domainname",
            "root: open-to-write /proc/sys/vm/drop_caches",
            "root: open-to-write /proc/self/oom_score_adj",
            "root: open-to-write /dev/kmsg",
        ],
    ));
    all.extend(calls(libc::ENOSYS, &ABSENT));
    all.extend(calls(libc::EPERM, &FORBIDDEN));
    all
}

/// Calls that are answered as if the kernel did not have them.
const ABSENT: [(bool, c_long, &str); 7] = [
    (false, libc::SYS_io_uring_setup, "1"),
    (false, libc::SYS_io_uring_register, "-1"),
    (false, libc::SYS_clone3, ""),
    (true, libc::SYS_open_tree, "-100"),
    (true, libc::SYS_fsopen, ""),
    (true, libc::SYS_move_mount, "-1"),
    (true, libc::SYS_mount_setattr, "-1"),
];

/// Calls that are forbidden. Their arguments are bad: addresses that nothing lies at, descriptors that are not open.
const FORBIDDEN: [(bool, c_long, &str); 26] = [
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
    (false, libc::SYS_mq_unlink, "1"),
    (true, libc::SYS_setdomainname, "1 1"),
];

fn set_id() -> Vec<Attack> {
    rows(Works, &[libc::EPERM], &["set-uid {p}/mine", "set-gid-directory {p}/moved"])
}

/// What this tier does not hold: each row harms confined as it does unconfined. `SECURITY.md` lists them with reasons.
pub(crate) const OPEN: &[(&str, &str)] = &[
    ("chmod {o}/file", "Landlock knows no right to change a mode"),
    ("utime {o}/file", "Landlock knows no right to change times"),
    ("setxattr {o}/file", "Landlock knows no right to change attributes"),
    ("set-acl-owner {o}/file {uid} {uid}", "Landlock knows no right to change an owner or a group"),
];
