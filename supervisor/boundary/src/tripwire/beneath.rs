//! File operations on one name in an open directory.
//!
//! A single name opened with `O_NOFOLLOW` cannot lead outside of its directory. So these functions are as safe as
//! openat2(2) with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`, and also work where a container's filter denies openat2.
//! None of them blocks on a fifo.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType, Permissions};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};

use super::access::PlaceAccess;

/// Names in a directory, each with true if it is a directory or a link.
pub type Entries = Vec<(OsString, bool)>;

/// Maximum depth of a directory tree that is removed. The removal holds an open descriptor for each level.
const DEEPEST: usize = 200;

/// Time between two attempts to open a file while another process holds a lease on it (fcntl(2)).
const LEASE_POLL: Duration = Duration::from_millis(20);

const LOOK: OFlag = OFlag::O_CLOEXEC.union(OFlag::O_NOFOLLOW).union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY);

pub fn open_root(path: &Path) -> nix::Result<OwnedFd> {
    nix::fcntl::open(path, LOOK | OFlag::O_DIRECTORY | OFlag::O_RDONLY, Mode::empty())
}

/// Returns the status of an entry. Does not follow a link.
pub fn stat(at: impl AsFd, name: &OsStr) -> nix::Result<FileStat> {
    fstatat(at, name, AtFlags::AT_SYMLINK_NOFOLLOW)
}

pub fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

pub fn open_directory(at: impl AsFd, name: &OsStr) -> nix::Result<OwnedFd> {
    openat(at, name, LOOK | OFlag::O_DIRECTORY | OFlag::O_RDONLY, Mode::empty())
}

/// Opens a directory in order to change its entries. If the mode denies that, first adds permissions, which the owner
/// can do.
pub(super) fn open_own_directory(at: impl AsFd, name: &OsStr) -> nix::Result<OwnedFd> {
    match open_directory(&at, name) {
        Err(Errno::EACCES) => {
            let mode = stat(&at, name)?.st_mode & 0o7777;
            set_mode(&at, name, mode | 0o700)?;
            open_directory(&at, name)
        }
        opened => opened,
    }
}

/// Opens a directory in order to read it. If the mode denies that, first adds permissions, which the owner can do, and
/// returns the old mode; `None` if the mode is unchanged.
pub(super) fn open_readable(at: impl AsFd, name: &OsStr) -> nix::Result<(OwnedFd, Option<u32>)> {
    let opened = open_directory(&at, name);
    if !matches!(opened, Ok(_) | Err(Errno::EACCES)) {
        return Ok((opened?, None));
    }
    let stat = match &opened {
        Ok(directory) => fstat(directory),
        Err(_) => stat(&at, name),
    }?;
    let mode = stat.st_mode & 0o7777;
    if mode & 0o500 == 0o500 || !is_own(&stat) {
        return Ok((opened?, None));
    }
    set_mode(&at, name, mode | 0o700)?;
    Ok((open_directory(&at, name)?, Some(mode)))
}

pub(super) fn is_own(stat: &FileStat) -> bool {
    let user = geteuid();
    user.is_root() || stat.st_uid == user.as_raw()
}

/// Runs `act` on an entry. If access is denied, adds the permissions `more` to the mode of the entry while it runs
/// `act` again.
fn with_mode<A: AsFd, T>(
    at: &A,
    name: &OsStr,
    more: u32,
    act: impl Fn(&A, &OsStr) -> nix::Result<T>,
) -> nix::Result<T> {
    match act(at, name) {
        Err(Errno::EACCES) => {
            let closed = stat(at, name)?.st_mode & 0o7777;
            // Only the owner can change a mode.
            set_mode(at, name, closed | more).map_err(|_| Errno::EACCES)?;
            let done = act(at, name);
            set_mode(at, name, closed)?;
            done
        }
        done => done,
    }
}

pub(super) fn set_mode(at: impl AsFd, name: &OsStr, mode: u32) -> nix::Result<()> {
    let held = openat(at, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?;
    if kind(&fstat(&held)?) == SFlag::S_IFLNK {
        return Err(Errno::ELOOP);
    }
    // fchmod(2) refuses an O_PATH descriptor; its entry in /proc leads to that very inode.
    fs::set_permissions(own_path(&held), Permissions::from_mode(mode)).map_err(errno)
}

pub(super) fn set_access(at: impl AsFd, name: &OsStr, access: &PlaceAccess) -> nix::Result<()> {
    let held = openat(at, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?;
    if kind(&fstat(&held)?) == SFlag::S_IFLNK {
        return Err(Errno::ELOOP);
    }
    access.give(&own_path(&held)).map_err(errno)
}

pub fn open_file(at: impl AsFd, name: &OsStr) -> nix::Result<OwnedFd> {
    openat(at, name, LOOK | OFlag::O_RDONLY, Mode::empty())
}

/// Reads a regular file. `None` for other types, and for more than `most` bytes.
pub fn read(at: impl AsFd, name: &OsStr, most: usize) -> nix::Result<Option<Vec<u8>>> {
    content(open_file(at, name)?, most)
}

fn content(file: OwnedFd, most: usize) -> nix::Result<Option<Vec<u8>>> {
    let stat = fstat(&file)?;
    if kind(&stat) != SFlag::S_IFREG || usize::try_from(stat.st_size).is_ok_and(|size| size > most) {
        return Ok(None);
    }
    let mut content = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    File::from(file).take(limit).read_to_end(&mut content).map_err(errno)?;
    Ok((content.len() <= most).then_some(content))
}

/// Reads a file like [`read`]. Also reads a file whose mode denies that, and waits for the end of a lease. Returns the
/// content with the result of `ask` for the open file.
pub(super) fn read_own<T>(
    at: impl AsFd,
    name: &OsStr,
    most: usize,
    ask: impl Fn(&OwnedFd) -> T,
) -> nix::Result<(Option<Vec<u8>>, T)> {
    let mut until = None;
    let read = |at: &_, name: &OsStr| {
        let file = open_file(at, name)?;
        let asked = ask(&file);
        Ok((content(file, most)?, asked))
    };
    loop {
        match with_mode(&at, name, 0o400, read) {
            // The first attempt to open the file has notified the holder of the lease.
            Err(Errno::EWOULDBLOCK)
                if Instant::now() < *until.get_or_insert_with(|| Instant::now() + lease_break_time()) =>
            {
                std::thread::sleep(LEASE_POLL);
            }
            read => return read,
        }
    }
}

/// Returns the time after which the kernel breaks a lease (`/proc/sys/fs/lease-break-time`), plus one second.
fn lease_break_time() -> Duration {
    let set = fs::read_to_string("/proc/sys/fs/lease-break-time").ok();
    let seconds = set.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or(45);
    Duration::from_secs(seconds) + Duration::from_secs(1)
}

pub(super) fn target(at: impl AsFd, name: &OsStr) -> nix::Result<OsString> {
    readlinkat(at, name)
}

pub fn list(directory: &OwnedFd, most: usize) -> io::Result<Entries> {
    let entries = fs::read_dir(own_path(directory))?;
    let named = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name(), leads_on(entry.file_type().ok())))
    };
    entries.take(most).map(named).collect()
}

/// Calls `report` with each name in a directory until `report` returns `Break`. The file type is `None` if the file
/// system's directories do not contain types.
pub(super) fn each(
    directory: &OwnedFd,
    mut report: impl FnMut(OsString, Option<FileType>) -> ControlFlow<()>,
) -> io::Result<()> {
    for entry in fs::read_dir(own_path(directory))? {
        let entry = entry?;
        if report(entry.file_name(), entry.file_type().ok()).is_break() {
            break;
        }
    }
    Ok(())
}

/// True for a directory or a link, through which a path can continue.
pub(super) fn leads_on(file_type: Option<FileType>) -> bool {
    file_type.is_some_and(|kind| kind.is_dir() || kind.is_symlink())
}

/// Returns the path of an open descriptor in /proc.
pub(super) fn own_path(held: impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", held.as_fd().as_raw_fd()))
}

/// Opens the parent of the relative `path`, and returns it with the last component. Creates missing directories if
/// `make`.
pub(super) fn open_parent<'a>(
    root: &OwnedFd,
    path: &'a Path,
    make: bool,
) -> nix::Result<(OwnedFd, &'a OsStr)> {
    let name = path.file_name().ok_or(Errno::EINVAL)?;
    let mut held = root.try_clone().map_err(|error| errno(&error))?;
    for component in path.parent().unwrap_or(Path::new("")).components() {
        let Component::Normal(step) = component else { return Err(Errno::EINVAL) };
        held = match open_own_directory(&held, step) {
            Err(Errno::ENOENT) if make => {
                mkdirat(&held, step, Mode::from_bits_truncate(0o755))?;
                open_own_directory(&held, step)?
            }
            opened => opened?,
        };
    }
    Ok((held, name))
}

/// Removes an entry and everything in it. Succeeds if the entry does not exist.
pub(super) fn remove(at: impl AsFd, name: &OsStr) -> nix::Result<()> {
    remove_within(&at, name, DEEPEST)
}

fn remove_within(at: &impl AsFd, name: &OsStr, depth: usize) -> nix::Result<()> {
    match unlinkat(at, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => return Ok(()),
        // The name is a directory: EISDIR on Linux, EPERM by POSIX.
        Err(Errno::EISDIR | Errno::EPERM) => {}
        Err(error) => return Err(error),
    }
    let directory = open_own_directory(at, name)?;
    set_mode(at, name, 0o700)?;
    let depth = depth.checked_sub(1).ok_or(Errno::ENAMETOOLONG)?;
    let mut outcome = Ok(());
    let mut entries = list(&directory, usize::MAX).map_err(|error| errno(&error))?;
    // Files are removed first, so that a directory that is too deep does not keep them.
    entries.sort_by_key(|(_, is_directory)| *is_directory);
    for (entry, _) in entries {
        outcome = outcome.and(remove_within(&directory, &entry, depth));
    }
    outcome?;
    unlinkat(at, name, UnlinkatFlags::RemoveDir)
}

pub(super) fn errno(error: impl std::borrow::Borrow<io::Error>) -> Errno {
    Errno::from_raw(error.borrow().raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_removed_and_never_followed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path();
        fs::create_dir_all(path.join("kept/deep")).unwrap();
        fs::write(path.join("kept/deep/file"), "x").unwrap();
        fs::create_dir_all(path.join("gone/a")).unwrap();
        symlink("../../kept", path.join("gone/a/link")).unwrap();
        symlink("kept", path.join("link")).unwrap();
        let root = open_root(path).unwrap();
        for name in ["gone", "link", "missing"] {
            remove(&root, OsStr::new(name)).unwrap();
            assert!(!path.join(name).exists());
        }
        assert!(path.join("kept/deep/file").exists());
        symlink("kept", path.join("link")).unwrap();
        assert_eq!(open_directory(&root, OsStr::new("link")).unwrap_err(), Errno::ENOTDIR);
        assert!(open_parent(&root, Path::new("link/deep/file"), true).is_err());
        assert!(open_parent(&root, Path::new("../x"), true).is_err());
        assert_eq!(set_mode(&root, OsStr::new("link"), 0o700).unwrap_err(), Errno::ELOOP);
    }

    #[test]
    fn a_fifo_holds_nobody() {
        let place = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&place.path().join("fifo"), Mode::S_IRWXU).unwrap();
        let root = open_root(place.path()).unwrap();
        assert_eq!(read(&root, OsStr::new("fifo"), 10).unwrap(), None);
    }
}
