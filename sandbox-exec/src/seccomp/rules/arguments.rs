//! Calls that are denied for certain arguments, except those that create sockets.

use super::Test::{Is, IsNot, Masked};
use super::always::SET_ID;
#[allow(clippy::wildcard_imports, reason = "what the kernel calls its arguments, and nothing else")]
use super::constants::*;
use super::{Conditional, calls};

macro_rules! set_id {
    ($call:expr, $mode:literal) => {
        set_id!($call, $mode, S_ISUID, S_ISGID)
    };
    ($call:expr, $mode:literal, $($bit:ident),+) => {
        Conditional { reason: SET_ID, call: $call, any_of: &[$(&[Masked($mode, $bit, $bit)]),+] }
    };
}

macro_rules! set_id_in_open {
    ($call:expr, $flags:literal, $mode:literal) => {
        Conditional {
            reason: SET_ID,
            call: $call,
            any_of: &[
                &[Masked($flags, O_CREAT, O_CREAT), Masked($mode, S_ISUID, S_ISUID)],
                &[Masked($flags, O_CREAT, O_CREAT), Masked($mode, S_ISGID, S_ISGID)],
                &[Masked($flags, O_TMPFILE_ALONE, O_TMPFILE_ALONE), Masked($mode, S_ISUID, S_ISUID)],
                &[Masked($flags, O_TMPFILE_ALONE, O_TMPFILE_ALONE), Masked($mode, S_ISGID, S_ISGID)],
            ],
        }
    };
}

macro_rules! truncating_open {
    ($call:expr, $flags:literal) => {
        Conditional {
            reason: "opening to read with O_TRUNC truncates, and Landlock below ABI 3 sees only the reading",
            call: $call,
            any_of: &[&[Masked($flags, O_ACCMODE | O_TRUNC, O_TRUNC)]],
        }
    };
}

pub(super) const ALWAYS: &[Conditional] = &[
    Conditional {
        reason: "a new namespace brings the whole set of capabilities over it, and with it a large part of the kernel",
        call: calls::CLONE,
        any_of: &[
            &[Masked(0, CLONE_NEWNS, CLONE_NEWNS)],
            &[Masked(0, CLONE_NEWCGROUP, CLONE_NEWCGROUP)],
            &[Masked(0, CLONE_NEWUTS, CLONE_NEWUTS)],
            &[Masked(0, CLONE_NEWIPC, CLONE_NEWIPC)],
            &[Masked(0, CLONE_NEWUSER, CLONE_NEWUSER)],
            &[Masked(0, CLONE_NEWPID, CLONE_NEWPID)],
            &[Masked(0, CLONE_NEWNET, CLONE_NEWNET)],
        ],
    },
    Conditional {
        reason: "types keys into the terminal (TIOCSTI, TIOCLINUX), or loads a line discipline (TIOCSETD)",
        call: calls::IOCTL,
        any_of: &[&[Is(1, TIOCSTI)], &[Is(1, TIOCLINUX)], &[Is(1, TIOCSETD)]],
    },
    Conditional {
        reason: "btrfs lets a user snapshot a subvolume, which copies hidden files to a place that is not hidden, and make \
                 or delete one; none of it asks Landlock",
        call: calls::IOCTL,
        any_of: &[
            &[Is(1, BTRFS_IOC_SNAP_CREATE)],
            &[Is(1, BTRFS_IOC_SNAP_CREATE_V2)],
            &[Is(1, BTRFS_IOC_SUBVOL_CREATE)],
            &[Is(1, BTRFS_IOC_SUBVOL_CREATE_V2)],
            &[Is(1, BTRFS_IOC_SNAP_DESTROY)],
            &[Is(1, BTRFS_IOC_SNAP_DESTROY_V2)],
            &[Is(1, BTRFS_IOC_SUBVOL_SETFLAGS)],
        ],
    },
    Conditional {
        reason: "through a descriptor that was opened to read: makes a file immutable for good (fs-verity), encrypts an \
                 empty directory, or locks what the user has unlocked (fscrypt)",
        call: calls::IOCTL,
        any_of: &[
            &[Is(1, FS_IOC_ENABLE_VERITY)],
            &[Is(1, FS_IOC_SET_ENCRYPTION_POLICY)],
            &[Is(1, FS_IOC_ADD_ENCRYPTION_KEY)],
            &[Is(1, FS_IOC_REMOVE_ENCRYPTION_KEY)],
        ],
    },
    Conditional {
        reason: "a lease (F_SETLEASE, F_SETDELEG) holds up everybody who opens the file, F_NOTIFY signals each change in a \
                 directory; both take a descriptor that was opened to read, and only file servers use them",
        call: calls::FCNTL,
        any_of: &[&[Is(1, F_SETLEASE)], &[Is(1, F_SETDELEG)], &[Is(1, F_NOTIFY)]],
    },
    Conditional {
        reason: "rewrites the command line, environment and executable that /proc shows of the process, by which it is \
                 judged; only checkpoint tools need it",
        call: calls::PRCTL,
        any_of: &[&[Is(0, PR_SET_MM)]],
    },
    Conditional {
        reason: "turns a TCP socket into one of SMC, which no rule on socket(2) sees, or loads kTLS; libraries fall back",
        call: calls::SETSOCKOPT,
        any_of: &[&[Is(1, IPPROTO_TCP), Is(2, TCP_ULP)]],
    },
    Conditional {
        reason: "source routes and routing headers (ip(7), RFC 3542) lead a packet elsewhere than to the address that was \
                 checked",
        call: calls::SETSOCKOPT,
        any_of: &[
            &[Is(1, IPPROTO_IP), Is(2, IP_OPTIONS)],
            &[Is(1, IPPROTO_IPV6), Is(2, IPV6_RTHDR)],
            &[Is(1, IPPROTO_IPV6), Is(2, IPV6_2292RTHDR)],
            &[Is(1, IPPROTO_IPV6), Is(2, IPV6_2292PKTOPTIONS)],
        ],
    },
    Conditional {
        reason: "has a connection made when the first bytes are sent, or long after it was asked for, when the address can be \
                 another's than the one that was checked",
        call: calls::SETSOCKOPT,
        any_of: &[
            &[Is(1, IPPROTO_TCP), Is(2, TCP_FASTOPEN_CONNECT)],
            &[Is(1, IPPROTO_TCP), Is(2, TCP_SYNCNT)],
        ],
    },
    Conditional {
        reason: "makes an IPv4 socket of an IPv6 one under the eyes of whoever judges its addresses; nobody needs it",
        call: calls::SETSOCKOPT,
        any_of: &[&[Is(1, IPPROTO_IPV6), Is(2, IPV6_ADDRFORM)]],
    },
    Conditional {
        reason: "changes the limits of another process of the user, its open files among them",
        call: calls::PRLIMIT64,
        any_of: &[&[IsNot(0, 0)]],
    },
    Conditional {
        reason: "personalities weaken the memory layout; the default, PER_LINUX32, UNAME26, their sum, the query and gdb's \
                 ADDR_NO_RANDOMIZE are allowed",
        call: calls::PERSONALITY,
        any_of: &[&[
            IsNot(0, 0),
            IsNot(0, 8),
            IsNot(0, 0x2_0000),
            IsNot(0, 0x2_0008),
            IsNot(0, 0x4_0000),
            IsNot(0, 0xffff_ffff),
        ]],
    },
    // On a directory the set-group-ID bit is harmless, and the mediator sees the file. In mkdir(2) the kernel
    // ignores both.
    set_id!(calls::FCHMOD, 1, S_ISUID),
    set_id!(calls::FCHMODAT, 2, S_ISUID),
    set_id!(calls::FCHMODAT2, 2, S_ISUID),
    set_id!(calls::CHMOD, 1, S_ISUID),
    set_id!(calls::MKNODAT, 2),
    set_id!(calls::MKNOD, 1),
];

/// Calls that set the set-group-ID bit, and that are denied if no mediator can see to which file.
pub(super) const UNMEDIATED: &[Conditional] = &[
    set_id!(calls::FCHMOD, 1, S_ISGID),
    set_id!(calls::FCHMODAT, 2, S_ISGID),
    set_id!(calls::FCHMODAT2, 2, S_ISGID),
    set_id!(calls::CHMOD, 1, S_ISGID),
];

/// Calls that are denied to uid 0: files that become set-id would be root's.
pub(super) const AS_ROOT: &[Conditional] =
    &[set_id_in_open!(calls::OPENAT, 2, 3), set_id_in_open!(calls::OPEN, 1, 2), set_id!(calls::CREAT, 1)];

pub(super) const TRUNCATION: &[Conditional] =
    &[truncating_open!(calls::OPENAT, 2), truncating_open!(calls::OPEN, 1)];

pub(super) const READ_ONLY: &[Conditional] = &[Conditional {
    reason: "change attributes through a descriptor that was opened to read",
    call: calls::IOCTL,
    any_of: &[
        &[Is(1, FS_IOC_SETFLAGS)],
        &[Is(1, FS_IOC_SETVERSION)],
        &[Is(1, EXT4_IOC_SETVERSION)],
        &[Is(1, FS_IOC_FSSETXATTR)],
        &[Is(1, FAT_IOCTL_SET_ATTRIBUTES)],
    ],
}];
