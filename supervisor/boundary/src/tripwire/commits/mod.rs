//! The person's own commits: a watched file with the content that such a commit has is accepted, whoever wrote it.
//!
//! A branch of the person's may have other settings, and `git checkout` has to bring them. So the ids of the commits
//! that branches, tags, stashes and HEAD name are recorded before an agent runs. An agent can add or damage objects,
//! but cannot give other content to a recorded id: each object on the way from a commit to a file is verified against
//! its digest here. Git, which reads the objects, runs confined, and its answers are not trusted.

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

/// A path, and the state that a commit must have there.
type Claim = (PathBuf, HeldState);

/// The commits of the repository from before an agent ran.
#[derive(Debug)]
pub(super) struct PersonsCommits {
    directory: PathBuf,
    /// The objects that the refs of the repository named.
    named: Vec<ObjectId>,
    /// Results for claims that were searched for: true if a commit has that state. The results never change.
    judged: Mutex<BTreeMap<Claim, bool>>,
}

impl PersonsCommits {
    /// Creates the list for the repository in `directory`, whose refs named these objects.
    pub(super) fn new(directory: PathBuf, named: Vec<ObjectId>) -> Self {
        Self { directory, named, judged: Mutex::default() }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the changed paths, relative to the directory, whose new state a commit has. For a removed file, its old
    /// state has to be in a commit, too: nearly every path is missing from some commit.
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

/// Returns the states that commits must contain if the change is to count as the person's.
fn claims(change: &PlaceChanged<'_>, format: &ObjectId) -> Option<Vec<Claim>> {
    let now = held_state(change.now, format)?;
    let before = if now == HeldState::Absent { Some(held_state(change.before, format)?) } else { None };
    Some([now].into_iter().chain(before).map(|held| (change.path.to_owned(), held)).collect())
}

/// Returns the state of a file as a tree records it. Returns nothing for directories and for unreadable files.
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
