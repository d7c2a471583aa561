//! Start of a sub-agent in steps, each with a type of its own. So no sub-agent can begin beyond the session's limits,
//! with more access than its parent's plus its grant, or without a log entry.

use agent::core::{Agent, NewAgent, Purpose, TreeLimits};
use gate::Change;
use gate::judgement::{plan, spawn};
use ipc::id::{AgentId, CallId};
use protocol::event::{EventKind, SubAgentSpawned, SubAgentStatus};
use protocol::frontend::{AgentAction, Op};
use tokio::time::Instant;

use super::super::calls::take_back;
use super::super::{AgentRun, SessionError, Shared};
use super::tree::{Child, NotOpened, OpenedAgent, OpensAgents};

pub(super) struct WantedAgent {
    id: AgentId,
    child: Box<Child>,
    agent: Box<NewAgent>,
}

/// A sub-agent within the session's limits, which may have to wait for a free slot.
pub(super) struct Permitted(WantedAgent);

/// A sub-agent that has a slot at its level of the tree.
pub(super) struct Placed(WantedAgent);

/// A sub-agent whose access is limited to its parent's present access plus its grant.
pub(super) struct Bound(WantedAgent);

/// A sub-agent with an agent run, not logged yet.
pub(super) struct Opened {
    run: AgentRun,
    child: Box<Child>,
    task: String,
    spawned: SubAgentSpawned,
}

/// A sub-agent that is logged and may begin.
pub(super) struct Announced {
    run: AgentRun,
    child: Box<Child>,
    task: String,
}

#[derive(Debug)]
pub(super) struct NotStartedAgent {
    pub(super) id: AgentId,
    pub(super) child: Box<Child>,
    pub(super) status: SubAgentStatus,
    pub(super) why: String,
}

impl WantedAgent {
    pub(super) fn new(id: AgentId, parent: AgentId, call: Option<CallId>, agent: Box<NewAgent>) -> Self {
        let child = Child { parent, call, grant: agent.grant.clone(), began: Instant::now() };
        Self { id, child: Box::new(child), agent }
    }

    /// Checks the session's limits. `started_this_turn` is the number of sub-agents that were started in this turn.
    pub(super) fn permit(
        self,
        has_opener: bool,
        limits: &TreeLimits,
        started_this_turn: u32,
    ) -> Result<Permitted, NotStartedAgent> {
        let TreeLimits { depth, per_turn, .. } = *limits;
        if !has_opener {
            return Err(self.failed(NO_SUB_AGENTS.to_owned()));
        }
        if self.id.level() > depth as usize {
            return Err(self.failed(format!("sub-agents can be nested only to level {depth}")));
        }
        if started_this_turn >= per_turn {
            let plural = if per_turn == 1 { "" } else { "s" };
            let why = format!("this turn has started {per_turn} sub-agent{plural}, which is the limit");
            return Err(self.failed(why));
        }
        Ok(Permitted(self))
    }

    fn failed(self, why: String) -> NotStartedAgent {
        self.not_started(SubAgentStatus::Crashed, why)
    }

    fn not_started(self, status: SubAgentStatus, why: String) -> NotStartedAgent {
        NotStartedAgent { id: self.id, child: self.child, status, why }
    }
}

const NO_SUB_AGENTS: &str = "this session cannot start sub-agents";

impl Permitted {
    /// Returns the sub-agent with a slot if `free`, the number of free slots, is not 0. Otherwise returns it unchanged.
    pub(super) fn place(self, free: usize) -> Result<Placed, Self> {
        if free > 0 { Ok(Placed(self.0)) } else { Err(self) }
    }

    /// Lets the sub-agent start without a free slot, since no call waits for it.
    pub(super) fn beside(self) -> Placed {
        Placed(self.0)
    }

    pub(super) const fn id(&self) -> &AgentId {
        &self.0.id
    }

    pub(super) fn child(&self) -> &Child {
        &self.0.child
    }

    pub(super) fn child_mut(&mut self) -> &mut Child {
        &mut self.0.child
    }

    /// Withdraws access from the executor of a plan if the user withdrew the access.
    pub(super) fn take_back(&mut self, change: &Change) {
        take_back(&mut self.0.agent, change);
    }
}

impl Placed {
    pub(super) fn parent(&self) -> &AgentId {
        &self.0.child.parent
    }

    /// Limits the access to the parent's present access plus the grant. The parent may have lost access since the call.
    pub(super) fn bound(self, parent: Option<&Agent>) -> Result<Bound, NotStartedAgent> {
        let Self(mut wanted) = self;
        // The user may have withdrawn the plan's access since the approval.
        if let (Purpose::Executor(_), Some(planner)) = (&wanted.agent.purpose, parent)
            && let Some(planning) = planner.planning()
            && let Err(why) = plan::still_allowed(&planning.ceiling, &wanted.agent.rights)
        {
            return Err(wanted.failed(format!("the plan is not executed: {why}")));
        }
        let grant = &wanted.child.grant;
        let rights =
            parent.map(|parent| spawn::at_start(&wanted.agent.rights, parent.host_standing(), grant));
        wanted.agent.rights = rights.unwrap_or_default();
        wanted.agent.grant = grant.clone();
        tracing::debug!(id = %wanted.id, "a sub-agent starts");
        Ok(Bound(wanted))
    }
}

impl Bound {
    pub(super) fn open(
        self,
        agents: Option<&mut (dyn OpensAgents + 'static)>,
        parent: Option<&Agent>,
    ) -> Result<Opened, NotStartedAgent> {
        let Self(wanted) = self;
        let run = match agents {
            Some(agents) => agents.open(&wanted.id, &wanted.agent),
            None => Err(NO_SUB_AGENTS.to_owned().into()),
        };
        let OpenedAgent { run, model, rights_digest } = match run {
            Ok(opened) => opened,
            Err(NotOpened::Failed(why)) => return Err(wanted.failed(why)),
            Err(NotOpened::Denied(why)) => return Err(wanted.not_started(SubAgentStatus::Denied, why)),
        };
        let WantedAgent { id, child, agent } = wanted;
        let NewAgent { spawn, rights, grant, purpose } = *agent;
        let differs = parent.is_none_or(|parent| parent.activity() != purpose.activity());
        let caches = parent.and_then(|parent| parent.host_standing().caches().cloned());
        let (plan, finished) = match &purpose {
            Purpose::Executor(execution) => (Some(execution.digest().to_owned()), execution.finished()),
            Purpose::Task(_) | Purpose::Planner(_) => (None, 0),
        };
        let task = spawn.task.clone();
        let spawned = SubAgentSpawned {
            agent: id,
            call: child.call,
            activity: differs.then(|| purpose.activity()),
            plan,
            finished,
            task: spawn.task,
            role: spawn.role,
            model,
            caches: caches.filter(|caches| rights.write.contains(caches)),
            write: rights.write,
            net: rights.net,
            reach: rights.reach,
            sockets: rights.sockets,
            servers: spawn.servers.into_iter().map(|server| server.name).collect(),
            rights_digest,
            grant: (!grant.is_empty()).then_some(grant),
            max_steps: spawn.max_steps,
        };
        Ok(Opened { run, child, task, spawned })
    }
}

impl Opened {
    pub(super) fn announce(
        self,
        log: impl FnOnce(&AgentId, EventKind) -> Result<(), SessionError>,
    ) -> Result<Announced, SessionError> {
        let Self { run, child, task, spawned } = self;
        log(&child.parent, EventKind::SubAgentSpawned(spawned))?;
        Ok(Announced { run, child, task })
    }
}

impl Announced {
    /// Starts the sub-agent's first worker. Returns the run, and the task as the run's first input.
    pub(super) fn begin(self, shared: &mut Shared) -> Result<(AgentRun, Child, Op), SessionError> {
        let Self { mut run, child, task } = self;
        run.begin_below(shared)?;
        Ok((run, *child, Op::Act(AgentAction::Prompt { text: task, images: Vec::new() })))
    }
}

#[cfg(test)]
mod tests {
    use agent::core::Purpose;
    use gate::activity::Activity;
    use gate::tools::SpawnAgent;
    use ipc::rights::{Grant, Rights};

    use super::*;

    fn wanted(id: &str) -> WantedAgent {
        let spawn = SpawnAgent {
            task: "look".to_owned(),
            writes: false,
            write: Vec::new(),
            network: false,
            role: None,
            servers: Vec::new(),
            model: None,
            max_steps: None,
        };
        let rights = Rights { read: vec!["/".into()], ..Rights::default() };
        let agent =
            NewAgent { spawn, rights, grant: Grant::default(), purpose: Purpose::Task(Activity::Execute) };
        WantedAgent::new(id.into(), AgentId::root(), Some(CallId(1)), Box::new(agent))
    }

    #[tokio::test(start_paused = true)]
    async fn limits_are_kept_in_their_order() {
        let limits = TreeLimits { depth: 1, per_turn: 1, ..TreeLimits::default() };
        let why = |id: &str, opens: bool, started: u32| {
            wanted(id).permit(opens, &limits, started).err().map(|not_started| not_started.why)
        };
        assert_eq!(why("1.1", true, 0), None);
        assert_eq!(why("1.1", false, 9).as_deref(), Some(NO_SUB_AGENTS));
        assert_eq!(why("1.1.1", true, 9).as_deref(), Some("sub-agents can be nested only to level 1"));
        let spent = "this turn has started 1 sub-agent, which is the limit";
        assert_eq!(why("1.1", true, 1).as_deref(), Some(spent));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_parent_nothing_is_left_of_the_rights() {
        let permitted = wanted("1.1").permit(true, &TreeLimits::default(), 0).ok().unwrap();
        let permitted = permitted.place(0).err().unwrap();
        let placed = permitted.place(1).ok().unwrap();
        let Bound(bound) = placed.bound(None).ok().unwrap();
        assert_eq!(bound.agent.rights, Rights::default());
    }
}
