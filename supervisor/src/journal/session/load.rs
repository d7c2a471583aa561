use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use protocol::event::SessionEvent;

use super::scan::{Scanned, scan};
use super::{Fault, LogError, Tree};

#[derive(Debug)]
pub struct Loaded {
    pub tree: Tree,
    /// Faults of the log in the order in which they were found. An intact log has none.
    pub faults: Vec<Fault>,
}

impl Loaded {
    /// True if the digest chain is right and no line is missing. An incomplete last line, and lines of a later version,
    /// do not count as faults.
    pub fn is_intact(&self) -> bool {
        self.faults.iter().all(|fault| matches!(fault, Fault::Torn { .. } | Fault::UnknownType { .. }))
    }
}

/// Reads a log. Fails only if the file cannot be read. Damage inside the file is returned as a list of [`Fault`].
pub fn load(path: &Path) -> Result<Loaded, LogError> {
    load_as(path, &mut |_, _| (), |event| event)
}

/// Reads a log, replacing each event by what `keep` returns. `watch` gets the number of bytes read and the file's size.
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

/// Builds the tree of events from the lines of a log in any order.
pub fn rebuild(bytes: &[u8]) -> Loaded {
    // Reading from memory cannot fail.
    load_from(bytes, &mut |_| (), |event| event)
        .unwrap_or_else(|_| Loaded { tree: Tree::default(), faults: Vec::new() })
}

/// Builds the tree of events from any reader. `watch` gets the number of bytes read.
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
    // Ids ascend in the order of appending, so after sorting every parent comes before its children.
    events.sort_by_key(|event| event.id);
    for event in events {
        if let Err(fault) = tree.insert(event) {
            faults.push(fault);
        }
    }
    Ok(Loaded { tree, faults })
}
