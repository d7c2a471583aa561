//! A server's own directory, which stays after the session: its temp directory, home and caches.
//!
//! The server may have replaced a directory in it by a link or a file. The supervisor has access that the server lacks,
//! so the supervisor follows no links there.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, fchown};
use std::path::{Path, PathBuf};

use ipc::confinement::Identity;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, mkdirat};

/// Directories in a server's own directory, each after the variable that has its path.
pub(super) const HOME: [(&str, &str); 5] = [
    ("HOME", "home"),
    ("XDG_CACHE_HOME", "home/.cache"),
    ("XDG_CONFIG_HOME", "home/.config"),
    ("XDG_DATA_HOME", "home/.local/share"),
    ("XDG_STATE_HOME", "home/.local/state"),
];

/// Creates missing directories, and gives them to the user that the server runs as. Returns the path without links.
pub(super) fn make(store: &Path, identity: Option<Identity>) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(store)?;
    let store = fs::canonicalize(store)?;
    let root = open(&store, directory(), Mode::empty())?;
    give(&root, identity)?;
    for (_, place) in HOME {
        match below(&root, Path::new(place), identity) {
            // The server itself put something else there, and has no such directory then.
            Ok(()) | Err(Errno::ELOOP | Errno::ENOTDIR | Errno::EACCES) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(store)
}

fn below(root: &OwnedFd, place: &Path, identity: Option<Identity>) -> nix::Result<()> {
    let mut held = openat(root.as_fd(), ".", directory(), Mode::empty())?;
    for name in place {
        match mkdirat(&held, name, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => return Err(error),
        }
        held = openat(held.as_fd(), name, directory(), Mode::empty())?;
        give(&held, identity).map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))?;
    }
    Ok(())
}

fn give(directory: &OwnedFd, identity: Option<Identity>) -> io::Result<()> {
    let Some(Identity { uid, gid }) = identity else { return Ok(()) };
    fchown(directory, Some(uid), Some(gid))
}

const fn directory() -> OFlag {
    OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    /// Returns a user that the tests do not run as; `None` if this process may not change owners of files.
    fn other() -> Option<Identity> {
        nix::unistd::geteuid().is_root().then_some(Identity { uid: 65534, gid: 65534 })
    }

    #[test]
    fn a_server_has_a_home_of_its_own_that_lasts() {
        let place = tempfile::tempdir().unwrap();
        let store = make(&place.path().join("guests/docs"), other()).unwrap();
        fs::write(store.join("home/.cache/kept"), "x").unwrap();
        assert_eq!(make(&store, other()).unwrap(), store);
        assert!(store.join("home/.cache/kept").exists());
        for (_, name) in HOME {
            let found = fs::symlink_metadata(store.join(name)).unwrap();
            assert!(found.is_dir() && found.permissions().mode() & 0o777 == 0o700, "{name}");
            assert!(
                other().is_none_or(|other| (found.uid(), found.gid()) == (other.uid, other.gid)),
                "{name}"
            );
        }
    }

    #[test]
    fn a_link_that_a_server_put_in_its_own_directory_leads_nowhere() {
        for planted in ["home", "home/.cache", "home/.local", "home/.local/state"] {
            let place = tempfile::tempdir().unwrap();
            let target = place.path().join("target");
            fs::create_dir(&target).unwrap();
            let before = fs::metadata(&target).unwrap();
            let store = make(&place.path().join("docs"), other()).unwrap();
            fs::remove_dir_all(store.join(planted)).unwrap();
            symlink(&target, store.join(planted)).unwrap();
            make(&store, other()).unwrap();
            let after = fs::metadata(&target).unwrap();
            assert_eq!((before.uid(), before.gid()), (after.uid(), after.gid()), "{planted}");
            assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "{planted}");
            // Control: a call that follows links finds the target.
            fs::create_dir_all(store.join(planted).join("made")).unwrap();
            std::os::unix::fs::chown(store.join(planted), other().map(|other| other.uid), None).unwrap();
            assert!(target.join("made").exists(), "{planted}");
            assert!(
                other().is_none_or(|other| fs::metadata(&target).unwrap().uid() == other.uid),
                "{planted}"
            );
            // A file in the way, too.
            fs::remove_file(store.join(planted)).unwrap();
            fs::write(store.join(planted), "x").unwrap();
            make(&store, other()).unwrap();
            assert_eq!(fs::read_to_string(store.join(planted)).unwrap(), "x");
        }
    }
}
