mod candidates;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, FileType, Metadata};
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ipc::path::{is_joined, split};
use nix::sys::statfs::{
    BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, statfs,
};

use self::candidates::Candidates;
use crate::compile::MAX_RULES;

/// File system as the compilation of rules sees it. Tests implement it with plain data.
pub trait Tree {
    /// Lists a directory. Fails if it has too many entries ([`io::ErrorKind::FileTooLarge`]).
    fn entries(&self, directory: &Path) -> io::Result<Rc<[Entry]>>;
    /// Returns the identity of a file; a final link is not followed.
    fn identity(&self, path: &Path) -> io::Result<Identity>;
    fn find<'p>(&self, path: &'p Path) -> Found<'p>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'p> {
    /// Path in which the links are resolved, as far as it exists.
    pub path: Cow<'p, Path>,
    /// Identity of the file at the requested path; a final link is not followed. `None` if nothing exists there.
    pub identity: Option<Identity>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: OsString,
    pub kind: Kind,
    pub inode: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Directory,
    Link,
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

/// Identity of a file, by which its hard links are recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
    pub directory: bool,
}

/// Maximum number of entries of a directory that are listed: a program can create millions beside a hidden path. More
/// than [`MAX_RULES`], since links need no rules.
const MOST_ENTRIES: usize = 5 * MAX_RULES;

#[derive(Debug, Default)]
pub struct Host {
    known: RefCell<HashMap<OsString, Rc<Known>>>,
    listed: RefCell<HashMap<OsString, Rc<[Entry]>>>,
}

#[derive(Debug)]
struct Known {
    path: OsString,
    holds: Holds,
}

#[derive(Debug)]
enum Holds {
    Nothing,
    /// Entries that are not known: the directory cannot be listed, or has too many.
    Unknown,
    These(Rc<[Entry]>),
}

impl Tree for Host {
    fn entries(&self, directory: &Path) -> io::Result<Rc<[Entry]>> {
        if let Some(listed) = self.listed.borrow().get(directory.as_os_str()) {
            return Ok(Rc::clone(listed));
        }
        let mut listed = list(directory, MOST_ENTRIES)?;
        if !lists_inodes(directory, &listed) {
            for entry in &mut listed {
                // An entry that vanished since needs no identity.
                let found = self.identity(&directory.join(&entry.name));
                entry.inode = found.map_or(entry.inode, |found| found.inode);
            }
        }
        let listed: Rc<[Entry]> = listed.into();
        self.listed.borrow_mut().insert(directory.as_os_str().to_owned(), Rc::clone(&listed));
        Ok(listed)
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        Ok(fs::symlink_metadata(path)?.into())
    }

    fn find<'p>(&self, path: &'p Path) -> Found<'p> {
        let Some((above, name)) = split(path) else {
            return Found { path: resolve(path).into(), identity: self.identity(path).ok() };
        };
        let parent = self.directory(above);
        let is_itself = parent.path == above.as_os_str() && is_joined(path, above, name);
        let place =
            if is_itself { Cow::Borrowed(path) } else { Cow::Owned(Path::new(&parent.path).join(name)) };
        let (place, meta) = parent.entry(place, name);
        let is_link = meta.as_ref().is_some_and(Metadata::is_symlink);
        let path = if is_link { self.as_listed(&resolve(&place)).into() } else { place };
        Found { path, identity: meta.map(Identity::from) }
    }
}

impl Host {
    /// Replaces each name of a path without links by its directory's spelling (the file system may fold case).
    fn as_listed(&self, path: &Path) -> PathBuf {
        path.iter().fold(PathBuf::new(), |place, name| {
            let asked = place.join(name);
            if name == "/" { asked } else { self.at(place).entry(asked.into(), name).0.into_owned() }
        })
    }

    /// Resolves the links in the path of a directory that may be missing, and lists the directory.
    fn directory(&self, path: &Path) -> Rc<Known> {
        if let Some(known) = self.known.borrow().get(path.as_os_str()) {
            return Rc::clone(known);
        }
        let Found { path: found, identity } = self.find(path);
        let known = match identity {
            Some(_) => self.at(found.into_owned()),
            None => Known { path: found.into_owned().into(), holds: Holds::Nothing },
        };
        let known = Rc::new(known);
        self.known.borrow_mut().insert(path.as_os_str().to_owned(), Rc::clone(&known));
        known
    }

    fn at(&self, path: PathBuf) -> Known {
        let holds = self.entries(&path).map_or(Holds::Unknown, Holds::These);
        Known { path: path.into(), holds }
    }
}

impl Known {
    /// Returns the path with the name as it is listed, and the metadata; `None` if nothing exists there.
    fn entry<'p>(&self, place: Cow<'p, Path>, name: &OsStr) -> (Cow<'p, Path>, Option<Metadata>) {
        let candidates = match &self.holds {
            Holds::Nothing => return (place, None),
            Holds::Unknown => None,
            Holds::These(listed) => Some(Candidates::of(listed, name)),
        };
        if candidates.as_ref().is_some_and(Candidates::are_none) {
            return (place, None);
        }
        let Ok(meta) = fs::symlink_metadata(&place) else {
            return (place, None);
        };
        let called = candidates.and_then(|candidates| candidates.called(name, meta.ino()));
        (called.map_or(place, |called| Path::new(&self.path).join(called).into()), Some(meta))
    }
}

impl From<Metadata> for Identity {
    fn from(meta: Metadata) -> Self {
        Self { device: meta.dev(), inode: meta.ino(), directory: meta.is_dir() }
    }
}

fn list(directory: &Path, most: usize) -> io::Result<Vec<Entry>> {
    let mut listed = vec![];
    for entry in fs::read_dir(directory)? {
        if listed.len() == most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let entry = entry?;
        let kind = entry.file_type()?.into();
        listed.push(Entry { kind, inode: entry.ino(), name: entry.file_name() });
    }
    Ok(listed)
}

/// Magic number of XFS (linux/magic.h); not every C library defines it.
pub(crate) const XFS_SUPER_MAGIC: FsType = FsType(0x5846_5342);

/// File systems whose directory lists have the same inode numbers as stat(2).
const LIST_INODES: [FsType; 4] = [EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC];

/// True if a directory's list has the inode numbers of stat(2), unlike on FUSE, vfat and overlays.
fn lists_inodes(directory: &Path, listed: &[Entry]) -> bool {
    let device = |path: &Path| fs::symlink_metadata(path).ok().map(|meta| meta.dev());
    match statfs(directory).map(|found| found.filesystem_type()) {
        // If all layers lie on one file system, files have its own device (the kernel's
        // `filesystems/overlayfs`, "inode properties").
        Ok(OVERLAYFS_SUPER_MAGIC) => {
            let file = listed.iter().find(|entry| entry.kind == Kind::Other);
            file.is_none_or(|file| device(&directory.join(&file.name)) == device(directory))
        }
        kind => kind.is_ok_and(|kind| LIST_INODES.contains(&kind)),
    }
}

/// Resolves the links in the existing part of `path`, and appends the rest.
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
pub(crate) mod tests {
    use std::thread;

    use nix::errno::Errno;
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};

    use super::*;

    pub(crate) fn with_own_mounts(act: impl FnOnce() -> Result<(), Errno> + Send + 'static) {
        let tried = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS)?;
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
            act()
        });
        if let Err(error) = tried.join().unwrap() {
            eprintln!("skipped: a namespace to mount in (needs root: {error})");
        }
    }

    #[test]
    fn resolve_follows_what_exists_and_keeps_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        let host = Host::default();
        let link = root.join("link/a/b");
        for resolved in [resolve(&link), host.find(&link).path.into_owned()] {
            assert_eq!(resolved, root.join("real/a/b"));
        }
        assert_eq!(host.find(&root.join("link")).path, root.join("real"));
        assert_eq!(host.find(&root.join("link/c")).path, root.join("real/c"));
        for odd in ["link//c", "link/./c", "./link/c", "link/c/", "link/../link/c"] {
            assert_eq!(host.find(&root.join(odd)).path, root.join("real/c"), "{odd}");
        }
        assert_eq!(host.find(Path::new("/")).path, Path::new("/"));
        assert_eq!(resolve(Path::new("/")), Path::new("/"));
    }

    #[test]
    fn a_list_ends_at_the_most_entries() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(list(directory.path(), 3).unwrap().len(), 3);
        assert_eq!(list(directory.path(), 2).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    fn listing(root: &Path, entries: [Entry; 2]) -> Host {
        let listed = HashMap::from([(root.as_os_str().to_owned(), entries.into())]);
        Host { listed: RefCell::new(listed), ..Host::default() }
    }

    /// Tests a file system that folds case: a file is found under the name that its directory lists, although another
    /// spelling is requested. The list is made up.
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
        let host = listing(&root, entries);
        let found = |name: &str| {
            let asked = root.join(name);
            let Found { path, identity } = host.find(&asked);
            (path.strip_prefix(&root).unwrap().to_owned(), identity.is_some())
        };
        assert_eq!(found(".env"), (".ENV".into(), true));
        assert_eq!(found("sub"), ("Süb".into(), true));
        assert_eq!(found("sub/key").0, Path::new("Süb/key"), "and what lies in it");
        assert_eq!(found(".envrc"), (".envrc".into(), false));
    }

    #[test]
    fn where_numbers_differ_and_behind_links_the_name_says_what_is_meant() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        std::os::unix::fs::symlink("sub", root.join("link")).unwrap();
        let entry = |name: &str, kind| Entry { name: name.into(), kind, inode: u64::MAX };
        let entries = [entry("SUB", Kind::Directory), entry("link", Kind::Link)];
        let host = listing(&root, entries);
        let found = |name: &str| {
            let asked = root.join(name);
            let Found { path, identity } = host.find(&asked);
            (path.into_owned(), identity)
        };
        let identity = host.identity(&root.join("sub")).ok();
        assert_eq!(found("sub"), (root.join("SUB"), identity));
        assert_eq!(found("sub/key").0, root.join("SUB/key"));
        assert_eq!(found("link").0, root.join("SUB"));
        assert_eq!(found("link/key").0, root.join("SUB/key"));
    }

    /// Tests an overlay of two file systems, whose list has the lower layer's inode number for a changed file. The
    /// number of stat(2) must be used.
    #[test]
    fn numbers_are_asked_for_where_lists_have_others() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().to_owned();
        with_own_mounts(move || {
            let at = |name: &str| path.join(name);
            for layer in ["lower", "upper"] {
                fs::create_dir(at(layer)).unwrap();
                mount(Some("none"), &at(layer), Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
            }
            for directory in ["upper/upper", "upper/work", "merged"] {
                fs::create_dir(at(directory)).unwrap();
            }
            fs::write(at("lower/changed"), "").unwrap();
            let options = format!(
                "lowerdir={0}/lower,upperdir={0}/upper/upper,workdir={0}/upper/work,xino=off",
                path.display()
            );
            mount(Some("none"), &at("merged"), Some("overlay"), MsFlags::empty(), Some(options.as_str()))?;
            fs::write(at("merged/changed"), "changed").unwrap();
            fs::hard_link(at("merged/changed"), at("merged/other")).unwrap();
            let listed = fs::read_dir(at("merged")).unwrap().map(|entry| entry.unwrap().ino());
            let number = fs::metadata(at("merged/changed")).unwrap().ino();
            assert!(listed.into_iter().any(|listed| listed != number), "otherwise nothing is tried here");
            for entry in Host::default().entries(&at("merged")).unwrap().iter() {
                assert_eq!(entry.inode, number, "{entry:?}");
            }
            Ok(())
        });
    }
}
