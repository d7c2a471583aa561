//! Tripwire: detects and undoes changes of files that programs outside of the sandbox execute later.
//!
//! A command that may write to a project can leave a file there that a person's git, shell, editor or agent will run,
//! such as a hook. The supervisor takes a snapshot of a fixed list of such files (the watched files), and restores
//! changed ones after each tool call that may write. When a turn ends, it also searches the project for other
//! repositories. It opens no path from a language model or worker, follows no link, and executes nothing.
//!
//! The tripwire does not prevent writes: a changed file exists until the tool call ends.

mod access;
mod addresses;
mod anchor;
mod aside;
pub mod beneath;
mod bounds;
mod commits;
mod config;
#[cfg(test)]
mod differential;
mod git;
mod journal;
mod judge;
mod keys;
mod layout;
mod led;
mod look;
mod paused;
mod persons;
mod persons_git;
mod promised;
mod references;
mod repository;
mod restore;
mod root;
mod settings;
mod settle;
mod sources;
mod state;
mod walk;
mod watch;
mod watched;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use protocol::event::{PlaceChange, RestoredPlace};
use sha2::{Digest as _, Sha256};

use gate::protected::is_acted_on;
pub use git::{ConfinedGit, GitQuestion};
use journal::BaselineJournal;
pub use journal::{BaselineChoice, CutOffChange, JournalOptions, settle_leftovers, tell_others};
pub use judge::{git_file_target, worktree_in};
pub use persons_git::PersonsGit;
use root::Root;
use settle::Around;
use state::WatchState;
pub use watch::Watch;
use watched::WatchedRoots;

#[derive(Debug)]
pub struct Tripwire {
    roots: Vec<WatchedRoots>,
    around: Around,
    notes: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    pub path: PathBuf,
    /// Digest of the approved content. `None` if the removal of the file was approved.
    pub digest: Option<Digest>,
}

pub type Digest = [u8; 32];

pub fn digest(content: &[u8]) -> Digest {
    Sha256::digest(content).into()
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub changes: Vec<RestoredPlace>,
    /// Warnings about files that could not be checked, one sentence each. No warning is repeated in a session.
    pub notes: Vec<String>,
}

impl Tripwire {
    /// Records the state of the watched files, or loads the state that another session recorded. Blocks while it
    /// searches the project, another process holds a lease on a file, or a tool call runs above or below.
    ///
    /// Fails if a file cannot be read or a limit is reached, since such a file could not be restored.
    pub fn set(watch: &Watch) -> io::Result<Self> {
        let mut tripwire = Self { roots: Vec::new(), around: watch.around(), notes: BTreeSet::new() };
        let paths: Vec<_> = watch.places_by_root().map(|(root, path)| (root, path.to_owned())).collect();
        tripwire.join(paths, watch)?;
        Ok(tripwire)
    }

    /// Adds the directories of `watch` to which agents may write from now on.
    pub fn widen(&mut self, watch: &Watch) -> io::Result<()> {
        self.around.widen(watch.around());
        let is_new = |path: &Path| !self.roots.iter().any(|watched| watched.path == path);
        let new = watch.places_by_root().filter(|(_, path)| is_new(path));
        let new: Vec<_> = new.map(|(root, path)| (root, path.to_owned())).collect();
        self.join(new, watch)
    }

    /// Starts to watch directories: records the state of their files, or loads the state that another session recorded.
    fn join(&mut self, paths: Vec<(Root, PathBuf)>, watch: &Watch) -> io::Result<()> {
        let first = self.roots.len();
        let mut rights = Vec::new();
        for (root, path) in paths {
            let kept = if first == 0 && self.roots.is_empty() { watch.kept.as_slice() } else { &[] };
            let mut watched = WatchedRoots::empty(root, &path, watch.given().beneath(&path))?;
            rights.push(watched.join(watch.journals.as_ref(), &self.around)?);
            if rights.last().is_some_and(|right| right.is_some() || watch.journals.is_none()) {
                watched.take(kept);
            }
            self.roots.push(watched);
        }
        let new = &mut self.roots[first..];
        references::follow(new, watch.git.as_ref().map(PersonsGit::sources));
        if let Some(unwatched) = new.iter().find_map(|watched| watched.unwatched(&self.around.given)) {
            return Err(unwatched);
        }
        for (watched, right) in new.iter_mut().zip(rights) {
            watched.write_baseline(right, &self.around)?;
        }
        Ok(())
    }

    /// Begins a tool call that may write. If no other such call runs, changes since the last one count as the person's,
    /// and the recorded state is renewed.
    pub fn begin_call(&mut self) -> io::Result<Report> {
        let mut report = Report::default();
        for (index, watched) in self.roots.iter_mut().enumerate() {
            let full = (index > 0).then(|| watched.path.clone());
            let first = report.changes.len();
            watched.begin_call(&self.around, &mut report)?;
            named(&mut report.changes[first..], full.as_deref());
        }
        Ok(self.told_once(report))
    }

    pub fn end_call(&mut self) {
        self.rest(false);
    }

    /// Checks the files of the fixed list after a tool call, and restores changed ones.
    pub fn check(&mut self) -> Report {
        self.look_at(WatchedRoots::check)
    }

    /// Checks listed files and other repositories in the project at the end of a turn. Blocks like [`Tripwire::set`].
    pub fn check_everything(&mut self) -> Report {
        let mut report = self.check();
        report.append(self.look_at(WatchedRoots::check_nested));
        report
    }

    /// Checks everything, then records that no tool call of this session runs any more.
    pub fn end(&mut self) -> Report {
        let report = self.check_everything();
        self.rest(true);
        report
    }

    /// Records that no tool call runs. If this fails, the next session compares the files again when it starts.
    fn rest(&mut self, everything: bool) {
        for watched in &mut self.roots {
            if let Err(error) = watched.end_call(everything) {
                tracing::warn!(path = %watched.path.display(), %error, "the end of a call is not recorded");
            }
        }
    }

    fn look_at(
        &mut self,
        look: impl Fn(&mut WatchedRoots, &Around, &mut Report, Option<&mut BaselineJournal>) -> io::Result<()>,
    ) -> Report {
        let mut report = Report::default();
        for (index, watched) in self.roots.iter_mut().enumerate() {
            let full = (index > 0).then(|| watched.path.clone());
            let first = report.changes.len();
            let mut has_looked = false;
            let looked = watched.exclusively(|watched, journal| {
                has_looked = true;
                look(watched, &self.around, &mut report, journal)
            });
            // Changed files are restored even if other sessions cannot be told.
            let looked = match looked {
                Err(error) if !has_looked => look(watched, &self.around, &mut report, None).and(Err(error)),
                looked => looked,
            };
            if let Err(error) = looked {
                report
                    .notes
                    .push(format!("other sessions here are not told of the changes just found: {error}"));
            }
            named(&mut report.changes[first..], full.as_deref());
        }
        self.told_once(report)
    }

    /// Records the current state of the approved files that have the approved content.
    pub fn accept(&mut self, approved: &[Approved]) {
        for watched in &mut self.roots {
            let inside: Vec<_> = approved
                .iter()
                .filter_map(|approved| Some((approved.path.strip_prefix(&watched.path).ok()?, approved)))
                .collect();
            if inside.is_empty() {
                continue;
            }
            let accepted =
                watched.exclusively(|watched, journal| watched.accept(&inside, &self.around, journal));
            if let Err(error) = accepted {
                tracing::warn!(path = %watched.path.display(), %error, "other sessions do not hear of an approved change");
            }
        }
    }

    fn told_once(&mut self, mut report: Report) -> Report {
        report.notes.retain(|note| self.notes.insert(note.clone()));
        report
    }
}

impl Report {
    pub fn append(&mut self, other: Self) {
        self.changes.extend(other.changes);
        self.notes.extend(other.notes);
    }
}

/// Returns the path to suggest for `--write` after an undone change which the user may have wanted. `None` unless the
/// file is git's configuration or an existing settings file.
pub fn right_to_change(change: &RestoredPlace) -> Option<&Path> {
    let path = change.path.as_path();
    let was_there = matches!(change.what, PlaceChange::Changed | PlaceChange::Removed);
    let is_ours = path.iter().next().is_some_and(|name| name.as_encoded_bytes().starts_with(b".bailiwick"));
    let is_git = path.iter().any(|name| name == root::GIT);
    let is_setting = was_there && !is_ours && !is_git && is_acted_on(path);
    (is_setting || path.ends_with(".git/config")).then_some(path)
}

fn named(changes: &mut [RestoredPlace], root: Option<&Path>) {
    if let Some(root) = root {
        for change in changes {
            change.path = root.join(&change.path).into();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_accepted_stays_and_what_follows_is_put_back() {
        let place = tempfile::tempdir().unwrap();
        let project = fs::canonicalize(place.path()).unwrap();
        fs::create_dir_all(project.join(".git/objects")).unwrap();
        fs::create_dir_all(project.join(".git/refs")).unwrap();
        fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let config = project.join(".git/config");
        fs::write(&config, "[core]\n\tbare = false\n").unwrap();
        let mut tripwire = Tripwire::set(&Watch::of(project.clone())).unwrap();
        let approved = "[core]\n\tbare = false\n\tpager = less\n";
        fs::write(&config, approved).unwrap();
        let of = |path: &Path, text: &str| Approved {
            path: path.to_owned(),
            digest: Some(digest(text.as_bytes())),
        };
        tripwire.accept(&[of(&config, approved), of(&project.join("a.txt"), "x")]);
        assert_eq!(tripwire.check_everything(), Report::default());
        fs::write(&config, "[core]\n\tpager = evil\n").unwrap();
        fs::write(project.join(".envrc"), "evil").unwrap();
        assert_eq!(tripwire.check_everything().changes.len(), 2);
        assert_eq!(fs::read_to_string(&config).unwrap(), approved);
        assert!(!project.join(".envrc").exists());
    }

    #[test]
    fn content_that_nobody_approved_is_not_accepted() {
        let place = tempfile::tempdir().unwrap();
        let project = fs::canonicalize(place.path()).unwrap();
        fs::write(project.join(".envrc"), "one").unwrap();
        let mut tripwire = Tripwire::set(&Watch::of(project.clone())).unwrap();
        let path = project.join(".envrc");
        // Another process changed the file between the commit and this check.
        fs::write(&path, "evil").unwrap();
        tripwire.accept(&[Approved { path: path.clone(), digest: Some(digest(b"two")) }]);
        assert_eq!(tripwire.check().changes.len(), 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        fs::remove_file(&path).unwrap();
        tripwire.accept(&[Approved { path: path.clone(), digest: None }]);
        assert_eq!(tripwire.check(), Report::default());
    }

    #[test]
    fn what_cannot_be_moved_aside_goes_to_the_top_of_the_project() {
        let place = tempfile::tempdir().unwrap();
        let project = fs::canonicalize(place.path()).unwrap();
        fs::create_dir_all(project.join(".git")).unwrap();
        // No directory can be created below a file.
        let file = project.join("file");
        fs::write(&file, "").unwrap();
        let watch = Watch { aside: Some(file.join("aside")), ..Watch::of(project.clone()) };
        let mut tripwire = Tripwire::set(&watch).unwrap();
        fs::create_dir(project.join(".git/sl")).unwrap();
        fs::write(project.join(".git/sl/config"), "evil").unwrap();
        let report = tripwire.check();
        let moved_to = project.join("bailiwick-moved-aside-sl");
        assert_eq!(report.changes[0].moved_to, Some((&moved_to).into()), "{report:?}");
        assert!(report.changes[0].restored && !project.join(".git/sl").exists(), "{report:?}");
        assert_eq!(fs::read(moved_to.join("config")).unwrap(), b"evil");
    }
}
