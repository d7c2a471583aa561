//! A view for each agent of the session; one of them is shown.

use std::collections::{BTreeMap, VecDeque};

use ipc::id::{AgentId, CallId};
use protocol::event::Account;

use super::{Block, Call, Ended, Look, Outgoing, Part, Reply, Session, Transcript, Turn};
use crate::text::SafeText;

/// Everything that one agent has said and done, and what is true of it now.
#[derive(Debug)]
pub(crate) struct AgentView {
    pub transcript: Transcript,
    pub session: Session,
    pub turn: Turn,
    /// The calls that have not ended, and the blocks that show them.
    pub calls: BTreeMap<CallId, Call>,
    /// Blocks of the reply that is being received.
    pub reply: Reply,
    /// The text of its last answer, as the model wrote it.
    pub answer: String,
    /// Messages to it that wait for its turn to end.
    pub queue: VecDeque<Outgoing>,
    /// The task of a sub-agent, in its parent's words.
    pub task: Option<String>,
    /// The end of a sub-agent that is over.
    pub ended: Option<Ended>,
}

impl AgentView {
    /// The view of an agent that has said nothing.
    pub(crate) fn new(session: Session) -> Self {
        Self {
            transcript: Transcript::default(),
            session,
            turn: Turn::default(),
            calls: BTreeMap::new(),
            reply: Reply::default(),
            answer: String::new(),
            queue: VecDeque::new(),
            task: None,
            ended: None,
        }
    }

    pub(crate) fn say(&mut self, look: Look, text: &str) {
        self.transcript.push(Block::of(vec![Part::new(SafeText::prose(text), look)]));
    }
}

/// The views of all agents. The session's first agent has one from the start, so that there always is one to show.
#[derive(Debug)]
pub(crate) struct Agents {
    first_id: AgentId,
    first: AgentView,
    others: BTreeMap<AgentId, AgentView>,
    shown: AgentId,
    /// The one that the list's keys are about.
    selected: AgentId,
    /// The state that another agent's view starts with.
    start: Session,
    /// The account of each agent, without its sub-agents: in this run, and in those before.
    spent: BTreeMap<AgentId, Account>,
}

impl Agents {
    /// Creates the views before the first event: the first agent's view is shown.
    pub(crate) fn new(start: Session) -> Self {
        Self {
            first_id: AgentId::root(),
            first: AgentView::new(start.clone()),
            others: BTreeMap::new(),
            shown: AgentId::root(),
            selected: AgentId::root(),
            start,
            spent: BTreeMap::new(),
        }
    }

    /// The agent whose view is shown: what is typed is for it.
    pub(crate) const fn shown_id(&self) -> &AgentId {
        &self.shown
    }

    pub(crate) const fn first(&self) -> &AgentView {
        &self.first
    }

    pub(crate) fn shown(&self) -> &AgentView {
        self.others.get(&self.shown).unwrap_or(&self.first)
    }

    pub(crate) fn shown_mut(&mut self) -> &mut AgentView {
        self.others.get_mut(&self.shown).unwrap_or(&mut self.first)
    }

    /// The view of an agent, which it has from its first event on.
    pub(crate) fn of(&mut self, agent: &AgentId) -> &mut AgentView {
        if *agent == AgentId::root() {
            return &mut self.first;
        }
        self.others.entry(agent.clone()).or_insert_with(|| AgentView::new(self.start.clone()))
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (&AgentId, &AgentView)> {
        std::iter::once((&self.first_id, &self.first)).chain(&self.others)
    }

    /// The agent that the list's keys are about.
    pub(crate) const fn selected(&self) -> &AgentId {
        &self.selected
    }

    /// Has the list's keys be about another agent.
    pub(crate) fn point_at(&mut self, agent: AgentId) {
        self.selected = agent;
    }

    /// True if a turn of any agent is running.
    pub(crate) fn any_is_running(&self) -> bool {
        self.each().any(|(_, view)| view.turn.is_running())
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut AgentView> {
        std::iter::once(&mut self.first).chain(self.others.values_mut())
    }

    /// Adds the cost of an agent. A turn of the user's lasts until their next message: it includes the cost
    /// of other agents after the first one rests.
    pub(crate) fn spend(&mut self, agent: &AgentId, account: Account) {
        *self.spent.entry(agent.clone()).or_default() += account;
        self.of(agent).turn.account += account;
        let all = std::iter::once((&self.first_id, &mut self.first)).chain(&mut self.others);
        for (above, view) in all {
            if agent.is_below(above) {
                view.turn.below += account;
            }
        }
    }

    /// The user starts an agent while another one rests: a new turn.
    pub(crate) fn begins_beside(&mut self, resting: &AgentId) {
        let turn = &mut self.of(resting).turn;
        if !turn.is_running() {
            (turn.account, turn.below) = (Account::default(), Account::default());
        }
    }

    /// Sets the total cost of an agent.
    pub(crate) fn set_spent(&mut self, agent: AgentId, account: Account) {
        self.spent.insert(agent, account);
    }

    /// The account of an agent, without its sub-agents.
    pub(crate) fn spent_by(&self, agent: &AgentId) -> Account {
        self.spent.get(agent).copied().unwrap_or_default()
    }

    /// Every agent that has spent something, in the order of the tree.
    pub(crate) fn spent(&self) -> Vec<(&AgentId, &Account)> {
        let mut spent: Vec<_> = self.spent.iter().collect();
        spent.sort_by_key(|(agent, _)| agent.in_tree());
        spent
    }

    pub(crate) fn spent_in_all(&self) -> Account {
        let mut all = Account::default();
        self.spent.values().for_each(|account| all += *account);
        all
    }

    /// Shows the view of another agent; returns true if it has one.
    pub(crate) fn select(&mut self, agent: &AgentId) -> bool {
        let has_view = *agent == AgentId::root() || self.others.contains_key(agent);
        if has_view {
            self.shown = agent.clone();
        }
        has_view
    }
}
