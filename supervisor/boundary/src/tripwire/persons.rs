//! Finds changes that count as the person's although an agent may have made them: the new content is one that the
//! person gave the file earlier, or has committed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::judge::TripwireVerdict;
use super::persons_git::PlaceChanged;
use super::root::Root;
use super::settle::ConfigView;
use super::state::{FileBody, FileKind, WatchState, WatchedPlace};

impl ConfigView<'_> {
    pub(super) fn of_the_person(
        self,
        verdicts: &BTreeMap<PathBuf, TripwireVerdict>,
        before: &WatchState,
        now: &WatchState,
    ) -> BTreeSet<PathBuf> {
        if self.root != Root::Project {
            return BTreeSet::new();
        }
        let changes: Vec<_> = verdicts
            .iter()
            .filter(|(path, verdict)| self.may_follow(path, verdict, [before, now]))
            .map(|(path, _)| PlaceChanged {
                path,
                before: before.places.get(path),
                now: now.places.get(path),
            })
            .collect();
        let (again, others): (Vec<_>, Vec<_>) = changes.iter().partition(|change| self.is_again(change));
        let held = self.around.git.as_ref().map(|git| git.hold(self.path, &others)).unwrap_or_default();
        let again = again.iter().map(|change| change.path);
        let mut persons: BTreeSet<_> = again.chain(held).map(Path::to_owned).collect();
        // A directory comes and goes with its files.
        let followed = changes.iter().filter(|change| is_followed(change, &persons, now));
        let followed: Vec<_> = followed.map(|change| change.path.to_owned()).collect();
        persons.extend(followed);
        let all_go = |path: &PathBuf| {
            let beneath = before.places.keys().filter(|other| *other != path && other.starts_with(path));
            beneath.into_iter().all(|other| persons.contains(other))
        };
        let was_directory =
            |path: &PathBuf| before.places.get(path).is_some_and(|place| place.body == FileBody::Directory);
        persons.iter().filter(|path| !was_directory(path) || all_go(path)).cloned().collect()
    }

    fn may_follow(self, path: &Path, verdict: &TripwireVerdict, [before, now]: [&WatchState; 2]) -> bool {
        let may_change = match verdict {
            TripwireVerdict::Restore(_) | TripwireVerdict::Keep(..) => !before.owed.contains(path),
            TripwireVerdict::Pass | TripwireVerdict::Close(_) | TripwireVerdict::Thin(_) => false,
        };
        let place = before.places.get(path).or_else(|| now.places.get(path));
        let is_setting = place.is_some_and(|place| matches!(place.kind, FileKind::Whole | FileKind::Config));
        let of_repository =
            [self.known, &now.repositories].into_iter().flatten().any(|git| path.starts_with(git));
        may_change && is_setting && !of_repository && self.around.given.may_follow_commits(self.path, path)
    }

    /// True if the file is again in the state in which the person left it.
    fn is_again(self, change: &PlaceChanged<'_>) -> bool {
        let left = self.persons.get(change.path);
        left.zip(change.now).is_some_and(|(left, now)| left.is_like(now))
    }
}

fn is_followed(change: &PlaceChanged<'_>, persons: &BTreeSet<PathBuf>, now: &WatchState) -> bool {
    let beneath = |path: &&PathBuf| path.starts_with(change.path) && *path != change.path;
    let is_directory =
        |place: Option<&WatchedPlace>| place.is_some_and(|place| place.body == FileBody::Directory);
    let mut beneath = persons.iter().filter(beneath);
    if is_directory(change.now) {
        change.before.is_none() && beneath.any(|path| now.places.contains_key(path))
    } else {
        change.now.is_none() && is_directory(change.before) && beneath.next().is_some()
    }
}
