//! What is hidden inside write roots, whatever an agent made of its name.
//!
//! Landlock knows no deny rule: a hidden file is one that no rule grants, and rules are made for the names that are found. Inside
//! a write root an agent can rename what is hidden, or what it lies in, and give a file further names; the next start's rules
//! would be made for those. So what is hidden is remembered by its identity before anything that may write there starts,
//! and where it is by then is looked up before every start.

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

/// The most files that are followed; they travel with each start.
const MOST: usize = 1 << 16;

/// The most entries that are looked at to find them again.
const MOST_ENTRIES: usize = 1 << 20;

/// What is hidden inside every write root that there was, as it was when something first could write there.
#[derive(Debug, Default)]
pub struct HiddenInodes {
    roots: BTreeSet<PathBuf>,
    names: BTreeSet<PathBuf>,
    known: BTreeSet<FileIdentity>,
}

/// Why what is hidden cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// There is too much of it.
    #[error("{0} holds more files than can be kept hidden while an agent may rename them")]
    TooMuchHidden(PathBuf),
    /// It is not where it was, or not only there.
    #[error("what is hidden there was moved or linked, and {0} holds too many files to look for it")]
    TooMuchToSearch(PathBuf),
}

/// What the hidden names lead to.
#[derive(Default)]
struct Present {
    found: BTreeSet<FileIdentity>,
    /// Whether one of the files has another name.
    linked: bool,
}

impl HiddenInodes {
    /// Begins with what these rights hide from who may write; `temp` is the private temp directory.
    ///
    /// The links of a policy's paths were followed a moment ago, when they were made: here only those in write roots are looked
    /// at, and all of them before each start.
    pub fn of(rights: &Rights, temp: Option<&WirePath>) -> Result<Self, FollowError> {
        let mut followed = Self::default();
        let in_a_root = |path: &&WirePath| rights.write.iter().any(|root| path.is_within(root));
        followed.take_up(rights, rights.hidden.iter().filter(in_a_root), temp)?;
        Ok(followed)
    }

    /// Hides what is followed where it is now, before a program starts that is confined so.
    ///
    /// What cannot be looked into is hidden as a whole. A process that lives on meanwhile can still move things: only the full
    /// tier holds them in their place.
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

    /// Remembers what is hidden by name, and where links on the way led; whether everything that was remembered still is
    /// there, and nowhere else.
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
        // As they are now: an agent may have made other links since the last start.
        // Where private temps lie, every agent makes and removes files all the time. A write root around them has taken the place of the
        // temp among the roots.
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

    /// Every name that what is followed has in the write roots.
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
    /// Everything at and beneath `name`; links are not followed. What cannot be looked at cannot be read by a worker of the same
    /// user either.
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

/// Whether it is the root or lies beneath it. Rights are canonical: their bytes say it.
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

/// What vanished, or never was a directory, holds nothing.
fn existing<T>(looked: io::Result<T>) -> io::Result<Option<T>> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
