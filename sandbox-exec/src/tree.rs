//! The view of a file system that rights are compiled against.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What compilation has to know of a file system; a plain value stands in for it in tests.
pub trait Tree {
    /// The entries of a directory.
    fn entries(&self, directory: &Path) -> io::Result<Vec<Entry>>;
    /// The device and inode of what lies at `path`, without following a link at its end.
    fn identity(&self, path: &Path) -> io::Result<Identity>;
    /// `path` without symbolic links, as far as it exists.
    fn resolve(&self, path: &Path) -> PathBuf;
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// Whether it is a symbolic link.
    pub symlink: bool,
    /// The number of its inode.
    pub inode: u64,
}

/// What a file is, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The device.
    pub device: u64,
    /// The number of the inode on it.
    pub inode: u64,
    /// Whether it is a directory.
    pub directory: bool,
}

/// The file system of this process.
#[derive(Clone, Copy, Debug)]
pub struct Host;

impl Tree for Host {
    fn entries(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        let entry = |entry: io::Result<fs::DirEntry>| {
            let entry = entry?;
            let symlink = entry.file_type()?.is_symlink();
            Ok(Entry { symlink, inode: entry.ino(), name: entry.file_name() })
        };
        fs::read_dir(directory)?.map(entry).collect()
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Identity { device: metadata.dev(), inode: metadata.ino(), directory: metadata.is_dir() })
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        resolve(path)
    }
}

/// Canonicalises the part of `path` that exists and appends the rest.
pub fn resolve(path: &Path) -> PathBuf {
    if let Ok(canonical) = fs::canonicalize(path) {
        return canonical;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => resolve(parent).join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolve_follows_what_exists_and_keeps_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        assert_eq!(resolve(&root.join("link/a/b")), root.join("real/a/b"));
        assert_eq!(resolve(Path::new("/")), Path::new("/"));
    }
}
