//! Mount calls of Linux 5.2 to 5.12 that use descriptors. Neither nix nor libc have functions for them.

#![expect(
    unsafe_code,
    reason = "the mount calls take C strings and structures by address; new descriptors get their \
              owner here"
)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr;

use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::libc::{self, c_int, c_uint};
use nix::sys::stat::Mode;

// Commands of fsconfig(2) (`enum fsconfig_command` of linux/mount.h).
const FSCONFIG_SET_STRING: c_uint = 1;
const FSCONFIG_CMD_CREATE: c_uint = 6;

#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes(u64);

impl Attributes {
    pub(super) const READ_ONLY: Self =
        Self(libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV);
    pub(super) const WRITABLE: Self = Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV);
    pub(super) const DEVICES: Self = Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC);
    pub(super) const DATA: Self = Self(Self::READ_ONLY.0 | libc::MOUNT_ATTR_NOEXEC);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Mount,
    Tree,
}

impl Reach {
    const fn flag(self) -> c_uint {
        match self {
            Self::Mount => 0,
            Self::Tree => libc::AT_RECURSIVE.cast_unsigned(),
        }
    }
}

/// Creates a file system. Its mount is returned, and is not attached yet.
pub(super) fn new(
    kind: &CStr,
    options: &[(&CStr, &CStr)],
    Attributes(attributes): Attributes,
) -> io::Result<OwnedFd> {
    // SAFETY: the kind is a C string.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), libc::FSOPEN_CLOEXEC) })?;
    for (name, value) in options {
        configure(context.as_fd(), FSCONFIG_SET_STRING, name.as_ptr(), value.as_ptr())?;
    }
    configure(context.as_fd(), FSCONFIG_CMD_CREATE, ptr::null(), ptr::null())?;
    // SAFETY: a descriptor and flags.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), libc::FSMOUNT_CLOEXEC, attributes) })
}

fn configure(
    context: BorrowedFd<'_>,
    command: c_uint,
    key: *const libc::c_char,
    value: *const libc::c_char,
) -> io::Result<()> {
    // SAFETY: key and value are C strings, or null where the command takes none.
    done(unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), command, key, value, 0) })
}

/// Opens a path with `O_PATH`; a final link is opened itself. Fails if a directory in the path is a link.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(openat2(AT_FDCWD, path, how)?)
}

pub(super) fn open_in(directory: BorrowedFd<'_>, name: &Path) -> io::Result<OwnedFd> {
    Ok(openat(directory, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?)
}

/// Copies a mount. The copy is not attached yet.
pub(super) fn copy(place: BorrowedFd<'_>, reach: Reach) -> io::Result<OwnedFd> {
    let flags =
        libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_EMPTY_PATH.cast_unsigned() | reach.flag();
    // SAFETY: a descriptor, an empty C string, and flags.
    owned(unsafe { libc::syscall(libc::SYS_open_tree, place.as_raw_fd(), c"".as_ptr(), flags) })
}

pub(super) fn restrict(
    mount: BorrowedFd<'_>,
    Attributes(attributes): Attributes,
    reach: Reach,
) -> io::Result<()> {
    set(mount, reach, libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 })
}

/// Makes mounts private, so that later mounts do not propagate to other namespaces.
pub(super) fn make_private(root: BorrowedFd<'_>) -> io::Result<()> {
    let propagation = libc::MS_PRIVATE;
    set(root, Reach::Tree, libc::mount_attr { attr_set: 0, attr_clr: 0, propagation, userns_fd: 0 })
}

fn set(mount: BorrowedFd<'_>, reach: Reach, attributes: libc::mount_attr) -> io::Result<()> {
    let flags = libc::AT_EMPTY_PATH.cast_unsigned() | reach.flag();
    // SAFETY: an empty C string, and a structure with its size.
    done(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
}

/// Calls `act`, which opens a path and mounts there. Repeats the call after `ENOENT`, since the file may have been
/// replaced between opening and mounting.
pub(super) fn while_it_stands<T>(act: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let is_gone =
        |done: &io::Result<T>| matches!(done, Err(error) if error.raw_os_error() == Some(libc::ENOENT));
    (0..REMOVALS).map(|_| act()).find(|done| !is_gone(done)).unwrap_or_else(&act)
}

/// Maximum number of repeated calls.
const REMOVALS: u32 = 50;

pub(super) fn attach(mount: BorrowedFd<'_>, place: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: two descriptors, empty C strings, and flags.
    done(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mount.as_raw_fd(),
            c"".as_ptr(),
            place.as_raw_fd(),
            c"".as_ptr(),
            flags,
        )
    })
}

fn done(answer: libc::c_long) -> io::Result<()> {
    crate::system::check(answer)
}

fn owned(answer: libc::c_long) -> io::Result<OwnedFd> {
    done(answer)?;
    let descriptor = c_int::try_from(answer).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
    // SAFETY: the kernel has just made the descriptor for this call, so that nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

    #[test]
    fn what_is_removed_under_a_mount_is_looked_for_again() {
        for (removals, opened) in
            [(0, Some(1)), (1, Some(2)), (REMOVALS, Some(REMOVALS + 1)), (u32::MAX, None)]
        {
            let tries = std::cell::Cell::new(0);
            let done = while_it_stands(|| {
                tries.set(tries.get() + 1);
                if tries.get() > removals {
                    Ok(tries.get())
                } else {
                    Err(io::Error::from_raw_os_error(libc::ENOENT))
                }
            });
            assert_eq!(done.ok(), opened, "{removals}");
        }
        let tries = std::cell::Cell::new(0);
        let other = while_it_stands::<()>(|| {
            tries.set(tries.get() + 1);
            Err(io::Error::from(Errno::EBUSY))
        });
        assert_eq!((other.unwrap_err().raw_os_error(), tries.get()), (Some(libc::EBUSY), 1));
    }
}
