//! Repetition of accesses that a command reported as denied, to learn the kernel's answer. No file is changed.
//!
//! A command never has more access than its worker, so the worker's answer holds for the command. Accesses that the
//! agent's rights allow are not repeated: other processes may watch the file.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use ipc::confinement::Tier;
use ipc::named::{Asked, NamedPlace};
use ipc::path::WirePath;
use ipc::rights::Rights;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, readlink};
use nix::sys::signal::kill;
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::unistd::Pid;

/// Kind of access that is repeated.
#[derive(Clone, Copy)]
enum Act {
    Read,
    Write,
}

/// Repeats accesses to a path. Returns the error number of each; 0 on success, `None` if it was not repeated.
pub fn ask(place: &NamedPlace, rights: &Rights, tier: Tier) -> Asked {
    let path = place.path.as_path();
    // `/proc/self` means the command there, and the worker here.
    let is_own = ["/proc/self", "/proc/thread-self"].iter().any(|own| place.named.contains(own));
    if is_own && path.starts_with("/proc") {
        return Asked::default();
    }
    if let Some(process) = place.process() {
        return of_process(place, process);
    }
    let existing = place.nearest.as_ref().unwrap_or(&place.path).as_path();
    let is_closed = |path: &Path| {
        let path = WirePath::from(path);
        // Mounts protect files inside a writable directory. Without mounts the kernel would allow the access.
        let rooted = rights.write.iter().any(|root| path.is_within(root));
        !rights.allows_write(&path) && (!rooted || tier == Tier::Full)
    };
    let parent = path.parent().filter(|_| place.nearest.is_none());
    Asked {
        read: (!rights.allows_read(&place.path)).then(|| answer(path, Act::Read)).flatten(),
        write: (place.permits.write && is_closed(path)).then(|| answer(existing, Act::Write)).flatten(),
        remove: parent
            .filter(|parent| place.permits.remove && is_closed(parent))
            .and_then(|parent| answer(parent, Act::Write)),
    }
}

/// Repeats an access to a process's directory in /proc, or to a file in it. A command that reports the directory itself
/// tried to send a signal, so signal 0 is sent, which has no effect (kill(2)). A file is opened for reading.
fn of_process(place: &NamedPlace, process: u32) -> Asked {
    if !place.permits.own || place.nearest.is_some() {
        return Asked::default();
    }
    let is_whole = place.path.as_path().iter().count() == 3;
    let signalled = || {
        kill(Pid::from_raw(i32::try_from(process).ok()?), None)
            .map_or_else(|errno| errno as i32, |()| 0)
            .into()
    };
    Asked {
        read: (!is_whole).then(|| answer(place.path.as_path(), Act::Read)).flatten(),
        write: is_whole.then(signalled).flatten(),
        remove: None,
    }
}

/// Returns the error number of opening a file or directory, 0 on success. `None` if opening has effects (a fifo, a
/// device), or if the path now leads elsewhere.
fn answer(path: &Path, act: Act) -> Option<i32> {
    let found = match open(path, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty()) {
        Ok(found) => found,
        // The mount that hides a directory denies entering it.
        Err(Errno::EACCES) => return Some(Errno::EACCES as i32),
        Err(_) => return None,
    };
    let mine = own_name(&found);
    // A different name means that a directory on the path was replaced by a link.
    if readlink(&mine).ok()? != path.as_os_str() {
        return None;
    }
    let flags = match (act, kind(&found)?) {
        // Lists the directory, since opening it proves too little.
        (Act::Read, SFlag::S_IFDIR) => return listed(&mine),
        (Act::Read, _) => OFlag::O_RDONLY,
        // Appending truncates nothing, and nothing is written.
        (Act::Write, SFlag::S_IFREG) => OFlag::O_WRONLY | OFlag::O_APPEND,
        // A file without a name, which is gone when it is closed: open(2).
        (Act::Write, _) => OFlag::O_WRONLY | OFlag::O_TMPFILE,
    };
    let flags = flags | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    match open(&mine, flags, Mode::S_IRUSR | Mode::S_IWUSR) {
        Ok(_) => Some(0),
        // Not a denial: the file system has no unnamed files, or the file is being executed.
        Err(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::ETXTBSY) => None,
        Err(errno) => Some(errno as i32),
    }
}

/// Returns the error number of listing a directory, 0 on success.
fn listed(directory: &Path) -> Option<i32> {
    match fs::read_dir(directory).and_then(|mut entries| entries.next().transpose()) {
        Ok(_) => Some(0),
        Err(error) => error.raw_os_error(),
    }
}

fn kind(found: &OwnedFd) -> Option<SFlag> {
    let kind = SFlag::from_bits_truncate(fstat(found).ok()?.st_mode & SFlag::S_IFMT.bits());
    [SFlag::S_IFREG, SFlag::S_IFDIR].contains(&kind).then_some(kind)
}

/// Returns a path in /proc that leads to this open file, even if another file has its name now.
fn own_name(found: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use complaint::find;
    use ipc::named::Permits;
    use nix::unistd::{geteuid, mkfifo};

    use super::*;

    fn asked(path: &Path) -> Asked {
        let place = find(path.to_str().unwrap(), Path::new("/"), |_| Permits::ALL);
        ask(&place, &Rights { read: vec!["/etc".into()], ..Rights::default() }, Tier::Full)
    }

    #[test]
    fn what_could_be_done_is_left_as_it_was() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().canonicalize().unwrap();
        let file = directory.join("file");
        fs::write(&file, "content").unwrap();
        let before = fs::metadata(&directory).unwrap().modified().unwrap();
        assert_eq!(asked(&file), Asked { read: Some(0), write: Some(0), remove: Some(0) });
        let missing = asked(&directory.join("none"));
        assert_eq!(missing, Asked { read: None, write: Some(0), remove: None });
        assert_eq!(fs::read_to_string(&file).unwrap(), "content");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        assert_eq!(fs::metadata(&directory).unwrap().modified().unwrap(), before);
    }

    #[test]
    fn what_the_rights_cover_is_not_tried() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().canonicalize().unwrap();
        let root = (&directory).into();
        let rights = Rights { read: vec!["/".into()], write: vec![root], ..Rights::default() };
        let place = find(directory.join("x").to_str().unwrap(), Path::new("/"), |_| Permits::ALL);
        assert_eq!(ask(&place, &rights, Tier::Full), Asked::default());
        // In the floor tier protected files are restored, and not held.
        let rights = Rights { protected: rights.write.clone(), ..rights };
        assert_eq!(ask(&place, &rights, Tier::Floor), Asked::default());
        assert_eq!(ask(&place, &rights, Tier::Full).write, Some(0));
    }

    #[test]
    fn what_acts_when_it_is_opened_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let fifo = place.path().canonicalize().unwrap().join("fifo");
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        let socket = fifo.with_file_name("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [&fifo, &socket] {
            assert_eq!(asked(path), Asked { remove: Some(0), ..Asked::default() });
        }
        let device = asked(Path::new("/dev/null"));
        assert_eq!((device.read, device.write), (None, None));
        assert_eq!(asked(Path::new("/proc/self/mem")), Asked::default());
    }

    #[test]
    fn a_name_that_leads_elsewhere_by_now_is_no_answer() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().canonicalize().unwrap();
        fs::create_dir(directory.join("real")).unwrap();
        fs::write(directory.join("real/file"), "").unwrap();
        symlink("real", directory.join("link")).unwrap();
        symlink("real/file", directory.join("file")).unwrap();
        assert_eq!(answer(&directory.join("real/file"), Act::Write), Some(0));
        for path in ["link/file", "file", "none"] {
            assert_eq!(answer(&directory.join(path), Act::Write), None, "{path}");
        }
    }

    #[test]
    fn the_answer_is_the_kernels() {
        if geteuid().is_root() {
            eprintln!("skipped: uid 0 with capabilities is refused nothing");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let file = place.path().canonicalize().unwrap().join("file");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o0)).unwrap();
        assert_eq!(asked(&file).write, Some(Errno::EACCES as i32));
    }
}
