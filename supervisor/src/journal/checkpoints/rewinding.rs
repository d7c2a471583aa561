//! Plans for a rewind. A rewind restores the project's files to the state of an earlier checkpoint.

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use ipc::effect::{DIRECTORY, FileEffect, FileState, LINK, Patch};
use ipc::id::EventId;
use ipc::path::WirePath;

use super::checkpoint::SeenFile;
use super::store::States;
use super::{At, Checkpoints, Kept};
use crate::journal::changes::ProjectPath;

/// Maximum size in bytes of the old and new contents in one patch. A single file may have more.
const MOST_OF_A_PATCH: u64 = 24 << 20;

/// Maximum number of directories for which write access is granted individually.
const MOST_GRANTED: usize = 32;

/// The files that a rewind restores, and those that it does not restore.
#[derive(Debug, Default)]
pub struct Rewinding {
    /// The files that are restored, in order of their paths.
    pub restored: Vec<Restore>,
    /// The files that differ from the checkpoint but are not restored, in order of their paths, each with the reason.
    pub left: Vec<(ProjectPath, Why)>,
}

impl Rewinding {
    /// Removes all files from the plan except the wanted ones.
    pub fn keep_only(&mut self, is_wanted: impl Fn(&ProjectPath) -> bool) {
        self.restored.retain(|restore| is_wanted(&restore.path));
        self.left.retain(|(path, _)| is_wanted(path));
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    pub path: ProjectPath,
    /// Current state of the file; `None` if it does not exist.
    pub now: Option<Kept>,
    pub then: Option<Kept>,
}

/// The reason why a rewind leaves a file unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Another program changed the file, after the last turn or between two turns.
    Foreign,
    /// The content was not stored: it was too large or unreadable, or the session's space was used up.
    NotKept,
    /// The file existed at the time of the checkpoint, but git ignored it then.
    Ignored,
    /// A program on the host runs the file or reads it as configuration.
    Protected,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "changed by another program, not by the agents",
            Self::NotKept => "its content was not saved: too large, unreadable, or not enough space",
            Self::Ignored => "existed before, and git ignored it",
            Self::Protected => "your own programs run this file",
        })
    }
}

/// A patch, and the directories for which its application needs write access.
pub(super) type Granted = (Patch, Vec<WirePath>);

impl Checkpoints {
    /// Returns the index of the checkpoint with the files as they were at a message; `None` if no file was written
    /// since the message.
    pub fn checkpoint_of(&self, message: EventId) -> Option<usize> {
        self.taken.iter().position(|checkpoint| checkpoint.serves(message))
    }

    /// Returns the index of the checkpoint just before the last rewind. `None` without one, or if files changed later.
    pub fn checkpoint_to_undo(&self) -> Option<usize> {
        let mut back = self
            .taken
            .iter()
            .enumerate()
            .rev()
            .skip_while(|(_, checkpoint)| checkpoint.at == At::BeforeRewind);
        let (after, checkpoint) = back.next()?;
        (checkpoint.at == At::AfterRewind).then(|| after.checked_sub(1))?
    }

    /// Returns the state of a file at the last checkpoint.
    pub fn state(&self, path: &ProjectPath) -> Option<&Kept> {
        self.now.get(path).map(|seen| &seen.kept)
    }

    /// Plans the restoration of a checkpoint's files. `is_protected` is true for a path that the host executes or reads
    /// as configuration. Its second argument is true if the rewind would write the path, and false if it would delete
    /// it.
    pub fn rewinding(&self, target: usize, is_protected: impl Fn(&ProjectPath, bool) -> bool) -> Rewinding {
        let then = self.states_at(target);
        let asked_ns = self.taken.get(target).map_or(i64::MAX, |checkpoint| checkpoint.asked_ns);
        let foreign = self.foreign_since(target);
        let inodes: BTreeSet<_> = then.values().map(|seen| seen.stamp.inode).collect();
        let rules_changed = self.rules_changed(&then);
        // A file with the same inode as one in the checkpoint was only renamed. If the creation time is unknown and
        // ignore rules changed, the file may have existed and been ignored.
        let was_there = |seen: &SeenFile| {
            let since = seen.born_ns.unwrap_or(if rules_changed { i64::MIN } else { seen.stamp.changed_ns });
            since < asked_ns && !inodes.contains(&seen.stamp.inode)
        };
        let mut rewinding = Rewinding::default();
        let paths: BTreeSet<_> = then.keys().chain(self.now.keys()).collect();
        for path in paths {
            let (old, new) = (then.get(path), self.now.get(path));
            if old.map(|seen| &seen.kept) == new.map(|seen| &seen.kept) {
                continue;
            }
            let has_content = |kept: &Kept| !matches!(kept, Kept::File { content: None, .. });
            let is_kept = [old, new].into_iter().flatten().all(|seen| has_content(&seen.kept));
            let was_ignored = old.is_none() && new.is_some_and(was_there);
            let why = match () {
                () if foreign.contains(path) => Why::Foreign,
                () if was_ignored => Why::Ignored,
                () if !is_kept => Why::NotKept,
                () if is_protected(path, old.is_some()) => Why::Protected,
                () => {
                    let kept = |seen: Option<&SeenFile>| seen.map(|seen| seen.kept.clone());
                    let restore = Restore { path: path.clone(), now: kept(new), then: kept(old) };
                    rewinding.restored.push(restore);
                    continue;
                }
            };
            rewinding.left.push((path.clone(), why));
        }
        rewinding
    }

    /// True if a `.gitignore` file differs from its state in `then`.
    fn rules_changed(&self, then: &States) -> bool {
        let rules = |path: &&ProjectPath| path.file_name() == b".gitignore";
        let state = |states: &States, path| states.get(path).map(|seen| seen.kept.clone());
        then.keys()
            .chain(self.now.keys())
            .filter(rules)
            .any(|path| state(then, path) != state(&self.now, path))
    }

    /// Returns the paths that programs other than agents and rewinds changed after the checkpoint `target`.
    fn foreign_since(&self, target: usize) -> BTreeSet<&ProjectPath> {
        let later = self.taken.windows(2).skip(target);
        let foreign = later.filter(|pair| match pair {
            [before, after] => !before.is_within_turn() && after.at != At::AfterRewind,
            _ => false,
        });
        let mut states = self.states_at(target);
        let mut paths = BTreeSet::new();
        let foreign: Vec<_> = foreign.filter_map(|pair| pair.get(1)).collect();
        for checkpoint in self.taken.iter().skip(target + 1) {
            let is_foreign = foreign.iter().any(|other| std::ptr::eq(*other, checkpoint));
            for (path, seen) in &checkpoint.changed {
                // A file of which only the stamp changed does not count.
                let before = states.get(path).map(|seen| &seen.kept);
                if is_foreign && before != seen.as_ref().map(|seen| &seen.kept) {
                    paths.insert(path);
                }
                match seen {
                    Some(seen) => drop(states.insert(path.clone(), seen.clone())),
                    None => drop(states.remove(path)),
                }
            }
        }
        paths
    }

    /// Returns the patches that carry out a rewind, in order: deletions first, then additions and changes.
    pub fn patches(&self, project: &WirePath, rewinding: &Rewinding) -> io::Result<Vec<Granted>> {
        // A file that changes its kind, or that its owner may not write, is deleted and created again.
        let goes = |restore: &&Restore| match (&restore.now, &restore.then) {
            (Some(_), None) => true,
            (Some(now), Some(then)) => is_link(now) != is_link(then) || !is_writable(now),
            (None, _) => false,
        };
        let gone: BTreeSet<_> = rewinding.restored.iter().filter(goes).map(|restore| &restore.path).collect();
        let absolute = |path: &ProjectPath| WirePath::from(project.as_path().join(path.to_wire().as_path()));
        let mut going = Vec::new();
        let mut coming = Vec::new();
        for Restore { path, now, then } in &rewinding.restored {
            let state = |kept: &Option<Kept>| kept.as_ref().map(|kept| self.bytes_of(kept)).transpose();
            let (old, new) = (state(now)?, state(then)?);
            let effect = |old, new| FileEffect { path: absolute(path), old, new, replacements: 0 };
            if gone.contains(path) {
                going.push((path, effect(old, None)));
                coming.extend(new.map(|new| (path, effect(None, Some(new)))));
            } else {
                coming.push((path, effect(old, new)));
            }
        }
        let emptied = self.emptied(&gone, rewinding);
        let directory = || Some(FileState { bytes: Vec::new(), mode: DIRECTORY });
        let removed = emptied.iter().rev().map(|path| {
            (path, FileEffect { path: absolute(path), old: directory(), new: None, replacements: 0 })
        });
        let mut before: States = self.now.clone();
        let mut patches = granted(going, &before, project);
        before.retain(|path, _| !gone.contains(path));
        let mut parents: Vec<_> = granted(removed.collect(), &self.now, project);
        patches.append(&mut parents);
        patches.extend(granted(coming, &before, project));
        Ok(patches)
    }

    /// Returns the directories above the paths `gone` that will hold no file after the rewind, in ascending order.
    fn emptied(&self, gone: &BTreeSet<&ProjectPath>, rewinding: &Rewinding) -> Vec<ProjectPath> {
        let stays = self.now.keys().filter(|path| !gone.contains(path));
        let comes = rewinding.restored.iter().filter(|restore| restore.then.is_some());
        let comes = comes.map(|restore| &restore.path);
        let held: BTreeSet<_> = stays.chain(comes).flat_map(ProjectPath::ancestors).collect();
        let empty: BTreeSet<_> = gone.iter().flat_map(|path| path.ancestors()).collect();
        empty.into_iter().filter(|directory| !held.contains(directory)).collect()
    }

    pub(super) fn bytes_of(&self, kept: &Kept) -> io::Result<FileState> {
        Ok(match kept {
            Kept::Link(target) => FileState { bytes: target.as_bytes().to_vec(), mode: LINK },
            Kept::File { mode, size, content: Some(content) } => {
                FileState { bytes: self.bytes(content, *size)?, mode: *mode }
            }
            Kept::File { content: None, .. } => {
                return Err(io::Error::other("the saved content of a file is missing"));
            }
        })
    }
}

const fn is_link(kept: &Kept) -> bool {
    matches!(kept, Kept::Link(_))
}

const fn is_writable(kept: &Kept) -> bool {
    matches!(kept, Kept::File { mode, .. } if *mode & 0o200 != 0) || is_link(kept)
}

/// Splits changes into patches of limited size, each with the existing directories that it needs to write.
fn granted(effects: Vec<(&ProjectPath, FileEffect)>, there: &States, project: &WirePath) -> Vec<Granted> {
    let directories: BTreeSet<_> = there.keys().flat_map(ProjectPath::ancestors).collect();
    let mut patches: Vec<(Patch, BTreeSet<WirePath>)> = Vec::new();
    let mut bytes = u64::MAX;
    for (path, effect) in effects {
        let states = [&effect.old, &effect.new].into_iter().flatten();
        let size: u64 = states.map(|state| state.bytes.len() as u64).sum();
        if bytes.saturating_add(size) > MOST_OF_A_PATCH {
            patches.push((Patch { files: Vec::new() }, BTreeSet::new()));
            bytes = 0;
        }
        bytes += size;
        let nearest = path.ancestors().find(|directory| directories.contains(directory));
        let nearest = nearest.map(|nearest| project.as_path().join(nearest.to_wire().as_path()).into());
        if let Some((patch, roots)) = patches.last_mut() {
            patch.files.push(effect);
            roots.insert(nearest.unwrap_or_else(|| project.clone()));
        }
    }
    let roots = |roots: BTreeSet<WirePath>| match roots.len() {
        0..=MOST_GRANTED => roots.into_iter().collect(),
        _ => vec![project.clone()],
    };
    patches.into_iter().map(|(patch, of_patch)| (patch, roots(of_patch))).collect()
}
