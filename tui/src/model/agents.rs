//! Transcript and state of each agent of the session; one agent is shown at a time.

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
    /// Calls that have not ended, with the indices of their blocks.
    pub calls: BTreeMap<CallId, Call>,
    pub reads: Reads,
    /// Row of this sub-agent in the transcript of its parent, while it runs.
    pub row: Option<AgentRow>,
    pub role: Option<String>,
    pub denied: Vec<String>,
    /// Reply of the model while it arrives.
    pub reply: Reply,
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
    pub task: Option<String>,
    pub ended: Option<Ended>,
    /// Sandboxed processes of the agent other than workers.
    pub guests: Guests,
    /// The events of a worker's end repeat these notices.
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

#[derive(Debug)]
pub(crate) struct Agents {
    first_id: AgentId,
    first: AgentView,
    others: BTreeMap<AgentId, AgentView>,
    shown: AgentId,
    selected: AgentId,
    start: Session,
    /// Without sub-agents, but including earlier runs of the session.
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

    /// Adds usage and cost of a model request to an agent, and to the turns of the agents above. A turn lasts until the
    /// user's next message, so it includes agents that end later.
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

    /// Sets the cost of an agent's last turn to zero if no turn runs: the user has started a sub-agent, whose cost is
    /// then shown alone.
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

    pub(crate) fn select(&mut self, agent: &AgentId) -> bool {
        let has_view = *agent == AgentId::root() || self.others.contains_key(agent);
        if has_view {
            self.shown = agent.clone();
        }
        has_view
    }
}
