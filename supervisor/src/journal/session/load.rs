//! Reading a log back.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use protocol::event::SessionEvent;

use super::scan::{Scanned, scan};
use super::{Fault, LogError, Tree};

#[derive(Debug)]
pub struct Loaded {
    pub tree: Tree,
    /// Faults of the log, in the order in which they were found; empty for a whole log.
    pub faults: Vec<Fault>,
}

impl Loaded {
    /// True if the chain holds and every line is there. A torn last line alone is the mark of a killed
    /// writer, and no breach: it was never counted. A line of a later version counts as written.
    pub fn is_intact(&self) -> bool {
        self.faults.iter().all(|fault| matches!(fault, Fault::Torn { .. } | Fault::UnknownType { .. }))
    }
}

/// Reads a log. Only a file that cannot be read is an error; what is wrong inside it is a [`Fault`].
pub fn load(path: &Path) -> Result<Loaded, LogError> {
    load_as(path, &mut |_, _| (), |event| event)
}

/// Reads a log and keeps the wanted part of each event. `watch` receives the bytes so far and those of the
/// file.
pub(crate) fn load_as(
    path: &Path,
    watch: &mut dyn FnMut(u64, u64),
    keep: impl Fn(SessionEvent) -> SessionEvent,
) -> Result<Loaded, LogError> {
    let failed = |source| LogError::Read { path: path.to_owned(), source };
    let log = File::open(path).map_err(failed)?;
    let whole = log.metadata().map_err(failed)?.len();
    load_from(log, &mut |read| watch(read, whole), keep).map_err(failed)
}

/// Rebuilds the tree from the lines of a log, in whatever order they are.
pub fn rebuild(bytes: &[u8]) -> Loaded {
    // Memory is always read.
    load_from(bytes, &mut |_| (), |event| event)
        .unwrap_or_else(|_| Loaded { tree: Tree::default(), faults: Vec::new() })
}

/// The same, from any reader.
pub(crate) fn load_from(
    log: impl Read,
    watch: &mut dyn FnMut(u64),
    keep: impl Fn(SessionEvent) -> SessionEvent,
) -> io::Result<Loaded> {
    let (mut events, mut tree) = (Vec::new(), Tree::default());
    let mut faults = scan(log, watch, &mut |_, scanned| match scanned {
        Scanned::Event(event) => events.push(keep(*event)),
        Scanned::Unknown(event) => tree.pass_over(event.id, event.parent),
    })?
    .faults;
    // Ids are given in the order of appending: sorted by them, parents come before their children again.
    events.sort_by_key(|event| event.id);
    for event in events {
        if let Err(fault) = tree.insert(event) {
            faults.push(fault);
        }
    }
    Ok(Loaded { tree, faults })
}
