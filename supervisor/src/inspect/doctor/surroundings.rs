//! Checks limits that another program, such as a container engine or a service manager, set for this process.

use std::fs;
use std::path::Path;

use nix::sys::statvfs::{FsFlags, statvfs};

use super::{CheckState, DoctorCheck};

/// Minimum size in bytes of /dev/shm. With less, programs that share memory fail, such as browsers and databases.
/// Docker's default is 64 MiB.
const LITTLE_SHARED_MEMORY: u64 = 64 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct DoctorSurroundings {
    /// Number of active system call filters (`Seccomp_filters` in `proc_pid_status(5)`).
    filters: u32,
    no_new_privs: bool,
    read_only_root: bool,
    shared_memory: Option<u64>,
}

pub(super) fn check() -> DoctorCheck {
    look().check()
}

fn look() -> DoctorSurroundings {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let size = |stat: nix::sys::statvfs::Statvfs| stat.blocks() * stat.fragment_size();
    DoctorSurroundings {
        filters: field("Seccomp_filters:").and_then(|count| count.parse().ok()).unwrap_or_default(),
        no_new_privs: field("NoNewPrivs:") == Some("1"),
        read_only_root: statvfs("/").is_ok_and(|stat| stat.flags().contains(FsFlags::ST_RDONLY)),
        shared_memory: Path::new("/dev/shm").is_dir().then(|| statvfs("/dev/shm").map_or(0, size)),
    }
}

impl DoctorSurroundings {
    fn check(&self) -> DoctorCheck {
        let mut found = Vec::new();
        match self.filters {
            0 => {}
            1 => found.push("1 seccomp filter, set by the program that started Bailiwick".to_owned()),
            count => {
                found.push(format!("{count} seccomp filters, set by the program that started Bailiwick"));
            }
        }
        found.extend(self.no_new_privs.then(|| "no_new_privs".to_owned()));
        found.extend(self.read_only_root.then(|| "a read-only root".to_owned()));
        let (state, remedy) = match self.shared_memory {
            None => {
                found.push("no /dev/shm".to_owned());
                (
                    CheckState::Warn,
                    Some(
                        "mount a /dev/shm, as with docker run --shm-size=1g: Python's locks and browsers need it",
                    ),
                )
            }
            Some(size) if size <= LITTLE_SHARED_MEMORY => {
                found.push(format!("{} MiB of /dev/shm", size >> 20));
                (CheckState::Ok, None)
            }
            Some(_) => (CheckState::Ok, None),
        };
        let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
        let check = DoctorCheck::new("limits", state, found);
        match remedy {
            Some(remedy) => check.remedy(remedy),
            None => check,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bounds_a_process_is_named() {
        let free = DoctorSurroundings { shared_memory: Some(8 << 30), ..DoctorSurroundings::default() };
        assert_eq!(free.check().found, "none");
        let container = DoctorSurroundings {
            filters: 1,
            no_new_privs: true,
            read_only_root: true,
            shared_memory: Some(64 << 20),
        };
        let check = container.check();
        assert_eq!(
            (check.state, check.found.as_str()),
            (
                CheckState::Ok,
                "1 seccomp filter, set by the program that started Bailiwick, no_new_privs, a read-only root, 64 \
                 MiB of /dev/shm"
            )
        );
        let bare = DoctorSurroundings { shared_memory: None, ..free };
        assert_eq!((bare.check().state, bare.check().found.as_str()), (CheckState::Warn, "no /dev/shm"));
    }
}
