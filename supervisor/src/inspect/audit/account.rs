//! The audit of a session's log: its digest chain, the findings, and a summary for each agent.

use std::path::Path;

use ipc::id::AgentId;
use ipc::path::WirePath;
use serde::Serialize;

use super::agent_account::AgentAccount;
use super::by_agent::EventsByAgent;
use super::findings::{Finding, findings};
use crate::journal::session::{Fault, Loaded};
use crate::process::exit::Exit;

#[derive(Debug, Serialize)]
pub(super) struct AuditAccount {
    pub log: WirePath,
    /// True if no line of the log was changed. Lines that were removed from the end cannot be detected.
    pub intact: bool,
    /// True if the last line is incomplete, for example because the writer was killed.
    pub cut_off: bool,
    pub events: usize,
    /// Sentences about the faults of the log file.
    pub faults: Vec<String>,
    /// Contradictions between events of the log.
    pub findings: Vec<Finding>,
    /// Agents of the session, each before its sub-agents.
    pub agents: Vec<AgentAccount>,
}

impl AuditAccount {
    /// Summarizes a log.
    pub(super) fn of(path: &Path, loaded: &Loaded, events: &EventsByAgent<'_>) -> Self {
        let tree = &loaded.tree;
        // A file without events may be something other than a log.
        let empty = tree.is_empty();
        let empty_fault = empty.then(|| "the log has no event that can be read".to_owned());
        Self {
            log: path.into(),
            intact: loaded.is_intact() && !empty,
            cut_off: loaded.faults.iter().any(|fault| matches!(fault, Fault::Torn { .. })),
            events: tree.len(),
            faults: loaded.faults.iter().map(ToString::to_string).chain(empty_fault).collect(),
            findings: findings(tree, events),
            agents: events.agents().iter().map(|agent| AgentAccount::of(agent, events)).collect(),
        }
    }

    /// Returns the exit status. Damage to the log takes precedence over findings, because a damaged log is no evidence.
    pub(super) const fn exit(&self) -> Exit {
        match (self.intact, self.findings.is_empty()) {
            (false, _) => Exit::Internal,
            (true, false) => Exit::Finding,
            (true, true) => Exit::Done,
        }
    }

    pub(super) fn verdict(&self) -> String {
        let whole = match (self.intact, self.cut_off) {
            (true, false) => "the log is intact",
            (true, true) => "the log is intact except for its last line, which was cut off",
            (false, _) => "the log is NOT intact",
        };
        let agree = match self.findings.len() {
            0 => "its events are consistent".to_owned(),
            1 => "1 FINDING".to_owned(),
            several => format!("{several} FINDINGS"),
        };
        let verdict = if self.intact && self.findings.is_empty() { "ok" } else { "FAIL" };
        let unit = if self.events == 1 { "event" } else { "events" };
        format!("{verdict}: {} {unit}, {whole}, {agree}", self.events)
    }
}

/// Returns the agent that started `agent`; `None` if it is at the top level.
pub(super) fn parent_of(agent: &AgentId) -> Option<AgentId> {
    agent.as_str().rsplit_once('.').map(|(parent, _)| AgentId::from(parent))
}
