//! The calls that are denied whatever their arguments.

use nix::libc;

use super::table::Answer::{Forbidden, NoSuchCall};
use super::table::Group;

/// `open_tree_attr` (Linux 6.15) has one number everywhere; libc does not name it yet.
const OPEN_TREE_ATTR: libc::c_long = 467;

/// Denied in every tier.
pub const ALWAYS: &[Group] = &[
    Group {
        reason: "makes and uses sockets that no rule on socket(2) sees; large attack surface",
        answer: NoSuchCall,
        calls: &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register],
    },
    Group {
        reason: "its flags are behind a pointer, so new namespaces cannot be told apart; libraries fall back to clone",
        answer: NoSuchCall,
        calls: &[libc::SYS_clone3],
    },
    Group {
        reason: "a namespace with capabilities over it, or another process's",
        answer: Forbidden,
        calls: &[libc::SYS_unshare, libc::SYS_setns],
    },
    Group {
        reason: "changes what paths mean, or uncovers what is mounted over",
        answer: Forbidden,
        calls: &[libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot],
    },
    Group {
        reason: "the same by the newer interface; tools fall back to mount(2)",
        answer: NoSuchCall,
        calls: &[
            libc::SYS_open_tree,
            OPEN_TREE_ATTR,
            libc::SYS_move_mount,
            libc::SYS_fsopen,
            libc::SYS_fsconfig,
            libc::SYS_fsmount,
            libc::SYS_fspick,
            libc::SYS_mount_setattr,
        ],
    },
    Group {
        reason: "reaches into other processes beside ptrace(2), which the Landlock domain bounds; debuggers fall back to it",
        answer: Forbidden,
        calls: &[
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_pidfd_getfd,
            libc::SYS_kcmp,
            libc::SYS_process_madvise,
        ],
    },
    Group {
        reason: "the usual first steps of kernel exploits; no compiler, interpreter or test suite needs them",
        answer: Forbidden,
        calls: &[libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd],
    },
    Group {
        reason: "the user's and the session's keyrings hold secrets, and Landlock does not know them",
        answer: Forbidden,
        calls: &[libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key],
    },
    Group {
        reason: "opens files by inode, past every path",
        answer: Forbidden,
        calls: &[libc::SYS_open_by_handle_at],
    },
    Group {
        reason: "runs or loads kernel code",
        answer: Forbidden,
        calls: &[
            libc::SYS_kexec_load,
            libc::SYS_kexec_file_load,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_delete_module,
        ],
    },
    Group {
        reason: "administers the host: power, swap, accounting, quotas, clocks, names, the kernel's log, terminals",
        answer: Forbidden,
        calls: &[
            libc::SYS_reboot,
            libc::SYS_swapon,
            libc::SYS_swapoff,
            libc::SYS_acct,
            libc::SYS_quotactl,
            libc::SYS_quotactl_fd,
            libc::SYS_syslog,
            libc::SYS_settimeofday,
            libc::SYS_clock_settime,
            libc::SYS_adjtimex,
            libc::SYS_clock_adjtime,
            libc::SYS_sethostname,
            libc::SYS_setdomainname,
            libc::SYS_vhangup,
            libc::SYS_nfsservctl,
            libc::SYS_lookup_dcookie,
        ],
    },
    Group {
        reason: "watches the opens of other processes, and answers for them",
        answer: Forbidden,
        calls: &[libc::SYS_fanotify_init],
    },
    Group {
        reason: "moves memory between nodes, also of other processes; a way to shape the kernel's heap",
        answer: Forbidden,
        calls: &[libc::SYS_move_pages, libc::SYS_migrate_pages, libc::SYS_mbind],
    },
    #[cfg(target_arch = "x86_64")]
    Group {
        reason: "old x86 doors: port input and output, segment tables, libraries of a.out",
        answer: Forbidden,
        calls: &[libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_modify_ldt, libc::SYS_uselib],
    },
];

/// Denied where there is no ipc namespace: the host's segments, queues and semaphores belong to the same user.
pub const IPC: &[Group] = &[
    Group {
        reason: "System V shared memory, message queues and semaphores of the host",
        answer: Forbidden,
        calls: &[
            libc::SYS_shmget,
            libc::SYS_shmat,
            libc::SYS_shmctl,
            libc::SYS_msgget,
            libc::SYS_msgsnd,
            libc::SYS_msgrcv,
            libc::SYS_msgctl,
            libc::SYS_semget,
            libc::SYS_semop,
            libc::SYS_semtimedop,
            libc::SYS_semctl,
        ],
    },
    Group {
        reason: "POSIX message queues of the host",
        answer: Forbidden,
        calls: &[libc::SYS_mq_open, libc::SYS_mq_unlink],
    },
];
