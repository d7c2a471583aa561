use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ipc::confinement::Identity;
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{getegid, geteuid};
use protocol::error_code::ErrorCode;

use crate::process::messages::say;

/// Warns if file modes or mounts make the project read-only for the workers' user, even if agents have write access.
pub(super) fn warn_of_unwritable(project: &Path, identity: Option<Identity>) {
    if let Some(why) = unwritable(project, identity) {
        let text = format!(
            "note: {} {why}: nothing can be changed there, whatever --mode says\n  hint: work in a copy that you can write",
            project.display()
        );
        say(&ErrorCode::ProjectReadOnly.mark(&text));
    }
}

fn unwritable(project: &Path, identity: Option<Identity>) -> Option<String> {
    if statvfs(project).is_ok_and(|stat| stat.flags().contains(FsFlags::ST_RDONLY)) {
        return Some("is on a read-only file system".to_owned());
    }
    let meta = project.metadata().ok()?;
    let own = Identity { uid: geteuid().as_raw(), gid: getegid().as_raw() };
    let worker = identity.unwrap_or(own);
    // Workers have no capability. As their groups are unknown here, a group that may write is taken for one of them.
    let may = match () {
        () if meta.uid() == worker.uid => meta.mode() & 0o200,
        () => meta.mode() & 0o022,
    };
    (may == 0).then(|| format!("has mode {:03o} and belongs to uid {}", meta.mode() & 0o777, meta.uid()))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_that_nobody_may_write_is_named_with_its_mode() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(unwritable(place.path(), None), None);
        set_permissions(place.path(), Permissions::from_mode(0o555)).unwrap();
        let own = geteuid().as_raw();
        assert_eq!(unwritable(place.path(), None), Some(format!("has mode 555 and belongs to uid {own}")));
        set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        let stranger = Some(Identity { uid: own + 1, gid: getegid().as_raw() + 1 });
        assert!(unwritable(place.path(), stranger).is_some());
    }
}
