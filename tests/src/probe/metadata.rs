//! Changes of a file's metadata: mode, owner, times, attributes and flags.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::ptr;

use nix::libc::{self, c_int, c_long};

use super::{Act, Arguments, check, done};

const NAME: &std::ffi::CStr = c"user.adversary";

/// Number of fchmodat2(2), which the libc crate lacks for some targets.
const SYS_FCHMODAT2: c_long = 452;

// `FS_IOC_GETFLAGS` and `FS_IOC_SETFLAGS` for 64 bits, and the flag that only dump(8) uses (linux/fs.h).
const GET_FLAGS: libc::Ioctl = 0x8008_6601_u32 as _;
const SET_FLAGS: libc::Ioctl = 0x4008_6602;
const NO_DUMP: c_int = 0x40;

pub(super) const ACTS: &[(&str, Act)] = &[
    ("chmod", |a| fs::set_permissions(a.os(0)?, fs::Permissions::from_mode(0o640)).map(|()| Vec::new())),
    ("fchmod", |a| {
        File::open(a.os(0)?)?.set_permissions(fs::Permissions::from_mode(0o640)).map(|()| Vec::new())
    }),
    ("fchmodat2", |a| {
        let path = a.path(0)?;
        // SAFETY: a C string and integers.
        done(unsafe { libc::syscall(SYS_FCHMODAT2, libc::AT_FDCWD, path.as_ptr(), 0o640, 0) })
    }),
    ("chown", |a| {
        // SAFETY: the path is a C string. The call sets the owner that the file has already, which an owner may always
        // do.
        done(unsafe { libc::chown(a.path(0)?.as_ptr(), a.number(1)?, a.number(2)?) })
    }),
    ("lchown", |a| {
        // SAFETY: as above.
        done(unsafe { libc::lchown(a.path(0)?.as_ptr(), a.number(1)?, a.number(2)?) })
    }),
    ("fchown", |a| {
        let file = File::open(a.os(0)?)?;
        // SAFETY: integers, on a descriptor of our own.
        done(unsafe { libc::fchown(file.as_raw_fd(), a.number(1)?, a.number(2)?) })
    }),
    ("utimensat", |a| {
        let times = [libc::timespec { tv_sec: 7, tv_nsec: 0 }; 2];
        // SAFETY: a C string, and two times.
        done(unsafe { libc::utimensat(libc::AT_FDCWD, a.path(0)?.as_ptr(), times.as_ptr(), 0) })
    }),
    ("futimens", |a| {
        let file = File::open(a.os(0)?)?;
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).map(|()| Vec::new())
    }),
    ("setxattr", |a| {
        let path = a.path(0)?;
        // SAFETY: both names are C strings; the value is valid for its length.
        done(unsafe { libc::setxattr(path.as_ptr(), NAME.as_ptr(), c"x".as_ptr().cast(), 1, 0) })
    }),
    ("fsetxattr", |a| {
        let file = File::open(a.os(0)?)?;
        // SAFETY: as above, on a descriptor of our own.
        done(unsafe { libc::fsetxattr(file.as_raw_fd(), NAME.as_ptr(), c"x".as_ptr().cast(), 1, 0) })
    }),
    ("removexattr", |a| {
        let path = a.path(0)?;
        // SAFETY: C strings.
        done(unsafe { libc::removexattr(path.as_ptr(), c"user.victim".as_ptr()) })
    }),
    ("file-flags", |a| {
        let file = File::open(a.os(0)?)?;
        let mut flags: c_int = 0;
        // SAFETY: both requests take a pointer to an int, whatever their number says; ioctl_iflags(2).
        unsafe {
            check(libc::ioctl(file.as_raw_fd(), GET_FLAGS, &raw mut flags))?;
            flags ^= NO_DUMP;
            done(libc::ioctl(file.as_raw_fd(), SET_FLAGS, &raw const flags))
        }
    }),
    ("set-uid", |a| fs::set_permissions(a.os(0)?, fs::Permissions::from_mode(0o4755)).map(|()| Vec::new())),
    ("set-uid-open", |a| create(a, 0o4755)),
    ("set-gid-open", |a| create(a, 0o2755)),
    ("set-gid", |a| fs::set_permissions(a.os(0)?, fs::Permissions::from_mode(0o2755)).map(|()| Vec::new())),
    ("set-uid-mknod", |a| {
        // SAFETY: the path is a C string; a regular file.
        done(unsafe { libc::mknod(a.path(0)?.as_ptr(), libc::S_IFREG | 0o4755, 0) })
    }),
    ("inotify", |a| {
        // SAFETY: integers and a C string.
        unsafe {
            let watcher = libc::inotify_init();
            check(watcher)?;
            done(libc::inotify_add_watch(watcher, a.path(0)?.as_ptr(), libc::IN_ALL_EVENTS))
        }
    }),
    ("size", |a| Ok(fs::symlink_metadata(a.os(0)?)?.len().to_string().into_bytes())),
    ("link-target", |a| Ok(fs::read_link(a.os(0)?)?.into_os_string().into_encoded_bytes())),
    ("getxattr", |a| {
        let (path, mut value) = (a.path(0)?, vec![0_u8; 256]);
        let room = value.len();
        // SAFETY: C strings; the value has that much room.
        let length = unsafe {
            libc::getxattr(path.as_ptr(), c"user.victim".as_ptr(), value.as_mut_ptr().cast(), room)
        };
        value.truncate(usize::try_from(check(length as i64)?).unwrap_or(0));
        Ok(value)
    }),
    ("handle-read", handle_read),
];

fn create(a: &Arguments, mode: libc::mode_t) -> io::Result<Vec<u8>> {
    // SAFETY: the path is a C string; the umask is this process's own.
    done(unsafe {
        libc::umask(0);
        libc::open(a.path(0)?.as_ptr(), libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, mode)
    })
}

/// Opens a file by its handle instead of a path (`open_by_handle_at(2)`, the "shocker" exploit of 2014).
fn handle_read(a: &Arguments) -> io::Result<Vec<u8>> {
    /// File handle (`struct file_handle`) with room for its bytes.
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: c_int,
        room: [u8; 128],
    }
    let mut handle = Handle { bytes: 128, kind: 0, room: [0; 128] };
    let (path, mut mount) = (a.path(0)?, 0);
    let here = libc::AT_FDCWD;
    let whole = ptr::from_mut(&mut handle);
    // SAFETY: the handle has the room that it says; the other pointers are valid.
    let opened = unsafe {
        check(libc::syscall(libc::SYS_name_to_handle_at, here, path.as_ptr(), whole, &raw mut mount, 0))?;
        let root = libc::open(c"/".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY);
        libc::syscall(libc::SYS_open_by_handle_at, root, whole, libc::O_RDONLY)
    };
    fs::read(format!("/proc/self/fd/{}", check(opened)?))
}
