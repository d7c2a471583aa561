//! Copies caches from one level of access to another. Confined commands may have created anything in both.
//!
//! Every name is looked up in an open directory, and no link is followed. Only directories, links and regular files
//! that belong to the user of the agents are copied, so no hard links to other users' files. A file replaces only an
//! older one. Modification times are kept, since build tools compare them.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, fchown};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use ipc::confinement::Identity;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, symlinkat, unlinkat};

use crate::system::share_blocks;
use crate::tripwire::beneath::{kind, list, open_directory, open_file, open_root, stat};

const MOST_BYTES: u64 = 1 << 30;

const MOST_ENTRIES: u64 = 500_000;

/// Maximum depth of directories. The copier holds two descriptors for each level.
const DEEPEST: usize = 100;

const PATIENCE: Duration = Duration::from_mins(1);

/// Prefix of the names of incomplete copies. A process id and a number follow.
const FRESH: &str = ".bailiwick-";

/// Copies directory trees, with common limits for entries, bytes and time.
pub(super) struct Copier {
    identity: Option<Identity>,
    /// Directory in which files are written before they are renamed to their final paths.
    making: OwnedFd,
    bytes: u64,
    entries: u64,
    until: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Measure,
    Copy,
}

/// Source directory and target directory. The target may be `None` while sizes are measured.
#[derive(Clone, Copy)]
struct Pair<'a> {
    from: BorrowedFd<'a>,
    into: Option<BorrowedFd<'a>>,
}

impl Copier {
    /// Creates a copier that writes incomplete files in `making`, which must be on the file system of the targets.
    /// Removes the files that a killed copier left there.
    pub(super) fn new(identity: Option<Identity>, making: OwnedFd) -> io::Result<Self> {
        for (name, _) in list(&making, usize::MAX)? {
            if is_left_over(&name) {
                let _ = unlinkat(&making, name.as_os_str(), UnlinkatFlags::NoRemoveDir);
            }
        }
        Ok(Self { identity, making, bytes: 0, entries: 0, until: Instant::now() + PATIENCE })
    }

    pub(super) fn directory_in_temp(&self, caches: &Path) -> io::Result<OwnedFd> {
        let name = caches.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        self.make_directory(self.making.as_fd(), name, 0o700)
    }

    /// Copies the entries of a level's directory `place` to `into`. Skips each entry that cannot be copied completely.
    pub(super) fn bring(&mut self, place: &Path, into: &OwnedFd) -> io::Result<()> {
        let from = open_root(place)?;
        let pair = Pair { from: from.as_fd(), into: Some(into.as_fd()) };
        for (name, _) in list(&from, usize::MAX)? {
            let before = self.bytes;
            let measured =
                self.entry(pair, &name, Pass::Measure, 0).and_then(|()| self.check_size(pair.from));
            match measured.and_then(|()| self.entry(pair, &name, Pass::Copy, 0)) {
                Ok(()) => {}
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => {
                    self.bytes = before;
                    tracing::warn!(place = %place.display(), ?name, %error, "a cache is not copied");
                }
            }
        }
        Ok(())
    }

    fn entry(&mut self, pair: Pair<'_>, name: &OsStr, pass: Pass, depth: usize) -> io::Result<()> {
        self.count()?;
        let found = stat(pair.from, name)?;
        let own = match pair.into.map(|into| stat(into, name)) {
            Some(Ok(own)) => Some(own),
            Some(Err(Errno::ENOENT)) | None => None,
            Some(Err(errno)) => return Err(errno.into()),
        };
        match (kind(&found), own) {
            (SFlag::S_IFDIR, own) if own.is_none_or(|own| kind(&own) == SFlag::S_IFDIR) => {
                self.directory(pair, name, pass, depth)
            }
            (SFlag::S_IFREG, own) if self.is_brought(&found, own.as_ref()) => {
                self.file(pair, name, &found, pass)
            }
            (SFlag::S_IFLNK, None) => copy_link(pair, name, pass),
            // Existing files belong to the target's level, and other types of files are not parts of a cache.
            _ => Ok(()),
        }
    }

    fn directory(&mut self, pair: Pair<'_>, name: &OsStr, pass: Pass, depth: usize) -> io::Result<()> {
        if depth == DEEPEST {
            return Err(io::Error::other(format!("the directory tree is more than {DEEPEST} levels deep")));
        }
        let from = open_directory(pair.from, name)?;
        let into = match (pair.into, pass) {
            (Some(into), Pass::Copy) => Some(self.make_directory(into, name, fstat(&from)?.st_mode)?),
            (Some(into), Pass::Measure) => open_directory(into, name).ok(),
            (None, _) => None,
        };
        let inner = Pair { from: from.as_fd(), into: into.as_ref().map(AsFd::as_fd) };
        for (name, _) in list(&from, usize::MAX)? {
            unless_gone(self.entry(inner, &name, pass, depth + 1))?;
        }
        Ok(())
    }

    /// True if a file must be copied: the user of the agents owns it, and it is newer than `own`, the file at the
    /// target.
    fn is_brought(&self, found: &FileStat, own: Option<&FileStat>) -> bool {
        let user = self.identity.map_or_else(|| geteuid().as_raw(), |identity| identity.uid);
        let time = |stat: &FileStat| (stat.st_mtime, stat.st_mtime_nsec);
        let is_newer = |own: &FileStat| kind(own) == SFlag::S_IFREG && time(found) > time(own);
        found.st_uid == user && own.is_none_or(is_newer)
    }

    fn file(&mut self, pair: Pair<'_>, name: &OsStr, found: &FileStat, pass: Pass) -> io::Result<()> {
        let (Pass::Copy, Some(into)) = (pass, pair.into) else {
            self.bytes = self.bytes.saturating_add(u64::try_from(found.st_size).unwrap_or_default());
            return Ok(());
        };
        let source = open_file(pair.from, name)?;
        // The file may have been replaced meanwhile.
        let found = fstat(&source)?;
        if kind(&found) != SFlag::S_IFREG || !self.is_brought(&found, None) {
            return Ok(());
        }
        let fresh = format!("{FRESH}{}-{}", std::process::id(), self.entries);
        let made = create(&self.making, &fresh)?;
        let filled = self.fill(source, made, &found);
        let named = filled.and_then(|()| Ok(renameat(&self.making, fresh.as_str(), into, name)?));
        if named.is_err() {
            let _ = unlinkat(&self.making, fresh.as_str(), UnlinkatFlags::NoRemoveDir);
        }
        named
    }

    fn fill(&self, source: OwnedFd, made: OwnedFd, found: &FileStat) -> io::Result<()> {
        let (source, mut made) = (File::from(source), File::from(made));
        if share_blocks(&source, &made).is_err() {
            // Copies at most the measured size, even if the file grows.
            let length = u64::try_from(found.st_size).unwrap_or_default();
            io::copy(&mut io::Read::take(&source, length), &mut made)?;
        }
        self.give(&made)?;
        made.set_permissions(Permissions::from_mode(found.st_mode & 0o777))?;
        made.set_modified(modified(found))
    }

    fn make_directory(&self, into: BorrowedFd<'_>, name: &OsStr, mode: u32) -> io::Result<OwnedFd> {
        match mkdirat(into, name, Mode::from_bits_truncate(mode & 0o777 | 0o700)) {
            Ok(()) => {
                let directory = open_directory(into, name)?;
                self.give(&directory)?;
                Ok(directory)
            }
            Err(Errno::EEXIST) => Ok(open_directory(into, name)?),
            Err(errno) => Err(errno.into()),
        }
    }

    fn give(&self, made: impl AsFd) -> io::Result<()> {
        self.identity.map_or(Ok(()), |Identity { uid, gid }| fchown(made, Some(uid), Some(gid)))
    }

    fn count(&mut self) -> io::Result<()> {
        self.entries += 1;
        if self.entries > MOST_ENTRIES || Instant::now() > self.until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// Fails if the measured bytes exceed the limit, unless the file systems can share blocks instead of copying them.
    fn check_size(&self, from: BorrowedFd<'_>) -> io::Result<()> {
        if self.bytes <= MOST_BYTES || may_share_blocks(from, self.making.as_fd()) {
            return Ok(());
        }
        let (bytes, most) = (self.bytes >> 20, MOST_BYTES >> 20);
        Err(io::Error::other(format!("{bytes} MiB would be copied, but the limit is {most} MiB")))
    }
}

fn copy_link(pair: Pair<'_>, name: &OsStr, pass: Pass) -> io::Result<()> {
    match (pass, pair.into) {
        (Pass::Copy, Some(into)) => Ok(symlinkat(readlinkat(pair.from, name)?.as_os_str(), into, name)?),
        (Pass::Copy, None) | (Pass::Measure, _) => Ok(()),
    }
}

/// True for the name of an incomplete copy whose process has ended.
fn is_left_over(name: &OsStr) -> bool {
    let rest = name.to_str().and_then(|name| name.strip_prefix(FRESH));
    let process = rest.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists())
}

/// True if files in two directories can share blocks (reflinks). Tries it with two small files.
fn may_share_blocks(from: BorrowedFd<'_>, into: BorrowedFd<'_>) -> bool {
    let device = |directory| fstat(directory).ok().map(|found| found.st_dev);
    let names = ["source", "target"].map(|name| format!("{FRESH}{}-{name}", std::process::id()));
    let shared = || {
        let [mut source, target] = [&names[0], &names[1]].map(|name| create(into, name).map(File::from));
        source.as_mut().ok()?.write_all(&[1; 4096]).ok()?;
        share_blocks(source.as_ref().ok()?, target.as_ref().ok()?).ok()
    };
    let may = device(from).is_some() && device(from) == device(into) && shared().is_some();
    for name in &names {
        let _ = unlinkat(into, name.as_str(), UnlinkatFlags::NoRemoveDir);
    }
    may
}

fn create(into: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    Ok(openat(into, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?)
}

fn modified(found: &FileStat) -> SystemTime {
    let seconds = u64::try_from(found.st_mtime).unwrap_or_default();
    let nanoseconds = u32::try_from(found.st_mtime_nsec).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds)
}

/// True for an error that would also stop every further copy, such as a full disk.
fn is_final(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull, TimedOut};
    matches!(error.kind(), StorageFull | QuotaExceeded | TimedOut)
}

/// Ignores the error for a missing file, since other workers of the level may remove files meanwhile.
fn unless_gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
