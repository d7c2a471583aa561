//! State that all agent runs of a session share.

use std::collections::VecDeque;
use std::sync::Arc;

use agent::core::{NewAgent, RunLimits};
use boundary::tripwire::{Approved, Watch, tell_others};
use gate::approval::KeptSetting;
use ipc::id::{AgentCall, AgentId, CallId, ConversationId, EventId};
use ipc::tool::ToolCall;
use protocol::event::{EventKind, ObservedBy, PromptFixed};
use protocol::frontend::{UiEvent, UiEventKind};
use tokio::sync::mpsc;

use super::budget::SessionBudget;
use super::observer::SnapshotTaker;
use super::rewinder::Rewinder;
use super::snapshots::Snapshots;
use super::tree_order::TreeOrder;
use super::tripwire::aside;
use super::write_turns::WriteTurns;
use super::written_files::WrittenFiles;
use super::{ChangeTracker, SessionError, TripwireWatch};
use crate::journal::session::{Flushed, Flusher, SessionLog};

pub trait PlanRecords: Send + Sync {
    fn note(&self, agent: &AgentId, kind: &EventKind);
}

/// Settings that store approvals for later sessions in the project.
pub trait ApprovalKeeper: Send + Sync {
    /// Writes an approval to the user's settings. Returns a text for the user, also as the error.
    fn keep(&self, setting: &KeptSetting) -> Result<String, String>;
}

pub struct Shared {
    /// Resource that is released before the log, because it is the first field.
    _held: Option<Box<dyn Send>>,
    pub conversation: ConversationId,
    pub log: SessionLog,
    pub ui: mpsc::UnboundedSender<UiEvent>,
    pub changes: Option<ChangeTracker>,
    pub tripwire: Option<TripwireWatch>,
    /// Snapshots for rewinds; `None` if the session keeps none.
    pub(super) snapshots: Option<Snapshots>,
    plans: Option<Arc<dyn PlanRecords>>,
    keeper: Option<Box<dyn ApprovalKeeper>>,
    flusher: Flusher,
    /// Prompts of agents in the log, each with the id of its event.
    prompts: Vec<(EventId, PromptFixed)>,
    pub(super) budget: SessionBudget,
    /// True if the budget may now allow a request that waits.
    pub(super) budget_freed: bool,
    pub(super) turns: WriteTurns,
    pub(super) written: Option<WrittenFiles>,
    /// Orders to start or end sub-agents that the session has not carried out yet.
    pub(super) orders: VecDeque<TreeOrder>,
    /// True if an agent's access changed. The access of sub-agents then has to be limited anew.
    pub(super) rights_changed: bool,
    /// Number of sub-agents started in the user's present turn.
    pub(super) started_this_turn: u32,
}

impl Shared {
    pub fn new(
        conversation: ConversationId,
        log: SessionLog,
        ui: mpsc::UnboundedSender<UiEvent>,
        changes: Option<ChangeTracker>,
        tripwire: Option<TripwireWatch>,
    ) -> Self {
        Self {
            _held: None,
            conversation,
            flusher: log.flusher(),
            prompts: Vec::new(),
            log,
            ui,
            changes,
            tripwire,
            snapshots: None,
            plans: None,
            keeper: None,
            budget: SessionBudget::default(),
            budget_freed: false,
            turns: WriteTurns::default(),
            written: None,
            orders: VecDeque::new(),
            rights_changed: false,
            started_this_turn: 0,
        }
    }

    #[must_use]
    pub fn within(self, limits: RunLimits) -> Self {
        Self { budget: SessionBudget::new(limits), ..self }
    }

    /// Keeps a resource, which is released just before the log.
    #[must_use]
    pub fn holding(self, held: Option<impl Send + 'static>) -> Self {
        Self { _held: held.map(|held| Box::new(held) as _), ..self }
    }

    /// Passes all logged events to these records of plans.
    #[must_use]
    pub fn telling(self, plans: Arc<dyn PlanRecords>) -> Self {
        Self { plans: Some(plans), ..self }
    }

    #[must_use]
    pub fn keeping(self, keeper: impl ApprovalKeeper + 'static) -> Self {
        Self { keeper: Some(Box::new(keeper)), ..self }
    }

    /// Keeps an approval for later sessions in the project. Returns a text about it for the user.
    pub(super) fn keep(&self, setting: &KeptSetting) -> String {
        let kept = match &self.keeper {
            Some(keeper) => keeper.keep(setting),
            None => Err("this session has no settings file to save the approval in".to_owned()),
        };
        kept.unwrap_or_else(|why| format!("the approval is valid for this session only: {why}"))
    }

    /// Takes snapshots by which files can be restored. If `is_watched`, changed files are also shown during a turn.
    #[must_use]
    pub fn rewound_by(self, rewinder: Option<Rewinder>, is_watched: bool) -> Self {
        Self { snapshots: rewinder.map(|rewinder| Snapshots::new(rewinder, is_watched)), ..self }
    }

    #[must_use]
    pub fn watched_by(self, observer: SnapshotTaker) -> Self {
        Self { written: Some(WrittenFiles::new(observer)), ..self }
    }

    /// Resets the limits for a new turn if `agent` is a top-level agent.
    pub(super) fn begin_turn(&mut self, agent: &AgentId) {
        if agent.is_top_level() {
            self.budget.begin_turn();
            self.started_this_turn = 0;
        }
    }

    /// Releases an agent's part of the budget once its turn is over. A top-level agent also gives up its write turn; a
    /// sub-agent does so when its worker is gone, because its commands may still write.
    pub(super) fn rest(&mut self, agent: &AgentId) {
        if agent.is_top_level() {
            self.turns.give_back(agent);
        }
        self.budget_freed |= self.budget.settle(agent);
    }

    pub(super) fn order_start(&mut self, parent: &AgentId, call: CallId, agent: Box<NewAgent>) {
        self.orders.push_back(TreeOrder::Start { parent: parent.clone(), call, agent });
    }

    /// Writes an agent's event to the log without a sync. Returns the event for the front end.
    pub(super) fn record(
        &mut self,
        agent: &AgentId,
        kind: EventKind,
        observed_by: ObservedBy,
    ) -> Result<UiEventKind, SessionError> {
        self.budget_freed |= self.budget.note(agent, &kind);
        if let Some(plans) = &self.plans {
            plans.note(agent, &kind);
        }
        let event = self.log.append(agent, observed_by, kind)?;
        if let EventKind::PromptFixed(prompt @ PromptFixed { same_as: None, .. }) = &event.kind {
            self.prompts.push((event.id, prompt.clone()));
        }
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.note(&event);
        }
        Ok(UiEventKind::Logged(Box::new(event)))
    }

    /// Returns a reference to an earlier event with the same prompt if there is one, and the prompt itself otherwise.
    pub(super) fn prompt(&self, prompt: PromptFixed) -> PromptFixed {
        match self.prompts.iter().find(|(_, known)| *known == prompt) {
            Some((id, _)) => PromptFixed { system: None, tools: Vec::new(), same_as: Some(*id), ..prompt },
            None => prompt,
        }
    }

    /// Begins to sync everything logged so far to the disk, outside the main loop.
    pub(super) fn flush(&mut self) -> Flushed {
        self.flusher.flush()
    }

    /// Shows an event. A front end that is gone is ignored, because the log has everything.
    pub(super) fn show(&self, agent: &AgentId, kind: UiEventKind) {
        let conversation_id = self.conversation.clone();
        let _ = self.ui.send(UiEvent { conversation_id, agent: agent.clone(), kind });
    }

    /// True while no call may write, because the base snapshot is being taken or the tripwire being set.
    pub(super) fn is_preparing(&self) -> bool {
        self.changes.as_ref().is_some_and(ChangeTracker::base_is_open)
            || self.tripwire.as_ref().is_some_and(TripwireWatch::is_setting)
    }

    pub(super) fn sent(&mut self, agent: &AgentId, call: CallId, tool: &ToolCall) {
        if let (Some(guard), true) = (&mut self.tripwire, tool.may_write()) {
            guard.sent(AgentCall { agent: agent.clone(), call });
        }
    }

    /// Orders a check by the tripwire after a call that may have written. True if a check follows.
    pub(super) fn check_after(&mut self, agent: &AgentId, call: CallId) -> bool {
        let call = AgentCall { agent: agent.clone(), call };
        self.tripwire.as_mut().is_some_and(|guard| guard.check_after(call))
    }

    /// Accepts approved changes of watched files, in this session and in others that watch these files.
    pub(super) fn accept(&self, watch: Option<&Watch>, files: Vec<Approved>) {
        if let Some(guard) = &self.tripwire {
            return guard.accept(files);
        }
        let Some(watch) = watch.filter(|_| !files.is_empty()).cloned() else { return };
        let told = aside("tripwire", move || {
            if let Err(error) = tell_others(&watch, &files) {
                tracing::warn!(%error, "other sessions do not hear of an approved change");
            }
        });
        // The result is not awaited.
        drop(told);
    }
}
