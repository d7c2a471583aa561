//! State that the agent runs of a session share.

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
    /// Records an event of an agent.
    fn note(&self, agent: &AgentId, kind: &EventKind);
}

/// Settings that keep approvals for later sessions of the project.
pub trait ApprovalKeeper: Send + Sync {
    /// Writes an approval to the user's settings. Both results are texts for the user.
    fn keep(&self, setting: &KeptSetting) -> Result<String, String>;
}

pub struct Shared {
    /// Resource that may exist only while the log is held. As the first field it is dropped before the log.
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
    /// Prompts that sub-agents got, each with the event that logged it.
    prompts: Vec<(EventId, PromptFixed)>,
    pub(super) budget: SessionBudget,
    /// True if a request that waits may fit into the budget now.
    pub(super) budget_freed: bool,
    pub(super) turns: WriteTurns,
    pub(super) written: Option<WrittenFiles>,
    /// Orders of agents to the tree, until the session carries them out.
    pub(super) orders: VecDeque<TreeOrder>,
    /// True if an agent's access changed, so that those below it may have to follow.
    pub(super) rights_changed: bool,
    /// Number of sub-agents that were started in the present turn of the user.
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

    /// Holds a resource until just before the log is released.
    #[must_use]
    pub fn holding(self, held: Option<impl Send + 'static>) -> Self {
        Self { _held: held.map(|held| Box::new(held) as _), ..self }
    }

    /// Records all logged events in these records of plans.
    #[must_use]
    pub fn telling(self, plans: Arc<dyn PlanRecords>) -> Self {
        Self { plans: Some(plans), ..self }
    }

    #[must_use]
    pub fn keeping(self, keeper: impl ApprovalKeeper + 'static) -> Self {
        Self { keeper: Some(Box::new(keeper)), ..self }
    }

    /// Keeps an approval for later sessions of the project. Returns a text about it for the user.
    pub(super) fn keep(&self, setting: &KeptSetting) -> String {
        let kept = match &self.keeper {
            Some(keeper) => keeper.keep(setting),
            None => Err("this session has no settings file to save the approval in".to_owned()),
        };
        kept.unwrap_or_else(|why| format!("the approval is valid for this session only: {why}"))
    }

    /// Makes files restorable. If `is_watched`, changed files are also shown during a turn.
    #[must_use]
    pub fn rewound_by(self, rewinder: Option<Rewinder>, is_watched: bool) -> Self {
        Self { snapshots: rewinder.map(|rewinder| Snapshots::new(rewinder, is_watched)), ..self }
    }

    #[must_use]
    pub fn watched_by(self, observer: SnapshotTaker) -> Self {
        Self { written: Some(WrittenFiles::new(observer)), ..self }
    }

    /// Starts the limits of a new turn, if this is an agent of the top level.
    pub(super) fn begin_turn(&mut self, agent: &AgentId) {
        if agent.is_top_level() {
            self.budget.begin_turn();
            self.started_this_turn = 0;
        }
    }

    /// Releases the budget of an agent whose turn is over, and its turn at writing. A sub-agent keeps the latter until
    /// its worker is gone, since its commands may write.
    pub(super) fn rest(&mut self, agent: &AgentId) {
        if agent.is_top_level() {
            self.turns.give_back(agent);
        }
        self.budget_freed |= self.budget.settle(agent);
    }

    pub(super) fn order_start(&mut self, parent: &AgentId, call: CallId, agent: Box<NewAgent>) {
        self.orders.push_back(TreeOrder::Start { parent: parent.clone(), call, agent });
    }

    /// Hands an event of an agent to the kernel. Returns the event for the front end.
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

    /// Replaces a prompt by a reference to the event that logged the same prompt, if there is one.
    pub(super) fn prompt(&self, prompt: PromptFixed) -> PromptFixed {
        match self.prompts.iter().find(|(_, known)| *known == prompt) {
            Some((id, _)) => PromptFixed { system: None, tools: Vec::new(), same_as: Some(*id), ..prompt },
            None => prompt,
        }
    }

    /// Writes everything recorded so far to the disk, outside the main loop.
    pub(super) fn flush(&mut self) -> Flushed {
        self.flusher.flush()
    }

    /// Shows an event. A front end that is gone misses nothing, because the log has everything.
    pub(super) fn show(&self, agent: &AgentId, kind: UiEventKind) {
        let conversation_id = self.conversation.clone();
        let _ = self.ui.send(UiEvent { conversation_id, agent: agent.clone(), kind });
    }

    /// True while nothing may write, because the base is being taken or the tripwire set.
    pub(super) fn is_preparing(&self) -> bool {
        self.changes.as_ref().is_some_and(ChangeTracker::base_is_open)
            || self.tripwire.as_ref().is_some_and(TripwireWatch::is_setting)
    }

    pub(super) fn sent(&mut self, agent: &AgentId, call: CallId, tool: &ToolCall) {
        if let (Some(guard), true) = (&mut self.tripwire, tool.may_write()) {
            guard.sent(AgentCall { agent: agent.clone(), call });
        }
    }

    /// Has the tripwire check files after a call that may have written. True if a check follows.
    pub(super) fn check_after(&mut self, agent: &AgentId, call: CallId) -> bool {
        let call = AgentCall { agent: agent.clone(), call };
        self.tripwire.as_mut().is_some_and(|guard| guard.check_after(call))
    }

    /// Accepts approved changes, in this session and in others that watch these paths.
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
