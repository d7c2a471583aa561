//! Transcript and state of each agent of the session; one agent is shown at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ipc::id::{AgentId, ApprovalId, CallId};
use protocol::event::{Account, TasksUpdated};

use super::{
    AgentRow, Block, Call, Context, Ended, Findings, Guests, Look, Outgoing, Part, Reads, Reply, SaidLast,
    Session, Transcript, Turn,
};
use crate::text::SafeText;

/// Transcript and state of one agent.
#[derive(Debug)]
pub(crate) struct AgentView {
    pub transcript: Transcript,
    pub session: Session,
    pub turn: Turn,
    /// Calls that have not ended, with the indices of their blocks.
    pub calls: BTreeMap<CallId, Call>,
    pub reads: Reads,
    /// Row of this sub-agent in the transcript of its parent, while it runs.
    pub row: Option<AgentRow>,
    pub role: Option<String>,
    /// Places that the sandbox denied to this sub-agent.
    pub denied: Vec<String>,
    /// Reply of the model while it arrives.
    pub reply: Reply,
    /// Last answer of the agent in Markdown.
    pub answer: String,
    /// Last text of the agent's last reply.
    pub said: Option<SaidLast>,
    /// Findings of the last review.
    pub findings: Findings,
    /// Messages to the agent that wait for the end of its turn.
    pub queue: VecDeque<Outgoing>,
    pub context: Context,
    /// List of tasks that the agent keeps.
    pub tasks: Option<TasksUpdated>,
    /// Task of a sub-agent, in the words of its parent.
    pub task: Option<String>,
    /// Result of a sub-agent that has ended.
    pub ended: Option<Ended>,
    /// Sandboxed processes of the agent other than workers.
    pub guests: Guests,
    /// Notices about hosts that could not be reached: the events of a worker's end repeat them.
    pub unreached: BTreeSet<String>,
    /// Hosts that the person was asked about while connections wait.
    pub asked_hosts: BTreeMap<ApprovalId, String>,
    /// Servers whose form the person was asked to fill in.
    pub asked_forms: BTreeMap<ApprovalId, String>,
}

impl AgentView {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            transcript: Transcript::default(),
            session,
            turn: Turn::default(),
            calls: BTreeMap::new(),
            reads: Reads::default(),
            row: None,
            role: None,
            denied: Vec::new(),
            reply: Reply::default(),
            answer: String::new(),
            said: None,
            findings: Findings::default(),
            queue: VecDeque::new(),
            context: Context::default(),
            tasks: None,
            task: None,
            guests: Guests::default(),
            unreached: BTreeSet::new(),
            asked_hosts: BTreeMap::new(),
            asked_forms: BTreeMap::new(),
            ended: None,
        }
    }

    pub(crate) fn say(&mut self, look: Look, text: &str) {
        self.transcript.push(Block::of(vec![Part::new(SafeText::prose(text), look)]));
    }
}

/// State of all agents. The first agent of the session always has one.
#[derive(Debug)]
pub(crate) struct Agents {
    first_id: AgentId,
    first: AgentView,
    others: BTreeMap<AgentId, AgentView>,
    shown: AgentId,
    selected: AgentId,
    /// Initial session state of another agent.
    start: Session,
    /// Usage and cost of each agent without its sub-agents, including earlier runs of the session.
    spent: BTreeMap<AgentId, Account>,
}

impl Agents {
    /// Returns the state before the first event; the first agent is shown.
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

    /// Returns the id of the shown agent, which gets the typed messages.
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

    /// Returns the state of an agent; creates it at the agent's first event.
    pub(crate) fn of(&mut self, agent: &AgentId) -> &mut AgentView {
        if *agent == AgentId::root() {
            return &mut self.first;
        }
        self.others.entry(agent.clone()).or_insert_with(|| AgentView::new(self.start.clone()))
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (&AgentId, &AgentView)> {
        std::iter::once((&self.first_id, &self.first)).chain(&self.others)
    }

    pub(crate) const fn selected(&self) -> &AgentId {
        &self.selected
    }

    pub(crate) fn point_at(&mut self, agent: AgentId) {
        self.selected = agent;
    }

    pub(crate) fn any_is_running(&self) -> bool {
        self.each().any(|(_, view)| view.turn.is_running())
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut AgentView> {
        std::iter::once(&mut self.first).chain(self.others.values_mut())
    }

    /// Adds usage and cost of a model request to an agent, and to the turns of the agents above it. A turn of the user
    /// lasts until the next message, so it includes agents that end later.
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

    /// Sets the cost of an agent's last turn to zero if no turn runs: the user has started a sub-agent of it, whose
    /// cost is then shown alone.
    pub(crate) fn begins_beside(&mut self, resting: &AgentId) {
        let turn = &mut self.of(resting).turn;
        if !turn.is_running() {
            (turn.account, turn.below) = (Account::default(), Account::default());
        }
    }

    pub(crate) fn set_spent(&mut self, agent: AgentId, account: Account) {
        self.spent.insert(agent, account);
    }

    /// Returns the usage and cost of an agent without its sub-agents.
    pub(crate) fn spent_by(&self, agent: &AgentId) -> Account {
        self.spent.get(agent).copied().unwrap_or_default()
    }

    /// Returns the usage and cost of all agents in tree order.
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

    /// Shows another agent; returns false if it has no transcript.
    pub(crate) fn select(&mut self, agent: &AgentId) -> bool {
        let has_view = *agent == AgentId::root() || self.others.contains_key(agent);
        if has_view {
            self.shown = agent.clone();
        }
        has_view
    }
}
