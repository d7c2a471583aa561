//! Checks if this process has a control group of its own, in which it can set limits and end all its processes at once.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use nix::unistd::{AccessFlags, access};

use super::{CheckState, DoctorCheck};

/// Mount point of control groups on nearly every system (cgroups(7)).
const MOUNT: &str = "/sys/fs/cgroup";

/// Files that a process can write in a control group that was delegated to it (cgroups(7), "Delegation: delegating a
/// hierarchy").
const DELEGATED: [&str; 2] = ["cgroup.procs", "cgroup.subtree_control"];

#[derive(Clone, Debug, PartialEq, Eq)]
enum FoundCgroups {
    /// No unified hierarchy (version 2) is mounted.
    NoVersion2,
    /// A unified hierarchy is mounted, but does not show the group of this process.
    Unseen,
    /// The group of this process is visible.
    Own { path: PathBuf, delegated: bool, controllers: String },
}

pub(super) fn check() -> DoctorCheck {
    DoctorCheck::new("cgroups", CheckState::Ok, look().to_string())
}

fn look() -> FoundCgroups {
    if !statfs(MOUNT).is_ok_and(|found| found.filesystem_type() == CGROUP2_SUPER_MAGIC) {
        return FoundCgroups::NoVersion2;
    }
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(path) = own_path(&membership).filter(|path| path.is_dir()) else { return FoundCgroups::Unseen };
    let is_delegated = |name: &str| access(&path.join(name), AccessFlags::W_OK).is_ok();
    let controllers = fs::read_to_string(path.join("cgroup.controllers")).unwrap_or_default();
    FoundCgroups::Own {
        delegated: access(&path, AccessFlags::W_OK).is_ok()
            && DELEGATED.iter().all(|name| is_delegated(name)),
        controllers: controllers.trim().to_owned(),
        path,
    }
}

/// Returns the group's path from the line `0::/path` (cgroups(7), "/proc/pid/cgroup"). `None` if it begins with `/..`,
/// because the group is outside of the namespace.
fn own_path(membership: &str) -> Option<PathBuf> {
    let path = membership.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let is_outside = Path::new(path).components().any(|part| part.as_os_str() == "..");
    (!is_outside).then(|| Path::new(MOUNT).join(path))
}

impl std::fmt::Display for FoundCgroups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoVersion2 => f.write_str("v2 not available (optional)"),
            Self::Unseen => f.write_str("v2, the group of this process is not visible (optional)"),
            Self::Own { path, delegated, controllers } => {
                let whose = if *delegated { "delegated to Bailiwick" } else { "not delegated to Bailiwick" };
                let controllers = if controllers.is_empty() { "none" } else { controllers };
                write!(f, "v2, {}, {whose}; controllers: {controllers}", path.display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_the_one_of_the_unified_hierarchy() {
        let own = |text: &str| own_path(text).map(|path| path.display().to_string());
        assert_eq!(own("0::/user.slice/x\n").as_deref(), Some("/sys/fs/cgroup/user.slice/x"));
        assert_eq!(own("12:cpu:/y\n0::/\n").as_deref(), Some("/sys/fs/cgroup/"));
        assert_eq!(own("12:cpu:/y\n"), None, "version 1 alone");
        assert_eq!(own("0::/../../elsewhere\n"), None, "of another namespace");
    }

    #[test]
    fn what_was_found_is_a_line() {
        let own = |delegated, controllers: &str| FoundCgroups::Own {
            path: "/sys/fs/cgroup/a".into(),
            delegated,
            controllers: controllers.to_owned(),
        };
        assert_eq!(
            own(true, "cpu memory pids").to_string(),
            "v2, /sys/fs/cgroup/a, delegated to Bailiwick; controllers: cpu memory pids"
        );
        assert_eq!(
            own(false, "").to_string(),
            "v2, /sys/fs/cgroup/a, not delegated to Bailiwick; controllers: none"
        );
    }
}
