//! The conversation of a session as a tree of events.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ipc::id::{AgentId, EventId};
use protocol::event::{Account, EventKind, SessionEvent};

use super::Fault;

/// The events of one session. They can be found by id and by parent.
#[derive(Debug, Default)]
pub struct Tree {
    events: Vec<SessionEvent>,
    edges: BTreeSet<(Option<EventId>, EventId)>,
    /// Events that were left out of the tree, with their parents. Their children count as children of these parents.
    passed: BTreeMap<EventId, Option<EventId>>,
}

/// The events of one agent from one message of the person to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub agent: AgentId,
    /// The ids of the events in order. The first is the person's message.
    pub events: Vec<EventId>,
    pub account: Account,
}

impl Tree {
    /// Adds an event. Fails if its parent is missing, or if it contradicts the events before it.
    pub fn insert(&mut self, event: SessionEvent) -> Result<(), Fault> {
        if let Some(first) = self.events.first()
            && first.session != event.session
        {
            return Err(Fault::Session { id: event.id, session: event.session.to_string() });
        }
        let Err(place) = self.place(event.id) else {
            return Err(Fault::Duplicate { id: event.id });
        };
        let parent = self.kept(event.parent);
        if let Some(parent) = parent
            && (parent >= event.id || self.place(parent).is_err())
        {
            return Err(Fault::Orphan { id: event.id, parent });
        }
        self.edges.insert((parent, event.id));
        self.events.insert(place, event);
        Ok(())
    }

    /// Leaves an event out of the tree. Its children become children of `parent`.
    pub fn pass_over(&mut self, id: EventId, parent: Option<EventId>) {
        // A parent with a higher id would be a false entry.
        self.passed.insert(id, parent.filter(|parent| *parent < id));
    }

    /// Returns the event `id`, or if it was left out, the nearest event above it that was not.
    fn kept(&self, mut id: Option<EventId>) -> Option<EventId> {
        // Parents have smaller ids, so this loop ends.
        while let Some(above) = id.and_then(|id| self.passed.get(&id)) {
            id = *above;
        }
        id
    }

    /// Returns the index of the event. The error is the index at which the event would be inserted. Tries the last
    /// event first, because logs are read in order.
    fn place(&self, id: EventId) -> Result<usize, usize> {
        match self.events.last() {
            Some(last) if last.id < id => Err(self.events.len()),
            _ => self.events.binary_search_by_key(&id, |event| event.id),
        }
    }

    pub fn get(&self, id: EventId) -> Option<&SessionEvent> {
        self.place(id).ok().and_then(|place| self.events.get(place))
    }

    /// Returns all events in the order of their ids.
    pub fn events(&self) -> impl Iterator<Item = &SessionEvent> {
        self.events.iter()
    }

    pub(super) fn into_events(self) -> Vec<SessionEvent> {
        self.events
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns the events whose parent is `parent`. For `None`, returns the events without a parent.
    pub fn children(&self, parent: Option<EventId>) -> impl Iterator<Item = &SessionEvent> {
        let edges = self.edges.range((parent, EventId(0))..=(parent, EventId(u64::MAX)));
        edges.filter_map(|(_, id)| self.get(*id))
    }

    /// Returns the path from the first event to this one.
    pub fn path_to(&self, id: EventId) -> Vec<&SessionEvent> {
        let mut path = Vec::new();
        let mut next = self.get(id);
        // Parents have smaller ids, so this loop ends.
        while let Some(event) = next {
            path.push(event);
            next = self.kept(event.parent).and_then(|parent| self.get(parent));
        }
        path.reverse();
        path
    }

    /// Returns the agents in the order of their first events.
    pub fn agents(&self) -> Vec<&AgentId> {
        let mut seen = HashSet::new();
        self.events.iter().map(|event| &event.agent).filter(|agent| seen.insert(*agent)).collect()
    }

    /// Returns the turns of an agent. Events before the person's first message belong to no turn.
    pub fn turns(&self, agent: &AgentId) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::new();
        for event in self.events.iter().filter(|event| event.agent == *agent) {
            if matches!(event.kind, EventKind::UserMessage { .. }) {
                turns.push(Turn { agent: agent.clone(), events: Vec::new(), account: Account::default() });
            }
            if let Some(turn) = turns.last_mut() {
                turn.events.push(event.id);
                turn.account += account(event);
            }
        }
        turns
    }

    pub fn accounts(&self) -> HashMap<&AgentId, Account> {
        let mut accounts: HashMap<_, Account> = HashMap::new();
        for event in &self.events {
            *accounts.entry(&event.agent).or_default() += account(event);
        }
        accounts
    }

    pub fn account(&self) -> Account {
        let mut total = Account::default();
        for event in &self.events {
            total += account(event);
        }
        total
    }
}

fn account(event: &SessionEvent) -> Account {
    match &event.kind {
        EventKind::AssistantMessage(message) => Account::of(message.usage, message.cost_usd),
        EventKind::ContextCompacted(compacted) => Account::of(compacted.usage, compacted.cost_usd),
        _ => Account::default(),
    }
}
