//! The denied system calls, each with its reason.
//!
//! `ENOSYS` where libraries fall back to something that is allowed, `EPERM` elsewhere. Conditions compare 32 bits, which is
//! what the kernel looks at for these arguments.

use ipc::confinement::Tier;
use ipc::rights::Network;
use nix::libc::{self, c_int};

use super::Policy;
pub use super::denied::{ALWAYS, IPC};

/// What a denied call is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `ENOSYS`: as on a kernel without the call.
    NoSuchCall,
    /// `EPERM`.
    Forbidden,
}

impl Answer {
    /// The error number.
    #[allow(clippy::cast_sign_loss, reason = "error numbers are small and positive")]
    pub const fn errno(self) -> u32 {
        (match self {
            Self::NoSuchCall => libc::ENOSYS,
            Self::Forbidden => libc::EPERM,
        }) as u32
    }
}

/// A test of an argument, by its index from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// It is this value.
    Is(u8, u32),
    /// It is not this value.
    IsNot(u8, u32),
    /// Under this mask it is this value.
    Masked(u8, u32, u32),
}

/// One denial: a call, and when. No test means always; several must all hold.
#[derive(Clone, Copy, Debug)]
pub struct Denial {
    /// The call's number.
    pub number: i64,
    /// When.
    pub when: &'static [Test],
    /// The answer.
    pub answer: Answer,
}

/// Calls that are denied together.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Why.
    pub reason: &'static str,
    /// The answer.
    pub answer: Answer,
    /// The calls.
    pub calls: &'static [libc::c_long],
}

/// A call that is denied by its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Conditional {
    /// Why.
    pub reason: &'static str,
    /// The call.
    pub call: libc::c_long,
    /// Any of these denies.
    pub any_of: &'static [&'static [Test]],
}

use Answer::{Forbidden, NoSuchCall};
use Test::{Is, IsNot, Masked};

const fn int(value: c_int) -> u32 {
    value.cast_unsigned()
}

const SET_UID: u32 = libc::S_ISUID;
const SET_GID: u32 = libc::S_ISGID;
const CREATE: u32 = int(libc::O_CREAT);
/// The bit of `O_TMPFILE` that is its own (the other is `O_DIRECTORY`).
const TMPFILE: u32 = int(libc::O_TMPFILE & !libc::O_DIRECTORY);
const TRUNCATE: u32 = int(libc::O_TRUNC);
const ACCESS_MODE: u32 = int(libc::O_ACCMODE);

const SET_ID: &str = "a set-id file outlives the sandbox, and runs as whoever made it";

macro_rules! set_id {
    ($call:expr, $mode:literal) => {
        Conditional {
            reason: SET_ID,
            call: $call,
            any_of: &[&[Masked($mode, SET_UID, SET_UID)], &[Masked($mode, SET_GID, SET_GID)]],
        }
    };
}

macro_rules! set_id_in_open {
    ($call:expr, $flags:literal, $mode:literal) => {
        Conditional {
            reason: SET_ID,
            call: $call,
            any_of: &[
                &[Masked($flags, CREATE, CREATE), Masked($mode, SET_UID, SET_UID)],
                &[Masked($flags, CREATE, CREATE), Masked($mode, SET_GID, SET_GID)],
                &[Masked($flags, TMPFILE, TMPFILE), Masked($mode, SET_UID, SET_UID)],
                &[Masked($flags, TMPFILE, TMPFILE), Masked($mode, SET_GID, SET_GID)],
            ],
        }
    };
}

macro_rules! truncating_open {
    ($call:expr, $flags:literal) => {
        Conditional {
            reason: "opening to read with O_TRUNC truncates, and Landlock below ABI 3 sees only the reading",
            call: $call,
            any_of: &[&[Masked($flags, ACCESS_MODE | TRUNCATE, TRUNCATE)]],
        }
    };
}

/// `fchmodat2` and later calls have one number everywhere; libc does not name all of them yet.
const FCHMODAT2: libc::c_long = 452;
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;
const FILE_SETATTR: libc::c_long = 469;

/// Obsolete, and still sniffs (`packet(7)`).
const SOCK_PACKET: u32 = 10;

/// Denied always, by arguments.
pub const BY_ARGUMENT: &[Conditional] = &[
    Conditional {
        reason: "a new namespace brings the whole set of capabilities over it, and with it a large part of the kernel",
        call: libc::SYS_clone,
        any_of: &[
            &[Masked(0, int(libc::CLONE_NEWNS), int(libc::CLONE_NEWNS))],
            &[Masked(0, int(libc::CLONE_NEWCGROUP), int(libc::CLONE_NEWCGROUP))],
            &[Masked(0, int(libc::CLONE_NEWUTS), int(libc::CLONE_NEWUTS))],
            &[Masked(0, int(libc::CLONE_NEWIPC), int(libc::CLONE_NEWIPC))],
            &[Masked(0, int(libc::CLONE_NEWUSER), int(libc::CLONE_NEWUSER))],
            &[Masked(0, int(libc::CLONE_NEWPID), int(libc::CLONE_NEWPID))],
            &[Masked(0, int(libc::CLONE_NEWNET), int(libc::CLONE_NEWNET))],
        ],
    },
    Conditional {
        reason: "types keys into the terminal (TIOCSTI, TIOCLINUX), or loads a line discipline (TIOCSETD)",
        call: libc::SYS_ioctl,
        // asm-generic/ioctls.h; the kernel looks at 32 bits of the command.
        any_of: &[&[Is(1, 0x5412)], &[Is(1, 0x541C)], &[Is(1, 0x5423)]],
    },
    Conditional {
        reason: "changes the limits of another process of the user, its open files among them",
        call: libc::SYS_prlimit64,
        any_of: &[&[IsNot(0, 0)]],
    },
    Conditional {
        reason: "personalities weaken the memory layout; the default, PER_LINUX32, UNAME26, their sum, the query and gdb's \
                 ADDR_NO_RANDOMIZE are allowed",
        call: libc::SYS_personality,
        any_of: &[&[
            IsNot(0, 0),
            IsNot(0, 8),
            IsNot(0, 0x2_0000),
            IsNot(0, 0x2_0008),
            IsNot(0, 0x4_0000),
            IsNot(0, 0xffff_ffff),
        ]],
    },
    set_id!(libc::SYS_fchmod, 1),
    set_id!(libc::SYS_fchmodat, 2),
    set_id!(FCHMODAT2, 2),
    set_id!(libc::SYS_mkdirat, 2),
    set_id!(libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    set_id!(libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    set_id!(libc::SYS_mkdir, 1),
    #[cfg(target_arch = "x86_64")]
    set_id!(libc::SYS_mknod, 1),
];

/// Denied where nobody mediates unix sockets.
pub const UNMEDIATED: &[Conditional] = &[Conditional {
    reason: "a datagram socket of a pair can still be sent to any path (so can SOCK_RAW, which unix(7) takes for it), \
             and other families' pairs are attack surface",
    call: libc::SYS_socketpair,
    any_of: &[
        &[IsNot(0, int(libc::AF_UNIX))],
        &[Masked(1, 0xf, int(libc::SOCK_DGRAM))],
        &[Masked(1, 0xf, int(libc::SOCK_RAW))],
    ],
}];

/// Denied in the floor while the network is off. Without mediation unix sockets are denied in every mode: a unix socket
/// outside, of docker, of an ssh agent or of D-Bus, is a way out, and BPF cannot see where `connect` goes.
pub const NET_OFF: &[Conditional] = &[Conditional {
    reason: "no socket leaves the sandbox; NETLINK_ROUTE stays, since getifaddrs(3) needs it",
    call: libc::SYS_socket,
    any_of: &[&[IsNot(0, int(libc::AF_NETLINK))], &[IsNot(2, int(libc::NETLINK_ROUTE))]],
}];

/// Denied in the floor while the network is on.
pub const NET_ON: &[Conditional] = &[Conditional {
    reason: "TCP, UDP and NETLINK_ROUTE alone: vsock talks to the hypervisor, packet and raw sockets sniff, MPTCP and SCTP \
             pass by port rules, the others are attack surface; unix sockets are a way out",
    call: libc::SYS_socket,
    any_of: &[
        &[IsNot(0, int(libc::AF_NETLINK)), IsNot(0, int(libc::AF_INET)), IsNot(0, int(libc::AF_INET6))],
        &[Is(0, int(libc::AF_NETLINK)), IsNot(2, int(libc::NETLINK_ROUTE))],
        &[
            IsNot(0, int(libc::AF_NETLINK)),
            IsNot(2, 0),
            IsNot(2, int(libc::IPPROTO_TCP)),
            IsNot(2, int(libc::IPPROTO_UDP)),
        ],
        &[IsNot(0, int(libc::AF_NETLINK)), Masked(1, 0xf, int(libc::SOCK_RAW))],
        &[IsNot(0, int(libc::AF_NETLINK)), Masked(1, 0xf, int(libc::SOCK_RDM))],
        &[IsNot(0, int(libc::AF_NETLINK)), Masked(1, 0xf, int(libc::SOCK_SEQPACKET))],
        &[IsNot(0, int(libc::AF_NETLINK)), Masked(1, 0xf, int(libc::SOCK_DCCP))],
        &[IsNot(0, int(libc::AF_NETLINK)), Masked(1, 0xf, SOCK_PACKET)],
    ],
}];

/// Denied in the full tier, whatever the network: with the network off it is a namespace of its own, in which servers and
/// clients meet on loopback; with the network on the broker mediates where sockets lead. Unix sockets are mediated by path.
pub const MEDIATED: &[Conditional] = &[
    Conditional {
        reason: "TCP, UDP, unix sockets and NETLINK_ROUTE alone: vsock talks to the hypervisor past every network \
                 namespace, packet and raw sockets sniff, nobody mediates MPTCP and SCTP, the others are attack surface",
        call: libc::SYS_socket,
        any_of: &[
            &[
                IsNot(0, int(libc::AF_NETLINK)),
                IsNot(0, int(libc::AF_UNIX)),
                IsNot(0, int(libc::AF_INET)),
                IsNot(0, int(libc::AF_INET6)),
            ],
            &[Is(0, int(libc::AF_NETLINK)), IsNot(2, int(libc::NETLINK_ROUTE))],
            &[
                IsNot(0, int(libc::AF_NETLINK)),
                IsNot(0, int(libc::AF_UNIX)),
                IsNot(2, 0),
                IsNot(2, int(libc::IPPROTO_TCP)),
                IsNot(2, int(libc::IPPROTO_UDP)),
            ],
            &[
                IsNot(0, int(libc::AF_NETLINK)),
                IsNot(0, int(libc::AF_UNIX)),
                Masked(1, 0xf, int(libc::SOCK_SEQPACKET)),
            ],
            &[IsNot(0, int(libc::AF_NETLINK)), Masked(1, 0xf, int(libc::SOCK_RAW))],
            &[IsNot(0, int(libc::AF_NETLINK)), Masked(1, 0xf, int(libc::SOCK_RDM))],
            &[IsNot(0, int(libc::AF_NETLINK)), Masked(1, 0xf, int(libc::SOCK_DCCP))],
            &[IsNot(0, int(libc::AF_NETLINK)), Masked(1, 0xf, SOCK_PACKET)],
        ],
    },
    Conditional {
        reason: "pairs of other families are attack surface",
        call: libc::SYS_socketpair,
        any_of: &[&[IsNot(0, int(libc::AF_UNIX))], &[Masked(1, 0xf, int(libc::SOCK_RAW))]],
    },
];

/// Denied in the full tier to a command that declared that it needs no network, where its worker has one: the network
/// namespace is the host's there.
pub const OFFLINE: &[Conditional] = &[Conditional {
    reason: "the command declared that it needs no network; its unix sockets are mediated by path as its worker's are",
    call: libc::SYS_socket,
    any_of: &[&[Is(0, int(libc::AF_INET))], &[Is(0, int(libc::AF_INET6))]],
}];

/// Denied as uid 0, whose set-id files would be root's. `openat2` has its mode behind a pointer.
pub const AS_ROOT: (&[Group], &[Conditional]) = (
    &[Group { reason: SET_ID, answer: NoSuchCall, calls: &[libc::SYS_openat2] }],
    &[
        set_id_in_open!(libc::SYS_openat, 2, 3),
        #[cfg(target_arch = "x86_64")]
        set_id_in_open!(libc::SYS_open, 1, 2),
        #[cfg(target_arch = "x86_64")]
        set_id!(libc::SYS_creat, 1),
    ],
);

/// Denied below Landlock ABI 3, which does not see truncation. Truncating an open file is not among them: it takes a
/// descriptor that was opened for writing.
pub const TRUNCATION: (&[Group], &[Conditional]) = (
    &[
        Group {
            reason: "truncates by path, and Landlock below ABI 3 does not see it",
            answer: Forbidden,
            calls: &[libc::SYS_truncate],
        },
        Group { reason: "its flags are behind a pointer", answer: NoSuchCall, calls: &[libc::SYS_openat2] },
    ],
    &[
        truncating_open!(libc::SYS_openat, 2),
        #[cfg(target_arch = "x86_64")]
        truncating_open!(libc::SYS_open, 1),
    ],
);

/// Denied for a command that only reads, on top of everything else: Landlock does not see changes of metadata.
pub const READ_ONLY: (&[Group], &[Conditional]) = (
    &[Group {
        reason: "modes, owners, times and attributes are changes too",
        answer: Forbidden,
        calls: &[
            libc::SYS_fchmod,
            libc::SYS_fchmodat,
            FCHMODAT2,
            libc::SYS_fchown,
            libc::SYS_fchownat,
            libc::SYS_utimensat,
            libc::SYS_setxattr,
            libc::SYS_lsetxattr,
            libc::SYS_fsetxattr,
            SETXATTRAT,
            libc::SYS_removexattr,
            libc::SYS_lremovexattr,
            libc::SYS_fremovexattr,
            REMOVEXATTRAT,
            FILE_SETATTR,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chmod,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chown,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_lchown,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_utime,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_utimes,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_futimesat,
        ],
    }],
    &[
        Conditional {
            reason: "FS_IOC_SETFLAGS, FS_IOC_SETVERSION and FS_IOC_FSSETXATTR change attributes through a descriptor that \
                     was opened to read",
            call: libc::SYS_ioctl,
            any_of: &[&[Is(1, 0x4008_6602)], &[Is(1, 0x4008_7602)], &[Is(1, 0x401C_5820)]],
        },
        Conditional {
            reason: "it could send away what it reads, whatever the network right of its worker",
            call: libc::SYS_socket,
            any_of: &[&[IsNot(0, int(libc::AF_NETLINK))]],
        },
    ],
);

/// The program of a worker that may run nothing.
pub const NO_EXECUTION: Group = Group {
    reason: "the rights do not allow commands",
    answer: Forbidden,
    calls: &[libc::SYS_execve, libc::SYS_execveat],
};

/// Denied in the full tier to a command that only reads: there [`MEDIATED`] leaves datagram pairs, which reach any socket
/// that its worker reaches.
const READ_ONLY_MEDIATED: &[Conditional] = UNMEDIATED;

/// Everything that is denied under a policy.
pub fn standing(policy: Policy) -> Vec<Denial> {
    let mut all = vec![(ALWAYS, BY_ARGUMENT)];
    match (policy.tier, policy.net) {
        (Tier::Full, _) => all.push((&[], MEDIATED)),
        (Tier::FloorUnmediated, net) => {
            all.push((IPC, UNMEDIATED));
            all.push((&[], if net == Network::On { NET_ON } else { NET_OFF }));
        }
    }
    if policy.root {
        all.push(AS_ROOT);
    }
    if policy.truncate {
        all.push(TRUNCATION);
    }
    flatten(&all)
}

/// What is denied to a command that only reads, on top of [`standing`].
pub fn read_only(policy: Policy) -> Vec<Denial> {
    let mut all = vec![READ_ONLY];
    if policy.tier == Tier::Full {
        all.push((&[], READ_ONLY_MEDIATED));
    }
    if policy.truncate {
        all.push(TRUNCATION);
    }
    flatten(&all)
}

/// What is denied to a command that declared that it needs no network, on top of [`standing`] of a worker that has one.
pub fn offline(policy: Policy) -> Vec<Denial> {
    match policy.tier {
        Tier::Full => flatten(&[(&[], OFFLINE)]),
        Tier::FloorUnmediated => standing(Policy { net: Network::Off, ..policy }),
    }
}

/// What is denied to a worker that may run nothing, on top of [`standing`].
pub fn no_execution() -> Vec<Denial> {
    flatten(&[(&[NO_EXECUTION], &[])])
}

fn flatten(tables: &[(&[Group], &[Conditional])]) -> Vec<Denial> {
    let groups = tables.iter().flat_map(|(groups, _)| *groups).flat_map(|group| {
        group.calls.iter().map(|&number| Denial { number, when: &[], answer: group.answer })
    });
    let conditionals = tables.iter().flat_map(|(_, conditionals)| *conditionals).flat_map(|conditional| {
        conditional.any_of.iter().map(|&when| Denial { number: conditional.call, when, answer: Forbidden })
    });
    groups.chain(conditionals).collect()
}
