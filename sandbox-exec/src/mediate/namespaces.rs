//! Whether a user without capabilities could make namespaces here: a child tries it and ends.
//!
//! There are only so many kinds, so that each is tried once and its outcome kept.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc::{self, c_int, c_long};
use nix::unistd::pipe2;

use super::status::Status;

/// `CLONE_NEWTIME` (linux/sched.h): of `unshare(2)` alone; to `clone(2)` it is part of a signal.
const NEW_TIME: c_int = 0x80;

/// The namespaces by their flags.
const KINDS: [(c_int, &str); 8] = [
    (libc::CLONE_NEWUSER, "CLONE_NEWUSER"),
    (libc::CLONE_NEWNS, "CLONE_NEWNS"),
    (libc::CLONE_NEWPID, "CLONE_NEWPID"),
    (libc::CLONE_NEWNET, "CLONE_NEWNET"),
    (libc::CLONE_NEWIPC, "CLONE_NEWIPC"),
    (libc::CLONE_NEWUTS, "CLONE_NEWUTS"),
    (libc::CLONE_NEWCGROUP, "CLONE_NEWCGROUP"),
    (NEW_TIME, "CLONE_NEWTIME"),
];

/// What else may be unshared: it is anybody's own.
const OWN: [(c_int, &str); 3] = [
    (libc::CLONE_FILES, "CLONE_FILES"),
    (libc::CLONE_FS, "CLONE_FS"),
    (libc::CLONE_SYSVSEM, "CLONE_SYSVSEM"),
];

/// What a new process may have beside its namespaces, whatever they are; the lowest byte is a signal. Of the other flags some exclude
/// some of them.
const HARMLESS: c_int = 0xff
    | libc::CLONE_VM
    | libc::CLONE_VFORK
    | libc::CLONE_FILES
    | libc::CLONE_SETTLS
    | libc::CLONE_PIDFD
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_SETTID
    | libc::CLONE_CHILD_CLEARTID;

/// Says to whom user namespaces are open, beside what the program that tries it may have been granted by name (`AppArmor`).
const BY_PROFILE: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// What was found out, by the flags.
#[derive(Debug, Default)]
pub(super) struct Namespaces(Mutex<HashMap<c_int, bool>>);

impl Namespaces {
    /// `unshare(2)` with these flags, if the caller could have done it.
    pub(super) fn unshare(&self, flags: c_int, caller: &Status) -> Option<String> {
        let own = OWN.iter().fold(0, |all, (flag, _)| all | flag);
        let kinds = flags & every_kind();
        // A process of several threads gets no user namespace.
        let fits = flags & !(own | kinds) == 0 && (kinds & libc::CLONE_NEWUSER == 0 || caller.threads == 1);
        (fits && self.can_make(kinds))
            .then(|| format!("unshare({})", names(flags, &[&KINDS[..], &OWN].concat())))
    }

    /// `clone(2)` with these flags, if anybody could have done it.
    pub(super) fn clone(&self, flags: c_int) -> Option<String> {
        let kinds = flags & every_kind() & !NEW_TIME;
        (flags & !(HARMLESS | kinds) == 0 && self.can_make(kinds))
            .then(|| format!("clone({})", names(kinds, &KINDS)))
    }

    fn can_make(&self, kinds: c_int) -> bool {
        if kinds == 0 {
            return true;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&kinds) {
            return *known;
        }
        // Nothing is kept of what could not be tried.
        let can = !is_granted_by_name() && try_out(kinds).unwrap_or(false);
        known.insert(kinds, can);
        can
    }
}

fn every_kind() -> c_int {
    KINDS.iter().fold(0, |all, (flag, _)| all | flag)
}

fn names(flags: c_int, table: &[(c_int, &str)]) -> String {
    let set: Vec<_> = table.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, name)| *name).collect();
    if set.is_empty() { "0".to_owned() } else { set.join("|") }
}

fn is_granted_by_name() -> bool {
    fs::read_to_string(BY_PROFILE).is_ok_and(|text| text.trim() != "0")
}

/// Has a child make these; whether it could.
fn try_out(kinds: c_int) -> Result<bool, Errno> {
    let (told, tell) = pipe2(OFlag::O_CLOEXEC)?;
    let nothing: c_long = 0;
    // SAFETY: without a stack the child goes on with a copy of this one. It makes three system calls and ends: it is a copy of one
    // thread of many. No signal tells of its end.
    let child = unsafe { libc::syscall(libc::SYS_clone, nothing, nothing, nothing, nothing, nothing) };
    if child == 0 {
        // SAFETY: integers, and a byte that is there; ends the child.
        unsafe {
            if libc::syscall(libc::SYS_unshare, c_long::from(kinds)) == 0 {
                libc::write(tell.as_raw_fd(), c"1".as_ptr().cast(), 1);
            }
            libc::_exit(0)
        }
    }
    let child = Errno::result(child)?;
    drop(tell);
    let mut byte = [0];
    // Who reaps everything may have reaped it already, so that its status is not asked for.
    let made = File::from(told).read(&mut byte).is_ok_and(|read| read == 1);
    // SAFETY: no status is written.
    unsafe { libc::waitpid(i32::try_from(child).unwrap_or(0), std::ptr::null_mut(), libc::__WALL) };
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(threads: usize) -> Status {
        Status { threads, ..Status::default() }
    }

    #[test]
    fn what_is_anybodys_own_is_told_and_flags_that_there_are_none_of_are_not() {
        let namespaces = Namespaces::default();
        assert_eq!(namespaces.unshare(0, &status(2)).unwrap(), "unshare(0)");
        let own = libc::CLONE_FILES | libc::CLONE_FS;
        assert_eq!(namespaces.unshare(own, &status(2)).unwrap(), "unshare(CLONE_FILES|CLONE_FS)");
        assert_eq!(namespaces.unshare(libc::CLONE_VFORK, &status(1)), None);
        assert_eq!(namespaces.unshare(libc::CLONE_NEWUSER, &status(2)), None, "of one thread only");
        assert_eq!(namespaces.clone(libc::CLONE_NEWUSER | libc::CLONE_FS), None, "they exclude each other");
        assert!(namespaces.0.lock().unwrap().is_empty(), "nothing was tried");
    }

    #[test]
    fn namespaces_are_told_where_a_child_can_make_them() {
        let namespaces = Namespaces::default();
        let user = libc::CLONE_NEWUSER;
        let tried = !is_granted_by_name() && try_out(user).unwrap();
        assert_eq!(namespaces.unshare(user, &status(1)).is_some(), tried);
        assert_eq!(namespaces.clone(user | libc::SIGCHLD).is_some(), tried);
        assert_eq!(namespaces.0.lock().unwrap().len(), 1, "it is known from then on");
        let both = namespaces.clone(user | libc::CLONE_NEWNET | libc::SIGCHLD);
        assert_eq!(
            both.unwrap_or("clone(CLONE_NEWUSER|CLONE_NEWNET)".into()),
            "clone(CLONE_NEWUSER|CLONE_NEWNET)"
        );
    }
}
