//! Tests that compare call numbers and constants with the libc crate for this architecture, its source code for the
//! other one, and the kernel's header.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::libc::{self, c_int};

use super::super::rules::{Arch, calls, constants};
use crate::system::ioctl_command;

macro_rules! compiled {
    ($($name:ident)*) => {
        [$((stringify!($name), libc::$name)),*]
    };
}

#[test]
fn numbers_are_those_that_this_architecture_is_compiled_with() {
    let common = compiled!(
        SYS_accept SYS_accept4 SYS_connect SYS_listen SYS_acct SYS_add_key SYS_adjtimex SYS_bpf SYS_chroot SYS_clock_adjtime SYS_clock_settime SYS_clone SYS_clone3
        SYS_delete_module SYS_execve SYS_execveat SYS_faccessat SYS_faccessat2 SYS_fanotify_init SYS_fchmod SYS_fchmodat SYS_fchown SYS_fchownat
        SYS_fcntl SYS_finit_module SYS_fremovexattr SYS_fsconfig SYS_fsetxattr SYS_fsmount SYS_fsopen SYS_fspick SYS_init_module
        SYS_io_uring_enter SYS_io_uring_register SYS_io_uring_setup SYS_ioctl SYS_kcmp SYS_kexec_file_load
        SYS_kexec_load SYS_keyctl SYS_lookup_dcookie SYS_lremovexattr SYS_lsetxattr SYS_mbind SYS_migrate_pages
        SYS_mknodat SYS_mount SYS_mount_setattr SYS_move_mount SYS_move_pages SYS_mq_open SYS_mq_unlink
        SYS_msgctl SYS_msgget SYS_msgrcv SYS_msgsnd SYS_nfsservctl SYS_open_by_handle_at SYS_open_tree SYS_openat
        SYS_openat2 SYS_perf_event_open SYS_personality SYS_pidfd_getfd SYS_pivot_root SYS_prctl SYS_prlimit64
        SYS_process_madvise SYS_process_vm_readv SYS_process_vm_writev SYS_quotactl SYS_quotactl_fd SYS_reboot
        SYS_removexattr SYS_request_key SYS_semctl SYS_semget SYS_semop SYS_semtimedop SYS_set_mempolicy_home_node
        SYS_setdomainname SYS_sethostname SYS_setns SYS_setsockopt SYS_settimeofday SYS_setxattr SYS_shmat SYS_shmctl
        SYS_shmget SYS_socket SYS_socketpair SYS_swapoff SYS_swapon SYS_syslog SYS_truncate SYS_umount2 SYS_unshare
        SYS_userfaultfd SYS_utimensat SYS_vhangup
    );
    let mut compiled: BTreeMap<&str, libc::c_long> = common.into();
    #[cfg(target_arch = "x86_64")]
    compiled.extend(compiled!(
        SYS_access SYS_chmod SYS_chown SYS_creat SYS_fchmodat2 SYS_futimesat SYS_ioperm SYS_iopl SYS_lchown SYS_mknod
        SYS_modify_ldt SYS_open SYS_uselib SYS_utime SYS_utimes
    ));
    let arch = Arch::ALL.into_iter().find(|arch| arch.name() == std::env::consts::ARCH).unwrap();
    for call in calls::ALL {
        let Some(number) = call.number(arch) else { continue };
        match compiled.remove(format!("SYS_{}", call.name).as_str()) {
            Some(compiled) => assert_eq!(libc::c_long::from(number), compiled, "{}", call.name),
            None => assert!(number > 450, "libc is not asked for {}", call.name),
        }
    }
    assert_eq!(compiled, BTreeMap::new(), "no rule names them");
}

fn of_libc(arch: Arch) -> BTreeMap<String, u32> {
    let b64 = libc_source().join("src/unix/linux_like/linux/gnu/b64");
    let file = match arch {
        Arch::X86_64 => b64.join("x86_64/not_x32.rs"),
        Arch::Aarch64 => b64.join("aarch64/lp64.rs"),
    };
    let text =
        [file.clone(), file.with_file_name("mod.rs")].map(|file| std::fs::read_to_string(file).unwrap());
    let constant = |line: &str| {
        let (name, value) = line.trim().strip_prefix("pub const SYS_")?.split_once(": c_long = ")?;
        Some((name.to_owned(), value.strip_suffix(';')?.parse().ok()?))
    };
    text.iter().flat_map(|text| text.lines()).filter_map(constant).collect()
}

fn libc_source() -> PathBuf {
    // Without a platform cargo needs the sources of all of them.
    let platform = format!("--filter-platform={}-unknown-linux-gnu", std::env::consts::ARCH);
    let arguments = ["metadata", "--format-version=1", "--offline", "--locked", &platform];
    let directory = env!("CARGO_MANIFEST_DIR");
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let libc = packages.iter().find(|package| package["name"] == "libc").unwrap();
    Path::new(libc["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned()
}

#[test]
fn numbers_are_those_of_the_libc_source_for_both_architectures() {
    for arch in Arch::ALL {
        let of_libc = of_libc(arch);
        assert!(of_libc.len() > 250, "{} calls read for {arch:?}", of_libc.len());
        for call in calls::ALL {
            // libc 0.2 has neither the calls from 463 on nor, for aarch64, fchmodat2.
            let number = call.number(arch);
            if number.is_none_or(|number| number < 452) {
                assert_eq!(number, of_libc.get(call.name).copied(), "{} on {arch:?}", call.name);
            }
        }
    }
}

/// Compares the numbers of aarch64 with their source, `asm-generic/unistd.h`, which all kernel headers include.
#[test]
fn numbers_of_aarch64_are_those_of_the_generic_header() {
    let Ok(header) = std::fs::read_to_string("/usr/include/asm-generic/unistd.h") else {
        eprintln!("skipped: not on this machine: /usr/include/asm-generic/unistd.h");
        return;
    };
    let define = |line: &str| {
        let mut words = line.strip_prefix("#define __NR")?.split_whitespace();
        // __NR3264_ marks calls that take 64-bit offsets on 32-bit machines.
        let name = words.next()?.strip_prefix("3264").map_or_else(|| line.get(13..), |_| line.get(17..))?;
        Some((name.split_whitespace().next()?.to_owned(), words.next()?.parse().ok()?))
    };
    let defines: BTreeMap<String, u32> = header.lines().filter_map(define).collect();
    let newest = defines.values().copied().max().unwrap();
    assert!(defines.len() > 250, "{} calls in the header", defines.len());
    for call in calls::ALL {
        if call.aarch64.is_none_or(|number| number <= newest) {
            assert_eq!(call.aarch64, defines.get(call.name).copied(), "{}", call.name);
        }
    }
}

#[test]
fn nothing_is_named_beyond_the_newest_call_that_was_looked_at() {
    for call in calls::ALL {
        for number in Arch::ALL.into_iter().filter_map(|arch| call.number(arch)) {
            assert!(number <= calls::NEWEST, "{call:?}");
        }
        assert!(call.x86_64.is_some(), "{call:?}");
    }
}

#[test]
fn constants_are_those_of_libc() {
    let int = |value: c_int| value.cast_unsigned();
    for (ours, theirs) in [
        (constants::EPERM, int(libc::EPERM)),
        (constants::ENOSYS, int(libc::ENOSYS)),
        (constants::CLONE_NEWNS, int(libc::CLONE_NEWNS)),
        (constants::CLONE_NEWCGROUP, int(libc::CLONE_NEWCGROUP)),
        (constants::CLONE_NEWUTS, int(libc::CLONE_NEWUTS)),
        (constants::CLONE_NEWIPC, int(libc::CLONE_NEWIPC)),
        (constants::CLONE_NEWUSER, int(libc::CLONE_NEWUSER)),
        (constants::CLONE_NEWPID, int(libc::CLONE_NEWPID)),
        (constants::CLONE_NEWNET, int(libc::CLONE_NEWNET)),
        (constants::O_ACCMODE, int(libc::O_ACCMODE)),
        (constants::O_CREAT, int(libc::O_CREAT)),
        (constants::O_TRUNC, int(libc::O_TRUNC)),
        (constants::O_TMPFILE_ALONE, int(libc::O_TMPFILE & !libc::O_DIRECTORY)),
        (constants::F_SETLEASE, int(libc::F_SETLEASE)),
        (constants::F_NOTIFY, int(libc::F_NOTIFY)),
        (constants::S_ISUID, libc::S_ISUID),
        (constants::S_ISGID, libc::S_ISGID),
        (constants::AF_UNIX, int(libc::AF_UNIX)),
        (constants::AF_INET, int(libc::AF_INET)),
        (constants::AF_INET6, int(libc::AF_INET6)),
        (constants::AF_NETLINK, int(libc::AF_NETLINK)),
        (constants::SOCK_DGRAM, int(libc::SOCK_DGRAM)),
        (constants::SOCK_RAW, int(libc::SOCK_RAW)),
        (constants::SOCK_RDM, int(libc::SOCK_RDM)),
        (constants::SOCK_SEQPACKET, int(libc::SOCK_SEQPACKET)),
        (constants::SOCK_DCCP, int(libc::SOCK_DCCP)),
        (constants::NETLINK_ROUTE, int(libc::NETLINK_ROUTE)),
        (constants::IPPROTO_TCP, int(libc::IPPROTO_TCP)),
        (constants::IPPROTO_UDP, int(libc::IPPROTO_UDP)),
        (constants::TCP_ULP, int(libc::TCP_ULP)),
        (constants::IPPROTO_IP, int(libc::IPPROTO_IP)),
        (constants::IPPROTO_IPV6, int(libc::IPPROTO_IPV6)),
        (constants::IP_OPTIONS, int(libc::IP_OPTIONS)),
        (constants::TCP_SYNCNT, int(libc::TCP_SYNCNT)),
        (constants::TCP_FASTOPEN_CONNECT, int(libc::TCP_FASTOPEN_CONNECT)),
        (constants::IP_ADD_MEMBERSHIP, int(libc::IP_ADD_MEMBERSHIP)),
        (constants::IP_DROP_MEMBERSHIP, int(libc::IP_DROP_MEMBERSHIP)),
        (constants::IP_DROP_SOURCE_MEMBERSHIP, int(libc::IP_DROP_SOURCE_MEMBERSHIP)),
        (constants::IPV6_JOIN_GROUP, int(libc::IPV6_ADD_MEMBERSHIP)),
        (constants::IPV6_JOIN_ANYCAST, int(libc::IPV6_JOIN_ANYCAST)),
        (constants::IPV6_LEAVE_ANYCAST, int(libc::IPV6_LEAVE_ANYCAST)),
        (constants::SOL_SOCKET, int(libc::SOL_SOCKET)),
        (constants::SO_ATTACH_REUSEPORT_CBPF, int(libc::SO_ATTACH_REUSEPORT_CBPF)),
        (constants::SO_ATTACH_REUSEPORT_EBPF, int(libc::SO_ATTACH_REUSEPORT_EBPF)),
        (constants::IPV6_ADDRFORM, int(libc::IPV6_ADDRFORM)),
        (constants::IPV6_2292RTHDR, int(libc::IPV6_2292RTHDR)),
        (constants::IPV6_2292PKTOPTIONS, int(libc::IPV6_2292PKTOPTIONS)),
        (constants::IPV6_RTHDR, int(libc::IPV6_RTHDR)),
        (constants::PR_SET_MM, int(libc::PR_SET_MM)),
    ] {
        assert_eq!(ours, theirs);
    }
    for (ours, theirs) in [
        (constants::TIOCSTI, libc::TIOCSTI),
        (constants::TIOCLINUX, libc::TIOCLINUX),
        (constants::TIOCSETD, 0x5423),
        (constants::FS_IOC_SETFLAGS, libc::FS_IOC_SETFLAGS),
        (constants::FS_IOC_SETVERSION, libc::FS_IOC_SETVERSION),
    ] {
        assert_eq!(ioctl_command(ours), theirs);
    }
}

/// Returns a command number of ioctl(2), as `_IOW` and similar macros do (`asm-generic/ioctl.h`).
const fn command(direction: u32, kind: u8, number: u32, size: u32) -> u32 {
    direction << 30 | size << 16 | (kind as u32) << 8 | number
}

#[test]
fn commands_are_made_of_what_the_headers_say() {
    const WRITE: u32 = 1;
    const READ: u32 = 2;
    // btrfs.h: struct btrfs_ioctl_vol_args and _v2 have 4096 bytes.
    let btrfs = |number| command(WRITE, 0x94, number, 4096);
    for (ours, made) in [
        (constants::EXT4_IOC_SETVERSION, command(WRITE, b'f', 4, 8)),
        (constants::FS_IOC_FSSETXATTR, command(WRITE, b'X', 32, 28)),
        (constants::FS_IOC_ENABLE_VERITY, command(WRITE, b'f', 133, 128)),
        (constants::FS_IOC_SET_ENCRYPTION_POLICY, command(READ, b'f', 19, 12)),
        (constants::FS_IOC_ADD_ENCRYPTION_KEY, command(READ | WRITE, b'f', 23, 80)),
        (constants::FS_IOC_REMOVE_ENCRYPTION_KEY, command(READ | WRITE, b'f', 24, 64)),
        (constants::BTRFS_IOC_SNAP_CREATE, btrfs(1)),
        (constants::BTRFS_IOC_SUBVOL_CREATE, btrfs(14)),
        (constants::BTRFS_IOC_SNAP_DESTROY, btrfs(15)),
        (constants::BTRFS_IOC_SNAP_CREATE_V2, btrfs(23)),
        (constants::BTRFS_IOC_SUBVOL_CREATE_V2, btrfs(24)),
        (constants::BTRFS_IOC_SUBVOL_SETFLAGS, command(WRITE, 0x94, 26, 8)),
        (constants::BTRFS_IOC_SNAP_DESTROY_V2, btrfs(63)),
    ] {
        assert_eq!(ours, made, "{ours:#x}");
    }
}
