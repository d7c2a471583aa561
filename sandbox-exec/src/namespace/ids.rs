//! User and group ids in the program's user namespace. They equal the host's, so that files keep their owners.

use std::fmt::Write as _;
use std::fs;
use std::io;

use caps::{CapSet, Capability};
use nix::unistd::{Pid, getegid, geteuid};

/// Writes the id maps of a child in a new user namespace.
///
/// With `CAP_SETUID` and `CAP_SETGID`, maps every id to itself, since `ls`, `git` and `tar` check the owners of files.
/// Without them a process may map only its own ids.
pub(crate) fn map(child: Pid) -> io::Result<()> {
    let place = |name: &str| format!("/proc/{child}/{name}");
    // An unprivileged user must write this before the group map. Elsewhere it is harmless, since no process
    // inside may change its groups anyway.
    fs::write(place("setgroups"), "deny")?;
    write(&place("uid_map"), "/proc/self/uid_map", Capability::CAP_SETUID, geteuid().as_raw())?;
    write(&place("gid_map"), "/proc/self/gid_map", Capability::CAP_SETGID, getegid().as_raw())
}

fn write(map: &str, ours: &str, needed: Capability, own: u32) -> io::Result<()> {
    if caps::has_cap(None, CapSet::Effective, needed).unwrap_or(false) {
        match fs::write(map, identity(&fs::read_to_string(ours)?)) {
            // In some containers the capability does not suffice.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            written => return written,
        }
    }
    fs::write(map, format!("{own} {own} 1"))
}

fn identity(ours: &str) -> String {
    let mut map = String::new();
    for line in ours.lines() {
        let mut fields = line.split_whitespace();
        if let (Some(first), Some(count)) = (fields.next(), fields.nth(1)) {
            // Writing to a string cannot fail.
            let _ = writeln!(map, "{first} {first} {count}");
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_namespace_are_mapped_to_themselves() {
        assert_eq!(identity("         0          0 4294967295\n"), "0 0 4294967295\n");
        assert_eq!(identity("0 1000 1\n1 100000 65536\n"), "0 0 1\n1 1 65536\n");
        assert_eq!(identity("garbage\n"), "");
    }
}
