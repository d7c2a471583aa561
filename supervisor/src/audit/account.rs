//! A session's log: whether its chain holds, and what each agent was allowed, did and cost.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::path::Path;

use ipc::approval::ReviewDecision;
use ipc::confinement::Tier;
use ipc::cost::Usd;
use ipc::event::{EventKind, Recorded, SessionEvent, TokenUsage, WorkerStarted};
use ipc::id::AgentId;
use ipc::path::WirePath;
use ipc::rights::{Grant, RightsSummary};
use serde::Serialize;

use crate::session::Loaded;

/// What a log says.
#[derive(Debug, Serialize)]
pub(super) struct Account {
    /// The log.
    pub log: WirePath,
    /// Whether every line is there, as it was written. That nothing follows on the last one no chain can tell.
    pub intact: bool,
    /// How many events there are.
    pub events: usize,
    /// What is wrong with it.
    pub faults: Vec<String>,
    /// What each agent did.
    pub agents: Vec<OfAgent>,
}

/// What one agent was allowed, did and cost.
#[derive(Debug, Serialize)]
pub(super) struct OfAgent {
    /// Which.
    pub agent: AgentId,
    /// Its workers, in order.
    pub workers: Vec<Worker>,
    /// Its calls, by tool and by how they ended.
    pub calls: BTreeMap<String, BTreeMap<String, usize>>,
    /// How its requests for approvals were decided.
    pub approvals: BTreeMap<&'static str, usize>,
    /// What was denied, in a sentence each, which says so where no call tried it.
    pub denials: Vec<String>,
    /// The tokens that it used.
    pub usage: TokenUsage,
    /// What they cost, where the prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    #[serde(skip)]
    spent: String,
}

/// One worker.
#[derive(Debug, Serialize)]
pub(super) struct Worker {
    /// Which incarnation.
    pub generation: u64,
    /// In which tier.
    pub tier: Tier,
    /// Its rights.
    pub rights: Recorded<RightsSummary>,
    /// What names its ruleset.
    pub ruleset_digest: String,
    /// What it had beyond the standing rights, where it carried out one effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<Recorded<Grant>>,
}

impl Account {
    /// Adds a log up.
    pub(super) fn of(path: &Path, loaded: &Loaded) -> Self {
        let tree = &loaded.tree;
        Self {
            log: path.into(),
            intact: loaded.is_intact(),
            events: tree.len(),
            faults: loaded.faults.iter().map(ToString::to_string).collect(),
            agents: tree.agents().into_iter().map(|agent| OfAgent::of(agent, loaded)).collect(),
        }
    }
}

impl OfAgent {
    fn of(agent: &AgentId, loaded: &Loaded) -> Self {
        let account = loaded.tree.account_of(agent);
        let mut of_agent = Self {
            agent: agent.clone(),
            workers: Vec::new(),
            calls: BTreeMap::new(),
            approvals: BTreeMap::new(),
            denials: Vec::new(),
            usage: account.usage,
            cost_usd: account.cost,
            spent: account.to_string(),
        };
        let mut names = BTreeMap::new();
        for event in loaded.tree.events().filter(|event| event.agent == *agent) {
            of_agent.take(event, &mut names);
        }
        of_agent
    }

    fn take(&mut self, event: &SessionEvent, names: &mut BTreeMap<String, String>) {
        match &event.kind {
            EventKind::WorkerStarted(started) => self.workers.push(Worker::of(started)),
            EventKind::ToolCallStarted { call, name, .. } => {
                names.insert(call.to_string(), name.clone());
            }
            EventKind::ToolCallFinished { call, status, .. } => {
                let name = names.get(&call.to_string()).cloned().unwrap_or_default();
                *self.calls.entry(name).or_default().entry(status.to_string()).or_default() += 1;
            }
            EventKind::Denied { call: Some(_), denial, .. } => self.denials.push(denial.to_string()),
            EventKind::Denied { call: None, denial, .. } => {
                self.denials.push(format!("beside its calls: {denial}"));
            }
            EventKind::ApprovalAnswered(answered) => {
                *self.approvals.entry(word(&answered.decision)).or_default() += 1;
            }
            _ => {}
        }
    }
}

const fn word(decision: &ReviewDecision) -> &'static str {
    match decision {
        ReviewDecision::Approved => "approved",
        ReviewDecision::ApprovedForSession { .. } => "approved for the session",
        ReviewDecision::Denied { .. } => "denied",
        ReviewDecision::Abort => "aborted",
    }
}

impl Worker {
    fn of(started: &WorkerStarted) -> Self {
        Self {
            generation: started.generation.0.into(),
            tier: started.tier,
            rights: started.rights.clone(),
            ruleset_digest: started.ruleset_digest.clone(),
            grant: started.one_shot.as_ref().map(|one_shot| one_shot.grant.clone()),
        }
    }
}

impl Display for Account {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let state = if self.intact { "the chain holds" } else { "THE CHAIN IS BROKEN" };
        writeln!(f, "{}: {} events, {state}", self.log, self.events)?;
        self.faults.iter().try_for_each(|fault| writeln!(f, "  {fault}"))?;
        self.agents.iter().try_for_each(|agent| agent.fmt(f))
    }
}

impl Display for OfAgent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "agent {}", self.agent)?;
        for Worker { generation, tier, rights, ruleset_digest, grant } in &self.workers {
            let digest = ruleset_digest.get(..12).unwrap_or(ruleset_digest);
            let held = match grant {
                None => format!("worker {generation} ({tier}): {rights}"),
                Some(grant) => format!("one-shot worker ({tier}): beside the rights {grant}"),
            };
            writeln!(f, "  {held} · ruleset {digest}…")?;
        }
        for (name, ends) in &self.calls {
            let ends: Vec<_> = ends.iter().map(|(status, count)| format!("{count} {status}")).collect();
            writeln!(f, "  {name}: {}", ends.join(", "))?;
        }
        if !self.approvals.is_empty() {
            let told: Vec<_> = self.approvals.iter().map(|(word, count)| format!("{count} {word}")).collect();
            writeln!(f, "  approvals: {}", told.join(", "))?;
        }
        self.denials.iter().try_for_each(|denial| writeln!(f, "  {denial}"))?;
        writeln!(f, "  spent: {}", self.spent)
    }
}
