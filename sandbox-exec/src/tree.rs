//! The view of a file system that rights are compiled against.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, FileType, Metadata};
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What compilation has to know of a file system; a plain value stands in for it in tests.
pub trait Tree {
    /// The entries of a directory.
    fn entries(&self, directory: &Path) -> io::Result<Rc<[Entry]>>;
    /// The device and inode of what lies at `path`, without following a link at its end.
    fn identity(&self, path: &Path) -> io::Result<Identity>;
    /// What lies at `path`, and where that is.
    fn find(&self, path: &Path) -> Found;
}

/// Where a path leads, and what lies there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The path without symbolic links, as far as it exists.
    pub path: PathBuf,
    /// What lies at the path itself, if anything does: a link at its end is not followed.
    pub identity: Option<Identity>,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// What it is.
    pub kind: Kind,
    /// The number of its inode.
    pub inode: u64,
}

/// What an entry of a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A file, a device, a socket.
    Other,
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        match kind {
            kind if kind.is_dir() => Self::Directory,
            kind if kind.is_symlink() => Self::Link,
            _ => Self::Other,
        }
    }
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
    /// Where directories lead, once that is known, and whether they are there: hidden paths have most of theirs in common,
    /// and beneath what is not there nothing has to be looked for.
    known: RefCell<HashMap<OsString, Known>>,
    /// What lies in directories, once that was asked, by canonical paths: most hidden paths are not there, which one list says of
    /// all.
    listed: RefCell<Listings>,
}

/// What lies in directories, by their paths.
pub(crate) type Listings = HashMap<OsString, Rc<[Entry]>>;

#[derive(Clone, Debug)]
struct Known {
    path: PathBuf,
    exists: bool,
}

impl Tree for Host {
    fn entries(&self, directory: &Path) -> io::Result<Rc<[Entry]>> {
        if let Some(listed) = self.listed.borrow().get(directory.as_os_str()) {
            return Ok(Rc::clone(listed));
        }
        let entry = |entry: io::Result<fs::DirEntry>| {
            let entry = entry?;
            let kind = entry.file_type()?.into();
            Ok(Entry { kind, inode: entry.ino(), name: entry.file_name() })
        };
        let listed: Rc<[Entry]> = fs::read_dir(directory)?.map(entry).collect::<io::Result<_>>()?;
        self.listed.borrow_mut().insert(directory.as_os_str().to_owned(), Rc::clone(&listed));
        Ok(listed)
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        Ok(fs::symlink_metadata(path)?.into())
    }

    fn find(&self, path: &Path) -> Found {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Found { path: resolve(path), identity: self.identity(path).ok() };
        };
        let parent = self.directory(parent);
        let place = parent.path.join(name);
        if !parent.exists || self.lacks(&parent.path, name) {
            return Found { path: place, identity: None };
        }
        match fs::symlink_metadata(&place) {
            Ok(meta) if meta.is_symlink() => Found { path: resolve(&place), identity: Some(meta.into()) },
            Ok(meta) => Found { path: place, identity: Some(meta.into()) },
            Err(_) => Found { path: place, identity: None },
        }
    }
}

impl Host {
    /// A file system of which this is known.
    pub(crate) fn with(listed: Listings) -> Self {
        Self { listed: RefCell::new(listed), ..Self::default() }
    }

    /// What was listed.
    pub(crate) fn into_listings(self) -> Listings {
        self.listed.into_inner()
    }

    /// Whether a directory that can be listed has no entry of this name.
    fn lacks(&self, directory: &Path, name: &OsStr) -> bool {
        self.entries(directory).is_ok_and(|entries| !entries.iter().any(|entry| entry.name == name))
    }

    /// Where `path`, which something may lie in, leads.
    fn directory(&self, path: &Path) -> Known {
        if let Some(known) = self.known.borrow().get(path.as_os_str()) {
            return known.clone();
        }
        let Found { path: found, identity } = self.find(path);
        let known = Known { path: found, exists: identity.is_some() };
        self.known.borrow_mut().insert(path.as_os_str().to_owned(), known.clone());
        known
    }
}

impl From<Metadata> for Identity {
    fn from(meta: Metadata) -> Self {
        Self { device: meta.dev(), inode: meta.ino(), directory: meta.is_dir() }
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
        for resolved in [resolve(&root.join("link/a/b")), host.find(&root.join("link/a/b")).path] {
            assert_eq!(resolved, root.join("real/a/b"));
        }
        assert_eq!(host.find(&root.join("link")).path, root.join("real"));
        assert_eq!(host.find(&root.join("link/c")).path, root.join("real/c"));
        assert_eq!(host.find(Path::new("/")).path, Path::new("/"));
        assert_eq!(resolve(Path::new("/")), Path::new("/"));
    }
}
