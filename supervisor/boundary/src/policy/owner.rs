//! Owner of a project, and the user as which its workers run.
//!
//! A confined root has no capabilities, so it cannot access another user's private files. If root starts Bailiwick in
//! the project of another user, the workers therefore run as that user.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ipc::confinement::Identity;
use nix::unistd::{Uid, User, geteuid};

/// User that workers run as instead of root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub identity: Identity,
    pub name: Option<String>,
    pub home: Option<PathBuf>,
}

/// Returns the owner of a project if workers must run as the owner. `None` if this process does not run as root, if
/// root owns the project, or if everybody may write to it.
pub fn foreign_owner(project: &Path) -> Option<Owner> {
    let meta = fs::metadata(project).ok()?;
    let foreign = geteuid().is_root() && meta.uid() != 0 && meta.mode() & 0o002 == 0;
    foreign.then(|| {
        let user = User::from_uid(Uid::from_raw(meta.uid())).ok().flatten();
        let home = user.as_ref().and_then(|user| fs::canonicalize(&user.dir).ok());
        Owner {
            identity: Identity { uid: meta.uid(), gid: meta.gid() },
            name: user.map(|user| user.name),
            home: home.filter(|home| home != Path::new("/")),
        }
    })
}

/// Returns the first directory on a path that a user cannot enter; `None` if the user can enter all of them. Groups of
/// the user other than the main one are ignored.
pub fn closed_to(identity: Identity, path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut places: Vec<_> = path.ancestors().collect();
    places.reverse();
    let open = |place: &&Path| fs::metadata(place).is_ok_and(|meta| may_execute(identity, &meta));
    places.into_iter().find(|place| !open(place)).map(Path::to_owned)
}

fn may_execute(identity: Identity, meta: &Metadata) -> bool {
    let bit = match () {
        () if meta.uid() == identity.uid => 0o100,
        () if meta.gid() == identity.gid => 0o010,
        () => 0o001,
    };
    meta.mode() & bit != 0
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const SOMEBODY: Identity = Identity { uid: 12345, gid: 12345 };

    #[test]
    fn what_modes_close_is_named() {
        let place = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
        let inner = fs::canonicalize(place.path()).unwrap().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(&inner, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(closed_to(SOMEBODY, &inner), None);
        fs::set_permissions(&inner, Permissions::from_mode(0o700)).unwrap();
        assert_eq!(closed_to(SOMEBODY, &inner.join("x")), Some(inner.clone()));
        let meta = fs::metadata(&inner).unwrap();
        let owner = Identity { uid: meta.uid(), gid: meta.gid() };
        assert_eq!(closed_to(owner, &inner), None, "its owner may");
    }

    #[test]
    fn only_root_works_as_somebody_else() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(foreign_owner(place.path()), None, "it is our own");
        if !geteuid().is_root() {
            eprintln!("skipped: only root can give files away");
            return;
        }
        std::os::unix::fs::chown(place.path(), Some(12345), Some(23456)).unwrap();
        let owner = foreign_owner(place.path()).unwrap();
        assert_eq!(owner.identity, Identity { uid: 12345, gid: 23456 });
        fs::set_permissions(place.path(), Permissions::from_mode(0o777)).unwrap();
        assert_eq!(foreign_owner(place.path()), None, "everybody may write there");
    }
}
