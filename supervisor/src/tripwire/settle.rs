//! Putting back until nothing is left to be put back.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use ipc::event::{PlaceChange, RestoredPlace};

use super::addresses::Ground;
use super::judge::{JudgedSurroundings, Own, TripwireVerdict};
use super::state::WatchState;
use super::watch::Given;
use super::{aside, restore};

/// The rounds of putting back before a change is left: nobody who could make it again should be alive.
const ROUNDS: usize = 3;

/// Circumstances that all roots share.
#[derive(Debug)]
pub(super) struct Around {
    pub(super) given: Given,
    pub(super) searched: Vec<PathBuf>,
    pub(super) writable: Vec<PathBuf>,
    pub(super) aside: Option<PathBuf>,
}

impl Around {
    /// Adds the directories of wider rights.
    pub(super) fn widen(&mut self, other: Self) {
        for (own, new) in [(&mut self.searched, other.searched), (&mut self.writable, other.writable)] {
            let known: BTreeSet<_> = own.iter().cloned().collect();
            own.extend(new.into_iter().filter(|path| !known.contains(path)));
        }
    }
}

/// One root, and what its places are judged by.
#[derive(Clone, Copy)]
pub(super) struct ConfigView<'a> {
    pub(super) path: &'a Path,
    pub(super) known: &'a BTreeSet<PathBuf>,
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
            ground,
        }
    }

    pub(super) fn verdicts(
        self,
        before: &WatchState,
        now: &'a WatchState,
    ) -> BTreeMap<PathBuf, TripwireVerdict> {
        let around = self.surroundings(now);
        let is_given = |path: &Path| self.around.given.has(&self.path.join(path));
        let paths: BTreeSet<&PathBuf> = before.places.keys().chain(now.places.keys()).collect();
        let judged = paths
            .into_iter()
            .filter(|path| !is_given(path))
            .map(|path| (path.clone(), around.judge(path, before.places.get(path), now.places.get(path))));
        let mut verdicts: BTreeMap<_, _> =
            judged.filter(|(_, verdict)| *verdict != TripwireVerdict::Pass).collect();
        for (path, listing) in now.crowded.iter().filter(|(path, _)| !before.crowded.contains_key(*path)) {
            if !is_given(path) {
                verdicts.entry(path.clone()).or_insert(TripwireVerdict::Thin(*listing));
            }
        }
        verdicts
    }
}

/// Looks, puts back, and looks again until nothing is left to be put back; what passes is what the next look starts from. Gives what
/// the state was before, if all of it is settled.
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
        let now = look(state);
        let verdicts = view.verdicts(state, &now);
        if verdicts.is_empty() {
            settled = Some(std::mem::replace(state, now));
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
        for (path, verdict) in verdicts {
            let change = put_back(held, state, &path, verdict, view.around.aside.as_deref());
            changes.entry(path).or_insert(change);
        }
    }
    report.extend(changes.into_values());
    settled
}

/// Restores one place, and describes its change for the report. Failures show in the next look.
fn put_back(
    held: &OwnedFd,
    before: &WatchState,
    path: &Path,
    verdict: TripwireVerdict,
    aside: Option<&Path>,
) -> RestoredPlace {
    let (mut moved_to, mut failure) = (None, None);
    let (done, what) = match verdict {
        TripwireVerdict::Pass => (Ok(()), PlaceChange::Changed),
        TripwireVerdict::Restore(what) => (restore::restore(held, path, before), what),
        TripwireVerdict::Keep(content, what) => (restore::keep(held, path, &content), what),
        TripwireVerdict::Thin(listing) => (restore::thin(held, path, listing, before), PlaceChange::Crowded),
        TripwireVerdict::MoveAside(what) => {
            match aside.map(|aside| aside::move_aside(held, path, aside)) {
                Some(Ok(to)) => moved_to = Some(to.into()),
                // It does not stay because it is too large, or the other disk full.
                Some(Err(error)) => failure = Some(error.to_string()),
                None => {}
            }
            (restore::restore(held, path, before), what)
        }
    };
    if let Err(error) = done {
        tracing::warn!(path = %path.display(), %error, "cannot be put back");
    }
    RestoredPlace { path: path.into(), what, moved_to, error: failure, restored: true }
}
