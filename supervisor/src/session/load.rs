//! Reading a log back.

use std::iter;
use std::num::NonZero;
use std::path::Path;
use std::thread::{self, Builder};

use ipc::event::{EventKind, SessionEvent, UnknownEvent};

use super::chain::{Carried, GENESIS, Link, carried};
use super::{Fault, LogError, Tree};

/// How many lines are not worth a thread.
const FEW_LINES: usize = 1000;

/// More threads than this wait for memory.
const MOST_THREADS: usize = 8;

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
    /// breach: it was never counted. A line of a later version is as it was written.
    pub fn is_intact(&self) -> bool {
        self.faults.iter().all(|fault| matches!(fault, Fault::Torn { .. } | Fault::UnknownType { .. }))
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
    let (mut events, unknown) = read_lines(bytes, &mut faults);
    // Ids are given in the order of appending: sorted by them, parents come before their children again.
    events.sort_by_key(|event| event.id);
    let mut tree = Tree::default();
    for event in unknown {
        tree.pass_over(event.id, event.parent);
    }
    for event in events {
        if let Err(fault) = tree.insert(event) {
            faults.push(fault);
        }
    }
    Loaded { tree, faults }
}

/// What a line says, whatever stands before it.
struct Line<'a> {
    /// The digests that it carries.
    carried: Option<Carried<'a>>,
    /// Its own.
    link: Link,
    event: Result<SessionEvent, Unread>,
}

/// Why a line gives no event.
enum Unread {
    /// Its type is of a later version.
    Unknown(UnknownEvent),
    /// It is no event.
    Broken(String),
}

impl<'a> Line<'a> {
    fn read(text: &'a [u8]) -> Self {
        let event = match serde_json::from_slice(text) {
            Ok(event) => checked(event).map_err(Unread::Broken),
            Err(error) => Err(match UnknownEvent::read(text) {
                Some(event) => Unread::Unknown(event),
                None => Unread::Broken(error.to_string()),
            }),
        };
        Self { carried: carried(text), link: Link::of(text), event }
    }
}

fn read_lines(bytes: &[u8], faults: &mut Vec<Fault>) -> (Vec<SessionEvent>, Vec<UnknownEvent>) {
    let mut texts: Vec<_> = bytes.split(|byte| *byte == b'\n').collect();
    // The writer ends every line in the same write(2): what stands behind the last end was never finished.
    let torn = texts.pop().is_some_and(|rest| !rest.is_empty());
    let (mut events, mut unknown) = (Vec::with_capacity(texts.len()), Vec::new());
    let (mut prev, mut has_own) = (GENESIS, false);
    for (line, read) in (1..).zip(in_parallel(&texts)) {
        if read.carried.map(|carried| carried.prev) != Some(&prev.hex()) {
            faults.push(Fault::Chain { line });
        }
        let own = read.carried.and_then(|carried| carried.own);
        if own == Some(false) || own.is_none() && has_own {
            faults.push(Fault::Changed { line });
        }
        has_own |= own.is_some();
        prev = read.link;
        match read.event {
            Ok(event) => events.push(event),
            Err(Unread::Unknown(event)) => {
                faults.push(Fault::UnknownType { line, r#type: event.r#type.clone() });
                unknown.push(event);
            }
            Err(Unread::Broken(reason)) => faults.push(Fault::Unreadable { line, reason }),
        }
    }
    if torn {
        faults.push(Fault::Torn { line: texts.len() + 1 });
    }
    (events, unknown)
}

/// Checks the pictures of an event: an edited log may hold other bytes than ours.
pub(super) fn checked(event: SessionEvent) -> Result<SessionEvent, String> {
    if let EventKind::UserMessage { images, .. } | EventKind::ToolCallFinished { images, .. } = &event.kind {
        images.iter().try_for_each(picture::check).map_err(|error| format!("the picture {error}"))?;
    }
    Ok(event)
}

/// Reads each line, on as many threads as there are processors where there are many lines: what a line says, and its digest,
/// depend on no other.
fn in_parallel<'a>(texts: &[&'a [u8]]) -> impl Iterator<Item = Line<'a>> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    let share = texts.len().div_ceil(threads).max(FEW_LINES);
    let read = |texts: &[&'a [u8]]| texts.iter().map(|text| Line::read(text)).collect::<Vec<_>>();
    let parts: Vec<Vec<_>> = thread::scope(|scope| {
        let mut shares = texts.chunks(share);
        let own = shares.next().unwrap_or_default();
        let spawn = |texts| Builder::new().spawn_scoped(scope, move || read(texts));
        let others: Vec<_> = shares.map(|texts| (texts, spawn(texts).ok())).collect();
        let own = read(own);
        // A thread that there is none for leaves its share to this one.
        let others = others.into_iter().map(|(texts, thread)| {
            thread.and_then(|thread| thread.join().ok()).unwrap_or_else(|| read(texts))
        });
        iter::once(own).chain(others).collect()
    });
    parts.into_iter().flatten()
}
