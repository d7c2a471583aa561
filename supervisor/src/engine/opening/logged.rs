//! The fifth step of opening a session: its log, with the first events of this run. No agent starts without a log.

use ipc::id::ConversationId;
use protocol::frontend::{UiEvent, UserAction};
use tokio::sync::mpsc;

use super::connected::Connected;
use super::cut_off_plan::CutOffPlan;
use super::error::OpenError;
use super::first_agent::FirstEvents;
use super::past::{Earlier, SessionBegin, first_events};
use super::prepared::PreparedSession;
use super::resumed::{Resumed, Site};
use crate::journal::session::SessionLog;

pub(super) struct Logged {
    pub(super) log: SessionLog,
    pub(super) earlier: Earlier,
    pub(super) site: Site,
    pub(super) channels: Channels,
}

pub(super) struct Channels {
    pub(super) ui: mpsc::UnboundedSender<UiEvent>,
    pub(super) events: mpsc::UnboundedReceiver<UiEvent>,
    pub(super) actions: mpsc::Sender<UserAction>,
    pub(super) inbox: mpsc::Receiver<UserAction>,
}

impl Logged {
    /// Logs the first events of this run, after those of the earlier runs.
    pub(super) fn new(
        prepared: &PreparedSession,
        connected: &Connected,
        events: FirstEvents,
        resumed: Resumed,
    ) -> Result<Self, OpenError> {
        let PreparedSession { options, setup, .. } = prepared;
        let (state, secret) = (&setup.directories.state, connected.secret.clone());
        let FirstEvents { started, prompt, pinned } = events;
        let Resumed { past, cut_off, site } = resumed;
        let channels = Channels::new();
        // The log of a continued session is locked by now and thus not deleted.
        let more = cut_off.into_iter().chain(pinned);
        let first = first_events(started, prompt, options, &setup.directories, more);
        let begin = SessionBegin { state, conversation: &site.conversation, secret, past };
        let (log, earlier) = begin.log(&first, options.pauses, &channels.ui)?;
        Ok(Self { log, earlier, site, channels })
    }
}

impl Channels {
    fn new() -> Self {
        let ((ui, events), (actions, inbox)) = (mpsc::unbounded_channel(), mpsc::channel(16));
        Self { ui, events, actions, inbox }
    }

    /// Sends the action that continues a plan. The queue of actions is empty at this time, so that it takes the action.
    pub(super) fn go_on(&self, plan: CutOffPlan, conversation: &ConversationId) {
        let _ = self.actions.try_send(plan.goes_on(conversation));
    }
}
