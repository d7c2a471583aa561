//! The files that differ between a checkpoint and the next one, in the form for front ends.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use ipc::effect::{FileEffect, FileState};
use ipc::path::WirePath;
use protocol::event::{ChangeKind, FileDiff, SeenChange, SeenContent};
use similar::{DiffOp, capture_diff_slices};

use super::checkpoint::SeenFile;
use super::{Checkpoints, Kept};
use crate::journal::changes::ProjectPath;

/// Maximum number of files of one checkpoint that are reported one by one.
const MOST_TOLD: usize = 1000;

/// Maximum number of bytes of text that are reported for one checkpoint.
const MOST_TEXT: usize = 1 << 20;

/// Maximum number of bytes that are read for one checkpoint.
const MOST_READ: u64 = 64 << 20;

/// Maximum number of pairs of lines that are compared. With more, all lines between the equal beginning and end of a
/// file count as changed.
const MOST_PAIRS: usize = 1 << 20;

#[derive(Debug)]
pub struct CheckpointDifference {
    path: ProjectPath,
    old: Option<Kept>,
    new: Option<Kept>,
    /// Time of the file's last change in nanoseconds, by the file system's clock; `None` if the file was deleted.
    changed_ns: Option<i64>,
}

/// A change, with the time of the file's last change in nanoseconds; `None` if the file was deleted.
pub type StampedChange = (SeenChange, Option<i64>);

/// The changes since the previous checkpoint that a new checkpoint found, for a front end.
#[derive(Debug, Default)]
pub struct CheckpointChanges {
    pub asked_ns: i64,
    pub changes: Vec<StampedChange>,
    pub more: u64,
    /// True if the previous checkpoint was made in a turn that did not end.
    pub after_cut: bool,
    /// Paths that a call may have written, and that exist but did not change since the previous checkpoint.
    pub unchanged: BTreeSet<ProjectPath>,
    /// Paths that a call may have written, and that do not exist.
    pub gone: BTreeSet<ProjectPath>,
}

impl CheckpointDifference {
    /// Returns the change of a file between two checkpoints; `None` if only its stamp changed.
    pub(super) fn between(
        path: &ProjectPath,
        old: Option<&SeenFile>,
        new: Option<&SeenFile>,
    ) -> Option<Self> {
        let is_same = match (old, new) {
            (Some(old), Some(new)) => old.kept == new.kept && (is_kept(&new.kept) || !touched(old, new)),
            (None, None) => true,
            _ => false,
        };
        let kept = |seen: Option<&SeenFile>| seen.map(|seen| seen.kept.clone());
        let changed_ns = new.map(|seen| seen.stamp.changed_ns);
        (!is_same).then(|| Self { path: path.clone(), old: kept(old), new: kept(new), changed_ns })
    }

    pub const fn path(&self) -> &ProjectPath {
        &self.path
    }

    /// Returns the digest of the content that appeared at this path (if `came` is true) or disappeared from it (if
    /// false). `None` if the file did not appear or disappear, is empty, or has no stored content.
    fn moved(&self, came: bool) -> Option<&str> {
        let kept = match (&self.old, &self.new) {
            (Some(kept), None) if !came => kept,
            (None, Some(kept)) if came => kept,
            _ => return None,
        };
        match kept {
            Kept::File { size, content: Some(content), .. } if *size > 0 => Some(&content.digest),
            Kept::File { .. } | Kept::Link(_) => None,
        }
    }
}

impl Checkpoints {
    /// Returns the differences in the form for front ends, and the number of further differences.
    pub fn told(
        &self,
        mut differences: Vec<CheckpointDifference>,
        project: &WirePath,
    ) -> io::Result<(Vec<StampedChange>, u64)> {
        let more = differences.len().saturating_sub(MOST_TOLD) as u64;
        differences.truncate(MOST_TOLD);
        let from = renames(&mut differences);
        let mut budget = ToldBudget { text: MOST_TEXT, read: MOST_READ };
        let tell = |difference: CheckpointDifference| {
            let renamed_from = from.get(&difference.path);
            Ok((self.tell(&difference, project, renamed_from, &mut budget)?, difference.changed_ns))
        };
        Ok((differences.into_iter().map(tell).collect::<io::Result<_>>()?, more))
    }

    fn tell(
        &self,
        difference: &CheckpointDifference,
        project: &WirePath,
        renamed_from: Option<&ProjectPath>,
        budget: &mut ToldBudget,
    ) -> io::Result<SeenChange> {
        let CheckpointDifference { path, old, new, .. } = difference;
        let change = match (renamed_from, old, new) {
            (Some(from), ..) => ChangeKind::RenamedFrom(from.to_wire()),
            (None, None, _) => ChangeKind::Added,
            (None, Some(_), None) => ChangeKind::Deleted,
            (None, Some(_), Some(_)) => ChangeKind::Modified,
        };
        let modes = match (old, new) {
            (Some(Kept::File { mode: old, .. }), Some(Kept::File { mode: new, .. })) if old != new => {
                Some([*old, *new])
            }
            _ => None,
        };
        let mut told = SeenChange {
            path: path.to_wire(),
            change,
            by: Vec::new(),
            content: SeenContent::NotKept,
            modes,
            added: 0,
            removed: 0,
            diff: None,
        };
        let size = |kept: &Kept| if let Kept::File { size, .. } = kept { *size } else { 0 };
        let states = [old, new].into_iter().flatten();
        let bytes: u64 = states.clone().map(size).sum();
        if !states.clone().all(is_kept) || bytes > budget.read {
            return Ok(told);
        }
        budget.read -= bytes;
        let state = |kept: &Option<Kept>| kept.as_ref().map(|kept| self.bytes_of(kept)).transpose();
        let (old, new) = (state(old)?, state(new)?);
        told.content = match [&old, &new].into_iter().flatten().last() {
            Some(state) if state.mode == ipc::effect::LINK => SeenContent::Link,
            _ if [&old, &new].into_iter().flatten().all(is_text) => SeenContent::Text,
            _ => SeenContent::Binary,
        };
        let is_same = old.as_ref().map(|old| &old.bytes) == new.as_ref().map(|new| &new.bytes);
        if told.content == SeenContent::Binary || is_same || renamed_from.is_some() {
            return Ok(told);
        }
        let path = WirePath::from(project.as_path().join(told.path.as_path()));
        let effect = FileEffect { path: path.clone(), old, new, replacements: 0 };
        let text = |state: &Option<FileState>| {
            state.as_ref().map(|state| String::from_utf8_lossy(&state.bytes).into_owned()).unwrap_or_default()
        };
        (told.added, told.removed) = counts(&text(&effect.old), &text(&effect.new));
        let change = effect.change().filter(|change| change.length() <= budget.text);
        told.diff = change.map(|change| {
            budget.text -= change.length();
            FileDiff { path, first_line: Some(change.first_line), old_text: change.old, new_text: change.new }
        });
        Ok(told)
    }
}

struct ToldBudget {
    text: usize,
    read: u64,
}

/// Finds moved files and removes the differences of their old paths. Returns the old path for each new path.
fn renames(differences: &mut Vec<CheckpointDifference>) -> BTreeMap<ProjectPath, ProjectPath> {
    let mut gone: BTreeMap<String, Vec<ProjectPath>> = BTreeMap::new();
    for difference in differences.iter().rev() {
        if let Some(digest) = difference.moved(false) {
            gone.entry(digest.to_owned()).or_default().push(difference.path.clone());
        }
    }
    let mut from = BTreeMap::new();
    for difference in differences.iter() {
        let old = difference.moved(true).and_then(|digest| gone.get_mut(digest)?.pop());
        from.extend(old.map(|old| (difference.path.clone(), old)));
    }
    let old: BTreeSet<_> = from.values().cloned().collect();
    differences.retain(|difference| !old.contains(&difference.path));
    from
}

const fn is_kept(kept: &Kept) -> bool {
    !matches!(kept, Kept::File { content: None, .. })
}

const fn touched(old: &SeenFile, new: &SeenFile) -> bool {
    old.stamp.modified_ns != new.stamp.modified_ns
}

fn is_text(state: &FileState) -> bool {
    std::str::from_utf8(&state.bytes).is_ok_and(|text| !text.contains('\0'))
}

/// Returns the numbers of added and of removed lines.
pub fn counts(old: &str, new: &str) -> (u64, u64) {
    let [old, new] = [old, new].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (old.get(before..).unwrap_or_default(), new.get(before..).unwrap_or_default());
    let after = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let old = old.get(..old.len() - after).unwrap_or_default();
    let new = new.get(..new.len() - after).unwrap_or_default();
    if old.len().saturating_mul(new.len()) > MOST_PAIRS {
        return (new.len() as u64, old.len() as u64);
    }
    let mut counts = (0, 0);
    for op in capture_diff_slices(similar::Algorithm::Myers, old, new) {
        match op {
            DiffOp::Equal { .. } => {}
            DiffOp::Insert { new_len, .. } => counts.0 += new_len as u64,
            DiffOp::Delete { old_len, .. } => counts.1 += old_len as u64,
            DiffOp::Replace { old_len, new_len, .. } => {
                counts.0 += new_len as u64;
                counts.1 += old_len as u64;
            }
        }
    }
    counts
}
