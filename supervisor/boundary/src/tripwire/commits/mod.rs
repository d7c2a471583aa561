//! The person's own commits: a watched file with the content that such a commit has is accepted, whoever wrote it.
//!
//! `git checkout` has to bring the settings of a person's other branch. So the ids that branches, tags, stashes and
//! HEAD name are recorded before an agent runs. Objects on the way from a commit to a file are verified against their
//! digests, so an agent cannot change their content. Git's own answers, from a sandbox, are not trusted.

mod object;
mod reader;
mod search;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::git::ConfinedGit;
use super::persons_git::PlaceChanged;
use super::state::{FileBody, WatchedPlace};
pub(super) use object::ObjectId;
use reader::ObjectReader;
use search::CommitSearch;

/// Mode bits that let somebody execute a file.
const EXECUTABLE: u32 = 0o111;

/// The command that reads objects by their ids.
const OBJECTS: &[&str] = &["git", "cat-file", "--batch"];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum HeldState {
    Absent,
    File { content: ObjectId, executable: bool },
    Link { target: ObjectId },
}

type Claim = (PathBuf, HeldState);

#[derive(Debug)]
pub(super) struct PersonsCommits {
    directory: PathBuf,
    /// Objects that the repository's refs named.
    named: Vec<ObjectId>,
    /// Results for claims: true if a commit has that state. They never change.
    judged: Mutex<BTreeMap<Claim, bool>>,
}

impl PersonsCommits {
    /// `named` are the objects that the refs of the repository in `directory` named.
    pub(super) fn new(directory: PathBuf, named: Vec<ObjectId>) -> Self {
        Self { directory, named, judged: Mutex::default() }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the changed paths, relative to the directory, whose new state a commit has. For a removed file, a commit
    /// must also have the old state: nearly every path is missing from some commit.
    pub(super) fn hold<'a>(&self, git: &Arc<dyn ConfinedGit>, changes: &[PlaceChanged<'a>]) -> Vec<&'a Path> {
        let Some(format) = self.named.first() else { return Vec::new() };
        let claimed: Vec<_> =
            changes.iter().filter_map(|change| Some((change.path, claims(change, format)?))).collect();
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        let new = claimed.iter().flat_map(|(_, claims)| claims).filter(|claim| !judged.contains_key(*claim));
        let new: Vec<Claim> = new.cloned().collect();
        if !new.is_empty() {
            let mut search = CommitSearch::new(new);
            match self.search(git, &mut search) {
                Ok(()) => judged.extend(search.outcome()),
                // Claims that were confirmed stay confirmed, and the others may be found by a later search.
                Err(error) => {
                    tracing::debug!(%error, "commits are not looked through to their end");
                    judged.extend(search.outcome().filter(|(_, is_held)| *is_held));
                }
            }
        }
        let is_held = |claim: &Claim| judged.get(claim) == Some(&true);
        claimed.into_iter().filter(|(_, claims)| claims.iter().all(is_held)).map(|(path, _)| path).collect()
    }

    fn search(&self, git: &Arc<dyn ConfinedGit>, search: &mut CommitSearch) -> io::Result<()> {
        let command: Vec<_> = OBJECTS.iter().map(OsStr::new).collect();
        let mut objects = ObjectReader::new(git.start(&self.directory, &command)?);
        search.go(&mut objects, &self.named)
    }
}

/// Returns the states that commits must contain for a change to count as the person's.
fn claims(change: &PlaceChanged<'_>, format: &ObjectId) -> Option<Vec<Claim>> {
    let now = held_state(change.now, format)?;
    let before = if now == HeldState::Absent { Some(held_state(change.before, format)?) } else { None };
    Some([now].into_iter().chain(before).map(|held| (change.path.to_owned(), held)).collect())
}

/// `None` for directories and unreadable files.
fn held_state(place: Option<&WatchedPlace>, format: &ObjectId) -> Option<HeldState> {
    let Some(place) = place else { return Some(HeldState::Absent) };
    match &place.body {
        FileBody::File(content) => Some(HeldState::File {
            content: format.of_object("blob", content),
            executable: place.access.mode & EXECUTABLE != 0,
        }),
        FileBody::Link(target) => {
            Some(HeldState::Link { target: format.of_object("blob", target.as_bytes()) })
        }
        FileBody::Directory | FileBody::Closed(_) => None,
    }
}

#[cfg(test)]
mod tests;
