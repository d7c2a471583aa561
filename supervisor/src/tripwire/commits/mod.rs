//! The person's own commits: what one of them holds at a watched place is the person's, whoever put it there.
//!
//! A branch of the person's may have other settings, and `git checkout` has to bring them. So the names of the commits that
//! branches, tags, stashes and HEAD lead to are taken before an agent runs. An agent can add objects, and can break the store, but nothing
//! that it writes has a name that one of these objects says: every step from such a commit to a content is checked against its
//! digest here, and git, which reads the objects, is confined and believed in nothing.

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

/// Bits of a mode by which somebody executes.
const EXECUTABLE: u32 = 0o111;

/// The command that reads objects by their names.
const OBJECTS: &[&str] = &["git", "cat-file", "--batch"];

/// The state of a place in a commit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum HeldState {
    Absent,
    File { content: ObjectId, executable: bool },
    Link { target: ObjectId },
}

/// A place, and what it is asked to have been.
type Claim = (PathBuf, HeldState);

/// The commits that were there before an agent ran.
#[derive(Debug)]
pub(super) struct PersonsCommits {
    directory: PathBuf,
    /// The objects that its refs named.
    named: Vec<ObjectId>,
    /// Claims that were looked for, each with true if a commit holds it: neither changes.
    judged: Mutex<BTreeMap<Claim, bool>>,
}

impl PersonsCommits {
    /// Of the repository of a directory whose refs named these objects.
    pub(super) fn new(directory: PathBuf, named: Vec<ObjectId>) -> Self {
        Self { directory, named, judged: Mutex::default() }
    }

    /// The top of the repository's work tree.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The places, relative to the directory, that became what a commit holds: of each what it was before, and is now. What was removed
    /// has to be in a commit itself, since there is hardly a place that no commit lacks.
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
                // What was found is true all the same, and the rest may be found another time.
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

/// The claims that commits have to bear out for a change to be the person's.
fn claims(change: &PlaceChanged<'_>, format: &ObjectId) -> Option<Vec<Claim>> {
    let now = held_state(change.now, format)?;
    let before = if now == HeldState::Absent { Some(held_state(change.before, format)?) } else { None };
    Some([now].into_iter().chain(before).map(|held| (change.path.to_owned(), held)).collect())
}

/// The state that a tree would have to say; absent for what none can, and for directories, which follow from their files.
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
