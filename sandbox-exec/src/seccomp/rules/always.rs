//! Calls that are denied whatever their arguments.
//!
//! Examined and allowed, among the calls up to [`NEWEST`](super::calls::NEWEST) and those that other sandboxes deny:
//!
//! | call | why it stays |
//! | --- | --- |
//! | `ptrace` | debuggers and the leak sanitizer need it; Landlock's domain bounds it, in the full tier the pid namespace too |
//! | `landlock_*`, `seccomp` | programs confine themselves; both only ever narrow |
//! | `memfd_create`, `memfd_secret`, `execveat` | just-in-time compilers and runtimes; nothing outside is reached |
//! | `pidfd_open`, `pidfd_send_signal` | Landlock's scope bounds signals in every form |
//! | `process_mrelease` | frees the memory of a process that is being killed already |
//! | `name_to_handle_at` | a handle is of no use without `open_by_handle_at` |
//! | `statmount`, `listmount` | what `/proc/self/mountinfo` says |
//! | `get_mempolicy`, `set_mempolicy` | the thread's own; numactl and OpenJDK use them |
//! | `map_shadow_stack`, `mseal`, `cachestat`, `rseq`, `futex_*` | the process's own memory, or what it has open |
//! | `file_getattr`, `listxattrat`, `getxattrat` | reading; `file_setattr` is denied where metadata are |

use super::Answer::{Forbidden, NoSuchCall};
use super::{Group, calls};

pub(super) const ALWAYS: &[Group] = &[
    Group {
        reason: "makes and uses sockets that no rule on socket(2) sees; large attack surface",
        answer: NoSuchCall,
        calls: &[calls::IO_URING_SETUP, calls::IO_URING_ENTER, calls::IO_URING_REGISTER],
    },
    Group {
        reason: "its flags are behind a pointer, so new namespaces cannot be told apart; libraries fall back to clone",
        answer: NoSuchCall,
        calls: &[calls::CLONE3],
    },
    Group {
        reason: "a namespace with capabilities over it, or another process's",
        answer: Forbidden,
        calls: &[calls::UNSHARE, calls::SETNS],
    },
    Group {
        reason: "changes what paths mean, or uncovers what is mounted over",
        answer: Forbidden,
        calls: &[calls::MOUNT, calls::UMOUNT2, calls::PIVOT_ROOT, calls::CHROOT],
    },
    Group {
        reason: "the same by the newer interface; tools fall back to mount(2)",
        answer: NoSuchCall,
        calls: &[
            calls::OPEN_TREE,
            calls::OPEN_TREE_ATTR,
            calls::MOVE_MOUNT,
            calls::FSOPEN,
            calls::FSCONFIG,
            calls::FSMOUNT,
            calls::FSPICK,
            calls::MOUNT_SETATTR,
        ],
    },
    Group {
        reason: "reaches into other processes beside ptrace(2), which the Landlock domain bounds; debuggers fall back to it",
        answer: Forbidden,
        calls: &[
            calls::PROCESS_VM_READV,
            calls::PROCESS_VM_WRITEV,
            calls::PIDFD_GETFD,
            calls::KCMP,
            calls::PROCESS_MADVISE,
        ],
    },
    Group {
        reason: "the usual first steps of kernel exploits; no compiler, interpreter or test suite needs them",
        answer: Forbidden,
        calls: &[calls::BPF, calls::PERF_EVENT_OPEN, calls::USERFAULTFD],
    },
    Group {
        reason: "the user's and the session's keyrings hold secrets, and Landlock does not know them",
        answer: Forbidden,
        calls: &[calls::KEYCTL, calls::ADD_KEY, calls::REQUEST_KEY],
    },
    Group {
        reason: "opens files by inode, past every path",
        answer: Forbidden,
        calls: &[calls::OPEN_BY_HANDLE_AT],
    },
    Group {
        reason: "runs or loads kernel code",
        answer: Forbidden,
        calls: &[
            calls::KEXEC_LOAD,
            calls::KEXEC_FILE_LOAD,
            calls::INIT_MODULE,
            calls::FINIT_MODULE,
            calls::DELETE_MODULE,
        ],
    },
    Group {
        reason: "administers the host: power, swap, accounting, quotas, clocks, names, the kernel's log, terminals",
        answer: Forbidden,
        calls: &[
            calls::REBOOT,
            calls::SWAPON,
            calls::SWAPOFF,
            calls::ACCT,
            calls::QUOTACTL,
            calls::QUOTACTL_FD,
            calls::SYSLOG,
            calls::SETTIMEOFDAY,
            calls::CLOCK_SETTIME,
            calls::ADJTIMEX,
            calls::CLOCK_ADJTIME,
            calls::SETHOSTNAME,
            calls::SETDOMAINNAME,
            calls::VHANGUP,
            calls::NFSSERVCTL,
            calls::LOOKUP_DCOOKIE,
        ],
    },
    Group {
        reason: "sets the process's SELinux or AppArmor context past its files in /proc, which are never writable",
        answer: Forbidden,
        calls: &[calls::LSM_SET_SELF_ATTR],
    },
    Group {
        reason: "watches the opens of other processes, and answers for them",
        answer: Forbidden,
        calls: &[calls::FANOTIFY_INIT],
    },
    Group {
        reason: "moves memory between nodes, also of other processes; a way to shape the kernel's heap",
        answer: Forbidden,
        calls: &[calls::MOVE_PAGES, calls::MIGRATE_PAGES, calls::MBIND, calls::SET_MEMPOLICY_HOME_NODE],
    },
    Group {
        reason: "old x86 doors: port input and output, segment tables, libraries of a.out",
        answer: Forbidden,
        calls: &[calls::IOPERM, calls::IOPL, calls::MODIFY_LDT, calls::USELIB],
    },
];

/// Calls that are denied without an ipc namespace and a broker: they reach the user's objects on the host.
pub(super) const OBJECTS: &[Group] = &[Group {
    reason: "System V shared memory, message queues and semaphores of the host",
    answer: Forbidden,
    calls: &[
        calls::SHMGET,
        calls::SHMAT,
        calls::SHMCTL,
        calls::MSGGET,
        calls::MSGSND,
        calls::MSGRCV,
        calls::MSGCTL,
        calls::SEMGET,
        calls::SEMOP,
        calls::SEMTIMEDOP,
        calls::SEMCTL,
    ],
}];

/// Calls that are denied if there is no ipc namespace.
pub(super) const QUEUES: &[Group] = &[Group {
    reason: "POSIX message queues of the host",
    answer: Forbidden,
    calls: &[calls::MQ_OPEN, calls::MQ_UNLINK],
}];

pub(super) const SET_ID: &str = "a set-id file outlives the sandbox, and runs as whoever made it";

/// Calls that are denied to uid 0, whose set-id files would be root's. BPF cannot read the mode of `openat2`.
pub(super) const AS_ROOT: &[Group] =
    &[Group { reason: SET_ID, answer: NoSuchCall, calls: &[calls::OPENAT2] }];

/// Calls that are denied below Landlock ABI 3, which does not restrict truncation. ftruncate(2) is allowed, since it
/// needs a descriptor that is open for writing.
pub(super) const TRUNCATION: &[Group] = &[
    Group {
        reason: "truncates by path, and Landlock below ABI 3 does not see it",
        answer: Forbidden,
        calls: &[calls::TRUNCATE],
    },
    Group { reason: "its flags are behind a pointer", answer: NoSuchCall, calls: &[calls::OPENAT2] },
];

/// Calls that are denied to a command that only reads, since Landlock ignores changes of metadata.
pub(super) const READ_ONLY: &[Group] = &[Group {
    reason: "modes, owners, times and attributes are changes too",
    answer: Forbidden,
    calls: &[
        calls::FCHMOD,
        calls::FCHMODAT,
        calls::FCHMODAT2,
        calls::FCHOWN,
        calls::FCHOWNAT,
        calls::UTIMENSAT,
        calls::SETXATTR,
        calls::LSETXATTR,
        calls::FSETXATTR,
        calls::SETXATTRAT,
        calls::REMOVEXATTR,
        calls::LREMOVEXATTR,
        calls::FREMOVEXATTR,
        calls::REMOVEXATTRAT,
        calls::FILE_SETATTR,
        calls::CHMOD,
        calls::CHOWN,
        calls::LCHOWN,
        calls::UTIME,
        calls::UTIMES,
        calls::FUTIMESAT,
    ],
}];

/// Calls that are denied to a command that only reads. Connected pairs of sockets stay allowed. So do `bind` and
/// `sendto`: getifaddrs(3) needs them, and on a pair they have no effect.
pub(super) const READ_ONLY_SOCKETS: &[Group] = &[Group {
    reason: "it could meet others by a name, and send away what it reads",
    answer: Forbidden,
    calls: &[calls::CONNECT, calls::LISTEN, calls::ACCEPT, calls::ACCEPT4],
}];

pub(super) const NO_EXECUTION: &[Group] = &[Group {
    reason: "the rights do not allow commands",
    answer: Forbidden,
    calls: &[calls::EXECVE, calls::EXECVEAT],
}];
