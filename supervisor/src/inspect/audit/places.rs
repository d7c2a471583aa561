//! Paths that an audit tries in a project: the paths in its rules, and paths next to them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ipc::confinement::Confinement;

use crate::engine::place::ProjectSandbox;

/// Paths that exist on most machines: of the system and the kernel, and directories that everybody can write.
const OF_MACHINE: [&str; 22] = [
    "/",
    "/etc",
    "/etc/passwd",
    "/etc/hosts",
    "/etc/shadow",
    "/usr",
    "/usr/bin",
    "/var",
    "/var/tmp",
    "/tmp",
    "/home",
    "/root",
    "/run",
    "/proc/self/comm",
    "/proc/1/environ",
    "/proc/sys/kernel/hostname",
    "/sys",
    "/sys/kernel",
    "/dev/null",
    "/dev/zero",
    "/dev/urandom",
    "/dev/shm",
];

/// Maximum number of paths that are tried next to each path in the rules.
const NEIGHBOURS: usize = 3;

/// Returns the existing paths to try, each once.
pub(super) fn of(setup: &ProjectSandbox, confinement: &Confinement) -> Vec<PathBuf> {
    let (policy, rights) = (&setup.policy, &confinement.rights);
    let mut places = BTreeSet::new();
    let roots = policy.write.iter().chain(&policy.auto).chain([&policy.project, &policy.temp]);
    let of_policy = roots.chain(&policy.hidden).chain(&policy.protected);
    let of_rights = rights.write.iter().chain(&rights.hidden).chain(&rights.protected);
    let named = of_policy.chain(of_rights).map(|path| path.as_path().to_owned());
    for place in named.filter(|place| place.symlink_metadata().is_ok()) {
        places.extend(place.ancestors().map(Path::to_owned));
        places.extend(neighbours(&place));
        places.extend(inside(&place));
    }
    places.extend(OF_MACHINE.iter().map(PathBuf::from));
    // The locks and temp directories of other sessions.
    places.extend(
        fs::read_dir(setup.directories.locks()).into_iter().flatten().flatten().map(|lock| lock.path()),
    );
    places.extend(policy.temp.as_path().parent().map(entries).into_iter().flatten());
    places.extend(sockets());
    places.retain(|place| place.exists());
    places.into_iter().collect()
}

fn neighbours(place: &Path) -> impl Iterator<Item = PathBuf> {
    let beside = place.parent().map(entries).unwrap_or_default();
    let place = place.to_owned();
    beside.into_iter().filter(move |path| *path != place).take(NEIGHBOURS)
}

fn inside(place: &Path) -> impl Iterator<Item = PathBuf> {
    entries(place).into_iter().take(NEIGHBOURS)
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns the paths of Unix sockets with a listener on this machine (`proc_pid_net(5)`).
fn sockets() -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let found: BTreeSet<_> = table.lines().filter_map(listening).collect();
    found.into_iter().filter(|path| path.exists()).collect()
}

/// Returns the path if a line of `/proc/net/unix` is a listening socket. The columns are `Num RefCount Protocol Flags
/// Type St Inode Path`, and the flag `__SO_ACCEPTCON` is 0x10000.
fn listening(line: &str) -> Option<PathBuf> {
    let mut fields = line.split_whitespace();
    let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
    let path = line.find(" /").and_then(|at| line.get(at + 1..))?;
    (flags & 0x1_0000 != 0).then(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listens_is_found_by_its_path() {
        let of = |line: &str| listening(line).map(|path| path.display().to_string());
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/with a blank.sock";
        assert_eq!(of(line).as_deref(), Some("/run/with a blank.sock"));
        assert_eq!(of(&line.replace("00010000", "00000000")), None, "it does not listen");
        assert_eq!(of(&line.replace("/run", "@/run")), None, "it has no path");
        assert_eq!(of("Num       RefCount Protocol Flags    Type St Inode Path"), None);
    }
}
