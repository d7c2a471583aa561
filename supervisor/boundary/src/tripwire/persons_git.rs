//! The person's git repository, as git describes it before an agent runs.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::commits::{ObjectId, PersonsCommits};
use super::git::ConfinedGit;
use super::root::GIT;
use super::sources::GitSources;
use super::state::WatchedPlace;

/// Shell commands that list the sources of settings and hooks, and the objects to which branches, tags, stashes and
/// HEAD point. A NUL ends each section of the output; the origin of a setting is never empty.
const QUESTIONS: &str = "git config --list --show-origin -z; printf '\\0'; git rev-parse --git-path hooks; printf '\\0'; \
    git rev-parse --revs-only HEAD ORIG_HEAD MERGE_HEAD REBASE_HEAD CHERRY_PICK_HEAD REVERT_HEAD; \
    git for-each-ref '--format=%(objectname) %(refname)'; git log -g --format=%H refs/stash --";

const BRANCHES: &[u8] = b"refs/heads/";

/// Maximum number of bytes of git's output, enough for a hundred thousand refs or files.
const MOST_BYTES: usize = 16 << 20;

#[derive(Clone, Debug)]
pub struct PersonsGit {
    git: Arc<dyn ConfinedGit>,
    sources: Arc<GitSources>,
    commits: Arc<PersonsCommits>,
    branches: Arc<BTreeSet<Vec<u8>>>,
    tracked: Arc<OnceLock<BTreeSet<PathBuf>>>,
}

/// Two values are equal if one is a copy of the other.
impl PartialEq for PersonsGit {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.commits, &other.commits)
    }
}

impl Eq for PersonsGit {}

impl PersonsGit {
    /// Asks git about the project's repository. `None` without `.git`. If git fails, no commit counts as the person's.
    pub fn ask(git: Arc<dyn ConfinedGit>, project: &Path) -> Option<Self> {
        project.join(GIT).symlink_metadata().ok()?;
        let said = said(&git, project, &["sh", "-c", QUESTIONS].map(OsStr::new));
        let (sources, said) = GitSources::read(&said, project);
        let lines = || said.split(|byte| *byte == b'\n').map(|line| line.split(|byte| *byte == b' '));
        let named = lines().filter_map(|mut words| ObjectId::from_hex(words.next()?)).collect();
        let commits = Arc::new(PersonsCommits::new(project.to_owned(), named));
        let branches =
            lines().filter_map(|mut words| words.nth(1)?.strip_prefix(BRANCHES).map(<[u8]>::to_vec));
        let branches = Arc::new(branches.collect());
        Some(Self { git, sources: Arc::new(sources), commits, branches, tracked: Arc::default() })
    }

    pub(super) fn sources(&self) -> &GitSources {
        &self.sources
    }

    pub(super) fn branches(&self) -> &BTreeSet<Vec<u8>> {
        &self.branches
    }

    /// Returns the files at or below `places` that git's index contained at the first call. Later calls do not ask git,
    /// since an agent can add to the index.
    pub(super) fn tracked(&self, project: &Path, places: &[&PathBuf]) -> &BTreeSet<PathBuf> {
        self.tracked.get_or_init(|| {
            if project != self.commits.directory() || places.is_empty() {
                return BTreeSet::new();
            }
            self.in_index(places.iter().map(|place| place.as_path()))
        })
    }

    fn in_index<'a>(&self, places: impl Iterator<Item = &'a Path>) -> BTreeSet<PathBuf> {
        let command = ["git", "--literal-pathspecs", "ls-files", "-z", "--"].map(OsStr::new);
        let command: Vec<_> = command.into_iter().chain(places.map(Path::as_os_str)).collect();
        let said = said(&self.git, self.commits.directory(), &command);
        let files = said.split(|byte| *byte == 0).filter(|file| !file.is_empty());
        files.map(|file| PathBuf::from(OsStr::from_bytes(file))).collect()
    }

    /// Returns the changed paths whose new state is in a commit of the person; no removed files that are still in the
    /// index.
    pub(super) fn hold<'a>(&self, root: &Path, changes: &[PlaceChanged<'a>]) -> Vec<&'a Path> {
        if root != self.commits.directory() || changes.is_empty() {
            return Vec::new();
        }
        let mut changes = changes.to_vec();
        let removed = changes.iter().filter(|change| change.now.is_none()).map(|change| change.path);
        let removed: Vec<_> = removed.collect();
        if !removed.is_empty() {
            let kept = self.in_index(removed.into_iter());
            changes.retain(|change| change.now.is_some() || !kept.contains(change.path));
        }
        self.commits.hold(&self.git, &changes)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PlaceChanged<'a> {
    pub(super) path: &'a Path,
    pub(super) before: Option<&'a WatchedPlace>,
    pub(super) now: Option<&'a WatchedPlace>,
}

/// Returns the output of a git command; empty if the command fails.
fn said(git: &Arc<dyn ConfinedGit>, directory: &Path, command: &[&OsStr]) -> Vec<u8> {
    let answer = git.start(directory, command).and_then(|asked| asked.everything(MOST_BYTES));
    answer.unwrap_or_else(|error| {
        let command: Vec<OsString> = command.iter().map(|word| (*word).to_owned()).collect();
        tracing::warn!(?command, %error, "git was asked and did not answer");
        Vec::new()
    })
}
