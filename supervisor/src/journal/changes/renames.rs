//! Detects renames without changes: a deleted path whose content appears at a new path.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;

use super::blob::{Blob, BlobId};
use super::path::ProjectPath;
use super::set::{Content, Delta, FileDifference, State};

/// Replaces each pair of a deletion and an addition of the same content by a rename.
///
/// Empty files are not paired. Neither are links that move below their own path, because `git apply` fails on them
/// (2.47: "beyond a symbolic link"). If several deleted paths fit, one with the same file name is preferred.
pub(super) fn detect(changes: Vec<FileDifference>) -> io::Result<Vec<FileDifference>> {
    let sizes = |wanted: fn(&Delta) -> Option<&State>| -> BTreeSet<u64> {
        changes.iter().filter_map(|change| size(wanted(&change.delta)?)).collect()
    };
    let shared = &sizes(deleted) & &sizes(added);
    let mut gone = BTreeMap::<BlobId, Candidates>::new();
    let (mut rest, mut new) = (Vec::new(), Vec::new());
    for change in changes {
        match &change.delta {
            Delta::Deleted(state) if may_pair(&change, state, &shared) => {
                gone.entry(id(state)?).or_default().add(change.path, state.clone());
            }
            Delta::Added(state) if may_pair(&change, state, &shared) => {
                new.push((change.path, state.clone()));
            }
            _ => rest.push(change),
        }
    }
    for (path, state) in new {
        let delta = match gone.entry(id(&state)?).or_default().take(&path, &state)? {
            Some((from, old)) => Delta::Renamed { from, old, new: state },
            None => Delta::Added(state),
        };
        rest.push(FileDifference { path, delta });
    }
    let unpaired = gone.into_values().flat_map(|candidates| candidates.all).flatten();
    rest.extend(unpaired.map(|(path, state)| FileDifference { path, delta: Delta::Deleted(state) }));
    Ok(rest)
}

fn deleted(delta: &Delta) -> Option<&State> {
    if let Delta::Deleted(state) = delta { Some(state) } else { None }
}

fn added(delta: &Delta) -> Option<&State> {
    if let Delta::Added(state) = delta { Some(state) } else { None }
}

/// Returns the size in bytes of a content that can be renamed; `None` for an empty file, a link, or an unrecorded
/// content.
fn size(state: &State) -> Option<u64> {
    blob(state).filter(|blob| !blob.is_empty()).map(Blob::len)
}

const fn blob(state: &State) -> Option<&Blob> {
    match state {
        State::File { content: Content::Blob(blob), .. } => Some(blob),
        State::File { .. } | State::Symlink(_) => None,
    }
}

fn id(state: &State) -> io::Result<BlobId> {
    blob(state).map_or(Ok(BlobId::NONE), Blob::id)
}

fn may_pair(change: &FileDifference, state: &State, sizes: &BTreeSet<u64>) -> bool {
    size(state).is_some_and(|size| sizes.contains(&size)) && change.obstacle().is_none()
}

/// Deleted paths with the same content. It takes constant time to find the one that was renamed to a new path.
#[derive(Default)]
struct Candidates {
    /// The deleted paths, in order. An element is `None` after its path has become part of a rename.
    all: Vec<Option<(ProjectPath, State)>>,
    /// For each file name, the indexes in `all` of the paths with that name.
    by_name: BTreeMap<Box<[u8]>, VecDeque<usize>>,
    /// Index in `all` before which every element is `None`.
    first: usize,
}

impl Candidates {
    fn add(&mut self, path: ProjectPath, state: State) {
        self.by_name.entry(path.file_name().into()).or_default().push_back(self.all.len());
        self.all.push(Some((path, state)));
    }

    fn take(&mut self, path: &ProjectPath, state: &State) -> io::Result<Option<(ProjectPath, State)>> {
        let Self { all, by_name, first } = self;
        let is_taken = |at: usize| all.get(at).is_some_and(Option::is_none);
        while is_taken(*first) {
            *first += 1;
        }
        let same_name = by_name.get_mut(path.file_name()).and_then(|places| {
            while places.front().is_some_and(|at| is_taken(*at)) {
                places.pop_front();
            }
            places.front().copied()
        });
        let Some(found) = all.get_mut(same_name.unwrap_or(*first)) else { return Ok(None) };
        // The bytes decide, because contents with equal ids can be made (SHA-1 collisions).
        match found {
            Some((_, old)) if old.same_content(state)? => Ok(found.take()),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use ipc::path::WirePath;

    use super::*;

    #[test]
    fn candidates_are_taken_by_name_then_in_order_and_once() {
        let path = |name: &str| ProjectPath::try_from(WirePath::from(name)).unwrap();
        let link = || State::Symlink("to".into());
        let mut candidates = Candidates::default();
        for name in ["a/x", "a/y", "b/x", "c/z"] {
            candidates.add(path(name), link());
        }
        let mut take = |name: &str| {
            let taken = candidates.take(&path(name), &link()).unwrap();
            taken.map(|(from, _)| from.to_string())
        };
        let taken = ["n/x", "n/new", "n/x", "n/x", "n/other"].map(&mut take);
        let expected = ["a/x", "a/y", "b/x", "c/z"].map(|name| Some(name.to_owned()));
        assert_eq!(taken, [&expected[..], &[None]].concat()[..]);
    }
}
