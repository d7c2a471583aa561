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
        let listed = self.entries(&parent.path).ok();
        let candidates = listed.as_ref().map(|listed| Candidates::of(listed, name));
        if !parent.exists || candidates.as_ref().is_some_and(|candidates| candidates.0.is_empty()) {
            return Found { path: place, identity: None };
        }
        let Ok(meta) = fs::symlink_metadata(&place) else {
            return Found { path: place, identity: None };
        };
        let called = candidates.and_then(|candidates| candidates.called(name, meta.ino()));
        let place = called.map_or(place, |called| parent.path.join(called));
        let path = if meta.is_symlink() { resolve(&place) } else { place };
        Found { path, identity: Some(meta.into()) }
    }
}

/// The entries of a directory that a name can mean. Where a file system folds case (ext4 and tmpfs with `casefold`, vfat, exFAT), that is not
/// one of the very name alone; a rule is made for each entry, by the name that is listed.
struct Candidates<'a>(Vec<&'a Entry>);

impl<'a> Candidates<'a> {
    fn of(listed: &'a [Entry], name: &OsStr) -> Self {
        Self(listed.iter().filter(|entry| might_be(&entry.name, name)).collect())
    }

    /// Under which name that is listed, if not under its own, a name leads to this inode.
    fn called(&self, name: &OsStr, inode: u64) -> Option<&'a OsStr> {
        let Self(candidates) = self;
        let is_listed = candidates.iter().any(|entry| entry.name == name);
        let other = candidates.iter().find(|entry| entry.inode == inode).filter(|_| !is_listed);
        other.map(|entry| entry.name.as_os_str())
    }
}

/// Whether a file system can take one name for another: what letters beyond ASCII fold to differs.
fn might_be(listed: &OsStr, name: &OsStr) -> bool {
    listed.eq_ignore_ascii_case(name) || !listed.is_ascii() || !name.is_ascii()
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

    /// As a file system lists it that folds case, and where both are the same.
    #[test]
    fn what_is_listed_under_another_name_is_found_under_that() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::write(root.join(".env"), "").unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        let entry = |listed: &str, name: &str, kind| {
            let inode = fs::metadata(root.join(name)).unwrap().ino();
            Entry { name: listed.into(), kind, inode }
        };
        let entries = [entry(".ENV", ".env", Kind::Other), entry("Süb", "sub", Kind::Directory)];
        let host = Host::with(HashMap::from([(root.clone().into_os_string(), Rc::from(entries))]));
        let found = |name: &str| {
            let Found { path, identity } = host.find(&root.join(name));
            (path.strip_prefix(&root).unwrap().to_owned(), identity.is_some())
        };
        assert_eq!(found(".env"), (".ENV".into(), true));
        assert_eq!(found("sub"), ("Süb".into(), true));
        assert_eq!(found("sub/key").0, Path::new("Süb/key"), "and what lies in it");
        assert_eq!(found(".envrc"), (".envrc".into(), false));
    }

    #[test]
    fn names_that_may_be_one_are_exactly_these() {
        let can_be = |(listed, name): (&str, &str)| might_be(listed.as_ref(), name.as_ref());
        let same =
            [(".env", ".env"), (".ENV", ".env"), ("\u{212a}ey", "key"), ("key", "\u{212a}ey"), ("Ü", "ü")];
        assert!(same.into_iter().all(can_be));
        assert!(![(".env", ".envrc"), ("a", "b"), ("", "a")].into_iter().any(can_be));
    }
}
