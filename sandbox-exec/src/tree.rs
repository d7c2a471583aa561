//! The view of a file system that rights are compiled against.

use std::cell::RefCell;
use std::collections::HashMap;
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
#[derive(Debug, Default)]
pub struct Host {
    /// Where directories lead, once that is known: hidden paths have most of theirs in common.
    resolved: RefCell<HashMap<PathBuf, PathBuf>>,
}

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
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return resolve(path);
        };
        let known = self.resolved.borrow().get(parent).cloned();
        let parent = known.unwrap_or_else(|| {
            let found = self.resolve(parent);
            self.resolved.borrow_mut().insert(parent.to_owned(), found.clone());
            found
        });
        let place = parent.join(name);
        match fs::symlink_metadata(&place) {
            Ok(meta) if meta.is_symlink() => resolve(&place),
            _ => place,
        }
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
        let host = Host::default();
        for resolved in [resolve(&root.join("link/a/b")), host.resolve(&root.join("link/a/b"))] {
            assert_eq!(resolved, root.join("real/a/b"));
        }
        assert_eq!(host.resolve(&root.join("link")), root.join("real"));
        assert_eq!(host.resolve(&root.join("link/c")), root.join("real/c"));
        assert_eq!(host.resolve(Path::new("/")), Path::new("/"));
        assert_eq!(resolve(Path::new("/")), Path::new("/"));
    }
}
