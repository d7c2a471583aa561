//! Attacks on each seccomp rule: calls that the rule denies, and that do no harm without it.

use nix::libc;
use sandbox_exec::seccomp::rules::calls::{self, Call};
use sandbox_exec::seccomp::rules::constants::*;

/// Address at which nothing is mapped.
const BAD: u64 = 1;
const NONE: u64 = u64::MAX;
/// Flag bits that no system call defines.
const UNKNOWN: u64 = 0xffff_0000;
/// Placeholder in arguments for the process id of the caller.
pub(crate) const OWN_PID: u64 = 0xbad_cafe_0000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) call: Call,
    pub(crate) arguments: [u64; 6],
    /// True if only root tries the row: without capabilities, the kernel itself may answer like the filter.
    pub(crate) for_root: bool,
}

fn row<const N: usize>(call: Call, arguments: [u64; N]) -> Row {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    Row { call, arguments: all, for_root: false }
}

fn root<const N: usize>(call: Call, arguments: [u64; N]) -> Row {
    Row { for_root: true, ..row(call, arguments) }
}

pub(crate) fn all() -> Vec<Row> {
    let groups = [
        doors(),
        kernel(),
        administration(),
        ipc(),
        metadata(),
        namespaces(),
        commands(),
        set_id(),
        opens(),
        sockets(),
    ];
    groups.concat()
}

fn doors() -> Vec<Row> {
    vec![
        row(calls::IO_URING_SETUP, [0, BAD]),
        row(calls::IO_URING_ENTER, [NONE]),
        row(calls::IO_URING_REGISTER, [NONE]),
        row(calls::CLONE3, [BAD, 0]),
        row(calls::UNSHARE, [1]),
        row(calls::SETNS, [NONE, 0]),
        row(calls::MOUNT, [BAD, BAD, BAD, 0, 0]),
        row(calls::UMOUNT2, [BAD, UNKNOWN]),
        root(calls::PIVOT_ROOT, [BAD, BAD]),
        row(calls::CHROOT, [BAD]),
        row(calls::OPEN_TREE, [NONE, BAD, UNKNOWN]),
        row(calls::OPEN_TREE_ATTR, [NONE, BAD, UNKNOWN, BAD, 32]),
        row(calls::MOVE_MOUNT, [NONE, BAD, NONE, BAD, UNKNOWN]),
        row(calls::FSOPEN, [BAD, UNKNOWN]),
        row(calls::FSCONFIG, [NONE, 99]),
        row(calls::FSMOUNT, [NONE, UNKNOWN, 0]),
        row(calls::FSPICK, [NONE, BAD, UNKNOWN]),
        row(calls::MOUNT_SETATTR, [NONE, BAD, UNKNOWN, BAD, 0]),
        row(calls::PROCESS_VM_READV, [OWN_PID, 0, 0, 0, 0, 1]),
        row(calls::PROCESS_VM_WRITEV, [OWN_PID, 0, 0, 0, 0, 1]),
        row(calls::PIDFD_GETFD, [NONE, 0, 1]),
        row(calls::KCMP, [OWN_PID, OWN_PID, 99]),
        row(calls::PROCESS_MADVISE, [NONE, 0, 0, 0, 1]),
        root(calls::OPEN_BY_HANDLE_AT, [NONE, BAD, 0]),
        row(calls::EXECVE, [BAD]),
        row(calls::EXECVEAT, [NONE, BAD, 0, 0, UNKNOWN]),
    ]
}

fn kernel() -> Vec<Row> {
    vec![
        // Larger than a page is refused before anything else.
        row(calls::BPF, [0, BAD, 1 << 20]),
        row(calls::PERF_EVENT_OPEN, [BAD, 0, 0, 0, UNKNOWN]),
        // UFFD_USER_MODE_ONLY, which needs no capability, and a flag that does not exist.
        row(calls::USERFAULTFD, [1 | 0x40]),
        row(calls::KEYCTL, [9999]),
        row(calls::ADD_KEY, [BAD, BAD, BAD, 1, 0]),
        row(calls::REQUEST_KEY, [BAD, BAD, BAD, 0]),
        // More segments than there can be; nothing is loaded, nothing unloaded.
        root(calls::KEXEC_LOAD, [0, 1000, BAD, 0]),
        root(calls::KEXEC_FILE_LOAD, [NONE, NONE, 0, 0, 0x8000_0000]),
        root(calls::INIT_MODULE, [BAD, 0, BAD]),
        root(calls::FINIT_MODULE, [NONE, BAD, UNKNOWN]),
        root(calls::DELETE_MODULE, [BAD, 0]),
        row(calls::LSM_SET_SELF_ATTR, [0xffff, BAD, 1 << 20, 0]),
        // FAN_REPORT_FID, which needs no capability, and a flag that does not exist.
        row(calls::FANOTIFY_INIT, [0x8000_0200]),
        row(calls::MOVE_PAGES, [0, 0, 0, 0, 0, UNKNOWN]),
        row(calls::MIGRATE_PAGES, [0, 1 << 40, BAD, BAD]),
        row(calls::MBIND, [BAD, 0, 99]),
        row(calls::SET_MEMPOLICY_HOME_NODE, [BAD, 0, 0, 1]),
        root(calls::IOPERM, [1 << 20, 1, 1]),
        root(calls::IOPL, [4]),
        row(calls::MODIFY_LDT, [99]),
        row(calls::USELIB, [BAD]),
    ]
}

fn administration() -> Vec<Row> {
    vec![
        // Without its magic numbers reboot(2) does nothing.
        root(calls::REBOOT, [0xdead]),
        root(calls::SWAPON, [BAD, 0]),
        root(calls::SWAPOFF, [BAD]),
        root(calls::ACCT, [BAD]),
        // A quota type that does not exist.
        row(calls::QUOTACTL, [0x00ff_ffff]),
        row(calls::QUOTACTL_FD, [NONE, 0x00ff_ffff]),
        root(calls::SYSLOG, [100]),
        row(calls::SETTIMEOFDAY, [BAD, 0]),
        row(calls::CLOCK_SETTIME, [99, BAD]),
        row(calls::ADJTIMEX, [BAD]),
        row(calls::CLOCK_ADJTIME, [99, BAD]),
        root(calls::SETHOSTNAME, [BAD, 0xffff_ffff]),
        root(calls::SETDOMAINNAME, [BAD, 0xffff_ffff]),
        // Its session has no terminal.
        root(calls::VHANGUP, []),
        row(calls::NFSSERVCTL, []),
        row(calls::LOOKUP_DCOOKIE, []),
    ]
}

fn ipc() -> Vec<Row> {
    vec![
        row(calls::SHMGET, [0, 0, 0]),
        row(calls::SHMAT, [NONE, 0, 0]),
        row(calls::SHMCTL, [NONE, 99]),
        row(calls::MSGGET, [0x0bad_cafe, 0]),
        row(calls::MSGSND, [NONE, BAD, 0, 0]),
        row(calls::MSGRCV, [NONE, BAD, 0, 0, 0]),
        row(calls::MSGCTL, [NONE, 99]),
        row(calls::SEMGET, [0, 0xffff_ffff, 0]),
        row(calls::SEMOP, [NONE, BAD, 1]),
        row(calls::SEMTIMEDOP, [NONE, BAD, 1, 0]),
        row(calls::SEMCTL, [NONE, 0, 99]),
        row(calls::MQ_OPEN, [BAD]),
        row(calls::MQ_UNLINK, [BAD]),
    ]
}

fn metadata() -> Vec<Row> {
    vec![
        row(calls::FCHMOD, [NONE, 0o644]),
        row(calls::FCHMODAT, [NONE, BAD, 0o644]),
        row(calls::FCHMODAT2, [NONE, BAD, 0o644, 0]),
        row(calls::FCHOWN, [NONE, NONE, NONE]),
        row(calls::FCHOWNAT, [NONE, BAD, NONE, NONE, 0]),
        row(calls::UTIMENSAT, [NONE, BAD, 0, 0]),
        row(calls::SETXATTR, [BAD, BAD, BAD, 0, 0]),
        row(calls::LSETXATTR, [BAD, BAD, BAD, 0, 0]),
        row(calls::FSETXATTR, [NONE, BAD, BAD, 0, 0]),
        row(calls::SETXATTRAT, [NONE, BAD, UNKNOWN, BAD, BAD, 0]),
        row(calls::REMOVEXATTR, [BAD, BAD]),
        row(calls::LREMOVEXATTR, [BAD, BAD]),
        row(calls::FREMOVEXATTR, [NONE, BAD]),
        row(calls::REMOVEXATTRAT, [NONE, BAD, UNKNOWN, BAD]),
        row(calls::FILE_SETATTR, [NONE, BAD, BAD, 0, UNKNOWN]),
        row(calls::CHMOD, [BAD, 0o644]),
        row(calls::CHOWN, [BAD, NONE, NONE]),
        row(calls::LCHOWN, [BAD, NONE, NONE]),
        row(calls::UTIME, [BAD, 0]),
        row(calls::UTIMES, [BAD, 0]),
        row(calls::FUTIMESAT, [NONE, BAD, 0]),
    ]
}

fn namespaces() -> Vec<Row> {
    // A thread without shared signal handlers is refused before anything is made.
    let thread = u64::from(libc::CLONE_THREAD.cast_unsigned());
    let flags =
        [CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET];
    flags.map(|flag| row(calls::CLONE, [u64::from(flag) | thread])).to_vec()
}

fn commands() -> Vec<Row> {
    let ioctls = [
        TIOCSTI,
        TIOCLINUX,
        TIOCSETD,
        BTRFS_IOC_SNAP_CREATE,
        BTRFS_IOC_SNAP_CREATE_V2,
        BTRFS_IOC_SUBVOL_CREATE,
        BTRFS_IOC_SUBVOL_CREATE_V2,
        BTRFS_IOC_SNAP_DESTROY,
        BTRFS_IOC_SNAP_DESTROY_V2,
        BTRFS_IOC_SUBVOL_SETFLAGS,
        FS_IOC_ENABLE_VERITY,
        FS_IOC_SET_ENCRYPTION_POLICY,
        FS_IOC_ADD_ENCRYPTION_KEY,
        FS_IOC_REMOVE_ENCRYPTION_KEY,
        FS_IOC_SETFLAGS,
        FS_IOC_SETVERSION,
        EXT4_IOC_SETVERSION,
        FS_IOC_FSSETXATTR,
        FAT_IOCTL_SET_ATTRIBUTES,
    ];
    let mut rows = ioctls.map(|command| row(calls::IOCTL, [NONE, command.into(), BAD])).to_vec();
    rows.extend(
        [F_SETLEASE, F_SETDELEG, F_NOTIFY].map(|command| row(calls::FCNTL, [NONE, command.into(), 0])),
    );
    rows.extend([
        // A fifth argument is invalid whoever gives it.
        row(calls::PRCTL, [PR_SET_MM.into(), 0, 0, 0, 1]),
        row(calls::SETSOCKOPT, [NONE, IPPROTO_TCP.into(), TCP_SYNCNT.into(), BAD, 1]),
        row(calls::SETSOCKOPT, [NONE, IPPROTO_TCP.into(), TCP_FASTOPEN_CONNECT.into(), BAD, 1]),
        row(calls::SETSOCKOPT, [NONE, IPPROTO_TCP.into(), TCP_ULP.into(), BAD, 1]),
        row(calls::SETSOCKOPT, [NONE, IPPROTO_IP.into(), IP_OPTIONS.into(), BAD, 1]),
        row(calls::SETSOCKOPT, [NONE, IPPROTO_IPV6.into(), IPV6_ADDRFORM.into(), BAD, 1]),
        row(calls::SETSOCKOPT, [NONE, IPPROTO_IPV6.into(), IPV6_RTHDR.into(), BAD, 1]),
        row(calls::SETSOCKOPT, [NONE, IPPROTO_IPV6.into(), IPV6_2292RTHDR.into(), BAD, 1]),
        row(calls::SETSOCKOPT, [NONE, IPPROTO_IPV6.into(), IPV6_2292PKTOPTIONS.into(), BAD, 1]),
        row(calls::SETSOCKOPT, [NONE, IPPROTO_IP.into(), IP_LOCAL_PORT_RANGE.into(), BAD, 1]),
        row(calls::SETSOCKOPT, [NONE, SOL_SOCKET.into(), SO_ATTACH_REUSEPORT_CBPF.into(), BAD, 1]),
        row(calls::SETSOCKOPT, [NONE, SOL_SOCKET.into(), SO_ATTACH_REUSEPORT_EBPF.into(), BAD, 1]),
        row(calls::SETSOCKOPT, [NONE, SOL_SOCKET.into(), SO_DETACH_REUSEPORT_BPF.into(), BAD, 1]),
        row(calls::PRLIMIT64, [OWN_PID, 7, 0, 0]),
        // READ_IMPLIES_EXEC.
        row(calls::PERSONALITY, [0x0040_0000]),
    ]);
    // One for each rule; the tests of the rules compare every number.
    let of_ip = [35, 39, 47, 48].map(|name| (IPPROTO_IP, name));
    let of_ipv6 = [21, 27, 28, 43, 47, 48].map(|name| (IPPROTO_IPV6, name));
    let groups = of_ip.into_iter().chain(of_ipv6);
    rows.extend(groups.map(|(level, name)| row(calls::SETSOCKOPT, [NONE, level.into(), name, BAD, 1])));
    rows
}

fn set_id() -> Vec<Row> {
    let modes = [S_ISUID, S_ISGID].map(|bit| u64::from(bit | 0o755));
    let of_mode = |mode| {
        [
            row(calls::FCHMOD, [NONE, mode]),
            row(calls::FCHMODAT, [NONE, BAD, mode]),
            row(calls::FCHMODAT2, [NONE, BAD, mode, 0]),
            row(calls::MKNODAT, [NONE, BAD, mode]),
            row(calls::CHMOD, [BAD, mode]),
            row(calls::MKNOD, [BAD, mode]),
            row(calls::CREAT, [BAD, mode]),
        ]
    };
    modes.into_iter().flat_map(of_mode).collect()
}

fn opens() -> Vec<Row> {
    let flags = |flags: i32| u64::from(flags.cast_unsigned());
    let create = flags(libc::O_CREAT);
    let temporary = flags(libc::O_TMPFILE | libc::O_RDWR);
    let truncate = flags(libc::O_TRUNC);
    let mut rows = vec![
        row(calls::TRUNCATE, [BAD, 0]),
        row(calls::OPENAT2, [NONE, BAD, BAD, 24]),
        row(calls::OPENAT, [NONE, BAD, truncate]),
        row(calls::OPEN, [BAD, truncate]),
    ];
    for flags in [create, temporary] {
        for mode in [S_ISUID, S_ISGID].map(u64::from) {
            rows.push(row(calls::OPENAT, [NONE, BAD, flags, mode]));
            rows.push(row(calls::OPEN, [BAD, flags, mode]));
        }
    }
    rows
}

fn sockets() -> Vec<Row> {
    let socket = |family: i32, kind: u32, protocol: i32| {
        row(calls::SOCKET, [family.cast_unsigned().into(), kind.into(), protocol.cast_unsigned().into()])
    };
    let (stream, datagram) = (libc::SOCK_STREAM.cast_unsigned(), SOCK_DGRAM);
    let mut rows = vec![
        socket(libc::AF_UNIX, stream, 0),
        socket(libc::AF_UNIX, datagram, 0),
        socket(libc::AF_INET, stream, 0),
        socket(libc::AF_INET6, stream, 0),
        socket(libc::AF_INET, datagram, libc::IPPROTO_UDP),
        socket(libc::AF_VSOCK, stream, 0),
        socket(libc::AF_ALG, SOCK_SEQPACKET, 0),
        socket(libc::AF_TIPC, stream, 0),
        // kobject events, which nobody needs a capability for.
        socket(libc::AF_NETLINK, SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT),
        socket(libc::AF_INET, stream, libc::IPPROTO_MPTCP),
        socket(libc::AF_INET6, stream, libc::IPPROTO_SCTP),
        socket(libc::AF_INET, datagram, libc::IPPROTO_ICMP),
        socket(libc::AF_INET, SOCK_RDM, 0),
        socket(libc::AF_INET, SOCK_SEQPACKET, 0),
        socket(libc::AF_INET, SOCK_DCCP, 0),
        Row { for_root: true, ..socket(libc::AF_INET, SOCK_RAW, libc::IPPROTO_TCP) },
        Row { for_root: true, ..socket(libc::AF_INET6, SOCK_RAW, libc::IPPROTO_UDP) },
        Row { for_root: true, ..socket(libc::AF_INET, SOCK_PACKET, 0) },
        Row { for_root: true, ..socket(libc::AF_PACKET, SOCK_DGRAM, 0) },
        socket(libc::AF_UNIX, SOCK_RAW, 0),
        socket(libc::AF_UNIX, SOCK_RDM, 0),
    ];
    let pair = |family: u32, kind: u32| row(calls::SOCKETPAIR, [family.into(), kind.into(), 0, BAD]);
    rows.extend([
        row(calls::CONNECT, [NONE, BAD, 0]),
        row(calls::LISTEN, [NONE, 0]),
        row(calls::ACCEPT, [NONE, 0, 0]),
        row(calls::ACCEPT4, [NONE, 0, 0, 0]),
    ]);
    rows.extend([pair(AF_INET, stream), pair(AF_UNIX, SOCK_DGRAM), pair(AF_UNIX, SOCK_RAW)]);
    rows
}
