//! The person's own commits. A change of a watched file is accepted if one of them contains the file with the same
//! content, even if an agent wrote it.
//!
//! `git checkout` of another branch of the person must be able to change settings. So the ids to which branches, tags,
//! stashes and HEAD point are recorded before an agent runs. Objects on the way from a commit to a file are verified
//! against their digests, so an agent cannot forge them. Git runs in a sandbox, and nothing else that it says is
//! trusted.

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

/// Mode bits that let anybody execute a file.
const EXECUTABLE: u32 = 0o111;

/// Command line of the program that reads objects by their ids.
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
    /// Ids of the objects to which the repository's refs pointed when they were recorded.
    named: Vec<ObjectId>,
    /// Results for each claim: true if a commit contains the file in that state. They stay valid, since commits never
    /// change.
    judged: Mutex<BTreeMap<Claim, bool>>,
}

impl PersonsCommits {
    /// Returns the commits of the repository in `directory`. `named` are the ids to which its refs point.
    pub(super) fn new(directory: PathBuf, named: Vec<ObjectId>) -> Self {
        Self { directory, named, judged: Mutex::default() }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the changed paths, relative to the directory, whose new state is in a commit. For a removed file, some
    /// commit must also contain its old state, since nearly every path is absent from some commit.
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

/// Returns the states of a changed file that commits must contain so that the change counts as the person's. `None` if
/// its state cannot be in a commit.
fn claims(change: &PlaceChanged<'_>, format: &ObjectId) -> Option<Vec<Claim>> {
    let now = held_state(change.now, format)?;
    let before = if now == HeldState::Absent { Some(held_state(change.before, format)?) } else { None };
    Some([now].into_iter().chain(before).map(|held| (change.path.to_owned(), held)).collect())
}

/// Returns the state of a file as a commit would record it. `None` for directories and unreadable files.
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
