//! Compares watched files with their recorded state, and restores changed files until none differs.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use protocol::event::{PlaceChange, RestoredPlace};

use super::access::PlaceAccess;
use super::addresses::Ground;
use super::aside::Aside;
use super::judge::{JudgedSurroundings, Own, TripwireVerdict};
use super::persons_git::PersonsGit;
use super::restore::{Restored, Restorer};
use super::root::Root;
use super::state::{WatchState, WatchedPlace};
use super::watch::Given;

/// Maximum number of attempts to restore a file. If it still differs, another process keeps changing it.
const ROUNDS: usize = 3;

/// Maximum number of files that a message about a commit names.
const MOST_NAMED: usize = 5;

#[derive(Debug)]
pub(super) struct Around {
    pub(super) given: Given,
    pub(super) searched: Vec<PathBuf>,
    pub(super) writable: Vec<PathBuf>,
    pub(super) aside: Option<PathBuf>,
    pub(super) git: Option<PersonsGit>,
}

impl Around {
    pub(super) fn widen(&mut self, other: Self) {
        for (own, new) in [(&mut self.searched, other.searched), (&mut self.writable, other.writable)] {
            let known: BTreeSet<_> = own.iter().cloned().collect();
            own.extend(new.into_iter().filter(|path| !known.contains(path)));
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct ConfigView<'a> {
    pub(super) root: Root,
    pub(super) path: &'a Path,
    pub(super) known: &'a BTreeSet<PathBuf>,
    /// State in which the person left the watched files.
    pub(super) persons: &'a BTreeMap<PathBuf, WatchedPlace>,
    pub(super) own: &'a Own,
    pub(super) around: &'a Around,
}

impl<'a> ConfigView<'a> {
    pub(super) fn surroundings(self, now: &'a WatchState) -> JudgedSurroundings<'a> {
        let ground = Ground { searched: &self.around.searched, writable: &self.around.writable };
        JudgedSurroundings {
            root: self.path,
            repositories: [self.known, &now.repositories],
            own: self.own,
            branches: self.around.git.as_ref().map(PersonsGit::branches),
            ground,
        }
    }

    pub(super) fn verdicts(
        self,
        before: &WatchState,
        now: &'a WatchState,
    ) -> BTreeMap<PathBuf, TripwireVerdict> {
        self.verdicts_but_of(&BTreeSet::new(), before, now)
    }

    /// Judges the changes of all files except those in `persons`, and new write permissions of all files.
    pub(super) fn verdicts_but_of(
        self,
        persons: &BTreeSet<PathBuf>,
        before: &WatchState,
        now: &'a WatchState,
    ) -> BTreeMap<PathBuf, TripwireVerdict> {
        let around = self.surroundings(now);
        let paths: BTreeSet<&PathBuf> = before.places.keys().chain(now.places.keys()).collect();
        let is_judged = |path: &&PathBuf| !self.is_given(path) && !persons.contains(*path);
        let judged = paths.into_iter().filter(is_judged).map(|path| {
            let (then, now) = (before.places.get(path), now.places.get(path));
            let verdict = match now {
                None if before.owed.contains(path) => TripwireVerdict::Restore(PlaceChange::Removed),
                _ => around.judge(path, then, now),
            };
            (path.clone(), verdict)
        });
        let mut verdicts: BTreeMap<_, _> =
            judged.filter(|(_, verdict)| *verdict != TripwireVerdict::Pass).collect();
        for (path, access) in self.opened(before, now) {
            verdicts.entry(path.clone()).or_insert(TripwireVerdict::Close(access));
        }
        for (path, listing) in now.crowded.iter().filter(|(path, _)| !self.is_given(path)) {
            verdicts.insert(path.clone(), TripwireVerdict::Thin(*listing));
        }
        verdicts
    }

    fn is_given(self, path: &Path) -> bool {
        self.around.given.has(&self.path.join(path))
    }

    /// Returns the files and directories to which other users can write since a change, each with the permissions to
    /// set.
    fn opened(
        self,
        before: &'a WatchState,
        now: &'a WatchState,
    ) -> impl Iterator<Item = (&'a PathBuf, PlaceAccess)> {
        let places = now.places.iter().filter(|(_, place)| !place.is_link());
        let places = places.map(|(path, place)| (path, &place.access));
        let all = now.directories.iter().chain(places).filter(move |(path, _)| !self.is_given(path));
        all.filter_map(move |(path, access)| Some((path, closed(path, access, before)?)))
    }
}

/// Returns the permissions to set if a file has become too open: those before; for a new file, the widest allowed ones.
/// `None` if it is not too open.
fn closed(path: &Path, access: &PlaceAccess, before: &WatchState) -> Option<PlaceAccess> {
    let then = before.directories.get(path).or_else(|| before.places.get(path).map(|place| &place.access));
    if let Some(then) = then {
        return access.is_wider_than(then).then(|| then.clone());
    }
    let around = before.around(path)?;
    access.is_wider_than_around(around).then(|| access.narrowed_to(around))
}

/// Takes snapshots and restores files until there is no difference, and updates `state`. Returns the earlier state, or
/// `None` if some files could not be restored.
pub(super) fn settle(
    held: &OwnedFd,
    state: &mut WatchState,
    view: ConfigView<'_>,
    look: impl Fn(&WatchState) -> WatchState,
    report: &mut Vec<RestoredPlace>,
) -> Option<WatchState> {
    let mut settled = None;
    let mut changes: BTreeMap<PathBuf, RestoredPlace> = BTreeMap::new();
    for round in 0..=ROUNDS {
        let mut now = look(state);
        let mut verdicts = view.verdicts(state, &now);
        let persons = view.of_the_person(&verdicts, state, &now);
        if !persons.is_empty() {
            verdicts = view.verdicts_but_of(&persons, state, &now);
            now.notes.push(told(&persons));
        }
        if verdicts.is_empty() {
            // A snapshot does not have this field.
            let unreached = std::mem::take(&mut state.unreached);
            settled = Some(std::mem::replace(state, WatchState { unreached, ..now }));
            break;
        }
        if round == ROUNDS {
            let left = |path: &PathBuf| verdicts.contains_key(path);
            report.extend(
                changes.into_iter().map(|(path, change)| RestoredPlace { restored: !left(&path), ..change }),
            );
            state.notes = now.notes;
            return None;
        }
        // Removals need no disk space, and may free some.
        let (first, then): (Vec<_>, Vec<_>) = verdicts
            .into_iter()
            .partition(|(path, verdict)| !verdict.needs_room(state.places.contains_key(path)));
        for (path, verdict) in first.into_iter().chain(then) {
            let change = put_back(held, state, &path, verdict, view);
            changes.entry(path).and_modify(|known| amend(known, &change)).or_insert(change);
        }
    }
    report.extend(changes.into_values());
    settled
}

/// Returns a message for the person about changed files that are now as in a commit.
fn told(persons: &BTreeSet<PathBuf>) -> String {
    let mut names: Vec<_> = persons.iter().take(MOST_NAMED).map(|path| path.display().to_string()).collect();
    if persons.len() > MOST_NAMED {
        names.push(format!("{} more", persons.len() - MOST_NAMED));
    }
    format!("now the same as in a commit of yours: {}", names.join(", "))
}

fn amend(known: &mut RestoredPlace, change: &RestoredPlace) {
    known.moved_to = known.moved_to.take().or_else(|| change.moved_to.clone());
    known.closed |= change.closed;
    known.error = known.error.take().or_else(|| change.error.clone());
}

/// Restores one file, and describes its change. Only the next snapshot shows if the restoration worked.
fn put_back(
    held: &OwnedFd,
    before: &mut WatchState,
    path: &Path,
    verdict: TripwireVerdict,
    view: ConfigView<'_>,
) -> RestoredPlace {
    let project = (view.root == Root::Project).then_some((held, view.path));
    let aside = Aside { directory: view.around.aside.as_deref(), project };
    let restorer = Restorer { root: held, before, aside };
    let (done, what) = match verdict {
        TripwireVerdict::Pass => (Restored::default(), PlaceChange::Changed),
        TripwireVerdict::Restore(what) => (restorer.restore(path), what),
        TripwireVerdict::Keep(content, what) => (restorer.keep(path, &content), what),
        TripwireVerdict::Close(access) => (restorer.give(path, &access), PlaceChange::Permissions),
        TripwireVerdict::Thin(listing) => (restorer.thin(path, listing), PlaceChange::Crowded),
    };
    let is_owed = done.failure.is_some() && before.places.contains_key(path);
    if is_owed {
        before.owed.insert(path.to_owned())
    } else {
        before.owed.remove(path)
    };
    let error = done.failure.map(|error| error.desc().to_owned());
    let error = error.or_else(|| done.unmoved.map(|error| error.to_string()));
    let path = if path == Path::new("") { Path::new(".") } else { path };
    RestoredPlace {
        path: path.into(),
        what,
        moved_to: done.moved_to.map(Into::into),
        error,
        closed: done.closed,
        restored: true,
    }
}
