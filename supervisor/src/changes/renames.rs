//! Exact renames: the content of a path that is gone, found again at a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::blob::{Blob, BlobId};
use super::path::ProjectPath;
use super::set::{Content, Delta, FileDifference, State};

/// Replaces each pair of a deletion and an addition of the same content by a rename.
///
/// Empty files are no evidence, and a link that is renamed to a path beneath its own is more than `git apply` sees
/// (2.47: "beyond a symbolic link"). Of several candidates the one of the same name is taken, else the first.
pub(super) fn detect(changes: Vec<FileDifference>) -> io::Result<Vec<FileDifference>> {
    let sizes = |wanted: fn(&Delta) -> Option<&State>| -> BTreeSet<u64> {
        changes.iter().filter_map(|change| size(wanted(&change.delta)?)).collect()
    };
    let shared = &sizes(deleted) & &sizes(added);
    let mut gone = BTreeMap::<BlobId, Vec<(ProjectPath, State)>>::new();
    let (mut rest, mut new) = (Vec::new(), Vec::new());
    for change in changes {
        match &change.delta {
            Delta::Deleted(state) if may_pair(&change, state, &shared) => {
                gone.entry(id(state)?).or_default().push((change.path, state.clone()));
            }
            Delta::Added(state) if may_pair(&change, state, &shared) => {
                new.push((change.path, state.clone()));
            }
            _ => rest.push(change),
        }
    }
    for (path, state) in new {
        let candidates = gone.entry(id(&state)?).or_default();
        let delta = match take_match(candidates, &path, &state)? {
            Some((from, old)) => Delta::Renamed { from, old, new: state },
            None => Delta::Added(state),
        };
        rest.push(FileDifference { path, delta });
    }
    let unpaired = gone.into_values().flatten();
    rest.extend(unpaired.map(|(path, state)| FileDifference { path, delta: Delta::Deleted(state) }));
    Ok(rest)
}

fn deleted(delta: &Delta) -> Option<&State> {
    if let Delta::Deleted(state) = delta { Some(state) } else { None }
}

fn added(delta: &Delta) -> Option<&State> {
    if let Delta::Added(state) = delta { Some(state) } else { None }
}

/// The size of a content that can be found again.
fn size(state: &State) -> Option<u64> {
    blob(state).filter(|blob| !blob.is_empty()).map(Blob::len)
}

const fn blob(state: &State) -> Option<&Blob> {
    match state {
        State::File { content: Content::Blob(blob), .. } => Some(blob),
        State::File { .. } | State::Symlink(_) => None,
    }
}

/// Equal ids may, different ids cannot have equal contents.
fn id(state: &State) -> io::Result<BlobId> {
    blob(state).map_or(Ok(BlobId::NONE), Blob::id)
}

fn may_pair(change: &FileDifference, state: &State, sizes: &BTreeSet<u64>) -> bool {
    size(state).is_some_and(|size| sizes.contains(&size)) && change.obstacle().is_none()
}

fn take_match(
    candidates: &mut Vec<(ProjectPath, State)>,
    path: &ProjectPath,
    state: &State,
) -> io::Result<Option<(ProjectPath, State)>> {
    let same_name = candidates.iter().position(|(from, _)| from.file_name() == path.file_name());
    let Some(found) = same_name.or_else(|| (!candidates.is_empty()).then_some(0)) else {
        return Ok(None);
    };
    // SHA-1 names a content, it does not prove it: collisions can be made.
    if !candidates[found].1.same_content(state)? {
        return Ok(None);
    }
    Ok(Some(candidates.remove(found)))
}
