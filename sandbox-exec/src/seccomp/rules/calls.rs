//! System calls with their numbers, for both architectures, since programs are compiled on another machine than they
//! run on. Sources: `arch/x86/entry/syscalls/syscall_64.tbl` (x86-64); `scripts/syscall.tbl`, which is
//! `asm-generic/unistd.h` (aarch64).

use super::Arch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Name, as in `syscalls(2)`.
    pub name: &'static str,
    pub x86_64: Option<u32>,
    /// Number on aarch64; `None` for old calls that have been replaced by newer ones and that aarch64 lacks.
    pub aarch64: Option<u32>,
}

impl Call {
    pub const fn number(&self, arch: Arch) -> Option<u32> {
        match arch {
            Arch::X86_64 => self.x86_64,
            Arch::Aarch64 => self.aarch64,
        }
    }
}

/// Number of the newest examined call: `file_setattr` of Linux 6.17. Programs get no later call until somebody has
/// examined it and raised this number.
pub const NEWEST: u32 = 469;

macro_rules! number {
    (-) => {
        None
    };
    ($number:literal) => {
        Some($number)
    };
}

macro_rules! calls {
    ($($constant:ident $name:ident $x86_64:tt $aarch64:tt;)*) => {
        $(
            #[allow(missing_docs, reason = "each is the call of its name")]
            pub const $constant: Call = Call {
                name: stringify!($name),
                x86_64: number!($x86_64),
                aarch64: number!($aarch64),
            };
        )*

        pub const ALL: &[Call] = &[$($constant),*];
    };
}

calls! {
    ACCEPT accept 43 202;
    ACCEPT4 accept4 288 242;
    ACCESS access 21 -;
    ACCT acct 163 89;
    ADD_KEY add_key 248 217;
    ADJTIMEX adjtimex 159 171;
    BPF bpf 321 280;
    CHMOD chmod 90 -;
    CHOWN chown 92 -;
    CHROOT chroot 161 51;
    CLOCK_ADJTIME clock_adjtime 305 266;
    CLOCK_SETTIME clock_settime 227 112;
    CLONE clone 56 220;
    CLONE3 clone3 435 435;
    CONNECT connect 42 203;
    CREAT creat 85 -;
    DELETE_MODULE delete_module 176 106;
    EXECVE execve 59 221;
    EXECVEAT execveat 322 281;
    FACCESSAT faccessat 269 48;
    FACCESSAT2 faccessat2 439 439;
    FANOTIFY_INIT fanotify_init 300 262;
    FCHMOD fchmod 91 52;
    FCHMODAT fchmodat 268 53;
    FCHMODAT2 fchmodat2 452 452;
    FCHOWN fchown 93 55;
    FCHOWNAT fchownat 260 54;
    FCNTL fcntl 72 25;
    FILE_SETATTR file_setattr 469 469;
    FINIT_MODULE finit_module 313 273;
    FREMOVEXATTR fremovexattr 199 16;
    FSCONFIG fsconfig 431 431;
    FSETXATTR fsetxattr 190 7;
    FSMOUNT fsmount 432 432;
    FSOPEN fsopen 430 430;
    FSPICK fspick 433 433;
    FUTIMESAT futimesat 261 -;
    INIT_MODULE init_module 175 105;
    IO_URING_ENTER io_uring_enter 426 426;
    IO_URING_REGISTER io_uring_register 427 427;
    IO_URING_SETUP io_uring_setup 425 425;
    IOCTL ioctl 16 29;
    IOPERM ioperm 173 -;
    IOPL iopl 172 -;
    KCMP kcmp 312 272;
    KEXEC_FILE_LOAD kexec_file_load 320 294;
    KEXEC_LOAD kexec_load 246 104;
    KEYCTL keyctl 250 219;
    LCHOWN lchown 94 -;
    LISTEN listen 50 201;
    LOOKUP_DCOOKIE lookup_dcookie 212 18;
    LREMOVEXATTR lremovexattr 198 15;
    LSETXATTR lsetxattr 189 6;
    LSM_SET_SELF_ATTR lsm_set_self_attr 460 460;
    MBIND mbind 237 235;
    MIGRATE_PAGES migrate_pages 256 238;
    MKNOD mknod 133 -;
    MKNODAT mknodat 259 33;
    MODIFY_LDT modify_ldt 154 -;
    MOUNT mount 165 40;
    MOUNT_SETATTR mount_setattr 442 442;
    MOVE_MOUNT move_mount 429 429;
    MOVE_PAGES move_pages 279 239;
    MQ_OPEN mq_open 240 180;
    MQ_UNLINK mq_unlink 241 181;
    MSGCTL msgctl 71 187;
    MSGGET msgget 68 186;
    MSGRCV msgrcv 70 188;
    MSGSND msgsnd 69 189;
    NFSSERVCTL nfsservctl 180 42;
    OPEN open 2 -;
    OPEN_BY_HANDLE_AT open_by_handle_at 304 265;
    OPEN_TREE open_tree 428 428;
    OPEN_TREE_ATTR open_tree_attr 467 467;
    OPENAT openat 257 56;
    OPENAT2 openat2 437 437;
    PERF_EVENT_OPEN perf_event_open 298 241;
    PERSONALITY personality 135 92;
    PIDFD_GETFD pidfd_getfd 438 438;
    PIVOT_ROOT pivot_root 155 41;
    PRCTL prctl 157 167;
    PRLIMIT64 prlimit64 302 261;
    PROCESS_MADVISE process_madvise 440 440;
    PROCESS_VM_READV process_vm_readv 310 270;
    PROCESS_VM_WRITEV process_vm_writev 311 271;
    QUOTACTL quotactl 179 60;
    QUOTACTL_FD quotactl_fd 443 443;
    REBOOT reboot 169 142;
    REMOVEXATTR removexattr 197 14;
    REMOVEXATTRAT removexattrat 466 466;
    REQUEST_KEY request_key 249 218;
    SEMCTL semctl 66 191;
    SEMGET semget 64 190;
    SEMOP semop 65 193;
    SEMTIMEDOP semtimedop 220 192;
    SET_MEMPOLICY_HOME_NODE set_mempolicy_home_node 450 450;
    SETDOMAINNAME setdomainname 171 162;
    SETHOSTNAME sethostname 170 161;
    SETNS setns 308 268;
    SETSOCKOPT setsockopt 54 208;
    SETTIMEOFDAY settimeofday 164 170;
    SETXATTR setxattr 188 5;
    SETXATTRAT setxattrat 463 463;
    SHMAT shmat 30 196;
    SHMCTL shmctl 31 195;
    SHMGET shmget 29 194;
    SOCKET socket 41 198;
    SOCKETPAIR socketpair 53 199;
    SWAPOFF swapoff 168 225;
    SWAPON swapon 167 224;
    SYSLOG syslog 103 116;
    TRUNCATE truncate 76 45;
    UMOUNT2 umount2 166 39;
    UNSHARE unshare 272 97;
    USELIB uselib 134 -;
    USERFAULTFD userfaultfd 323 282;
    UTIME utime 132 -;
    UTIMENSAT utimensat 280 88;
    UTIMES utimes 235 -;
    VHANGUP vhangup 153 58;
}
