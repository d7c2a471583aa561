//! The tripwire: what the host runs later is after each call what it was before it.
//!
//! A command with the right to write a project can leave a file there that a person's git, shell, editor or agent will
//! run: a hook, a configuration that names a program, a task. The supervisor keeps what stands in a fixed list of places,
//! compares after each call that may write, and puts back what changed. It opens no name that a model or a worker gave,
//! follows no link, and executes nothing. Repositories elsewhere in the project are searched for when a turn ends.
//!
//! This denies nothing: between a change and the end of its call, the change is there.

mod access;
mod addresses;
mod anchor;
mod aside;
pub(crate) mod beneath;
mod bounds;
mod config;
mod judge;
mod keys;
mod layout;
mod look;
mod paused;
mod promised;
mod references;
mod repository;
mod restore;
mod root;
mod settings;
mod settle;
mod state;
mod walk;
mod watch;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use ipc::event::{PlaceChange, RestoredPlace};
use sha2::{Digest as _, Sha256};

use anchor::{Anchor, FoundAnchor};
use judge::{Own, content};
pub(crate) use judge::{git_file_target, worktree_in};
use look::TripwireLook;
use references::References;
use root::{GIT, Root};
use settle::{Around, ConfigView, settle};
use state::{FileKind, WatchState};
use watch::Given;

use crate::shell_word::shell_word;
pub use watch::Watch;
/// Keeps what the host runs later.
#[derive(Debug)]
pub struct Tripwire {
    roots: Vec<WatchedRoots>,
    around: Around,
    notes: BTreeSet<String>,
}

/// A place that somebody approved, byte by byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    /// The file, absolute.
    pub path: PathBuf,
    /// The digest of its content; absent if it is removed.
    pub digest: Option<Digest>,
}

/// A SHA-256 of a file's content.
pub type Digest = [u8; 32];

/// The digest by which an approved content is known again.
pub fn digest(content: &[u8]) -> Digest {
    Sha256::digest(content).into()
}

/// What a look brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The places that had changed.
    pub changes: Vec<RestoredPlace>,
    /// What could not be looked at, one sentence each; each is told once.
    pub notes: Vec<String>,
}

#[derive(Debug)]
struct WatchedRoots {
    root: Root,
    path: PathBuf,
    held: OwnedFd,
    /// What something watched leads to.
    references: References,
    /// What is given away, relative to the root.
    given: Given,
    state: WatchState,
    /// Repositories elsewhere in a project.
    nested: WatchState,
    /// The entries of configurations that are the person's own.
    own: Own,
    anchor: Anchor,
}

impl Tripwire {
    /// Takes what there is. Blocks for as long as it takes to walk the project, and for a file under a lease as long as the kernel
    /// lets a lease be held.
    ///
    /// Fails if something on the fixed list is there and cannot be read, or if a bound is met: it could not be put back.
    pub fn set(watch: &Watch) -> io::Result<Self> {
        let mut roots = watch.roots()?;
        for watched in roots.iter_mut().filter(|watched| watched.root == Root::Project) {
            watched.nested = walk::nested(&watched.held, &watched.state.repositories, &watched.given, None);
        }
        references::follow(&mut roots);
        let around = watch.around();
        if let Some(unwatched) = roots.iter().find_map(|watched| watched.unwatched(&around.given)) {
            return Err(unwatched);
        }
        for watched in &mut roots {
            watched.take_own(&around);
        }
        Ok(Self { roots, around, notes: BTreeSet::new() })
    }

    /// Lets agents write these directories as well, from now on.
    pub fn widen(&mut self, writable: impl IntoIterator<Item = PathBuf>) {
        self.around.writable.extend(writable);
    }

    /// After a call: compares the fixed list, and puts back what changed.
    pub fn check(&mut self) -> Report {
        let mut report = Report::default();
        for (index, watched) in self.roots.iter_mut().enumerate() {
            let full = (index > 0).then(|| watched.path.clone());
            let first = report.changes.len();
            watched.anchored(&mut report);
            let WatchedRoots { held, root, references, given, state, nested, own, path, .. } = watched;
            let known = &nested.repositories;
            let view = ConfigView { root: *root, path, known, own, around: &self.around };
            let look = |before: &WatchState| root.look(held, references, given, Some(before));
            settle(held, state, view, look, &mut report.changes);
            report.notes.extend(state.notes.iter().cloned());
            named(&mut report.changes[first..], full.as_deref());
        }
        self.told_once(report)
    }

    /// At the end of a turn: the fixed list, and repositories anywhere in the project. Blocks like [`Tripwire::set`].
    pub fn check_everything(&mut self) -> Report {
        let mut report = self.check();
        for (index, watched) in self.roots.iter_mut().enumerate() {
            if watched.root != Root::Project {
                continue;
            }
            let full = (index > 0).then(|| watched.path.clone());
            let first = report.changes.len();
            let WatchedRoots { held, root, given, state, nested, own, path, .. } = watched;
            let known = &state.repositories;
            let view = ConfigView { root: *root, path, known, own, around: &self.around };
            let look = |before: &WatchState| walk::nested(held, known, given, Some(before));
            settle(held, nested, view, look, &mut report.changes);
            report.notes.extend(nested.notes.iter().cloned());
            named(&mut report.changes[first..], full.as_deref());
        }
        self.told_once(report)
    }

    /// Takes these places as they are now, as far as they have the content that somebody approved.
    pub fn accept(&mut self, approved: &[Approved]) {
        for watched in &mut self.roots {
            let inside: Vec<_> = approved
                .iter()
                .filter_map(|approved| Some((approved.path.strip_prefix(&watched.path).ok()?, approved)))
                .collect();
            if inside.is_empty() {
                continue;
            }
            // Everything is read: what was approved may be anything.
            let now = watched.root.look(&watched.held, &watched.references, &watched.given, None);
            for (path, approved) in inside {
                watched.accept(path, approved, &now, &self.around);
            }
        }
    }

    fn told_once(&mut self, mut report: Report) -> Report {
        report.notes.retain(|note| self.notes.insert(note.clone()));
        report
    }
}

/// Places of the project are told relative to it, all others in full.
fn named(changes: &mut [RestoredPlace], root: Option<&Path>) {
    if let Some(root) = root {
        for change in changes {
            change.path = root.join(&change.path).into();
        }
    }
}

impl WatchedRoots {
    fn new(root: Root, path: &Path, kept: &[PathBuf], given: Given) -> io::Result<Self> {
        let held = beneath::open_root(path)?;
        let references = kept.iter().map(|path| (path.clone(), FileKind::Whole)).collect();
        let state = root.look(&held, &references, &given, None);
        let anchor = Anchor::new(&held);
        let (nested, own) = (WatchState::default(), Own::new());
        Ok(Self { root, path: path.to_owned(), held, references, given, state, nested, own, anchor })
    }

    /// Looks at what something leads to as well.
    fn look_further(&mut self, references: References) {
        let mut look = TripwireLook::more(std::mem::take(&mut self.state), &self.given);
        look.references(&self.held, &references);
        self.state = look.state;
        self.references.extend(references);
    }

    /// Why something that is not given away cannot be kept.
    fn unwatched(&self, given: &Given) -> Option<io::Error> {
        let is_kept = |path: &Path| !given.has(&self.path.join(path));
        if let Some((path, error)) = self.state.unread.iter().find(|(path, _)| is_kept(path)) {
            return Some(self.not_kept("read", path, error.desc(), "make it readable, or use"));
        }
        let mut met = self.state.met.iter().chain(&self.nested.met);
        let (path, bound) = met.find(|(path, _)| is_kept(path))?;
        Some(self.not_kept("watch", path, &bound.to_string(), "use"))
    }

    fn not_kept(&self, verb: &str, path: &Path, why: &str, hint: &str) -> io::Error {
        let path = if path == Path::new("") { self.path.clone() } else { self.path.join(path) };
        let given_away = shell_word(&path);
        io::Error::other(format!(
            "cannot {verb} {}: {why}, so that a change of it could not be undone\n  hint: {hint} --write {given_away} \
             to leave it to the agent",
            path.display(),
        ))
    }

    fn take_own(&mut self, around: &Around) {
        let places: Vec<_> = [&self.state, &self.nested]
            .into_iter()
            .flat_map(|state| &state.places)
            .filter(|(_, place)| place.kind == FileKind::Config)
            .map(|(path, place)| (path.clone(), place.clone()))
            .collect();
        let view = ConfigView {
            root: self.root,
            path: &self.path,
            known: &self.nested.repositories,
            own: &Own::new(),
            around,
        };
        let own = places.into_iter().map(|(path, place)| {
            let own = view.surroundings(&self.state).own(&path, &place);
            (path, own)
        });
        self.own = own.collect();
    }

    fn accept(&mut self, path: &Path, approved: &Approved, now: &WatchState, around: &Around) {
        let found = now.places.get(path);
        if found.and_then(content).map(digest) != approved.digest {
            return;
        }
        let Some(place) = found else {
            self.state.places.remove(path);
            return;
        };
        self.state.places.insert(path.to_owned(), place.clone());
        if place.kind == FileKind::Config {
            let view = ConfigView {
                root: self.root,
                path: &self.path,
                known: &self.nested.repositories,
                own: &Own::new(),
                around,
            };
            let guarded = view.surroundings(&self.state).own(path, place);
            self.own.insert(path.to_owned(), guarded);
        }
    }

    fn anchored(&mut self, report: &mut Report) {
        if self.root != Root::Project {
            return;
        }
        let error = match self.anchor.hold(&self.held) {
            FoundAnchor::InPlace => return,
            FoundAnchor::PutBack => None,
            FoundAnchor::Lost(error) => Some(error.to_string()),
        };
        let (what, restored) = (PlaceChange::MovedAway, error.is_none());
        let path = GIT.into();
        report.changes.push(RestoredPlace { path, what, moved_to: None, error, closed: false, restored });
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
        // Somebody else changed it between the commit and this look.
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
        // No directory can be made below a file.
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
