//! Restores an agent from the conversation in its log.

use ipc::id::{AgentId, ApprovalId, CallId, GrantId};
use ipc::path::WirePath;
use protocol::event::{EventKind, SessionEvent};

use super::Agent;
use super::conversation::standing;
use crate::prompt::rewound_context;

impl Agent {
    /// Continues the conversation of the agent's own events. If `in_new_context`, the conversation continues in a new
    /// context, without the thinking.
    #[must_use]
    pub fn restored(mut self, events: &[SessionEvent], in_new_context: bool) -> Self {
        let own = events_of(self.id(), events.iter());
        let standing = events_of(self.id(), standing(events).into_iter());
        self.conversation.restore(&own, &standing, in_new_context);
        let (mut call, mut approval, mut grant) = (CallId(0), ApprovalId(0), GrantId(0));
        for kind in own {
            match kind {
                EventKind::ToolCallStarted { call: id, .. } => call = call.max(*id),
                EventKind::ApprovalRequested { id, .. } => approval = approval.max(*id),
                EventKind::GrantAdded(added) => grant = grant.max(added.id),
                _ => {}
            }
        }
        self.calls.restore(call, approval);
        self.rights.restore(grant);
        self
    }

    /// Tells the model that the project was moved from the directory `from`; `None` if it was not moved.
    #[must_use]
    pub fn moved(mut self, from: Option<&WirePath>) -> Self {
        if let Some(from) = from.filter(|_| !self.conversation.is_empty()) {
            let project = self.rights.standing().project();
            self.conversation.note(format!(
                "The project was moved from {from} to {project}: paths of the old directory in this conversation do not exist any more."
            ));
        }
        self
    }

    /// Restores an earlier state of the conversation, and tells the model. `events` is the log with the rewind; with
    /// `None` the conversation stays. Returns the change of the task list for the log; `None` if the list stays.
    pub fn rewind(&mut self, events: Option<&[SessionEvent]>, told: String) -> Option<EventKind> {
        let mut changed = None;
        if let Some(events) = events {
            changed = self.conversation.rewind(&events_of(self.id(), standing(events).into_iter()));
            // The rewind may have taken back messages about changed rights.
            if !self.turn.is_starting() {
                self.conversation.tell_of_rights(rewound_context(self.rights.seen()));
            }
        }
        self.conversation.note(told);
        changed
    }
}

fn events_of<'a>(id: &AgentId, events: impl Iterator<Item = &'a SessionEvent>) -> Vec<&'a EventKind> {
    events.filter(|event| event.agent == *id).map(|event| &event.kind).collect()
}
