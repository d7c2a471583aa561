//! The tripwire: what the host runs later is after each call what it was before it.
//!
//! A command with the right to write a project can leave a file there that a person's git, shell, editor or agent will
//! run: a hook, a configuration that names a program, a task. The supervisor keeps what stands in a fixed list of places,
//! compares after each call that may write, and puts back what changed. It opens no name that a model or a worker gave,
//! follows no link, and executes nothing. Repositories elsewhere in the project are searched for when a turn ends.
//!
//! This denies nothing: between a change and the end of its call, the change is there.

mod anchor;
pub(crate) mod beneath;
mod config;
mod judge;
mod keys;
mod names;
mod references;
mod restore;
mod state;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use anchor::{Anchor, Found};
use judge::{Surroundings, Verdict};
pub(crate) use judge::{git_file_target, worktree_in};
pub(crate) use names::is_acted_on;
use names::{GIT, Root};
use references::References;
use state::{Kind, State};

/// How often what changed is put back before it is left: whoever changes it lives no more, or should not.
const ROUNDS: usize = 3;

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The project, canonical.
    pub project: PathBuf,
    /// Git directories of the project that lie elsewhere, canonical.
    pub git_directories: Vec<PathBuf>,
    /// What the user has given away, canonical.
    pub granted: Vec<PathBuf>,
    /// What else in the project is to stay as it is, relative to it; given away or not.
    pub kept: Vec<PathBuf>,
}

impl Watch {
    /// Of a project, and of nothing else.
    pub const fn of(project: PathBuf) -> Self {
        Self { project, git_directories: Vec::new(), granted: Vec::new(), kept: Vec::new() }
    }
}

/// Keeps what the host runs later.
#[derive(Debug)]
pub struct Tripwire {
    roots: Vec<Watched>,
    given: Given,
    /// Repositories elsewhere in the project, which is the first root.
    nested: State,
    notes: BTreeSet<String>,
}

/// What a look brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What had changed.
    pub changes: Vec<Change>,
    /// What could not be looked at, one sentence each; each is told once.
    pub notes: Vec<String>,
}

/// One place that had changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The place: relative to the project, or absolute.
    pub path: PathBuf,
    /// What had happened: `created`, or the keys of a configuration.
    pub what: String,
    /// Whether it is again what it was.
    pub restored: bool,
}

#[derive(Debug)]
struct Watched {
    root: Root,
    path: PathBuf,
    held: OwnedFd,
    /// What something watched leads to.
    references: References,
    state: State,
    anchor: Anchor,
}

impl Tripwire {
    /// Takes what there is. Blocks for as long as it takes to walk the project.
    pub fn set(watch: &Watch) -> io::Result<Self> {
        let mut roots = watch.roots()?;
        let nested = roots
            .first()
            .map(|project| walk::nested(&project.held, &project.state.repositories, None))
            .unwrap_or_default();
        references::follow(&mut roots, &nested);
        Ok(Self { roots, given: watch.given(), nested, notes: BTreeSet::new() })
    }

    /// After a call: compares the fixed list, and puts back what changed.
    pub fn check(&mut self) -> Report {
        let mut report = Report::default();
        let nested = std::mem::take(&mut self.nested.repositories);
        for (index, watched) in self.roots.iter_mut().enumerate() {
            watched.anchored(&mut report);
            let view = View { path: &watched.path, known: &nested, given: &self.given };
            let look = |before: &State| watched.root.look(&watched.held, &watched.references, Some(before));
            let name = |path: &Path| if index == 0 { path.to_owned() } else { watched.path.join(path) };
            settle(&watched.held, &mut watched.state, view, look, &mut |mut change| {
                change.path = name(&change.path);
                report.changes.push(change);
            });
            report.notes.extend(watched.state.notes.iter().cloned());
        }
        self.nested.repositories = nested;
        self.told_once(report)
    }

    /// At the end of a turn: the fixed list, and repositories anywhere in the project. Blocks like [`Tripwire::set`].
    pub fn check_everything(&mut self) -> Report {
        let mut report = self.check();
        if let Some(project) = self.roots.first() {
            let known = &project.state.repositories;
            let view = View { path: &project.path, known, given: &self.given };
            let look = |before: &State| walk::nested(&project.held, known, Some(before));
            settle(&project.held, &mut self.nested, view, look, &mut |change| report.changes.push(change));
            report.notes.extend(self.nested.notes.iter().cloned());
        }
        self.told_once(report)
    }

    /// Takes these places as they are now: somebody approved, byte by byte, what was written there.
    pub fn accept(&mut self, approved: &[PathBuf]) {
        for watched in &mut self.roots {
            let inside: Vec<_> =
                approved.iter().filter_map(|path| path.strip_prefix(&watched.path).ok()).collect();
            if inside.is_empty() {
                continue;
            }
            let now = watched.root.look(&watched.held, &watched.references, Some(&watched.state));
            for path in inside {
                if let Some(place) = now.places.get(path) {
                    watched.state.places.insert(path.to_owned(), place.clone());
                }
            }
        }
    }

    fn told_once(&mut self, mut report: Report) -> Report {
        report.notes.retain(|note| self.notes.insert(note.clone()));
        report
    }
}

impl Watch {
    /// What of it there is, for the kernel to protect where it can: files and directories that no link leads to.
    pub fn existing(&self) -> io::Result<Vec<PathBuf>> {
        let mut roots = self.roots()?;
        references::follow(&mut roots, &State::default());
        let mut existing = Vec::new();
        for Watched { path, state, .. } in &roots {
            existing.extend(names::to_protect(state).into_iter().map(|inside| path.join(inside)));
        }
        let given = self.given();
        existing.retain(|path| !given.has(path));
        Ok(existing)
    }

    fn given(&self) -> Given {
        let kept = self.kept.iter().map(|path| self.project.join(path)).collect();
        Given { granted: self.granted.clone().into(), kept }
    }

    /// The project first.
    fn roots(&self) -> io::Result<Vec<Watched>> {
        let elsewhere = self.git_directories.iter().map(|path| Watched::new(Root::GitDirectory, path, &[]));
        [Watched::new(Root::Project, &self.project, &self.kept)].into_iter().chain(elsewhere).collect()
    }
}

/// What the user has given away, but for what stays all the same.
#[derive(Debug)]
struct Given {
    granted: Box<[PathBuf]>,
    kept: Box<[PathBuf]>,
}

impl Given {
    fn has(&self, path: &Path) -> bool {
        let within = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
        within(&self.granted) && !within(&self.kept)
    }
}

impl Watched {
    fn new(root: Root, path: &Path, kept: &[PathBuf]) -> io::Result<Self> {
        let held = beneath::open_root(path)?;
        let references = kept.iter().map(|path| (path.clone(), Kind::Whole)).collect();
        let state = root.look(&held, &references, None);
        let anchor = Anchor::new(&held);
        Ok(Self { root, path: path.to_owned(), held, references, state, anchor })
    }

    fn look(&self) -> State {
        self.root.look(&self.held, &self.references, None)
    }

    fn anchored(&mut self, report: &mut Report) {
        if self.root != Root::Project {
            return;
        }
        let (what, restored) = match self.anchor.hold(&self.held) {
            Found::InPlace => return,
            Found::PutBack => ("moved away".to_owned(), true),
            Found::Lost(error) => (format!("moved away ({error})"), false),
        };
        report.changes.push(Change { path: GIT.into(), what, restored });
    }
}

/// What is judged, and by whose lights.
#[derive(Clone, Copy)]
struct View<'a> {
    path: &'a Path,
    known: &'a BTreeSet<PathBuf>,
    given: &'a Given,
}

impl View<'_> {
    fn verdicts(&self, before: &State, now: &State) -> BTreeMap<PathBuf, Verdict> {
        let around = Surroundings { root: self.path, repositories: [self.known, &now.repositories] };
        let paths: BTreeSet<&PathBuf> = before.places.keys().chain(now.places.keys()).collect();
        let judged = paths
            .into_iter()
            .filter(|path| !self.given.has(&self.path.join(path)))
            .map(|path| (path.clone(), around.judge(path, before.places.get(path), now.places.get(path))));
        let mut verdicts: BTreeMap<_, _> = judged.filter(|(_, verdict)| *verdict != Verdict::Pass).collect();
        for (path, listing) in now.crowded.iter().filter(|(path, _)| !before.crowded.contains_key(*path)) {
            if !self.given.has(&self.path.join(path)) {
                verdicts.entry(path.clone()).or_insert(Verdict::Thin(*listing));
            }
        }
        verdicts
    }
}

/// Looks, puts back, and looks again until nothing is left to be put back; what passes is what the next look starts from.
fn settle(
    held: &OwnedFd,
    state: &mut State,
    view: View<'_>,
    look: impl Fn(&State) -> State,
    tell: &mut dyn FnMut(Change),
) {
    let mut changes: BTreeMap<PathBuf, String> = BTreeMap::new();
    for round in 0..=ROUNDS {
        let now = look(state);
        let verdicts = view.verdicts(state, &now);
        if verdicts.is_empty() {
            *state = now;
            break;
        }
        for (path, verdict) in &verdicts {
            changes.entry(path.clone()).or_insert_with(|| what(verdict));
        }
        if round == ROUNDS {
            let left = |path: &PathBuf| verdicts.contains_key(path);
            for (path, what) in changes {
                tell(Change { restored: !left(&path), path, what });
            }
            state.notes = now.notes;
            return;
        }
        put_back(held, state, &verdicts);
    }
    for (path, what) in changes {
        tell(Change { path, what, restored: true });
    }
}

/// Failures show in the next look.
fn put_back(held: &OwnedFd, before: &State, verdicts: &BTreeMap<PathBuf, Verdict>) {
    for (path, verdict) in verdicts {
        let done = match verdict {
            Verdict::Pass => Ok(()),
            Verdict::Restore(_) => restore::restore(held, path, before),
            Verdict::Keep(content, _) => restore::keep(held, path, content),
            Verdict::Thin(listing) => restore::thin(held, path, *listing, before),
        };
        if let Err(error) = done {
            tracing::warn!(path = %path.display(), %error, "cannot be put back");
        }
    }
}

fn what(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Pass => String::new(),
        Verdict::Thin(_) => "filled with files".to_owned(),
        Verdict::Restore(what) | Verdict::Keep(_, what) => what.clone(),
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
        tripwire.accept(&[config.clone(), project.join("a.txt")]);
        assert_eq!(tripwire.check_everything(), Report::default());
        fs::write(&config, "[core]\n\tpager = evil\n").unwrap();
        fs::write(project.join(".envrc"), "evil").unwrap();
        assert_eq!(tripwire.check_everything().changes.len(), 2);
        assert_eq!(fs::read_to_string(&config).unwrap(), approved);
        assert!(!project.join(".envrc").exists());
    }
}
