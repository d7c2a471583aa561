use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ipc::path::WirePath;
use ipc::text::hexadecimal;
use nix::sys::stat::fstat;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::system::file_handle;
use crate::tripwire::beneath::open_root;

/// Identity of a directory: its canonical path and its file handle. A later directory at that path gets another handle.
///
/// On a file system without handles (`name_to_handle_at(2)`), the inode is used instead, although a later directory may
/// get the same one. Device numbers change with each mount, and some file systems have no birth times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RootIdentity {
    pub(super) path: WirePath,
    handle: String,
}

impl RootIdentity {
    pub(super) fn of(path: &Path, directory: &OwnedFd) -> io::Result<Self> {
        let handle = match file_handle(directory) {
            Ok(handle) => hexadecimal(&handle),
            Err(_) => format!("inode {}", fstat(directory.as_fd())?.st_ino),
        };
        Ok(Self { path: path.into(), handle })
    }

    pub(super) fn key(&self) -> String {
        let digest = Sha256::new().chain_update(self.path.as_path().as_os_str().as_bytes());
        hexadecimal(&digest.chain_update([0]).chain_update(&self.handle).finalize()[..16])
    }

    /// True if `self` and `other` are different directories at the same path.
    pub(super) fn replaces(&self, other: &Self) -> bool {
        self.path == other.path && self.handle != other.handle
    }

    /// True if `self` and `other` are the same directory, which was moved away from the path of `other`.
    pub(super) fn was_at(&self, other: &Self) -> bool {
        let is_there = || {
            let path = other.path.as_path();
            open_root(path).is_ok_and(|held| Self::of(path, &held).is_ok_and(|found| found == *other))
        };
        self.path != other.path && self.handle == other.handle && !is_there()
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let (one, other_path) = (self.path.as_path(), other.path.as_path());
        one.starts_with(other_path) || other_path.starts_with(one) || self.handle == other.handle
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_that_was_made_anew_is_another_one() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("project");
        let made = || {
            fs::create_dir(&path).unwrap();
            let identity = RootIdentity::of(&path, &open_root(&path).unwrap()).unwrap();
            fs::remove_dir(&path).unwrap();
            identity
        };
        let (first, second) = (made(), made());
        if first.handle.starts_with("inode") {
            eprintln!("skipped: this file system has no file handles");
            return;
        }
        assert!(second.replaces(&first) && first.key() != second.key());
        assert_eq!(first, first.clone());
    }

    #[test]
    fn directories_overlap_by_path_or_by_handle() {
        let identity =
            |path: &str, handle: &str| RootIdentity { path: Path::new(path).into(), handle: handle.into() };
        let project = identity("/p", "1");
        for (path, handle, overlaps) in
            [("/p/sub", "2", true), ("/", "3", true), ("/p2", "4", false), ("/elsewhere", "1", true)]
        {
            assert_eq!(project.overlaps(&identity(path, handle)), overlaps, "{path}");
        }
    }
}
