//! A session, and the one loop that waits for all agent runs. One task owns all state, and never waits for a person,
//! the disk, or a walk through the project: slow work is done elsewhere and returns as an input. Runs are served in
//! turn, and an error of one ends that run alone.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};

use agent::core::{EndReason, Input, RunEnd, TreeLimits};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, select_all};
use ipc::id::AgentId;
use protocol::event::{EventKind, NoticeCode, ObservedBy};
use protocol::frontend::{AgentAction, Op, UserAction, UserActionKind};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument, info_span};

use super::super::actions::{ends_session, is_last, takes_away};
use super::super::approvals::too_late;
use super::super::looks::Looks;
use super::super::observer::ObserverError;
use super::super::rewinder::RewindError;
use super::super::run::{Occurrence, Request};
use super::super::tripwire::{GuardLook, Watched, events};
use super::super::written_files::WrittenFiles;
use super::super::{AgentRun, ChangeTracker, OpensAgents, SessionError, Shared, TripwireWatch, panicked};
use super::rewind::{RewindEnded, RewindTask, rewound};
use super::tree::{AgentTree, Closed};

pub struct Session {
    pub(super) shared: Shared,
    /// Agent runs. The session's result is about the first.
    pub(super) runs: Vec<AgentRun>,
    /// Actions of the user; `None` once the front end is gone.
    pub(super) actions: Option<mpsc::Receiver<UserAction>>,
    /// Time at which the session ends at the latest.
    pub(super) deadline: Option<Instant>,
    /// Index of the run that is polled first next time.
    turn: usize,
    pub(super) tree: AgentTree,
    /// A rewind under way, which delays actions of the user. The end of the session interrupts a preview.
    pub(super) rewinding: Option<RewindTask>,
    /// True if `rewinding` is only a preview.
    pub(super) previews: bool,
    /// Actions of the user that arrived while the session was paused.
    pub(super) delayed: VecDeque<UserAction>,
}

enum Happened {
    Action(Option<UserAction>),
    TimeUp,
    Base(Result<(), ObserverError>),
    Tripwire(Result<Watched, SessionError>),
    Run(usize, Box<Result<Occurrence, SessionError>>),
    Closed(Closed),
    Looked(Result<Vec<String>, ObserverError>),
    FilesSeen,
    Rewound(Result<RewindEnded, RewindError>),
}

impl Session {
    pub fn new(
        shared: Shared,
        first: AgentRun,
        actions: mpsc::Receiver<UserAction>,
        deadline: Option<Instant>,
    ) -> Self {
        let tree = AgentTree::new(None, TreeLimits::default());
        Self {
            shared,
            runs: vec![first],
            actions: Some(actions),
            deadline,
            turn: 0,
            tree,
            rewinding: None,
            previews: false,
            delayed: VecDeque::new(),
        }
    }

    /// Allows the agents to have sub-agents.
    #[must_use]
    pub fn with_sub_agents(self, opener: Box<dyn OpensAgents>, limits: TreeLimits) -> Self {
        Self { tree: AgentTree::new(Some(opener), limits), ..self }
    }

    /// Reserves the ids of these agents of an earlier run of the session.
    #[must_use]
    pub fn after(mut self, agents: &[AgentId]) -> Self {
        self.tree.after(agents);
        self
    }

    /// Adds an agent at the top level.
    #[must_use]
    pub fn with(mut self, run: AgentRun) -> Self {
        self.runs.push(run);
        self
    }

    pub const fn shared(&self) -> &Shared {
        &self.shared
    }

    pub fn runs(&self) -> &[AgentRun] {
        &self.runs
    }

    /// Runs the session to its end. The last logged event is the result, unless the log cannot be written.
    pub async fn run(self, began: Instant) -> Result<RunEnd, SessionError> {
        let span = info_span!("session", id = %self.shared.conversation);
        Box::pin(self.run_to_its_end(began)).instrument(span).await
    }

    async fn run_to_its_end(mut self, began: Instant) -> Result<RunEnd, SessionError> {
        if let Err(error) = caught(self.serve()).await {
            self.break_off(error)?;
        }
        let end = self.account().ok_or(SessionError::NoEnd)?;
        match caught(Box::pin(self.finish(end.clone(), began))).await {
            Err(error @ SessionError::Panicked(_)) => {
                let end = RunEnd { reason: EndReason::Internal, message: Some(error.to_string()), ..end };
                self.log_result(end, began)
            }
            finished => finished,
        }
    }

    async fn serve(&mut self) -> Result<(), SessionError> {
        for run in &mut self.runs {
            run.begin(&self.shared);
        }
        while !self.runs.iter().all(AgentRun::is_over) || self.rewinding.is_some() {
            let happened = self.next().await;
            self.on(happened)?;
            self.pause().await?;
            self.settle()?;
            self.pause().await?;
        }
        Ok(())
    }

    async fn next(&mut self) -> Happened {
        let rewinds = self.rewinding.is_some();
        tokio::select! {
            // What the user does comes first.
            biased;
            // Only an end overtakes a preview, and nothing what is carried out.
            action = next_action(&mut self.delayed, &mut self.actions, rewinds),
                if !rewinds || self.previews =>
            {
                Happened::Action(action)
            }
            () = until(self.deadline) => Happened::TimeUp,
            base = base_taken(&mut self.shared.changes) => Happened::Base(base),
            watched = tripwire_says(&mut self.shared.tripwire) => Happened::Tripwire(watched),
            closed = self.tree.next() => Happened::Closed(closed),
            looked = looked(&mut self.shared.looks) => Happened::Looked(looked),
            () = files_seen(&mut self.shared.written) => Happened::FilesSeen,
            ended = rewound(&mut self.rewinding) => Happened::Rewound(ended),
            (run, happened) = next_of(&mut self.runs, self.turn, rewinds) => {
                Happened::Run(run, Box::new(happened))
            }
        }
    }

    fn on(&mut self, happened: Happened) -> Result<(), SessionError> {
        match happened {
            Happened::Action(None) => {
                self.actions = None;
                self.give_up_preview();
                self.for_each(|run, shared| run.feed(shared, Input::FrontEndGone))
            }
            Happened::Action(Some(action)) => self.act(action),
            Happened::TimeUp => {
                self.deadline = None;
                self.for_each(|run, shared| run.feed(shared, Input::TimeUp))
            }
            Happened::Base(base) => {
                base.or_else(|error| self.give_up_list(error))?;
                self.for_each(AgentRun::release)
            }
            Happened::Tripwire(watched) => match watched? {
                Watched::Ready(report) => {
                    events(None, &[], report).into_iter().try_for_each(|event| self.record(event))?;
                    self.for_each(AgentRun::release)?;
                    self.shared.tripwire.iter_mut().for_each(TripwireWatch::rest);
                    Ok(())
                }
                Watched::TurnEnded(report) => {
                    events(None, &[], report).into_iter().try_for_each(|event| self.record(event))
                }
                Watched::Looked(look) => self.on_looked(look),
            },
            Happened::Closed(closed) => {
                self.on_closed(closed);
                Ok(())
            }
            Happened::Looked(looked) => {
                if let Err(error) = looked {
                    let message = format!("the files of this turn cannot be restored later: {error}");
                    self.notice(NoticeCode::ChangeSet, &message)?;
                }
                self.tell_changes()?;
                self.for_each(AgentRun::release)
            }
            Happened::FilesSeen => self.for_each(AgentRun::release),
            Happened::Rewound(ended) => self.on_rewound(ended),
            Happened::Run(run, happened) => {
                self.turn = run + 1;
                self.guarded(run, |run, shared| run.on(shared, (*happened)?))
            }
        }
    }

    fn act(&mut self, action: UserAction) -> Result<(), SessionError> {
        let UserAction { conversation_id, agent, kind } = action;
        let for_us = conversation_id == self.shared.conversation;
        let wanted = agent.as_ref();
        let run = self.runs.iter().position(|run| wanted.is_none_or(|agent| run.id() == agent));
        if !for_us && (run.is_none() || !matches!(kind, UserActionKind::Answer { .. })) {
            tracing::warn!(other = %conversation_id, ?kind, "an action for another session is ignored");
            return Ok(());
        }
        let at_work = run.filter(|run| !self.runs[*run].is_over());
        match (kind, at_work) {
            (UserActionKind::Agent(action), at_work) => self.act_on_agent(agent, at_work, action),
            (UserActionKind::Answer { id, answer }, _) => match run {
                Some(run) => self.request(run, Request::Answer { id, answer, for_us }),
                None => self.log_untaken(agent, &UserActionKind::Answer { id, answer }),
            },
            // It goes on by now.
            (UserActionKind::RetryLog, _) => Ok(()),
            (UserActionKind::Plan { text }, _) => self.start_planner(text),
            (UserActionKind::Rewind { target, files, digest }, _) => self.begin_rewind(target, files, digest),
            (UserActionKind::SetModel { model }, Some(run)) => self.request(run, Request::ChangeModel(model)),
            (UserActionKind::ListFiles, Some(run)) => self.request(run, Request::ListFiles),
            (UserActionKind::FindBranch, Some(run)) => self.request(run, Request::FindBranch),
            (UserActionKind::ExpandPrompt(wanted), Some(run)) => {
                self.request(run, Request::ExpandPrompt(wanted))
            }
            (
                kind @ (UserActionKind::SetModel { .. }
                | UserActionKind::ListFiles
                | UserActionKind::FindBranch
                | UserActionKind::ExpandPrompt(_)),
                None,
            ) => self.log_untaken(agent, &kind),
        }
    }

    fn act_on_agent(
        &mut self,
        agent: Option<AgentId>,
        run: Option<usize>,
        action: AgentAction,
    ) -> Result<(), SessionError> {
        let ends = ends_session(&action);
        if ends {
            self.give_up_preview();
        }
        self.withdraw(&action);
        self.take_back_from_plans(&action)?;
        if let Some(named) = agent.as_ref().filter(|named| **named != AgentId::root())
            && let Some(first) = self.runs.first().filter(|first| !first.is_over())
            && takes_away(&action, first.agent().standing().mode)
        {
            self.request(0, Request::Act(action.clone()))?;
            // It has its rights from those above it, and has lost them by now.
            if !named.is_top_level() {
                return Ok(());
            }
        }
        match run {
            _ if ends => self.for_each(|run, shared| run.feed(shared, Input::Op(Op::Act(action.clone())))),
            Some(run) => self.request(run, Request::Act(action)),
            None => self.log_untaken(agent, &UserActionKind::Agent(action)),
        }
    }

    pub(super) fn tell_changes(&mut self) -> Result<(), SessionError> {
        let changes = self.shared.looks.as_mut().map(Looks::changes).unwrap_or_default();
        changes.into_iter().try_for_each(|changed| self.record(EventKind::FilesChanged(changed)))
    }

    pub(super) fn on_looked(&mut self, look: GuardLook) -> Result<(), SessionError> {
        if let Some(run) = self.runs.iter().position(|run| *run.id() == look.after.agent) {
            return self.request(run, Request::TakeLook(look));
        }
        // Its agent is gone, and what it changed is told all the same.
        let GuardLook { after, beside, report } = look;
        let found = events(Some(after.call), &beside, report);
        found.into_iter().try_for_each(|event| self.record_for(&after.agent, event))
    }

    pub(super) fn for_each(
        &mut self,
        mut work: impl FnMut(&mut AgentRun, &mut Shared) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        (0..self.runs.len())
            .try_for_each(|run| if self.runs[run].is_over() { Ok(()) } else { self.guarded(run, &mut work) })
    }

    fn request(&mut self, run: usize, request: Request) -> Result<(), SessionError> {
        self.guarded(run, |run, shared| run.take(shared, request))
    }

    /// Does something with a run. A panic or an error that concerns only this run ends it alone.
    pub(super) fn guarded(
        &mut self,
        run: usize,
        work: impl FnOnce(&mut AgentRun, &mut Shared) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        let Some(run) = self.runs.get_mut(run) else { return Ok(()) };
        let _span = info_span!("agent", id = %run.id()).entered();
        let done = panic::catch_unwind(AssertUnwindSafe(|| work(run, &mut self.shared)));
        match done.unwrap_or_else(|panic| Err(panicked(&*panic))) {
            Err(error @ SessionError::Panicked(_)) => run.break_off(&mut self.shared, &error),
            done => done,
        }
    }

    /// Ends every run for a reason outside the conversations.
    fn break_off(&mut self, error: SessionError) -> Result<(), SessionError> {
        match error {
            // Without a base there is nothing to compare with.
            SessionError::Changes(_) => self.shared.changes = None,
            SessionError::Tripwire(_) => self.shared.tripwire = None,
            SessionError::Panicked(_) => {}
            SessionError::Log(_) | SessionError::NoEnd => return Err(error),
        }
        let shared = &mut self.shared;
        let mut open = self.runs.iter_mut().filter(|run| !run.is_over());
        open.try_for_each(|run| run.break_off(shared, &error))
    }

    /// Closes the channel of actions, and logs late actions, because the log has no line after the result.
    pub(super) fn close_actions(&mut self) -> Result<(), SessionError> {
        let mut late = std::mem::take(&mut self.delayed);
        if let Some(mut actions) = self.actions.take() {
            actions.close();
            late.extend(std::iter::from_fn(|| actions.try_recv().ok()));
        }
        for UserAction { agent, kind, .. } in late {
            let agent = agent.unwrap_or_else(AgentId::root);
            if let Some((code, message)) = too_late(&agent, &kind) {
                self.notice(code, &message)?;
            }
        }
        Ok(())
    }

    fn log_untaken(&mut self, agent: Option<AgentId>, kind: &UserActionKind) -> Result<(), SessionError> {
        let agent = agent.unwrap_or_else(AgentId::root);
        let nothing = || (NoticeCode::NoAgent, format!("no agent {agent} is working: nothing was done"));
        let (code, message) = too_late(&agent, kind).unwrap_or_else(nothing);
        self.notice(code, &message)
    }

    /// Logs an event that concerns all agents equally, as one of the first agent.
    pub(super) fn record(&mut self, kind: EventKind) -> Result<(), SessionError> {
        let Some(first) = self.runs.first_mut() else { return Ok(()) };
        first.record(&mut self.shared, kind)
    }

    /// Logs an event about an agent, whether or not the agent still exists.
    pub(super) fn record_for(&mut self, agent: &AgentId, kind: EventKind) -> Result<(), SessionError> {
        if let Some(run) = self.runs.iter_mut().find(|run| run.id() == agent) {
            return run.record(&mut self.shared, kind);
        }
        let logged = self.shared.record(agent, kind, ObservedBy::Supervisor)?;
        self.shared.show(agent, logged);
        Ok(())
    }

    pub(super) fn notice(&mut self, code: NoticeCode, message: &str) -> Result<(), SessionError> {
        self.record(EventKind::Notice { code, message: message.to_owned() })
    }
}

/// Converts a panic to an error, so that the session has a result.
async fn caught<T>(work: impl Future<Output = Result<T, SessionError>>) -> Result<T, SessionError> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// Returns the next occurrence, polling the most recently served run last. Includes runs that are over while effects
/// are carried out for them, and the first one during a rewind. Cancel safe.
async fn next_of(
    runs: &mut [AgentRun],
    first: usize,
    rewinds: bool,
) -> (usize, Result<Occurrence, SessionError>) {
    let next = |(index, run)| -> BoxFuture<'_, _> { Box::pin(async move { (index, next(run).await) }) };
    let is_open =
        |(index, run): &(usize, &mut AgentRun)| !run.is_over() || run.carries_out() || *index == 0 && rewinds;
    let open = runs.iter_mut().enumerate().filter(is_open);
    let mut waiting: Vec<_> = open.map(next).collect();
    if waiting.is_empty() {
        return std::future::pending().await;
    }
    let first = first % waiting.len();
    waiting.rotate_left(first);
    select_all(waiting).await.0
}

async fn next(run: &mut AgentRun) -> Result<Occurrence, SessionError> {
    let next = async { if run.is_over() { run.next_left().await } else { run.next().await } };
    let next = AssertUnwindSafe(next).catch_unwind().await;
    next.map_err(|panic| panicked(&*panic))
}

pub(super) async fn next_action(
    delayed: &mut VecDeque<UserAction>,
    actions: &mut Option<mpsc::Receiver<UserAction>>,
    ends_alone: bool,
) -> Option<UserAction> {
    if let Some(action) = delayed.pop_front_if(|_| !ends_alone) {
        return Some(action);
    }
    let Some(actions) = actions else { return std::future::pending().await };
    loop {
        match actions.recv().await {
            Some(action) if ends_alone && !is_last(&action) => delayed.push_back(action),
            action => return action,
        }
    }
}

async fn base_taken(changes: &mut Option<ChangeTracker>) -> Result<(), ObserverError> {
    match changes {
        Some(tracker) if tracker.base_is_open() => tracker.base().await,
        _ => std::future::pending().await,
    }
}

async fn looked(looks: &mut Option<Looks>) -> Result<Vec<String>, ObserverError> {
    match looks {
        Some(looks) => looks.next().await,
        None => std::future::pending().await,
    }
}

async fn files_seen(files: &mut Option<WrittenFiles>) {
    match files {
        Some(files) => files.next().await,
        None => std::future::pending().await,
    }
}

async fn tripwire_says(tripwire: &mut Option<TripwireWatch>) -> Result<Watched, SessionError> {
    match tripwire {
        Some(guard) => guard.next().await,
        None => std::future::pending().await,
    }
}

pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
