//! Reading a log back.

use std::path::Path;

use ipc::event::SessionEvent;

use super::chain::{GENESIS, Link, carried};
use super::{Fault, LogError, Tree};

/// A log, read back.
#[derive(Debug)]
pub struct Loaded {
    /// The events.
    pub tree: Tree,
    /// What is wrong with the log, in the order in which it was found. A whole log has none.
    pub faults: Vec<Fault>,
}

impl Loaded {
    /// Whether the chain holds and every line is there. A torn last line alone is the mark of a killed writer, and no
    /// breach: it was never counted.
    pub fn is_intact(&self) -> bool {
        self.faults.iter().all(|fault| matches!(fault, Fault::Torn { .. }))
    }
}

/// Reads a log. Only a file that cannot be read is an error; what is wrong inside it is a [`Fault`].
pub fn load(path: &Path) -> Result<Loaded, LogError> {
    let bytes = std::fs::read(path).map_err(|source| LogError::Read { path: path.to_owned(), source })?;
    Ok(rebuild(&bytes))
}

/// Rebuilds the tree from the lines of a log, in whatever order they are.
pub fn rebuild(bytes: &[u8]) -> Loaded {
    let mut faults = Vec::new();
    let mut events = read_lines(bytes, &mut faults);
    // Ids are given in the order of appending: sorted by them, parents come before their children again.
    events.sort_by_key(|event| event.id);
    let mut tree = Tree::default();
    for event in events {
        if let Err(fault) = tree.insert(event) {
            faults.push(fault);
        }
    }
    Loaded { tree, faults }
}

fn read_lines(bytes: &[u8], faults: &mut Vec<Fault>) -> Vec<SessionEvent> {
    let mut events = Vec::new();
    let mut prev = GENESIS;
    for (line, text) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        let Some(text) = text.strip_suffix(b"\n") else {
            // The writer ends every line in the same write(2): one without its end was never finished.
            faults.push(Fault::Torn { line });
            break;
        };
        if carried(text) != Some(&prev.hex()) {
            faults.push(Fault::Chain { line });
        }
        prev = Link::of(text);
        match serde_json::from_slice(text) {
            Ok(event) => events.push(event),
            Err(error) => faults.push(Fault::Unreadable { line, reason: error.to_string() }),
        }
    }
    events
}
