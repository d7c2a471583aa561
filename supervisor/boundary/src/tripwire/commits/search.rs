//! Breadth-first search through commits, for given states of files.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::object::{ObjectId, TreeEntry};
use super::reader::ObjectReader;
use super::{Claim, HeldState};

const DIRECTORY: u32 = 0o40000;
const EXECUTABLE_FILE: u32 = 0o100_755;
const LINK: u32 = 0o120_000;
const KIND: u32 = 0o170_000;
const FILE: u32 = 0o100_000;

/// Result of looking a name up in a tree. From an unreadable tree, nothing follows, not even that a file is absent.
#[derive(Clone, Debug)]
enum Looked {
    Entry(TreeEntry),
    Nothing,
    Unreadable,
}

#[derive(Debug)]
pub(super) struct CommitSearch {
    wanted: Vec<Claim>,
    found: Vec<Claim>,
    /// Results of look-ups by subtree and name. In most commits of a project, the subtrees with settings are the same.
    known: BTreeMap<(ObjectId, Vec<u8>), Looked>,
}

impl CommitSearch {
    pub(super) const fn new(wanted: Vec<Claim>) -> Self {
        Self { wanted, found: Vec::new(), known: BTreeMap::new() }
    }

    pub(super) fn outcome(self) -> impl Iterator<Item = (Claim, bool)> {
        let found = self.found.into_iter().map(|claim| (claim, true));
        found.chain(self.wanted.into_iter().map(|claim| (claim, false)))
    }

    /// Searches the commits that can be reached from the objects `names`, until a commit for every claim is found.
    pub(super) fn go(&mut self, objects: &mut ObjectReader, names: &[ObjectId]) -> io::Result<()> {
        if !self.may_be_there(objects)? {
            return Ok(());
        }
        let mut seen: BTreeSet<ObjectId> = names.iter().cloned().collect();
        let mut looked_at = BTreeSet::new();
        let mut level: Vec<_> = seen.iter().cloned().collect();
        while !level.is_empty() {
            let mut next = Vec::new();
            for object in objects.objects(&level)?.into_iter().flatten() {
                next.extend(object.leads_to().into_iter().filter(|name| seen.insert(name.clone())));
                let Some(tree) = object.tree() else { continue };
                if looked_at.insert(tree.clone()) {
                    self.look(objects, &tree)?;
                }
                if self.wanted.is_empty() {
                    return Ok(());
                }
            }
            level = next;
        }
        Ok(())
    }

    /// False if the repository certainly has none of the wanted contents, so that a search of all commits is
    /// unnecessary.
    fn may_be_there(&mut self, objects: &mut ObjectReader) -> io::Result<bool> {
        let mut may = false;
        for (_, held) in &self.wanted {
            may |= match held {
                HeldState::Absent => true,
                HeldState::File { content: id, .. } | HeldState::Link { target: id } => {
                    objects.objects(std::slice::from_ref(id))?.iter().any(Option::is_some)
                }
            };
        }
        Ok(may)
    }

    fn look(&mut self, objects: &mut ObjectReader, tree: &ObjectId) -> io::Result<()> {
        for claim in std::mem::take(&mut self.wanted) {
            let is_borne_out = bears_out(&self.entry(objects, tree, &claim.0)?, &claim.1);
            if is_borne_out { &mut self.found } else { &mut self.wanted }.push(claim);
        }
        Ok(())
    }

    fn entry(&mut self, objects: &mut ObjectReader, top: &ObjectId, path: &Path) -> io::Result<Looked> {
        let mut at = TreeEntry { mode: DIRECTORY, id: top.clone() };
        for name in path {
            if at.mode != DIRECTORY {
                return Ok(Looked::Nothing);
            }
            let place = (at.id, name.as_bytes().to_vec());
            let looked = if let Some(looked) = self.known.get(&place) {
                looked.clone()
            } else {
                let tree = objects.objects(std::slice::from_ref(&place.0))?.pop().flatten();
                let looked = tree.map_or(Looked::Unreadable, |tree| tree.entry(&place.1).into());
                if place.0 != *top {
                    self.known.insert(place, looked.clone());
                }
                looked
            };
            match looked {
                Looked::Entry(entry) => at = entry,
                Looked::Nothing | Looked::Unreadable => return Ok(looked),
            }
        }
        Ok(Looked::Entry(at))
    }
}

impl From<Option<TreeEntry>> for Looked {
    fn from(entry: Option<TreeEntry>) -> Self {
        entry.map_or(Self::Nothing, Self::Entry)
    }
}

/// True if the result of a look-up agrees with the state `held`. The file may be executable only if the entry is.
fn bears_out(looked: &Looked, held: &HeldState) -> bool {
    let entry = match looked {
        Looked::Unreadable => return false,
        Looked::Nothing => return *held == HeldState::Absent,
        Looked::Entry(entry) => entry,
    };
    match held {
        HeldState::Absent => false,
        HeldState::File { content, executable } => {
            entry.id == *content
                && entry.mode & KIND == FILE
                && (entry.mode == EXECUTABLE_FILE || !executable)
        }
        HeldState::Link { target } => entry.id == *target && entry.mode == LINK,
    }
}
