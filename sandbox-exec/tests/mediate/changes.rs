use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null;

use nix::libc::{self, c_int, c_long};

pub(crate) type Answers = Vec<(&'static str, c_int)>;

const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const FILE_SETATTR: c_long = 469;
// `linux/fs.h` and `linux/msdos_fs.h`.
const GET_FLAGS: libc::Ioctl = 0x8008_6601_u32 as _;
const SET_FLAGS: libc::Ioctl = 0x4008_6602;
const SET_VERSION: libc::Ioctl = 0x4008_7602;
const SET_VERSION_OF_EXT4: libc::Ioctl = 0x4008_6604;
const GET_MORE_FLAGS: libc::Ioctl = 0x801C_581F_u32 as _;
const SET_MORE_FLAGS: libc::Ioctl = 0x401C_5820;
const SET_FAT_ATTRIBUTES: libc::Ioctl = 0x4004_7211;
// Flag that only dump(8) reads, by both interfaces.
const NO_DUMP: u32 = 0x40;
const NO_DUMP_MORE: u32 = 0x80;

const NAME: &std::ffi::CStr = c"user.changed";
const VALUE: &[u8] = b"value";
pub(crate) const TIMES: [libc::timespec; 2] = [libc::timespec { tv_sec: 7, tv_nsec: 0 }; 2];
const COARSE: [libc::timeval; 2] = [libc::timeval { tv_sec: 7, tv_usec: 0 }; 2];

/// Arguments of `setxattrat`: `struct xattr_args` (linux/xattr.h).
#[repr(C)]
struct Attribute {
    value: u64,
    size: u32,
    flags: u32,
}

pub(crate) fn outcome(answer: c_long) -> c_int {
    if answer < 0 { std::io::Error::last_os_error().raw_os_error().unwrap() } else { 0 }
}

pub(crate) fn c_path(path: impl AsRef<Path>) -> CString {
    CString::new(path.as_ref().as_os_str().as_bytes()).unwrap()
}

pub(crate) fn by_path(path: impl AsRef<Path>) -> Answers {
    let (path, here) = (c_path(path), libc::AT_FDCWD);
    let path = path.as_ptr();
    // SAFETY: integers.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let (value, size) = (VALUE.as_ptr().cast(), VALUE.len());
    let attribute = Attribute { value: VALUE.as_ptr().addr() as u64, size: 5, flags: 0 };
    let flags = [0_u64; 3];
    let times = libc::utimbuf { actime: 7, modtime: 7 };
    let name = NAME.as_ptr();
    // SAFETY: all strings end with a null byte, and all pointers are to values of the sizes that are passed.
    unsafe {
        vec![
            ("chmod", outcome(libc::syscall(libc::SYS_chmod, path, 0o640))),
            ("fchmodat", outcome(libc::syscall(libc::SYS_fchmodat, here, path, 0o600))),
            ("fchmodat2", outcome(libc::syscall(FCHMODAT2, here, path, 0o640, 0))),
            ("chown", outcome(libc::syscall(libc::SYS_chown, path, user, group))),
            ("lchown", outcome(libc::syscall(libc::SYS_lchown, path, user, group))),
            ("fchownat", outcome(libc::syscall(libc::SYS_fchownat, here, path, user, -1, 0))),
            ("utime", outcome(libc::syscall(libc::SYS_utime, path, &raw const times))),
            ("utimes", outcome(libc::syscall(libc::SYS_utimes, path, COARSE.as_ptr()))),
            ("futimesat", outcome(libc::syscall(libc::SYS_futimesat, here, path, COARSE.as_ptr()))),
            ("utimensat", outcome(libc::syscall(libc::SYS_utimensat, here, path, TIMES.as_ptr(), 0))),
            ("utimensat now", outcome(libc::syscall(libc::SYS_utimensat, here, path, 0, 0))),
            ("setxattr", outcome(libc::setxattr(path, name, value, size, 0).into())),
            ("removexattr", outcome(libc::removexattr(path, name).into())),
            ("lsetxattr", outcome(libc::lsetxattr(path, name, value, size, 0).into())),
            ("lremovexattr", outcome(libc::lremovexattr(path, name).into())),
            (
                "setxattrat",
                outcome(libc::syscall(SETXATTRAT, here, path, 0, name, &raw const attribute, 16_usize)),
            ),
            ("removexattrat", outcome(libc::syscall(REMOVEXATTRAT, here, path, 0, name))),
            ("file_setattr", outcome(libc::syscall(FILE_SETATTR, here, path, flags.as_ptr(), 24_usize, 0))),
        ]
    }
}

pub(crate) fn by_descriptor(file: &OwnedFd) -> Answers {
    let (file, empty, here) = (file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH);
    // SAFETY: integers.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let (name, value, size) = (NAME.as_ptr(), VALUE.as_ptr().cast(), VALUE.len());
    let times = TIMES.as_ptr();
    // SAFETY: all strings end with a null byte, and all pointers are to values of the sizes that are passed.
    let mut answers = unsafe {
        vec![
            ("fchmod", outcome(libc::fchmod(file, 0o640).into())),
            ("fchmodat2", outcome(libc::syscall(FCHMODAT2, file, empty, 0o600, here))),
            ("fchown", outcome(libc::fchown(file, user, group).into())),
            ("fchownat", outcome(libc::fchownat(file, empty, user, group, here).into())),
            ("futimens", outcome(libc::syscall(libc::SYS_utimensat, file, 0, times, 0))),
            ("utimensat", outcome(libc::syscall(libc::SYS_utimensat, file, empty, times, here))),
            ("futimesat", outcome(libc::syscall(libc::SYS_futimesat, file, 0, COARSE.as_ptr()))),
            ("fsetxattr", outcome(libc::fsetxattr(file, name, value, size, 0).into())),
            ("fremovexattr", outcome(libc::fremovexattr(file, name).into())),
            ("removexattrat", outcome(libc::syscall(REMOVEXATTRAT, file, null::<u8>(), here, name))),
        ]
    };
    answers.extend(flags(file));
    answers
}

fn flags(file: c_int) -> Answers {
    let (mut flags, mut more, version) = (0_u32, [0_u32; 7], 7_u32);
    // SAFETY: the kernel writes and reads an integer, or a structure of 28 bytes.
    unsafe {
        libc::ioctl(file, GET_FLAGS, &raw mut flags);
        libc::ioctl(file, GET_MORE_FLAGS, &raw mut more);
        flags ^= NO_DUMP;
        let set = outcome(libc::ioctl(file, SET_FLAGS, &raw const flags).into());
        more[0] ^= NO_DUMP_MORE;
        vec![
            ("FS_IOC_SETFLAGS", set),
            ("FS_IOC_FSSETXATTR", outcome(libc::ioctl(file, SET_MORE_FLAGS, &raw const more).into())),
            ("FS_IOC_SETVERSION", outcome(libc::ioctl(file, SET_VERSION, &raw const version).into())),
            (
                "EXT4_IOC_SETVERSION",
                outcome(libc::ioctl(file, SET_VERSION_OF_EXT4, &raw const version).into()),
            ),
            (
                "FAT_IOCTL_SET_ATTRIBUTES",
                outcome(libc::ioctl(file, SET_FAT_ATTRIBUTES, &raw const version).into()),
            ),
        ]
    }
}
