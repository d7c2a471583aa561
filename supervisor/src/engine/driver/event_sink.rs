//! Passes an agent's events to the log and to front ends, and counts the agent's denials.

use ipc::denial::Denial;
use ipc::id::AgentId;
use protocol::event::{EventKind, NoticeCode, ObservedBy};
use protocol::frontend::UiEventKind;

use super::passing::Passing;
use super::{SessionError, Shared};

/// Maximum number of denials that the report on a sub-agent lists. The log has all denials.
const LISTED_DENIALS: usize = 8;

pub(super) struct EventSink {
    agent: AgentId,
    passing: Passing,
    denials: u32,
    /// First denials, at most [`LISTED_DENIALS`], without repetitions.
    denied: Vec<Denial>,
    has_plan: bool,
}

impl EventSink {
    pub(super) fn new(agent: AgentId) -> Self {
        Self { agent, passing: Passing::default(), denials: 0, denied: Vec::new(), has_plan: false }
    }

    /// Begins to mask the session's secrets in text for front ends.
    pub(super) fn begin(&mut self, shared: &Shared) {
        self.passing = Passing::new(&shared.log);
    }

    pub(super) const fn agent(&self) -> &AgentId {
        &self.agent
    }

    pub(super) fn record(
        &mut self,
        shared: &mut Shared,
        kind: EventKind,
        observed_by: ObservedBy,
    ) -> Result<(), SessionError> {
        match &kind {
            EventKind::Denied { denial, .. } => self.note(denial),
            EventKind::PlanCreated(_) => self.has_plan = true,
            _ => {}
        }
        let logged = shared.record(&self.agent, kind, observed_by)?;
        self.show(shared, logged);
        Ok(())
    }

    pub(super) fn notice(
        &mut self,
        shared: &mut Shared,
        code: NoticeCode,
        message: &str,
    ) -> Result<(), SessionError> {
        let kind = EventKind::Notice { code, message: message.to_owned() };
        self.record(shared, kind, ObservedBy::Supervisor)
    }

    pub(super) fn show(&mut self, shared: &Shared, kind: UiEventKind) {
        for kind in self.passing.take(kind) {
            shared.show(&self.agent, kind);
        }
    }

    pub(super) const fn has_plan(&self) -> bool {
        self.has_plan
    }

    /// Returns the number of all denials, and returns and removes the first denials.
    pub(super) fn take_denials(&mut self) -> (u32, Vec<Denial>) {
        (self.denials, std::mem::take(&mut self.denied))
    }

    fn note(&mut self, denial: &Denial) {
        self.denials = self.denials.saturating_add(1);
        let is_same = |other: &Denial| other.operation == denial.operation && other.object == denial.object;
        if self.denied.len() < LISTED_DENIALS && !self.denied.iter().any(is_same) {
            self.denied.push(denial.clone());
        }
    }
}
