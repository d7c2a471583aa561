//! Access restrictions of the machine, not of Bailiwick: file modes for the workers' user, and read-only mounts.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ipc::confinement::Identity;
use ipc::named::Permits;
use ipc::path::WirePath;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat, getegid, geteuid};

use boundary::policy::perhaps_there;
use gate::Machine;

const READ: u32 = 4;
const WRITE: u32 = 2;
const EXECUTE: u32 = 1;

/// User that workers run as. Workers have no capabilities, so that file modes restrict root too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// The user of the supervisor, who is not root.
    Myself,
    /// Root or another user. Workers have only the group of this identity.
    Capless(Identity),
}

impl User {
    /// Returns the user of workers. `identity` is `None` if workers run as the supervisor's user.
    pub(crate) fn of(identity: Option<Identity>) -> Self {
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        match identity {
            Some(identity) => Self::Capless(identity),
            None if uid == 0 => Self::Capless(Identity { uid, gid }),
            None => Self::Myself,
        }
    }

    /// Returns the kinds of access that file modes allow at a path without links. Does not open the file.
    pub(crate) fn permits(self, path: &Path) -> Permits {
        let exists = path.symlink_metadata().is_ok();
        let nearest = path.ancestors().skip(1).find(|place| place.exists()).unwrap_or(path);
        let directory = path.parent().filter(|parent| parent.exists()).unwrap_or(nearest);
        Permits {
            read: exists && self.may(path, READ),
            write: if exists { self.may(path, WRITE) } else { self.may(nearest, WRITE | EXECUTE) },
            execute: exists && self.may(path, EXECUTE),
            remove: self.may(directory, WRITE | EXECUTE) && !self.is_stuck(path, directory),
            own: self.owns(path),
        }
    }

    /// Returns the machine's restrictions for this user. `hidden` has the hidden paths of the session.
    pub(crate) fn machine(self, hidden: &[WirePath]) -> Machine {
        let closed = |place: &&WirePath| {
            let exists = place.as_path().exists();
            exists && !self.may(place.as_path(), READ) && !self.may(place.as_path(), EXECUTE)
        };
        let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
        let root = matches!(self, Self::Capless(Identity { uid: 0, .. }));
        let machine = Machine::new(&mounts, perhaps_there(hidden).filter(closed).cloned().collect(), root);
        let io_uring = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok();
        let machine = machine.with_io_uring(io_uring.as_deref());
        let machine = machine.with_variables(std::env::vars_os().map(|(name, _)| name));
        // This process's capabilities are not those of another user.
        match self {
            Self::Capless(identity) if identity.uid != geteuid().as_raw() => machine,
            _ => machine.with_powers(&fs::read_to_string("/proc/self/status").unwrap_or_default()),
        }
    }

    fn may(self, path: &Path, wanted: u32) -> bool {
        match self {
            Self::Myself => {
                let mode = AccessFlags::from_bits_truncate(wanted.cast_signed());
                // Read-only mounts are considered separately.
                let asked = faccessat(AT_FDCWD, path, mode, AtFlags::AT_EACCESS);
                matches!(asked, Ok(()) | Err(nix::errno::Errno::EROFS))
            }
            Self::Capless(identity) => {
                let allows = |place: &Path, wanted| {
                    place.metadata().is_ok_and(|meta| mode_of(identity, &meta) & wanted == wanted)
                };
                allows(path, wanted) && path.ancestors().skip(1).all(|place| allows(place, EXECUTE))
            }
        }
    }

    fn owns(self, path: &Path) -> bool {
        let uid = match self {
            Self::Myself => geteuid().as_raw(),
            Self::Capless(identity) => identity.uid,
        };
        path.symlink_metadata().is_ok_and(|meta| meta.uid() == uid)
    }

    /// True if a sticky directory prevents this user from removing a file in it (inode(7)).
    fn is_stuck(self, path: &Path, directory: &Path) -> bool {
        let is_sticky = directory.metadata().is_ok_and(|meta| meta.mode() & 0o1000 != 0);
        is_sticky && path.symlink_metadata().is_ok() && !self.owns(path) && !self.owns(directory)
    }
}

/// Returns the three permission bits of the file's mode that apply to a user.
fn mode_of(identity: Identity, meta: &Metadata) -> u32 {
    let shift = match () {
        () if meta.uid() == identity.uid => 6,
        () if meta.gid() == identity.gid => 3,
        () => 0,
    };
    (meta.mode() >> shift) & 7
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    const SOMEBODY: User = User::Capless(Identity { uid: 12345, gid: 12345 });
    const ROOT: User = User::Capless(Identity { uid: 0, gid: 0 });

    #[test]
    fn modes_decide_for_whoever_has_no_capabilities() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can give files away");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        chown(&file, Some(12345), Some(12345)).unwrap();
        for (mode, read, write) in [(0o644, true, true), (0o444, true, false), (0o044, false, false)] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let permits = SOMEBODY.permits(&file);
            assert_eq!((permits.read, permits.write, permits.own), (read, write, true), "{mode:o}");
            assert!(!permits.remove, "the directory is root's");
        }
        let permits = ROOT.permits(&file);
        assert_eq!((permits.read, permits.write, permits.remove, permits.own), (true, false, true, false));
        fs::set_permissions(place.path(), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(SOMEBODY.permits(&file), Permits { own: true, ..Permits::default() }, "no way there");
    }

    #[test]
    fn what_does_not_exist_is_judged_by_what_is_above_it() {
        let place = tempfile::tempdir().unwrap();
        let permits = User::of(None).permits(&place.path().join("new/er"));
        assert_eq!(permits, Permits { write: true, remove: true, ..Permits::default() });
    }

    #[test]
    fn a_hidden_place_may_be_closed_already() {
        let place = tempfile::tempdir().unwrap();
        let secret = place.path().join("secret");
        fs::write(&secret, "").unwrap();
        let hidden = [WirePath::from(&secret), place.path().join("none").into()];
        assert!(!User::of(None).machine(&hidden).closes(&hidden[0]));
        fs::set_permissions(&secret, Permissions::from_mode(0o000)).unwrap();
        let machine = User::of(None).machine(&hidden);
        assert!(machine.closes(&hidden[0]) && !machine.closes(&hidden[1]));
    }
}
