//! What a sandbox-exec that waits for its order has looked up by then: what lies in directories, and what rules will be on.
//!
//! Nothing of it decides anything. The rights that are ordered are compiled as they always are; only what an unchanged directory
//! would say again is not asked again. As long as a directory has the change time that it had before it was listed, its names are
//! the same and stand for the same inodes: each entry that comes, goes, or is replaced changes it (`inode(7)`). What was found
//! is therefore used only
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

use ipc::confinement::{Confinement, Identity, TierChoice};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::statfs::{
    BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC, statfs,
};

use super::rules::Seen;
use super::{at, full};
use crate::compile::PathRule;
use crate::domain::open_path;
use crate::privilege;
use crate::stage::{Failure, Stage};
use crate::tree::{Entry, Host, Tree};

/// File systems of this machine's own, whose inodes change when the kernel changes them.
const KEEPS_TIMES: [FsType; 5] =
    [EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC];

/// Inodes of 128 bytes have whole seconds (`ext4(5)`).
const SETTLED: Duration = Duration::from_secs(2);

/// Tells of changes of the mount namespace of the thread that opened it.
const MOUNTS: &str = "/proc/thread-self/mountinfo";

/// The most that is held open for rules.
const MOST_OPEN: usize = 256;

/// What was looked up ahead.
#[derive(Debug, Default)]
pub struct Ahead {
    /// Who this process has become for it.
    identity: Option<Identity>,
    found: Option<Found>,
}

#[derive(Debug)]
struct Found {
    mounts: File,
    listed: HashMap<OsString, (Stamp, Listing)>,
    /// By path, in directories that were listed.
    opened: HashMap<OsString, File>,
}

type Listing = Rc<[Entry]>;

/// What changes with a directory's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Ahead {
    /// Looks up what a confinement like this one will need, as the user whom it is for. What cannot be looked up is not.
    ///
    /// In the full tier the rules are made while there is time, and init would inherit what is open.
    pub fn of(likely: &Confinement, command: &[OsString]) -> Result<Self, Failure> {
        let identity = likely.identity;
        if let Some(identity) = identity {
            privilege::become_user(identity).map_err(at(Stage::Identity))?;
        }
        let opens = likely.tier == TierChoice::Floor;
        if opens {
            // As the floor does before it forks.
            privilege::drop_bounds().map_err(at(Stage::Capabilities))?;
        }
        let seen =
            if opens { Seen::floor(likely) } else { Seen::full(likely, &full::layout(likely, command)) };
        Ok(Self { identity, found: Found::of(&seen, opens) })
    }

    /// Whether a confinement is for the user who looked things up, which cannot be taken back.
    pub fn is_for(&self, confinement: &Confinement) -> bool {
        self.identity.is_none() || self.identity == confinement.identity
    }

    /// The file system as it is now, with the directories that have not changed already listed.
    pub(super) fn host(&mut self) -> Host {
        self.found = self.found.take().and_then(Found::still);
        let found = self.found.iter().flat_map(|found| &found.listed);
        Host::with(found.map(|(path, (_, listing))| (path.clone(), Listing::clone(listing))).collect())
    }

    /// What a rule is on, if it is open already; after [`Ahead::host`].
    pub(super) fn take_opened(&mut self, rule: &PathRule) -> Option<File> {
        self.found.as_mut()?.opened.remove(rule.path.as_os_str())
    }

    /// Closes what is open.
    pub(super) fn forget(&mut self) {
        self.found = None;
    }
}

impl Found {
    fn of(seen: &Seen, opens: bool) -> Option<Self> {
        let mounts = File::open(MOUNTS).ok()?;
        // Which directories it needs; what lies in them is asked once each has its stamp.
        let needed = Host::default();
        let plan = seen.plan(&needed).ok()?;
        let mut listed = HashMap::new();
        for path in needed.into_listings().into_keys() {
            if let Some(stamp) = Stamp::settled(Path::new(&path)) {
                let Ok(listing) = Host::default().entries(Path::new(&path)) else { continue };
                listed.insert(path, (stamp, listing));
            }
        }
        let mut opened = HashMap::new();
        if opens {
            let lies_in_one = |rule: &&PathRule| {
                rule.path.parent().is_some_and(|parent| listed.contains_key(parent.as_os_str()))
            };
            for rule in plan.rules.iter().filter(lies_in_one).take(MOST_OPEN) {
                if let Ok(file) = open_path(&rule.path, true) {
                    opened.insert(rule.path.clone().into_os_string(), file);
                }
            }
        }
        Some(Self { mounts, listed, opened })
    }

    /// What still holds of it.
    fn still(mut self) -> Option<Self> {
        if !self.mounts_are_the_same().unwrap_or(false) {
            return None;
        }
        self.listed.retain(|path, (stamp, _)| Stamp::of(Path::new(path)).is_ok_and(|now| now == *stamp));
        let Self { listed, opened, .. } = &mut self;
        opened.retain(|path, _| {
            Path::new(path).parent().is_some_and(|parent| listed.contains_key(parent.as_os_str()))
        });
        Some(self)
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

    use nix::errno::Errno;
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};

    use super::*;

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
        let tried = thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNS)?;
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
            let mounts = File::open(MOUNTS).unwrap();
            let found = Found { mounts, listed: HashMap::new(), opened: HashMap::new() };
            assert!(found.mounts_are_the_same().unwrap());
            mount(Some("none"), &path, Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
            assert!(found.still().is_none());
            Ok::<_, Errno>(())
        });
        if let Err(error) = tried.join().unwrap() {
            eprintln!("skipped: a namespace to mount in (needs root: {error})");
        }
    }
}
