//! Bounds on the resources of a control group's processes (`cgroups(7)`, version 2).
//!
//! The kernel enables controllers only for groups whose parent has no process of its own. The broker enables them only
//! if an attribute marks the parent as delegated. It does not suffice that the user owns the parent: the user's own
//! bounds may be set on the broker's group there, and a program in a sibling group would escape them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use ipc::confinement::Bounds;

use crate::system::file;

/// Attribute of a delegated control group, with the value `1` (`systemd.resource-control(5)`, `Delegate=`).
const DELEGATED: &std::ffi::CStr = c"user.delegate";

pub(super) fn is_delegated(group: &Path) -> bool {
    file::has_attribute(group, DELEGATED, b"1")
}

/// Sets as many of the wanted bounds as possible; returns those that were set.
pub(super) fn set(parent: &Path, group: &Path, wanted: Bounds) -> Bounds {
    let set = |controller: &str, most: Option<u64>| {
        most.filter(|most| {
            enable(parent, controller)
                .and_then(|()| write(&group.join(format!("{controller}.max")), &most.to_string()))
                .is_ok()
        })
    };
    Bounds { processes: set("pids", wanted.processes), memory: set("memory", wanted.memory) }
}

/// Enables a controller for the child groups of `parent`. It stays enabled, since other brokers may use it.
fn enable(parent: &Path, controller: &str) -> io::Result<()> {
    let path = parent.join("cgroup.subtree_control");
    if fs::read_to_string(&path)?.split_whitespace().any(|enabled| enabled == controller) {
        return Ok(());
    }
    write(&path, &format!("+{controller}"))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a directory of plain files in place of a control group, so the kernel's reaction is not tested.
    fn parent(enabled: &str, files: &[&str]) -> tempfile::TempDir {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join("group")).unwrap();
        fs::write(parent.path().join("cgroup.subtree_control"), enabled).unwrap();
        for file in files {
            fs::write(parent.path().join("group").join(file), "max\n").unwrap();
        }
        parent
    }

    fn bound(parent: &Path) -> Bounds {
        set(parent, &parent.join("group"), Bounds { processes: Some(64), memory: Some(1 << 30) })
    }

    fn written(parent: &Path, name: &str) -> String {
        fs::read_to_string(parent.join(name)).unwrap()
    }

    #[test]
    fn what_a_group_can_bound_is_bound_and_reported() {
        let both = parent("cpu memory pids\n", &["pids.max", "memory.max"]);
        assert_eq!(bound(both.path()), Bounds { processes: Some(64), memory: Some(1 << 30) });
        assert!(written(both.path(), "group/pids.max").starts_with("64"));
        assert!(written(both.path(), "group/memory.max").starts_with("1073741824"));
        assert_eq!(written(both.path(), "cgroup.subtree_control"), "cpu memory pids\n", "was on");
    }

    #[test]
    fn a_controller_is_switched_on_that_is_not() {
        let off = parent("", &["pids.max"]);
        let wanted = Bounds { processes: Some(64), memory: None };
        assert_eq!(set(off.path(), &off.path().join("group"), wanted), wanted);
        assert!(written(off.path(), "cgroup.subtree_control").contains("+pids"));
    }

    #[test]
    fn what_has_no_file_is_not_reported_as_bound() {
        let no_memory = parent("memory pids", &["pids.max"]);
        assert_eq!(bound(no_memory.path()), Bounds { processes: Some(64), memory: None });
        assert!(!no_memory.path().join("group/memory.max").exists(), "nothing is made");
    }

    #[test]
    fn only_what_says_so_is_delegated() {
        let group = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        assert!(!is_delegated(group.path()));
        assert!(!is_delegated(Path::new("/nonexistent")));
    }
}
