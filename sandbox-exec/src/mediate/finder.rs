//! Finds a socket from inside among the descriptors of the processes that have it.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::{OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use nix::libc::pid_t;

use super::socket;
use crate::system;

/// A duplicate of the socket of an inode and a cookie: first of what a thread has, then of what any process has that may be
/// looked at. Those of others are never found: outside of the domain that ours is nested in nobody may be.
pub(super) fn find(inode: u32, cookie: u64, first: pid_t) -> Option<OwnedFd> {
    let processes = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| number(&entry.file_name()));
    std::iter::once(first).chain(processes).find_map(|process| of_process(process, inode, cookie))
}

fn of_process(process: pid_t, inode: u32, cookie: u64) -> Option<OwnedFd> {
    let wanted = PathBuf::from(format!("socket:[{inode}]"));
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten();
    let named = |path: &Path| fs::read_link(path).is_ok_and(|name| name == wanted);
    let mut numbers = descriptors
        .filter(|entry| named(&entry.path()))
        .filter_map(|entry| number::<RawFd>(&entry.file_name()));
    // What has the number by now can be another.
    let is_it = |found: &OwnedFd| socket::cookie(found).is_ok_and(|found| found == cookie);
    numbers.find_map(|number| duplicate(process, number).filter(is_it))
}

fn duplicate(process: pid_t, number: RawFd) -> Option<OwnedFd> {
    let process = system::open_process(process).ok()?;
    system::duplicate_from(&process, number).ok()
}

fn number<T: std::str::FromStr>(name: &OsStr) -> Option<T> {
    name.to_str()?.parse().ok()
}
