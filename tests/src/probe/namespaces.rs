//! Actions in new namespaces, in which the attacker has all capabilities.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::FromRawFd;
use std::path::Path;
use std::ptr;

use nix::libc;
use nix::unistd::{getegid, geteuid};

use super::{Act, check, descriptor, done};

pub(super) const ACTS: &[(&str, Act)] = &[
    ("namespace-remount", |a| {
        enter()?;
        let flags = libc::MS_REMOUNT | libc::MS_BIND;
        // Only trees that are read-only need this; others stay writable.
        // SAFETY: C strings; no data.
        unsafe { libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), flags, ptr::null()) };
        overwrite(Path::new(a.os(0)?))
    }),
    ("namespace-bind", |a| {
        enter()?;
        let (from, to) = (a.path(0)?, a.path(1)?);
        let none = ptr::null();
        // SAFETY: C strings; no data.
        check(unsafe {
            libc::mount(from.as_ptr(), to.as_ptr(), none, libc::MS_BIND | libc::MS_REC, ptr::null())
        })?;
        overwrite(&Path::new(a.os(1)?).join(a.text(2)?))
    }),
    ("namespace-open-tree", |a| {
        enter()?;
        let (tree, name) = (a.path(0)?, a.path(1)?);
        let here = libc::AT_FDCWD;
        // OPEN_TREE_CLONE
        // SAFETY: C strings and integers; the descriptors stay open until this process ends.
        let file = unsafe {
            let tree = descriptor(libc::syscall(libc::SYS_open_tree, here, tree.as_ptr(), 1))?;
            descriptor(libc::openat(tree, name.as_ptr(), libc::O_WRONLY | libc::O_TRUNC))?
        };
        // SAFETY: a descriptor of our own.
        unsafe { File::from_raw_fd(file) }.write_all(b"x").map(|()| Vec::new())
    }),
    ("namespace-unmask", |a| {
        enter()?;
        // If no mount hides the path, there is none to remove.
        // SAFETY: a C string.
        unsafe { libc::umount2(a.path(0)?.as_ptr(), libc::MNT_DETACH) };
        fs::read(a.os(0)?)
    }),
    ("namespace-root", |a| {
        enter()?;
        let root = a.path(0)?;
        // SAFETY: a C string.
        check(unsafe { libc::chroot(root.as_ptr()) })?;
        overwrite(Path::new(a.os(1)?))
    }),
    ("chroot-write", |a| {
        let root = a.path(0)?;
        // SAFETY: a C string; the root of this process alone.
        check(unsafe { libc::chroot(root.as_ptr()) })?;
        overwrite(Path::new(a.os(1)?))
    }),
];

/// Enters new user and mount namespaces with the same user id and all capabilities.
fn enter() -> io::Result<()> {
    let (uid, gid) = (geteuid(), getegid());
    // SAFETY: flags, in a process with one thread.
    done(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) })?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

fn overwrite(path: &Path) -> io::Result<Vec<u8>> {
    OpenOptions::new().write(true).open(path)?.write_all(b"overwritten").map(|()| Vec::new())
}
