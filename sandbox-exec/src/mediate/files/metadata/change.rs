#![expect(unsafe_code, reason = "the calls take C strings and values by address")]

use std::ffi::CString;
use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::ptr;

use nix::errno::Errno;
use nix::libc::{self, c_char, c_int, c_uint, c_void, mode_t, timespec};
use nix::sys::stat::fstat;

use crate::mediate::files::tree::by_descriptor;
use crate::system::ioctl_command;

// `fchmodat2` (Linux 6.6) and `file_setattr` (6.17), which some libcs lack; equal on both architectures.
const SYS_FCHMODAT2: libc::c_long = 452;
const SYS_FILE_SETATTR: libc::c_long = 469;

#[derive(Clone, Debug)]
pub(super) enum Change {
    Mode(mode_t),
    /// User id and group id to set; an id of all ones leaves that of the file unchanged.
    Owner(libc::uid_t, libc::gid_t),
    /// Times of access and modification to set; `None` sets both to now.
    Times(Option<[timespec; 2]>),
    Attribute(CString, Vec<u8>, c_int),
    NoAttribute(CString),
    Flags(c_uint, Vec<u8>),
    FileAttributes(Vec<u8>),
}

impl Change {
    /// True if the change only sets times to now, which any user with write permission may do.
    pub(super) fn is_touch(&self) -> bool {
        match self {
            Self::Times(times) => {
                times.is_none_or(|times| times.iter().all(|time| time.tv_nsec == libc::UTIME_NOW))
            }
            _ => false,
        }
    }

    pub(super) fn make(&self, file: &OwnedFd) -> Result<(), Errno> {
        // By its descriptor in this process the path leads to the file itself, even to a symbolic link.
        let path = CString::new(by_descriptor(file)).map_err(|_| Errno::EINVAL)?;
        let path = path.as_ptr();
        let empty = c"".as_ptr();
        let number = file.as_raw_fd();
        // SAFETY: strings end with a null byte, and all pointers are to values that live longer than the
        // calls.
        let answer = unsafe {
            match self {
                Self::Mode(mode) if runs_as_another(file, *mode)? => return Err(Errno::EPERM),
                // An older kernel lacks the first call, and a container's profile may not know it.
                Self::Mode(mode) => {
                    match libc::syscall(SYS_FCHMODAT2, number, empty, *mode, libc::AT_EMPTY_PATH) {
                        -1 if matches!(Errno::last(), Errno::ENOSYS | Errno::EPERM) => {
                            libc::chmod(path, *mode)
                        }
                        -1 => -1,
                        _ => 0,
                    }
                }
                Self::Owner(user, group) => libc::fchownat(number, empty, *user, *group, libc::AT_EMPTY_PATH),
                Self::Times(times) => {
                    let times = times.as_ref().map_or(ptr::null(), |times| times.as_ptr());
                    libc::utimensat(number, empty, times, libc::AT_EMPTY_PATH)
                }
                Self::Attribute(name, value, flags) => set_attribute(path, name, value, *flags),
                Self::NoAttribute(name) => libc::removexattr(path, name.as_ptr()),
                Self::Flags(request, value) => return set_flags(file, *request, value),
                Self::FileAttributes(value) => {
                    let answer =
                        libc::syscall(SYS_FILE_SETATTR, libc::AT_FDCWD, path, value.as_ptr(), value.len(), 0);
                    return Errno::result(answer).map(drop);
                }
            }
        };
        Errno::result(answer).map(drop)
    }
}

/// True if a mode makes a file run as its owner or group. Not true for a directory, where the set-group-ID bit only
/// makes new files get its group: the files' owner could set that group anyway.
fn runs_as_another(file: &OwnedFd, mode: mode_t) -> Result<bool, Errno> {
    let is_directory = || Ok(fstat(file)?.st_mode & libc::S_IFMT == libc::S_IFDIR);
    Ok(mode & libc::S_ISUID != 0 || (mode & libc::S_ISGID != 0 && !is_directory()?))
}

/// Sets an extended attribute.
///
/// # Safety
///
/// The path must end with a null byte.
unsafe fn set_attribute(path: *const c_char, name: &CString, value: &[u8], flags: c_int) -> c_int {
    let start: *const c_void = value.as_ptr().cast();
    // SAFETY: the name ends with a null byte, and the value is valid for its length.
    unsafe { libc::setxattr(path, name.as_ptr(), start, value.len(), flags) }
}

/// Sets flags of a file. They cannot be set through an `O_PATH` descriptor, so the file is opened again. Only regular
/// files and directories have flags, and opening these has no side effects.
fn set_flags(file: &OwnedFd, request: c_uint, value: &[u8]) -> Result<(), Errno> {
    if !matches!(fstat(file)?.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR) {
        return Err(Errno::ENOTTY);
    }
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(by_descriptor(file));
    let opened = opened.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))?;
    // SAFETY: the kernel reads as many bytes as the request has, which is how many there are.
    let answer = unsafe { libc::ioctl(opened.as_raw_fd(), ioctl_command(request), value.as_ptr()) };
    Errno::result(answer).map(drop)
}
