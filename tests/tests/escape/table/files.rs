//! Attacks on files: their content, metadata and secrets, and facts about hidden files.

use nix::libc::{EACCES, EBUSY, ENODATA, ENOENT, ENOSYS, EOPNOTSUPP, EPERM, EROFS, EXDEV};

use crate::attack::Group::{Information, MetadataOutside, Secrets, SetId, WriteOutside};
use crate::attack::Held::{Apart, Open, With};
use crate::attack::Unconfined::{Harms, Works};
use crate::attack::{Attack, rows};

const DENIED: &[i32] = &[EACCES, EROFS];
/// Errors of links and renames between directories. The kernel returns EXDEV if the permission is missing on either
/// side, or if the directories are on different mounts.
const NOT_MOVED: &[i32] = &[EACCES, EXDEV, EROFS, EBUSY];

pub(super) fn all() -> Vec<Attack> {
    [writes(), ways_around(), names_of_the_home(), metadata(), set_id(), secrets(), information()].concat()
}

fn writes() -> Vec<Attack> {
    let plain = [
        "write {o}/new",
        "write {o}/file",
        "append {o}/file",
        "truncate {o}/file",
        "truncating-read {o}/file",
        "unlink {o}/file",
        "rmdir {o}/empty",
        "mkdir {o}/new",
        "symlink /nowhere {o}/new",
        "mkfifo {o}/new",
        "write {p}/link",
        "write {p}/dirlink/new",
        "write {p}/../outside/file",
        "write {p}/dirlink/../file",
        "write /proc/self/root{o}/file",
        "write-here {o} file",
        "reopen-path {o}/file",
        "reopen-read-only {o}/file",
        "truncate {p}/link",
        "unlink {p}/dirlink/inner",
    ];
    let moves = [
        "rename {o}/file {p}/moved",
        "rename {p}/mine {o}/new",
        "rename {p}/mine {o}/file",
        "rename {o}/file {o}/renamed",
        "rename {o}/dir {p}/moved",
        "exchange {p}/mine {o}/file",
        "exchange {o}/dir {o}/empty",
        "link {o}/file {p}/taken",
        "link {p}/mine {o}/new",
    ];
    // The /proc directory of a missing process does not exist.
    let of_others = ["write /proc/{v}/cwd/new", "write /proc/{v}/root{o}/file"];
    [
        rows(WriteOutside, Harms, With(DENIED), With(DENIED), &plain),
        rows(WriteOutside, Harms, With(NOT_MOVED), With(NOT_MOVED), &moves),
        rows(WriteOutside, Harms, With(&[ENOENT]), With(DENIED), &of_others),
        // With the network off, the socket is denied before the name is checked.
        rows(WriteOutside, Harms, With(DENIED), With(&[EPERM, EACCES]), &["bind-unix {o}/new"]),
        // In the full tier these paths are in the sandbox's own file systems.
        rows(WriteOutside, Harms, With(&[ENOENT]), With(DENIED), &["append /dev/shm/{name}"]),
        rows(
            WriteOutside,
            Harms,
            Apart,
            With(DENIED),
            &["write /dev/shm/{name}-new", "write /tmp/{name}-new"],
        ),
        rows(
            WriteOutside,
            Harms,
            With(&[ENOENT]),
            With(DENIED),
            &["unlink /tmp/{name}", "append /tmp/{name}"],
        ),
        rows(WriteOutside, Harms, Apart, Apart, &["swap-race {p} {o}/dir"]),
    ]
    .concat()
}

/// Attacks by other system call tables, and in new namespaces.
fn ways_around() -> Vec<Attack> {
    let namespaces = [
        "namespace-remount {o}/file",
        "namespace-bind {o} {p}/place file",
        "namespace-open-tree {o} file",
        "namespace-root {o} /file",
    ];
    [
        rows(WriteOutside, Harms, With(&[ENOSYS]), With(&[ENOSYS]), &["io-uring-truncate {o}/file"]),
        // A call of a foreign table ends the process.
        rows(WriteOutside, Harms, With(&[-1]), With(&[-1]), &["int80-truncate {o}/file"]),
        rows(WriteOutside, Harms, With(&[EPERM]), With(&[EPERM]), &namespaces),
        rows(WriteOutside, Harms, With(&[EPERM]), With(&[EPERM]), &["root: chroot-write {o} /file"]),
    ]
    .concat()
}

/// Attacks on files that the user's programs read when they start the next time.
fn names_of_the_home() -> Vec<Attack> {
    let acts = [
        "append {h}/.bashrc",
        "write {h}/.profile",
        "append {h}/.gitconfig",
        "write {h}/.config/git/config",
        "write {h}/.config/autostart/adversary.desktop",
        "write {h}/.config/systemd/user/adversary.service",
        "write {h}/.config/fish/config.fish",
        "write {h}/.ssh/authorized_keys",
        "write {h}/.ssh/rc",
        "write {h}/.local/bin/git",
        "write {h}/.cargo/config.toml",
        "symlink {p}/mine {h}/.zshenv",
    ];
    rows(WriteOutside, Harms, With(&[EACCES, EROFS]), With(DENIED), &acts)
}

fn metadata() -> Vec<Attack> {
    let acts = [
        "chmod {o}/file",
        "fchmod {o}/file",
        "fchmodat2 {o}/file",
        "chmod {p}/link",
        "chmod {p}/dirlink/inner",
        "chmod {p}/../outside/file",
        "chmod /proc/self/root{o}/file",
        "fchmodat2 {p}/dirlink/../file",
        "chown {o}/file {uid} {gid}",
        "lchown {o}/file {uid} {gid}",
        "fchown {o}/file {uid} {gid}",
        "utimensat {o}/file",
        "futimens {o}/file",
        "setxattr {o}/file",
        "fsetxattr {o}/file",
        "removexattr {o}/file",
        "file-flags {o}/file",
        "utimensat {o}/dir",
        "chmod {h}/.bashrc",
    ];
    rows(MetadataOutside, Harms, With(&[EROFS, EPERM]), With(&[EACCES]), &acts)
}

fn set_id() -> Vec<Attack> {
    let acts = ["set-uid {p}/mine", "set-gid {p}/mine", "set-uid-mknod {p}/taken"];
    // A plain user's set-id file gives no access, and a seccomp filter cannot see the mode of openat2.
    let opens = ["root alone: set-uid-open {p}/taken", "root alone: set-gid-open {p}/moved"];
    [
        rows(SetId, Works, With(&[EPERM]), With(&[EPERM]), &acts),
        rows(SetId, Works, With(&[EPERM]), With(&[EPERM]), &opens),
    ]
    .concat()
}

fn secrets() -> Vec<Attack> {
    let reads = [
        "read {o}/hidden",
        "read {p}/hiddenlink",
        "read {p}/../outside/hidden",
        "read /proc/self/root{o}/hidden",
        "read {p}/dirlink/../hidden",
    ];
    let below = ["read {o}/vault/secret", "read {p}/vaultlink/secret"];
    let programs = [
        "execute cat {o}/hidden",
        "execute bash -c cat<{o}/hidden",
        "execute bash -c echo%20$(<{o}/hidden)",
        "execute tar cf - {o}/hidden",
        "execute tar cf - -C {o} vault",
        "execute dd if={o}/hidden",
        "execute grep -r secret {o}/vault",
        "execute python3 -c print(open('{o}/hidden').read())",
        "execute perl -pe 1 {o}/hidden",
        "plain: execute {o}/set-uid {o}/of-root",
    ];
    [
        rows(Secrets, Harms, With(&[EACCES]), With(&[EACCES]), &reads),
        rows(Secrets, Harms, With(&[EACCES, ENOENT]), With(&[EACCES]), &below),
        rows(Secrets, Harms, With(&[ENOENT]), With(&[EACCES]), &["read /proc/{v}/cwd/hidden"]),
        // A compressed secret does not appear as text, so it counts that the file was read.
        rows(Secrets, Works, With(&[-1]), With(&[-1]), &["execute gzip -c {o}/hidden"]),
        // Some programs succeed with the empty input that they get.
        rows(Secrets, Harms, Apart, Apart, &programs),
        rows(
            Secrets,
            Harms,
            With(NOT_MOVED),
            With(NOT_MOVED),
            &[
                "link-read {o}/hidden {p}/taken",
                "rename-read {o}/vault {p}/moved secret",
                "rename-read {o}/vault {o}/renamed secret",
            ],
        ),
        rows(
            Secrets,
            Harms,
            With(&[EPERM]),
            With(&[EPERM]),
            &["namespace-unmask {o}/hidden", "root: handle-read {o}/hidden"],
        ),
    ]
    .concat()
}

fn information() -> Vec<Attack> {
    const REASON: &str = "Landlock knows no right to look at what is no content";
    let inside = ["list {o}/vault", "link-target {o}/vault/link", "getxattr {o}/vault/secret"];
    let shown = ["size {o}/vault/secret", "inotify {o}/vault/secret"];
    let no_attribute: &[i32] = &[EACCES, EPERM, ENODATA, EOPNOTSUPP];
    [
        rows(Information, Harms, With(&[EACCES, ENOENT]), Open(REASON), &inside),
        rows(Information, Works, With(&[EACCES, ENOENT]), Open(REASON), &shown),
        rows(Information, Harms, With(no_attribute), Open(REASON), &["getxattr {o}/hidden"]),
        rows(Information, Harms, Apart, Open(REASON), &["size {o}/hidden-sized"]),
    ]
    .concat()
}
