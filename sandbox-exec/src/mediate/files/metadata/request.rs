//! Arguments of calls that change metadata. They are copied once, so that the performed request is the judged one.

use std::ffi::CString;

use nix::errno::Errno;
use nix::libc::{self, c_int, c_long, c_uint, timespec};

use super::change::Change;
use super::resolve::ResolvedPlace;
use crate::mediate::call::address::integer;
use crate::mediate::call::listener::Notification;
use crate::mediate::call::memory::Memory;
use crate::seccomp::rules::Arch;
use crate::seccomp::rules::calls::{self, Call};
use crate::seccomp::rules::constants::{
    EXT4_IOC_SETVERSION, FAT_IOCTL_SET_ATTRIBUTES, FS_IOC_FSSETXATTR, FS_IOC_SETFLAGS, FS_IOC_SETVERSION,
};

/// Calls that ask if a file is writable, with the index of the access mode, and a function that reads the path.
const QUESTIONS: [(Call, u32, Placing); 3] = [
    (calls::ACCESS, 1, |a| a.place(libc::AT_FDCWD, 0, 0)),
    (calls::FACCESSAT, 2, |a| a.place(a.number(0), 1, 0)),
    (calls::FACCESSAT2, 2, |a| a.place(a.number(0), 1, a.number(3) & !libc::AT_EACCESS)),
];

/// Calls that set a file's mode, with the index of the mode argument.
const MODES: [(Call, u32); 4] =
    [(calls::FCHMOD, 1), (calls::CHMOD, 1), (calls::FCHMODAT, 2), (calls::FCHMODAT2, 2)];

const ARCH: Arch = if cfg!(target_arch = "x86_64") { Arch::X86_64 } else { Arch::Aarch64 };

// Maximum sizes in bytes of a path, an attribute's name (both with null byte) and its value (linux/limits.h).
const PATH: usize = 4096;
const ATTRIBUTE: usize = 256;
const VALUE: usize = 65536;
// Minimum and maximum size of `struct file_attr` in bytes (`FILE_ATTR_SIZE_VER0` of linux/fs.h, and the kernel's).
const FILE_ATTRIBUTES: usize = 24;
const MOST_FILE_ATTRIBUTES: usize = 4096;
/// Size of `struct xattr_args` in bytes (linux/xattr.h): the pointer to the value, the value's length, and flags.
const ATTRIBUTE_ARGUMENTS: usize = 16;

const NO_FOLLOW: c_int = libc::AT_SYMLINK_NOFOLLOW;
const EMPTY: c_int = libc::AT_EMPTY_PATH;

/// Requests of `ioctl(2)` that change a file's flags or version, also through a descriptor opened for reading. Each has
/// the size in bytes that the kernel reads, which may differ from that in the request's number.
pub(in crate::mediate) const IOCTLS: [(c_uint, usize); 5] = [
    (FS_IOC_SETFLAGS, 4),
    (FS_IOC_SETVERSION, 4),
    (EXT4_IOC_SETVERSION, 4),
    (FS_IOC_FSSETXATTR, 28),
    (FAT_IOCTL_SET_ATTRIBUTES, 4),
];

#[derive(Debug)]
pub(super) enum MetadataRequest {
    Nothing,
    Change(ResolvedPlace, Change),
}

pub(super) struct MetadataArguments {
    pub(super) memory: Memory,
    pub(super) values: [u64; 6],
}

pub(super) type Reading = fn(&MetadataArguments) -> Asked;

/// Calls that change metadata, except `ioctl`, each with a function that reads its arguments; the most frequent first.
const CALLS: [(Call, Reading); 21] = [
    (calls::UTIMENSAT, utimensat),
    (calls::FCHMOD, |a| Ok(a.open(a.mode(1)))),
    (calls::CHMOD, |a| a.path(a.mode(1))),
    (calls::FCHMODAT, |a| a.path_at(0, a.mode(2))),
    (calls::FCHMODAT2, |a| a.path_at(a.number(3), a.mode(2))),
    (calls::FCHOWN, |a| Ok(a.open(a.owner(1)))),
    (calls::FCHOWNAT, |a| a.path_at(a.number(4), a.owner(2))),
    (calls::CHOWN, |a| a.path(a.owner(1))),
    (calls::LCHOWN, |a| a.link(a.owner(1))),
    (calls::FSETXATTR, |a| Ok(a.open(a.attribute()?))),
    (calls::SETXATTR, |a| a.path(a.attribute()?)),
    (calls::LSETXATTR, |a| a.link(a.attribute()?)),
    (calls::FREMOVEXATTR, |a| Ok(a.open(a.no_attribute(1)?))),
    (calls::REMOVEXATTR, |a| a.path(a.no_attribute(1)?)),
    (calls::LREMOVEXATTR, |a| a.link(a.no_attribute(1)?)),
    (calls::SETXATTRAT, |a| a.path_or_null_at(a.number(2), a.attribute_by_structure()?)),
    (calls::REMOVEXATTRAT, |a| a.path_or_null_at(a.number(2), a.no_attribute(3)?)),
    (calls::UTIME, utime),
    (calls::UTIMES, |a| a.path(Change::Times(a.times(1, microseconds)?))),
    (calls::FUTIMESAT, futimesat),
    (calls::FILE_SETATTR, |a| a.path_or_null_at(a.number(4), a.file_attributes()?)),
];

pub(in crate::mediate) fn numbers() -> impl Iterator<Item = u32> {
    CALLS.iter().filter_map(|(call, _)| call.number(ARCH))
}

pub(in crate::mediate) fn questions() -> impl Iterator<Item = (u32, u32)> {
    QUESTIONS.iter().filter_map(|(call, mode, _)| Some((call.number(ARCH)?, *mode)))
}

pub(in crate::mediate) fn modes() -> impl Iterator<Item = (u32, u32)> {
    MODES.iter().filter_map(|(call, mode)| Some((call.number(ARCH)?, *mode)))
}

pub(super) fn question(notification: &Notification) -> Option<Placing> {
    let is =
        |named: &Call| named.number(ARCH).is_some_and(|number| c_long::from(number) == notification.call);
    QUESTIONS.iter().find(|(named, ..)| is(named)).map(|(_, _, question)| *question)
}

pub(super) fn reading(notification: &Notification) -> Option<Reading> {
    let Notification { call, arguments, .. } = *notification;
    if call == libc::SYS_ioctl {
        let request = integer(arguments[1]).cast_unsigned();
        return IOCTLS.iter().any(|(named, _)| *named == request).then_some(ioctl as Reading);
    }
    let is = |named: &Call| named.number(ARCH).is_some_and(|number| c_long::from(number) == call);
    CALLS.iter().find(|(named, _)| is(named)).map(|(_, reading)| *reading)
}

impl MetadataArguments {
    fn number(&self, index: usize) -> c_int {
        integer(self.values[index])
    }

    fn open(&self, change: Change) -> MetadataRequest {
        MetadataRequest::Change(ResolvedPlace::Open(self.number(0)), change)
    }

    fn path(&self, change: Change) -> Asked {
        self.lookup(libc::AT_FDCWD, 0, 0, change)
    }

    fn link(&self, change: Change) -> Asked {
        self.lookup(libc::AT_FDCWD, 0, NO_FOLLOW, change)
    }

    fn path_at(&self, flags: c_int, change: Change) -> Asked {
        self.lookup(self.number(0), 1, flags, change)
    }

    /// Reads a call whose path may be null. With flags that allow an empty path, null counts as an empty one.
    fn path_or_null_at(&self, flags: c_int, change: Change) -> Asked {
        if self.values[1] == 0 && flags & EMPTY != 0 {
            return Ok(MetadataRequest::Change(ResolvedPlace::Directory(self.number(0)), change));
        }
        self.path_at(flags, change)
    }

    fn lookup(&self, directory: c_int, path: usize, flags: c_int, change: Change) -> Asked {
        Ok(MetadataRequest::Change(self.place(directory, path, flags)?, change))
    }

    fn place(&self, directory: c_int, path: usize, flags: c_int) -> Result<ResolvedPlace, Errno> {
        if flags & !(NO_FOLLOW | EMPTY) != 0 {
            return Err(Errno::EINVAL);
        }
        let path = self.memory.read_string(self.values[path], PATH, Errno::ENAMETOOLONG)?;
        match (path.is_empty(), flags & EMPTY != 0) {
            (true, true) => Ok(ResolvedPlace::Directory(directory)),
            (true, false) => Err(Errno::ENOENT),
            (false, _) => Ok(ResolvedPlace::Path { directory, path, follow: flags & NO_FOLLOW == 0 }),
        }
    }

    #[expect(clippy::cast_sign_loss, reason = "the kernel takes these bits of it")]
    fn mode(&self, index: usize) -> Change {
        Change::Mode(self.number(index) as libc::mode_t & 0o7777)
    }

    #[expect(clippy::cast_sign_loss, reason = "all ones are -1, which leaves as it is")]
    fn owner(&self, index: usize) -> Change {
        Change::Owner(self.number(index) as libc::uid_t, self.number(index + 1) as libc::gid_t)
    }

    fn attribute(&self) -> Result<Change, Errno> {
        self.attribute_of(self.name(1)?, self.values[2], self.values[3], self.number(4))
    }

    fn attribute_by_structure(&self) -> Result<Change, Errno> {
        match usize::try_from(self.values[5]) {
            Ok(ATTRIBUTE_ARGUMENTS) => {}
            Ok(size) if size < ATTRIBUTE_ARGUMENTS => return Err(Errno::EINVAL),
            // Size of a later kernel, with fields that are unknown here.
            _ => return Err(Errno::E2BIG),
        }
        let bytes: [u8; ATTRIBUTE_ARGUMENTS] = self.memory.read(self.values[4])?;
        let (address, [size, flags]) = (word(&bytes, 0), [8, 12].map(|at| half_word(&bytes, at)));
        self.attribute_of(self.name(3)?, address, size.into(), flags.cast_signed())
    }

    fn attribute_of(&self, name: CString, address: u64, size: u64, flags: c_int) -> Result<Change, Errno> {
        let length = usize::try_from(size).ok().filter(|&length| length <= VALUE).ok_or(Errno::E2BIG)?;
        Ok(Change::Attribute(name, self.bytes(address, length)?, flags))
    }

    fn no_attribute(&self, index: usize) -> Result<Change, Errno> {
        self.name(index).map(Change::NoAttribute)
    }

    fn name(&self, index: usize) -> Result<CString, Errno> {
        let name = self.memory.read_string(self.values[index], ATTRIBUTE, Errno::ERANGE)?;
        if name.is_empty() { Err(Errno::ERANGE) } else { Ok(name) }
    }

    fn file_attributes(&self) -> Result<Change, Errno> {
        match usize::try_from(self.values[3]) {
            Ok(size @ FILE_ATTRIBUTES..=MOST_FILE_ATTRIBUTES) => {
                Ok(Change::FileAttributes(self.bytes(self.values[2], size)?))
            }
            Ok(0..FILE_ATTRIBUTES) => Err(Errno::EINVAL),
            _ => Err(Errno::E2BIG),
        }
    }

    /// Reads the times of access and modification; `None` for a null pointer, which means now.
    fn times(
        &self,
        index: usize,
        convert: fn(u64, u64) -> Converted,
    ) -> Result<Option<[timespec; 2]>, Errno> {
        let start = self.values[index];
        if start == 0 {
            return Ok(None);
        }
        let bytes: [u8; 32] = self.memory.read(start)?;
        let [first, second] = [0, 16].map(|at| convert(word(&bytes, at), word(&bytes, at + 8)));
        Ok(Some([first?, second?]))
    }

    fn bytes(&self, start: u64, length: usize) -> Result<Vec<u8>, Errno> {
        if length == 0 { Ok(vec![]) } else { self.memory.read_vec(start, length) }
    }
}

type Asked = Result<MetadataRequest, Errno>;
type Placing = fn(&MetadataArguments) -> Result<ResolvedPlace, Errno>;
type Converted = Result<timespec, Errno>;

/// Reads `utimensat(2)`; a null path means the descriptor itself. If both times stay unchanged, the kernel looks up no
/// file, so there is nothing to judge.
fn utimensat(a: &MetadataArguments) -> Asked {
    let times = a.times(2, |seconds, rest| Ok(nanoseconds(seconds, rest)))?;
    if times.is_some_and(|times| times.iter().all(|time| time.tv_nsec == libc::UTIME_OMIT)) {
        return Ok(MetadataRequest::Nothing);
    }
    match (a.values[1], a.number(0), a.number(3)) {
        (0, libc::AT_FDCWD, _) => Err(Errno::EFAULT),
        (0, _, 0) => Ok(a.open(Change::Times(times))),
        (0, ..) => Err(Errno::EINVAL),
        (_, _, flags) => a.path_at(flags, Change::Times(times)),
    }
}

fn futimesat(a: &MetadataArguments) -> Asked {
    let change = Change::Times(a.times(2, microseconds)?);
    match (a.values[1], a.number(0)) {
        (0, libc::AT_FDCWD) => Err(Errno::EFAULT),
        (0, _) => Ok(a.open(change)),
        _ => a.path_at(0, change),
    }
}

/// Reads `utime(2)`, with two times in seconds.
fn utime(a: &MetadataArguments) -> Asked {
    if a.values[1] == 0 {
        return a.path(Change::Times(None));
    }
    let bytes: [u8; 16] = a.memory.read(a.values[1])?;
    let [access, modification] = [0, 8].map(|at| nanoseconds(word(&bytes, at), 0));
    a.path(Change::Times(Some([access, modification])))
}

fn ioctl(a: &MetadataArguments) -> Asked {
    let request = a.number(1).cast_unsigned();
    let (_, size) = IOCTLS.into_iter().find(|(named, _)| *named == request).ok_or(Errno::ENOTTY)?;
    Ok(a.open(Change::Flags(request, a.bytes(a.values[2], size)?)))
}

/// Returns a time from its parts. The kernel checks later if it is valid.
fn nanoseconds(seconds: u64, nanoseconds: u64) -> timespec {
    timespec { tv_sec: seconds.cast_signed(), tv_nsec: nanoseconds.cast_signed() }
}

fn microseconds(seconds: u64, microseconds: u64) -> Converted {
    if microseconds >= 1_000_000 {
        return Err(Errno::EINVAL);
    }
    Ok(nanoseconds(seconds, microseconds * 1000))
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |&word| u64::from_ne_bytes(word))
}

fn half_word(bytes: &[u8], at: usize) -> u32 {
    let half = bytes.get(at..).and_then(|rest| rest.first_chunk());
    half.map_or(0, |&half| u32::from_ne_bytes(half))
}
