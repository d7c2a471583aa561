//! The events of a running session as text.

use protocol::event::{EventKind, SessionEvent};

use super::reading::Reading;
use super::text::entry_text;

#[derive(Debug)]
pub(crate) struct ShownLive {
    cut: Reading<'static>,
    whole: Reading<'static>,
}

impl Default for ShownLive {
    fn default() -> Self {
        Self { cut: Reading::new(None, false), whole: Reading::new(None, true) }
    }
}

impl ShownLive {
    /// Returns the event as text, with lines broken at `columns`; `None` if the event is not shown. Other texts than
    /// approval requests are shortened.
    pub(crate) fn text(&mut self, event: &SessionEvent, columns: Option<usize>) -> Option<String> {
        let is_told = match &event.kind {
            // The person has just written this message.
            EventKind::UserMessage { .. } => !event.agent.is_top_level(),
            EventKind::ContextAdded { .. } => false,
            _ => true,
        };
        if matches!(event.kind, EventKind::SessionStarted(_)) {
            // Both readers need the project from this event.
            self.whole.entry(event);
        }
        let reading = match &event.kind {
            EventKind::ApprovalRequested { .. } => &mut self.whole,
            _ => &mut self.cut,
        };
        let entry = reading.entry(event);
        entry.filter(|_| is_told).map(|entry| entry_text(&entry, columns))
    }
}
