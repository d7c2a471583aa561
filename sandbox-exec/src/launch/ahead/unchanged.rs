//! Directories that have not changed since they were listed: what an unchanged directory would say again is not asked again.
//!
//! As long as a directory has the change time that it had before it was listed, its names are the same and stand for the same
//! inodes: each entry that comes, goes, or is replaced changes it (`inode(7)`). What was found is therefore used only
//!
//! * where the kernel itself keeps that time ([`KEEPS_TIMES`]), and it was past when the directory was listed by more than a
//!   clock of a file system ever stands still ([`SETTLED`]);
//! * while nothing was mounted or unmounted (`proc_pid_mountinfo(5)`: its poll), which changes no directory.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::statfs::{
    BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, statfs,
};

use crate::tree::{Entry, Host, Tree, XFS_SUPER_MAGIC};

/// File systems of this machine's own, whose inodes change when the kernel changes them.
const KEEPS_TIMES: [FsType; 5] =
    [EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC];

/// Inodes of 128 bytes have whole seconds (`ext4(5)`).
const SETTLED: Duration = Duration::from_secs(2);

/// Tells of changes of the mount namespace of the thread that opened it.
const MOUNTS: &str = "/proc/thread-self/mountinfo";

/// What was listed.
#[derive(Debug)]
pub(super) struct Unchanged {
    mounts: File,
    listed: HashMap<OsString, (Stamp, Listing)>,
}

type Listing = Rc<[Entry]>;

/// What changes with a directory's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Unchanged {
    /// From before anything is listed.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { mounts: File::open(MOUNTS)?, listed: HashMap::new() })
    }

    /// Lists these, as far as they tell enough.
    pub(super) fn list(&mut self, directories: impl Iterator<Item = OsString>) {
        for path in directories {
            if let Some(stamp) = Stamp::settled(Path::new(&path)) {
                let Ok(listing) = Host::default().entries(Path::new(&path)) else { continue };
                self.listed.insert(path, (stamp, listing));
            }
        }
    }

    /// Whether what lies directly in a directory is known.
    pub(super) fn has(&self, directory: &Path) -> bool {
        self.listed.contains_key(directory.as_os_str())
    }

    /// What still holds of it, and whether all does.
    pub(super) fn still(mut self) -> Option<(Self, bool)> {
        if !self.mounts_are_the_same().unwrap_or(false) {
            return None;
        }
        let before = self.listed.len();
        self.listed.retain(|path, (stamp, _)| Stamp::of(Path::new(path)).is_ok_and(|now| now == *stamp));
        let all = self.listed.len() == before;
        Some((self, all))
    }

    /// The file system, with these already listed.
    pub(super) fn host(&self) -> Host {
        let listed = self.listed.iter();
        Host::with(listed.map(|(path, (_, listing))| (path.clone(), Listing::clone(listing))).collect())
    }

    fn mounts_are_the_same(&self) -> io::Result<bool> {
        let mut changes = [PollFd::new(self.mounts.as_fd(), PollFlags::POLLPRI)];
        Ok(poll(&mut changes, PollTimeout::ZERO)? == 0)
    }
}

impl Stamp {
    fn of(directory: &Path) -> io::Result<Self> {
        let meta = fs::symlink_metadata(directory)?;
        let changed = (meta.ctime(), meta.ctime_nsec());
        Ok(Self { device: meta.dev(), inode: meta.ino(), changed })
    }

    /// The stamp of a directory of which it tells enough.
    fn settled(directory: &Path) -> Option<Self> {
        let keeps_times = KEEPS_TIMES.contains(&statfs(directory).ok()?.filesystem_type());
        let stamp = Self::of(directory).ok()?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let (seconds, nanoseconds) = stamp.changed;
        let changed = Duration::new(seconds.try_into().ok()?, nanoseconds.try_into().ok()?);
        (keeps_times && changed + SETTLED < now).then_some(stamp)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    use nix::mount::{MsFlags, mount};

    use super::*;
    use crate::tree::tests::with_own_mounts;

    fn settled(directory: &Path) -> Stamp {
        // Its clock may have told another time than the system's when it was made.
        thread::sleep(SETTLED + Duration::from_millis(100));
        Stamp::settled(directory).unwrap()
    }

    #[test]
    fn a_directory_that_has_just_changed_tells_too_little() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(Stamp::settled(place.path()), None);
        assert_eq!(Stamp::settled(Path::new("/proc")), None, "its times are made up");
        assert_eq!(Stamp::settled(Path::new("/nowhere")), None);
    }

    #[test]
    fn every_change_of_an_entry_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["one", "other"] {
            fs::write(at(name), name).unwrap();
        }
        fs::create_dir(at("directory")).unwrap();
        let beneath = fs::metadata(at("directory")).unwrap().permissions().mode();
        let changes: [(&str, &dyn Fn()); 5] = [
            ("created", &|| fs::write(at("new"), "").unwrap()),
            ("removed", &|| fs::remove_file(at("new")).unwrap()),
            ("renamed", &|| fs::rename(at("one"), at("moved")).unwrap()),
            ("replaced", &|| fs::rename(at("moved"), at("other")).unwrap()),
            ("linked", &|| fs::hard_link(at("other"), at("second")).unwrap()),
        ];
        let mut before = settled(place.path());
        fs::write(at("other"), "other contents").unwrap();
        fs::write(at("directory/new"), "").unwrap();
        fs::set_permissions(at("directory"), fs::Permissions::from_mode(beneath)).unwrap();
        assert_eq!(Stamp::of(place.path()).unwrap(), before, "no entry of its own has changed");
        for (what, change) in changes {
            change();
            let now = Stamp::of(place.path()).unwrap();
            assert_ne!(now, before, "{what}");
            before = now;
            // Longer than any clock of a kernel stands still.
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_mount_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().to_owned();
        with_own_mounts(move || {
            let mounts = File::open(MOUNTS).unwrap();
            let found = Unchanged { mounts, listed: HashMap::new() };
            assert!(found.mounts_are_the_same().unwrap());
            mount(Some("none"), &path, Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
            assert!(found.still().is_none());
            Ok(())
        });
    }
}
