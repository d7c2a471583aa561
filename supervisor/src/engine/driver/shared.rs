//! State that the agent runs of a session share: there is one of each, whoever acts.

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
use super::looks::Looks;
use super::observer::SnapshotTaker;
use super::rewinder::Rewinder;
use super::tree_order::TreeOrder;
use super::tripwire::aside;
use super::write_turns::WriteTurns;
use super::written_files::WrittenFiles;
use super::{ChangeTracker, SessionError, TripwireWatch};
use crate::journal::session::{Flushed, Flusher, SessionLog};

/// Records of plans that outlive the session.
pub trait PlanRecords: Send + Sync {
    /// Takes note of something that happened to an agent.
    fn note(&self, agent: &AgentId, kind: &EventKind);
}

/// The settings that keep approvals for later sessions of the project.
pub trait ApprovalKeeper: Send + Sync {
    /// Writes an approval into the person's settings. Both results are for the person.
    fn keep(&self, setting: &KeptSetting) -> Result<String, String>;
}

/// State that all agents of a session share.
pub struct Shared {
    /// Something that may be there as long as the log is held: first here, it is dropped before that.
    _held: Option<Box<dyn Send>>,
    pub conversation: ConversationId,
    pub log: SessionLog,
    /// The way of events to the front end.
    pub ui: mpsc::UnboundedSender<UiEvent>,
    /// The change set, where it is wanted.
    pub changes: Option<ChangeTracker>,
    /// The watch over files that the host runs later, where an agent may write in the project.
    pub tripwire: Option<TripwireWatch>,
    /// The looks at the project that files are taken back to, where they are kept.
    pub(super) looks: Option<Looks>,
    /// The records of the session's plans.
    plans: Option<Arc<dyn PlanRecords>>,
    keeper: Option<Box<dyn ApprovalKeeper>>,
    flusher: Flusher,
    /// The prompts that sub-agents were given, each with its event.
    prompts: Vec<(EventId, PromptFixed)>,
    pub(super) budget: SessionBudget,
    /// True if a request that waits may have its budget now.
    pub(super) budget_freed: bool,
    pub(super) turns: WriteTurns,
    /// The files that each sub-agent changed, where somebody looks.
    pub(super) written: Option<WrittenFiles>,
    /// The agents' orders to the tree, until the session carries them out.
    pub(super) orders: VecDeque<TreeOrder>,
    /// True if an agent's rights changed: those below it may have to follow.
    pub(super) rights_changed: bool,
    /// Number of sub-agents that were started in the present turn of the user's.
    pub(super) started_this_turn: u32,
}

impl Shared {
    /// Makes the state with which a session begins.
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
            looks: None,
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

    /// The same with bounds on what its agents may spend in one turn of the user's, together.
    #[must_use]
    pub fn within(self, limits: RunLimits) -> Self {
        Self { budget: SessionBudget::new(limits), ..self }
    }

    /// The same, which holds this until the moment before the log is given back.
    #[must_use]
    pub fn holding(self, held: Option<impl Send + 'static>) -> Self {
        Self { _held: held.map(|held| Box::new(held) as _), ..self }
    }

    /// The same, which tells these records of everything that is logged.
    #[must_use]
    pub fn telling(self, plans: Arc<dyn PlanRecords>) -> Self {
        Self { plans: Some(plans), ..self }
    }

    /// The same, which keeps approvals for later sessions there.
    #[must_use]
    pub fn keeping(self, keeper: impl ApprovalKeeper + 'static) -> Self {
        Self { keeper: Some(Box::new(keeper)), ..self }
    }

    /// Keeps an approval for later sessions of the project. Returns the words about it for the person.
    pub(super) fn keep(&self, setting: &KeptSetting) -> String {
        let kept = match &self.keeper {
            Some(keeper) => keeper.keep(setting),
            None => Err("this session has no settings file to save the approval in".to_owned()),
        };
        kept.unwrap_or_else(|why| format!("the approval is valid for this session only: {why}"))
    }

    /// The same, whose files can be taken back; if somebody watches, it tells which files changed while a turn goes on.
    #[must_use]
    pub fn rewound_by(self, rewinder: Option<Rewinder>, is_watched: bool) -> Self {
        Self { looks: rewinder.map(|rewinder| Looks::new(rewinder, is_watched)), ..self }
    }

    /// The same, which looks at the project for the files that sub-agents change.
    #[must_use]
    pub fn watched_by(self, observer: SnapshotTaker) -> Self {
        Self { written: Some(WrittenFiles::new(observer)), ..self }
    }

    /// A turn of the user's has limits of its own.
    pub(super) fn begin_turn(&mut self, agent: &AgentId) {
        if agent.is_top_level() {
            self.budget.begin_turn();
            self.started_this_turn = 0;
        }
    }

    /// An agent whose turn is over has no request. A sub-agent keeps its turn at writing until its worker is gone: a
    /// command of its own may write until then.
    pub(super) fn rest(&mut self, agent: &AgentId) {
        if agent.is_top_level() {
            self.turns.give_back(agent);
        }
        self.budget_freed |= self.budget.settle(agent);
    }

    /// Has a sub-agent started for a call of its parent.
    pub(super) fn order_start(&mut self, parent: &AgentId, call: CallId, agent: Box<NewAgent>) {
        self.orders.push_back(TreeOrder::Start { parent: parent.clone(), call, agent });
    }

    /// Hands an event of an agent to the kernel; the front end's own form of it.
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
        if let Some(looks) = &mut self.looks {
            looks.note(&event);
        }
        Ok(UiEventKind::Logged(Box::new(event)))
    }

    /// The same prompt, by the event that has it in full where there is one.
    pub(super) fn prompt(&self, prompt: PromptFixed) -> PromptFixed {
        match self.prompts.iter().find(|(_, known)| *known == prompt) {
            Some((id, _)) => PromptFixed { system: None, tools: Vec::new(), same_as: Some(*id), ..prompt },
            None => prompt,
        }
    }

    /// Has everything that was recorded so far written to the disk, beside the main loop.
    pub(super) fn flush(&mut self) -> Flushed {
        self.flusher.flush()
    }

    /// Tells the front end. One that is gone misses nothing: the log has it all.
    pub(super) fn show(&self, agent: &AgentId, kind: UiEventKind) {
        let conversation_id = self.conversation.clone();
        let _ = self.ui.send(UiEvent { conversation_id, agent: agent.clone(), kind });
    }

    /// True while nothing may write: the base is being taken, or the tripwire set.
    pub(super) fn is_preparing(&self) -> bool {
        self.changes.as_ref().is_some_and(ChangeTracker::base_is_open)
            || self.tripwire.as_ref().is_some_and(TripwireWatch::is_setting)
    }

    /// Notes that a worker was sent a call.
    pub(super) fn sent(&mut self, agent: &AgentId, call: CallId, tool: &ToolCall) {
        if let (Some(guard), true) = (&mut self.tripwire, tool.may_write()) {
            guard.sent(AgentCall { agent: agent.clone(), call });
        }
    }

    /// Has the tripwire looked at after a call that may have written; true if somebody looks, and will say so.
    pub(super) fn look_after(&mut self, agent: &AgentId, call: CallId) -> bool {
        let call = AgentCall { agent: agent.clone(), call };
        self.tripwire.as_mut().is_some_and(|guard| guard.look_after(call))
    }

    /// Has approved changes stay, in this session and in others that work at these places.
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
        // Nobody waits for it.
        drop(told);
    }
}
