//! The events that a session needs to continue: all events of a small log, and a part of a large one.
//!
//! Two things are kept in full: the conversation since the last summary, and earlier messages as far as there is space
//! to show them. An older event is kept only if later code needs it: the beginning of an unfinished call, the highest
//! numbers, and the messages that a rewind can name. Only later events show which these are. So the whole log is read
//! and verified first, and then the needed lines are read again by their offsets.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use agent::core::{Counted, standing};
use ipc::id::{AgentId, CallId, EventId, Generation, GuestId};
use protocol::event::{Account, EventKind, RewindTarget, SessionEvent};

use super::chain::Link;
use super::scan::{LinePlace, Scan, Scanned, scan};
use super::sieve::{Sieve, thin};
use super::{Fault, LogError, Tree};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Maximum size in bytes of a log of which all events are kept.
    pub whole: u64,
    /// Maximum size in bytes of lines that are kept only to show the conversation before its last summary.
    pub shown: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { whole: 32 << 20, shown: 16 << 20 }
    }
}

#[derive(Debug, Default)]
pub struct Needed {
    pub events: Vec<SessionEvent>,
    pub agents: BTreeSet<AgentId>,
    /// Events of the first agent that are kept unchanged; `None` if all of that agent's events are.
    pub whole: Option<BTreeSet<EventId>>,
    /// Tokens and cost of each agent without its sub-agents, including turns that were rewound.
    pub spent: BTreeMap<AgentId, Account>,
}

impl Needed {
    pub(crate) fn add(&mut self, event: SessionEvent) {
        if event.agent == AgentId::root()
            && let Some(whole) = &mut self.whole
        {
            whole.insert(event.id);
        }
        self.agents.insert(event.agent.clone());
        note_spent(&mut self.spent, &event);
        self.events.push(event);
    }

    /// True if the event belongs to the first agent and was kept unchanged.
    pub(crate) fn is_whole(&self, event: &SessionEvent) -> bool {
        event.agent == AgentId::root() && self.whole.as_ref().is_none_or(|whole| whole.contains(&event.id))
    }
}

#[derive(Debug)]
pub(super) struct Read {
    pub needed: Needed,
    pub faults: Vec<Fault>,
    pub prev: Link,
    /// Size in bytes of the complete lines.
    pub whole: u64,
    pub torn: bool,
    pub last: Option<EventId>,
    pub heads: Vec<(AgentId, EventId)>,
}

/// Reads a log for a session that continues. `ahead` is a rewind that the session then makes; `None` without one.
pub(super) fn read(
    log: &File,
    sizes: Sizes,
    ahead: Option<RewindTarget>,
    watch: &mut dyn FnMut(u64, u64),
) -> io::Result<Read> {
    let size = log.metadata()?.len();
    let watch = &mut |read| watch(read, size);
    if size <= sizes.whole { read_whole(log, watch) } else { read_part(log, sizes, ahead, watch) }
}

/// Reads the needed events of a log that another process may have open. `ahead` is a rewind that follows, if there is
/// one.
pub(crate) fn read_needed(
    path: &Path,
    ahead: Option<RewindTarget>,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Needed, LogError> {
    read_needed_within(path, Sizes::default(), ahead, watch)
}

pub(crate) fn read_needed_within(
    path: &Path,
    sizes: Sizes,
    ahead: Option<RewindTarget>,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Needed, LogError> {
    let failed = |source| LogError::Read { path: path.to_owned(), source };
    let log = File::open(path).map_err(failed)?;
    let Read { needed, faults, .. } = read(&log, sizes, ahead, watch).map_err(failed)?;
    match faults.into_iter().find(|fault| !matches!(fault, Fault::Torn { .. })) {
        Some(fault) => Err(LogError::Broken { path: path.to_owned(), fault }),
        None => Ok(needed),
    }
}

fn read_whole(log: &File, watch: &mut dyn FnMut(u64)) -> io::Result<Read> {
    let mut events = Vec::new();
    let scan = scan(log, watch, &mut |_, scanned| {
        if let Scanned::Event(event) = scanned {
            events.push(*event);
        }
    })?;
    // Ids ascend in the order of appending.
    events.sort_by_key(|event| event.id);
    let (mut tree, mut heads, mut faults) =
        (Tree::default(), BTreeMap::<AgentId, EventId>::new(), Vec::new());
    let mut spent = BTreeMap::new();
    for event in events {
        heads.insert(event.agent.clone(), event.id);
        note_spent(&mut spent, &event);
        faults.extend(tree.insert(event).err());
    }
    let events = tree.into_events();
    let last = events.last().map(|event| event.id);
    let needed = Needed { events, agents: heads.keys().cloned().collect(), whole: None, spent };
    Ok(Read::of(scan, needed, faults, last, heads.into_iter().collect()))
}

fn read_part(
    log: &File,
    sizes: Sizes,
    ahead: Option<RewindTarget>,
    watch: &mut dyn FnMut(u64),
) -> io::Result<Read> {
    let mut sieve = Sieve::default();
    let (mut lines, mut faults) = (NeededLines::default(), Vec::new());
    let mut spent = BTreeMap::new();
    let scan = scan(log, watch, &mut |at, scanned| {
        if let Scanned::Event(event) = scanned
            && faults.is_empty()
        {
            match lines.add(&event, at) {
                Ok(()) => {
                    note_spent(&mut spent, &event);
                    sieve.take(*event);
                }
                Err(fault) => faults.push(fault),
            }
        }
    })?;
    if scan.faults.iter().any(|fault| !matches!(fault, Fault::Torn { .. })) || !faults.is_empty() {
        return Ok(Read::of(scan, Needed::default(), faults, None, Vec::new()));
    }
    let last = lines.list.last().map(|line| line.id);
    lines.list.extend(ahead.map(NeededLine::ahead));
    let (heads, mut kept) = sieve.finish();
    let mut whole = BTreeSet::new();
    for line in lines.window(sizes.shown) {
        kept.insert(line.id, line.read(log)?);
        whole.insert(line.id);
    }
    for line in lines.targets() {
        if let Entry::Vacant(place) = kept.entry(line.id) {
            place.insert(line.read(log)?);
        }
    }
    // If the beginning of a call is kept, its end is kept too, even if a rewind removed the end from the conversation.
    let ends: Vec<_> = kept.values().filter_map(|event| lines.end(event)).collect();
    for line in ends {
        if let Entry::Vacant(place) = kept.entry(line.id) {
            place.insert(thin(line.read(log)?));
        }
    }
    let agents = heads.keys().cloned().collect();
    let needed = Needed { events: kept.into_values().collect(), agents, whole: Some(whole), spent };
    Ok(Read::of(scan, needed, faults, last, heads.into_iter().collect()))
}

/// Adds the cost of an event to its agent's total.
fn note_spent(spent: &mut BTreeMap<AgentId, Account>, event: &SessionEvent) {
    if let Some(account) = event.kind.spent() {
        *spent.entry(event.agent.clone()).or_default() += account;
    }
}

impl Read {
    fn of(
        scan: Scan,
        needed: Needed,
        faults: Vec<Fault>,
        last: Option<EventId>,
        heads: Vec<(AgentId, EventId)>,
    ) -> Self {
        let Scan { faults: mut all, prev, whole, torn, .. } = scan;
        all.extend(faults);
        Self { needed, faults: all, prev, whole, torn, last, heads }
    }
}

/// The properties of a line that decide whether the line is needed.
struct NeededLine {
    id: EventId,
    at: LinePlace,
    rewind: Option<RewindTarget>,
    is_about_the_model: bool,
    /// True if the event belongs to the first agent's conversation.
    is_said: bool,
    /// True if the event is a summary, with which the model's conversation begins anew.
    begins: bool,
}

impl NeededLine {
    /// Returns the entry for a rewind that follows the log, but is not in it yet.
    const fn ahead(target: RewindTarget) -> Self {
        let at = LinePlace { offset: 0, length: 0 };
        Self {
            id: EventId(u64::MAX),
            at,
            rewind: Some(target),
            is_about_the_model: false,
            is_said: false,
            begins: false,
        }
    }

    /// Reads the event of this line, which was already verified.
    fn read(&self, log: &File) -> io::Result<SessionEvent> {
        let mut text = vec![0; self.at.length];
        log.read_exact_at(&mut text, self.at.offset)?;
        Ok(SessionEvent::from_json(&text)?)
    }
}

impl Counted for NeededLine {
    fn id(&self) -> EventId {
        self.id
    }

    fn rewind(&self) -> Option<RewindTarget> {
        self.rewind
    }

    fn is_about_the_model(&self) -> bool {
        self.is_about_the_model
    }
}

#[derive(Default)]
struct NeededLines {
    session: Option<String>,
    list: Vec<NeededLine>,
    /// For each call, sub-agent, worker or guest of the first agent, the index in `list` of the event that ends it.
    ends: HashMap<Begun, usize>,
}

#[derive(PartialEq, Eq, Hash)]
enum Begun {
    Call(CallId),
    Agent(AgentId),
    Worker(Generation),
    Guest(GuestId),
}

impl Begun {
    fn by(event: &SessionEvent) -> Option<Self> {
        match &event.kind {
            _ if event.agent != AgentId::root() => None,
            EventKind::ToolCallStarted { call, .. } => Some(Self::Call(*call)),
            EventKind::SubAgentSpawned(spawned) => Some(Self::Agent(spawned.agent.clone())),
            EventKind::WorkerStarted(started) => Some(Self::Worker(started.generation)),
            EventKind::GuestStarted(started) => Some(Self::Guest(started.guest)),
            _ => None,
        }
    }

    fn ended_by(event: &SessionEvent) -> Option<Self> {
        match &event.kind {
            _ if event.agent != AgentId::root() => None,
            EventKind::ToolCallFinished { call, .. } => Some(Self::Call(*call)),
            EventKind::SubAgentResult(result) => Some(Self::Agent(result.agent.clone())),
            EventKind::WorkerEnded { generation, .. } => Some(Self::Worker(*generation)),
            EventKind::GuestEnded(ended) => Some(Self::Guest(ended.guest)),
            _ => None,
        }
    }
}

impl NeededLines {
    /// Adds an event. Fails if its parent is missing, or if it belongs to another session.
    fn add(&mut self, event: &SessionEvent, at: LinePlace) -> Result<(), Fault> {
        let session = self.session.get_or_insert_with(|| event.session.to_string());
        if *session != event.session.as_str() {
            return Err(Fault::Session { id: event.id, session: event.session.to_string() });
        }
        if self.list.last().is_some_and(|last| last.id >= event.id) {
            return Err(Fault::Order { id: event.id });
        }
        if let Some(parent) = event.parent
            && self.list.binary_search_by_key(&parent, |line| line.id).is_err()
        {
            return Err(Fault::Orphan { id: event.id, parent });
        }
        let is_said = event.agent == AgentId::root();
        if let Some(begun) = Begun::ended_by(event) {
            self.ends.insert(begun, self.list.len());
        }
        self.list.push(NeededLine {
            id: event.id,
            at,
            rewind: event.rewind(),
            is_about_the_model: event.is_about_the_model(),
            is_said,
            begins: is_said && matches!(event.kind, EventKind::ContextCompacted(_)),
        });
        Ok(())
    }

    fn end(&self, event: &SessionEvent) -> Option<&NeededLine> {
        let end = self.list.get(*self.ends.get(&Begun::by(event)?)?)?;
        // Each process numbers its workers anew.
        (end.id > event.id).then_some(end)
    }

    /// Returns the lines of the conversation since its last summary, and before them at most `shown` bytes of lines.
    fn window(&self, shown: u64) -> Vec<&NeededLine> {
        let standing = standing(&self.list);
        let begins = standing.iter().rposition(|line| line.begins).unwrap_or(0);
        let mut bytes = 0;
        let is_shown = |line: &&&NeededLine| {
            bytes += if line.is_said { line.at.length as u64 } else { 0 };
            bytes <= shown
        };
        let shown = standing.len() - standing.iter().rev().take_while(is_shown).count();
        let from = begins.min(shown);
        standing.into_iter().skip(from).filter(|line| line.is_said).collect()
    }

    /// Returns the lines with the messages to which rewinds went back.
    fn targets(&self) -> impl Iterator<Item = &NeededLine> {
        let targets = self.list.iter().filter_map(|line| line.rewind?.to);
        let place = |id: EventId| self.list.binary_search_by_key(&id, |line| line.id).ok();
        targets.filter_map(move |id| self.list.get(place(id)?))
    }
}

/// Returns the person's messages, except for those that a rewind took back.
pub(crate) fn messages(events: &[SessionEvent]) -> Vec<&SessionEvent> {
    let is_message = |event: &&SessionEvent| {
        event.agent == AgentId::root() && matches!(event.kind, EventKind::UserMessage { .. })
    };
    standing(events).into_iter().filter(is_message).collect()
}
