//! Keeps files hidden that are in writable directories, where agents can rename them.
//!
//! Landlock has no deny rules: a file is hidden if no rule allows it, and rules apply to the paths that exist when a
//! program starts. If an agent renamed or linked a hidden file, the rules of the next start would allow the new path.
//! So the inodes of hidden files are recorded before any program may write there, and searched for before every start.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::iter;
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ipc::confinement::{Confinement, FileIdentity};
use ipc::path::WirePath;
use ipc::rights::Rights;

use super::links::{Found, Links, Presence};
use crate::monitor::BeforeSpawn;

/// Maximum number of recorded inodes. Each start sends all of them to sandbox-exec.
const MOST: usize = 1 << 16;

/// Maximum number of directory entries that a search examines.
const MOST_ENTRIES: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct HiddenInodes {
    roots: BTreeSet<PathBuf>,
    names: BTreeSet<PathBuf>,
    known: BTreeSet<FileIdentity>,
}

#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    #[error("{0} has too many files to keep hidden from an agent that can rename them")]
    TooMuchHidden(PathBuf),
    /// A hidden file was moved or linked, and its writable directory has too many files to search for it.
    #[error("a hidden file was moved or linked, and {0} has too many files to search for that file")]
    TooMuchToSearch(PathBuf),
}

#[derive(Default)]
struct Present {
    found: BTreeSet<FileIdentity>,
    /// True if one of the files has several hard links.
    linked: bool,
}

impl HiddenInodes {
    /// Records the inodes of hidden files in writable directories. `temp` is the private temp directory.
    pub fn of(rights: &Rights, temp: Option<&WirePath>) -> Result<Self, FollowError> {
        let mut followed = Self::default();
        let in_a_root = |path: &&WirePath| rights.write.iter().any(|root| path.is_within(root));
        followed.take_up(rights, rights.hidden.iter().filter(in_a_root), temp)?;
        Ok(followed)
    }

    /// Adds the current paths of recorded files to the hidden paths. An unreadable directory is hidden as a whole.
    ///
    /// A running process can move files at any time. Only the full sandbox tier then keeps it from reading them.
    pub fn follow(&mut self, confinement: &mut Confinement) -> Result<(), FollowError> {
        let rights = &confinement.rights;
        let in_place = self.take_up(rights, rights.hidden.iter(), confinement.temp.as_ref())?;
        let found = if in_place { BTreeSet::new() } else { self.search()? };
        let rights = &mut confinement.rights;
        rights.hidden.extend(self.names.iter().chain(&found).map(WirePath::from));
        *rights = mem::take(rights).normalised();
        confinement.hidden_files = self.known.iter().copied().collect();
        Ok(())
    }

    /// Records the inodes of hidden files and of the targets of hidden links. Returns true if each recorded file is
    /// still at its old path, and at no other.
    fn take_up<'a>(
        &mut self,
        rights: &Rights,
        hidden: impl Iterator<Item = &'a WirePath>,
        temp: Option<&WirePath>,
    ) -> Result<bool, FollowError> {
        for root in rights.write.iter().map(WirePath::as_path) {
            remember(&mut self.roots, root);
        }
        if self.roots.is_empty() {
            return Ok(true);
        }
        // Links are resolved again, since an agent may have changed them since the last start.
        // Paths above private temp directories are left out, since every agent changes files there all the time. A
        // writable directory above the temp directory replaces it in the list.
        let holds_a_root =
            |path: &&WirePath| rights.write.iter().chain(temp).any(|root| root.is_within(path));
        let hidden: Vec<_> = hidden.filter(|path| !holds_a_root(path)).map(WirePath::as_path).collect();
        let mut links = Links::expecting(hidden.iter().copied());
        for path in hidden {
            let Found { path: leads, presence } = links.find(path);
            for path in iter::once(path).chain((presence == Presence::There).then_some(&*leads)) {
                if self.roots.iter().any(|root| lies_in(path, root)) {
                    remember(&mut self.names, path);
                }
            }
        }
        let mut present = Present::default();
        for name in &self.names {
            if !links.lack(name) {
                present.take(name)?;
            }
        }
        let in_place = !present.linked && self.known.is_subset(&present.found);
        if !(in_place && self.known.len() == present.found.len()) {
            self.known.append(&mut present.found);
        }
        Ok(in_place)
    }

    /// Searches the writable directories for all current paths of recorded files.
    fn search(&self) -> Result<BTreeSet<PathBuf>, FollowError> {
        let mut found = BTreeSet::new();
        let mut left = MOST_ENTRIES;
        for root in &self.roots {
            let mut ahead = vec![root.clone()];
            while let Some(directory) = ahead.pop() {
                if self.look_into(&directory, &mut ahead, &mut found, &mut left).is_err() {
                    found.insert(directory);
                }
                if left == 0 {
                    return Err(FollowError::TooMuchToSearch(root.clone()));
                }
            }
        }
        Ok(found)
    }

    fn look_into(
        &self,
        directory: &Path,
        ahead: &mut Vec<PathBuf>,
        found: &mut BTreeSet<PathBuf>,
        left: &mut usize,
    ) -> io::Result<()> {
        let Some(entries) = existing(fs::read_dir(directory))? else { return Ok(()) };
        for entry in entries {
            *left = left.saturating_sub(1);
            let path = entry?.path();
            let Some(meta) = existing(fs::symlink_metadata(&path))? else { continue };
            if self.known.contains(&identity(&meta)) {
                found.insert(path);
            } else if meta.is_dir() && *left > 0 {
                ahead.push(path);
            }
        }
        Ok(())
    }
}

impl BeforeSpawn for HiddenInodes {
    fn fill(&mut self, confinement: &mut Confinement) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.follow(confinement)?)
    }
}

impl Present {
    /// Adds the file or tree at `name`; follows no links. Skips unreadable files, which workers cannot read either.
    fn take(&mut self, name: &Path) -> Result<(), FollowError> {
        let mut ahead = vec![name.to_owned()];
        while let Some(path) = ahead.pop() {
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            if self.found.len() == MOST {
                return Err(FollowError::TooMuchHidden(name.to_owned()));
            }
            self.found.insert(identity(&meta));
            if meta.is_dir() {
                ahead.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            } else if meta.nlink() > 1 {
                self.linked = true;
            }
        }
        Ok(())
    }
}

/// True if `path` is `root` or below it. Compares bytes, since both paths are canonical.
fn lies_in(path: &Path, root: &Path) -> bool {
    let rest = path.as_os_str().as_bytes().strip_prefix(root.as_os_str().as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/") || root == Path::new("/"))
}

fn remember(paths: &mut BTreeSet<PathBuf>, path: &Path) {
    if !paths.contains(path) {
        paths.insert(path.to_owned());
    }
}

fn identity(meta: &Metadata) -> FileIdentity {
    FileIdentity { device: meta.dev(), inode: meta.ino() }
}

fn existing<T>(looked: io::Result<T>) -> io::Result<Option<T>> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
