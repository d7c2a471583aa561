//! Computes the digest of a directory and its contents.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::fcntl::readlinkat;
use nix::sys::stat::{FileStat, SFlag, fstat};
use sha2::{Digest as _, Sha256};

use crate::tripwire::beneath::{kind, list, open_directory, open_file, open_root, stat};

const MAX_ENTRIES: u64 = 300_000;

const MAX_BYTES: u64 = 4 << 30;

/// Maximum size of a file in which occurrences of the directory's own path are looked for.
const MAX_SEARCHED: u64 = 1 << 20;

/// Names of files that differ between two installations of the same packages. Compiled files contain times; `RECORD`
/// contains digests of files that contain the directory's path.
const UNSTEADY: [&str; 2] = ["__pycache__", "RECORD"];

/// Maximum depth of directories. The walk holds an open descriptor for each level.
const MAX_DEPTH: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeDigest {
    /// SHA-256 in hexadecimal over the names, types, execute permissions, contents and link targets of all entries.
    pub sha256: String,
    pub entries: u64,
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeChanges {
    pub added: usize,
    pub changed: usize,
    pub removed: usize,
}

impl TreeChanges {
    pub const fn is_empty(&self) -> bool {
        self.added + self.changed + self.removed == 0
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{0} contains too many files or bytes")]
    TooMuch(PathBuf),
    #[error("{0} is not a file, directory or link")]
    Special(PathBuf),
}

pub fn digest_tree(root: &Path) -> Result<TreeDigest, TreeError> {
    let walk = TreeWalk::of(root, None)?;
    let sha256 = walk.digest.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    Ok(TreeDigest { sha256, entries: walk.entries, bytes: walk.bytes })
}

/// Counts the differences of two installed directories, except in compiled files and in mentions of their own paths.
pub fn compare_trees(before: &Path, now: &Path) -> Result<TreeChanges, TreeError> {
    let each = |root| Ok(TreeWalk::of(root, Some(BTreeMap::new()))?.each.unwrap_or_default());
    let (before, now) = (each(before)?, each(now)?);
    let mut changes = TreeChanges::default();
    for (path, digest) in &now {
        match before.get(path) {
            None => changes.added += 1,
            Some(earlier) => changes.changed += usize::from(earlier != digest),
        }
    }
    changes.removed = before.keys().filter(|path| !now.contains_key(*path)).count();
    Ok(changes)
}

struct TreeWalk<'a> {
    root: &'a Path,
    digest: Sha256,
    /// Digest of each file and link, by path. `None` if only the digest of the whole directory is computed.
    each: Option<BTreeMap<PathBuf, Vec<u8>>>,
    entries: u64,
    bytes: u64,
}

impl<'a> TreeWalk<'a> {
    fn of(root: &'a Path, each: Option<BTreeMap<PathBuf, Vec<u8>>>) -> Result<Self, TreeError> {
        let failed = |source: nix::Error| TreeError::Read { path: root.to_owned(), source: source.into() };
        let directory = open_root(root).map_err(failed)?;
        let mut walk = TreeWalk { root, digest: Sha256::new(), each, entries: 0, bytes: 0 };
        walk.directory(directory, &mut Vec::new())?;
        Ok(walk)
    }

    fn directory(&mut self, directory: OwnedFd, place: &mut Vec<OsString>) -> Result<(), TreeError> {
        if place.len() > MAX_DEPTH {
            return Err(TreeError::TooMuch(self.path(place)));
        }
        let names = Self::names(&directory).map_err(|source| self.unread(place, source))?;
        for (name, stat) in names {
            self.entries += 1;
            place.push(name);
            if self.entries > MAX_ENTRIES {
                return Err(TreeError::TooMuch(self.root.to_owned()));
            }
            if self.each.is_some() {
                self.digest = Sha256::new();
            }
            self.entry(&directory, &stat, place)?;
            self.kept(&stat, place);
            place.pop();
        }
        // Ends the directory: without it, a file of this directory and one of its parent could change places.
        self.digest.update([b'.']);
        Ok(())
    }

    fn kept(&mut self, stat: &FileStat, place: &[OsString]) {
        let is_steady = || !place.iter().any(|name| UNSTEADY.iter().any(|unsteady| name == unsteady));
        if let Some(each) = self.each.as_mut().filter(|_| kind(stat) != SFlag::S_IFDIR && is_steady()) {
            each.insert(place.iter().collect(), std::mem::take(&mut self.digest).finalize().to_vec());
        }
    }

    fn names(directory: &OwnedFd) -> io::Result<BTreeMap<OsString, FileStat>> {
        // One more than there may be, so that it is counted.
        let most = usize::try_from(MAX_ENTRIES + 1).unwrap_or(usize::MAX);
        let mut names = BTreeMap::new();
        for (name, _) in list(directory, most)? {
            let found = stat(directory, &name)?;
            names.insert(name, found);
        }
        Ok(names)
    }

    fn entry(&mut self, at: &OwnedFd, stat: &FileStat, place: &mut Vec<OsString>) -> Result<(), TreeError> {
        let Some(name) = place.last().cloned() else { return Ok(()) };
        match kind(stat) {
            SFlag::S_IFDIR => {
                self.head(b'd', &name, 0);
                let inner = open_directory(at, &name);
                let inner = inner.map_err(|source| self.unread(place, source.into()))?;
                self.directory(inner, place)
            }
            SFlag::S_IFLNK => {
                let target =
                    readlinkat(at, name.as_os_str()).map_err(|source| self.unread(place, source.into()))?;
                self.head(b'l', &name, target.len() as u64);
                self.digest.update(target.as_bytes());
                Ok(())
            }
            SFlag::S_IFREG => self.file(at, &name).map_err(|source| self.unread(place, source)),
            _ => Err(TreeError::Special(self.path(place))),
        }
    }

    fn file(&mut self, at: &OwnedFd, name: &OsStr) -> io::Result<()> {
        let mut file = File::from(open_file(at, name)?);
        let stat = fstat(file.as_fd())?;
        if kind(&stat) != SFlag::S_IFREG {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let kind = if stat.st_mode & 0o111 == 0 { b'f' } else { b'x' };
        if self.each.is_some() && size <= MAX_SEARCHED {
            let mut content = Vec::new();
            file.take(MAX_SEARCHED).read_to_end(&mut content)?;
            self.head(kind, name, 0);
            let root = self.root.as_os_str().as_bytes();
            let mut rest = content.as_slice();
            while let Some(at) = found(rest, root) {
                self.digest.update(&rest[..at]);
                rest = &rest[at + root.len()..];
            }
            self.digest.update(rest);
            return Ok(());
        }
        self.head(kind, name, size);
        // A file that grows meanwhile does not delay the walk, and has another digest the next time.
        let mut rest = size;
        let mut buffer = vec![0; 64 << 10];
        while rest > 0 {
            let most = buffer.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
            let read = file.read(&mut buffer[..most])?;
            if read == 0 {
                break;
            }
            self.digest.update(&buffer[..read]);
            rest -= read as u64;
        }
        Ok(())
    }

    /// Adds an entry's type, name and size to the digest. Lengths keep different directories from giving the same
    /// bytes.
    fn head(&mut self, kind: u8, name: &OsStr, size: u64) {
        self.digest.update([kind]);
        self.digest.update((name.len() as u64).to_le_bytes());
        self.digest.update(name.as_bytes());
        self.digest.update(size.to_le_bytes());
    }

    fn path(&self, place: &[OsString]) -> PathBuf {
        self.root.join(place.iter().collect::<PathBuf>())
    }

    fn unread(&self, place: &[OsString], source: io::Error) -> TreeError {
        TreeError::Read { path: self.path(place), source }
    }
}

fn found(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len().max(1)).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn every_change_of_a_tree_changes_its_digest() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/f"), "1").unwrap();
        symlink("/nowhere", root.join("l")).unwrap();
        let mut seen = vec![digest_tree(root).unwrap()];
        assert_eq!((seen[0].entries, seen[0].bytes), (3, 1));
        assert_eq!(digest_tree(root).unwrap(), seen[0]);
        let steps: [&dyn Fn(); 6] = [
            &|| fs::write(root.join("a/f"), "2").unwrap(),
            &|| fs::set_permissions(root.join("a/f"), fs::Permissions::from_mode(0o755)).unwrap(),
            &|| fs::rename(root.join("a/f"), root.join("a/g")).unwrap(),
            &|| fs::rename(root.join("a/g"), root.join("g")).unwrap(),
            &|| fs::write(root.join("empty"), "").unwrap(),
            &|| {
                fs::remove_file(root.join("l")).unwrap();
                symlink("/elsewhere", root.join("l")).unwrap();
            },
        ];
        for step in steps {
            step();
            let digest = digest_tree(root).unwrap();
            assert!(seen.iter().all(|earlier| earlier.sha256 != digest.sha256), "{digest:?}");
            seen.push(digest);
        }
    }

    #[test]
    fn differences_are_counted_without_compiled_files_and_the_place_itself() {
        let place = tempfile::tempdir().unwrap();
        let trees = ["one", "other"].map(|name| place.path().join(name));
        for tree in &trees {
            fs::create_dir_all(tree.join("lib/__pycache__")).unwrap();
            fs::write(tree.join("lib/__pycache__/a.pyc"), tree.as_os_str().as_bytes()).unwrap();
            fs::write(tree.join("lib/a.py"), "1").unwrap();
            fs::write(tree.join("start"), format!("#!{}/bin/python\n", tree.display())).unwrap();
            symlink("lib", tree.join("link")).unwrap();
        }
        let [one, other] = &trees;
        assert!(compare_trees(one, other).unwrap().is_empty());
        assert_ne!(digest_tree(one).unwrap(), digest_tree(other).unwrap());
        fs::write(other.join("lib/a.py"), "2").unwrap();
        fs::write(other.join("lib/b.py"), "2").unwrap();
        fs::remove_file(other.join("link")).unwrap();
        let expected = TreeChanges { added: 1, changed: 1, removed: 1 };
        assert_eq!(compare_trees(one, other).unwrap(), expected);
    }

    #[test]
    fn no_link_is_followed_and_nothing_but_files_is_read() {
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("link");
        symlink("/etc", &link).unwrap();
        assert!(matches!(digest_tree(&link), Err(TreeError::Read { .. })));
        let fifo = place.path().join("fifo");
        nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        assert!(matches!(digest_tree(place.path()), Err(TreeError::Special(path)) if path == fifo));
    }
}
