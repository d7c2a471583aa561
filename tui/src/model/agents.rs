//! Transcripts and states of all agents of the session. One agent is shown at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ipc::id::{AgentId, ApprovalId, CallId};
use protocol::event::{Account, TasksUpdated};

use super::{
    AgentRow, Block, Call, Context, Ended, Findings, Guests, Look, Outgoing, Part, Reads, Reply, SaidLast,
    Session, Transcript, Turn,
};
use crate::text::SafeText;

#[derive(Debug)]
pub(crate) struct AgentView {
    pub transcript: Transcript,
    pub session: Session,
    pub turn: Turn,
    pub calls: BTreeMap<CallId, Call>,
    pub reads: Reads,
    /// Row of this sub-agent in the transcript of its parent; `None` once the sub-agent has ended.
    pub row: Option<AgentRow>,
    pub role: Option<String>,
    pub denied: Vec<String>,
    pub reply: Reply,
    pub answer: String,
    /// Text and blocks of the agent's last reply that contained text; `None` before the first one.
    pub said: Option<SaidLast>,
    pub findings: Findings,
    /// Messages that the user sent while a turn runs; they are sent to the agent after the turn.
    pub queue: VecDeque<Outgoing>,
    pub context: Context,
    pub tasks: Option<TasksUpdated>,
    pub task: Option<String>,
    pub ended: Option<Ended>,
    /// Confined helper processes of the agent, such as gateways and MCP servers.
    pub guests: Guests,
    /// Notices that a host could not be reached. Kept to leave out equal notices from the end of a worker.
    pub unreached: BTreeSet<String>,
    /// Hosts in open approval requests. Each waits for the person's answer before the connection is made.
    pub asked_hosts: BTreeMap<ApprovalId, String>,
    /// MCP servers in open approval requests that ask the person to fill in a form.
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

#[derive(Debug)]
pub(crate) struct Agents {
    first_id: AgentId,
    first: AgentView,
    others: BTreeMap<AgentId, AgentView>,
    shown: AgentId,
    selected: AgentId,
    start: Session,
    /// Usage and cost of each agent, without its sub-agents, including earlier runs of the session.
    spent: BTreeMap<AgentId, Account>,
}

impl Agents {
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

    /// Adds usage and cost of a model request to an agent, and to the last turns of the agent's ancestors. A turn
    /// includes sub-agents that continue after its end, until the user's next message.
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

    /// Resets the cost of an idle agent's last turn: the user has started a sub-agent, whose cost is shown alone.
    pub(crate) fn begins_beside(&mut self, resting: &AgentId) {
        let turn = &mut self.of(resting).turn;
        if !turn.is_running() {
            (turn.account, turn.below) = (Account::default(), Account::default());
        }
    }

    pub(crate) fn set_spent(&mut self, agent: AgentId, account: Account) {
        self.spent.insert(agent, account);
    }

    pub(crate) fn spent_by(&self, agent: &AgentId) -> Account {
        self.spent.get(agent).copied().unwrap_or_default()
    }

    /// Returns the usage and cost of each agent, parents before their sub-agents.
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

    pub(crate) fn select(&mut self, agent: &AgentId) -> bool {
        let has_view = *agent == AgentId::root() || self.others.contains_key(agent);
        if has_view {
            self.shown = agent.clone();
        }
        has_view
    }
}
