//! A session, and the one loop that waits for all agent runs. One task owns all state. It never waits for a person, for
//! a disk, or for a walk through the project: slow work is done in other tasks, whose results are inputs.

use std::panic::AssertUnwindSafe;

use agent::core::{EndReason, Input, RunEnd, TreeLimits};
use futures_util::FutureExt;
use ipc::id::AgentId;
use ipc::path::WirePath;
use protocol::event::{EventKind, NoticeCode, ObservedBy, RewindTarget, Rewound};
use protocol::frontend::{AgentAction, Op, UiEventKind, UserAction, UserActionKind};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{Instrument, info_span};

use super::super::actions::{ends_session, takes_away};
use super::super::approvals::too_late;
use super::super::observer::ObserverError;
use super::super::rewinder::{RewindError, RewoundFiles};
use super::super::run::{Occurrence, Request};
use super::super::snapshots::Snapshots;
use super::super::tripwire::{Watched, events};
use super::super::written_files::WrittenFiles;
use super::super::{AgentRun, ChangeTracker, OpensAgents, SessionError, Shared, TripwireWatch, panicked};
use super::agents::SessionAgents;
use super::finish::{finish, give_up_list, log_result};
use super::pause::pause;
use super::rewind::{OngoingRewind, RewindEnded, told};
use super::tree::Closed;
use super::user_actions::{UserActions, UserInput};

pub struct Session {
    shared: Shared,
    agents: SessionAgents,
    actions: UserActions,
    rewinding: OngoingRewind,
}

enum Happened {
    User(UserInput),
    Base(Result<(), ObserverError>),
    Tripwire(Result<Watched, SessionError>),
    Run(usize, Box<Result<Occurrence, SessionError>>),
    Closed(Closed),
    Snapshot(Result<Vec<String>, ObserverError>),
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
        Self {
            shared,
            agents: SessionAgents::new(first),
            actions: UserActions::new(actions, deadline),
            rewinding: OngoingRewind::default(),
        }
    }

    /// Allows the agents to have sub-agents.
    #[must_use]
    pub fn with_sub_agents(self, opener: Box<dyn OpensAgents>, limits: TreeLimits) -> Self {
        Self { agents: self.agents.with_sub_agents(opener, limits), ..self }
    }

    /// Reserves the ids of these agents, which the session had before it was resumed.
    #[must_use]
    pub fn after(mut self, agents: &[AgentId]) -> Self {
        self.agents.after(agents);
        self
    }

    /// Adds an agent at the top level.
    #[must_use]
    pub fn with(mut self, run: AgentRun) -> Self {
        self.agents.runs_mut().push(run);
        self
    }

    pub const fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Runs the session to its end, and logs the result as the last event. Fails only if the log cannot be written.
    pub async fn run(self, began: Instant) -> Result<RunEnd, SessionError> {
        let span = info_span!("session", id = %self.shared.conversation);
        Box::pin(self.run_to_its_end(began)).instrument(span).await
    }

    async fn run_to_its_end(mut self, began: Instant) -> Result<RunEnd, SessionError> {
        if let Err(error) = caught(self.serve()).await {
            self.break_off(error)?;
        }
        let end = self.agents.runs_mut().take_end(&mut self.shared).ok_or(SessionError::NoEnd)?;
        match caught(Box::pin(self.finish(end.clone(), began))).await {
            Err(error @ SessionError::Panicked(_)) => {
                let end = RunEnd { reason: EndReason::Internal, message: Some(error.to_string()), ..end };
                self.log_result(end, began)
            }
            finished => finished,
        }
    }

    async fn finish(&mut self, end: RunEnd, began: Instant) -> Result<RunEnd, SessionError> {
        let end = finish(&mut self.shared, &mut self.agents, end).await?;
        self.log_result(end, began)
    }

    fn log_result(&mut self, end: RunEnd, began: Instant) -> Result<RunEnd, SessionError> {
        // The log has no line after the result, so that actions are taken no more.
        let late = self.actions.close();
        log_result(&mut self.shared, self.agents.runs_mut(), late, end, began)
    }

    async fn serve(&mut self) -> Result<(), SessionError> {
        for run in self.agents.runs_mut().iter_mut() {
            run.begin(&self.shared);
        }
        while !self.agents.runs().are_over() || self.rewinding.is_under_way() {
            let happened = self.next().await;
            self.on(happened)?;
            self.pause().await?;
            self.agents.settle(&mut self.shared)?;
            self.pause().await?;
        }
        Ok(())
    }

    async fn pause(&mut self) -> Result<(), SessionError> {
        pause(&mut self.shared, self.agents.runs_mut(), &mut self.actions).await
    }

    async fn next(&mut self) -> Happened {
        let (rewinds, accepted) = (self.rewinding.is_under_way(), self.rewinding.accepts());
        let (runs, tree) = self.agents.parts_mut();
        tokio::select! {
            // The user's actions and time limit come first.
            biased;
            input = self.actions.next(accepted) => Happened::User(input),
            base = base_taken(&mut self.shared.changes) => Happened::Base(base),
            watched = tripwire_says(&mut self.shared.tripwire) => Happened::Tripwire(watched),
            closed = tree.next() => Happened::Closed(closed),
            taken = snapshot_taken(&mut self.shared.snapshots) => Happened::Snapshot(taken),
            () = files_seen(&mut self.shared.written) => Happened::FilesSeen,
            ended = self.rewinding.next() => Happened::Rewound(ended),
            (run, happened) = runs.next(rewinds) => Happened::Run(run, Box::new(happened)),
        }
    }

    fn on(&mut self, happened: Happened) -> Result<(), SessionError> {
        match happened {
            Happened::User(UserInput::FrontEndGone) => {
                self.rewinding.give_up_preview();
                self.feed_each(&Input::FrontEndGone)
            }
            Happened::User(UserInput::Action(action)) => self.act(action),
            Happened::User(UserInput::TimeUp) => self.feed_each(&Input::TimeUp),
            Happened::Base(base) => {
                base.or_else(|error| give_up_list(&mut self.shared, self.agents.runs_mut(), error))?;
                self.release_each()
            }
            Happened::Tripwire(watched) => match watched? {
                Watched::Ready(report) => {
                    events(None, &[], report).into_iter().try_for_each(|event| self.record(event))?;
                    self.release_each()?;
                    self.shared.tripwire.iter_mut().for_each(TripwireWatch::rest);
                    Ok(())
                }
                Watched::TurnEnded(report) => {
                    events(None, &[], report).into_iter().try_for_each(|event| self.record(event))
                }
                Watched::Checked(check) => self.agents.runs_mut().take_check(&mut self.shared, check),
            },
            Happened::Closed(closed) => {
                self.agents.on_closed(&mut self.shared, closed);
                Ok(())
            }
            Happened::Snapshot(taken) => {
                if let Err(error) = taken {
                    let message = format!("the files of this turn cannot be restored later: {error}");
                    self.notice(NoticeCode::ChangeSet, &message)?;
                }
                self.tell_changes()?;
                self.release_each()
            }
            Happened::FilesSeen => self.release_each(),
            Happened::Rewound(ended) => self.on_rewound(ended),
            Happened::Run(run, happened) => self.agents.runs_mut().on(&mut self.shared, run, *happened),
        }
    }

    fn act(&mut self, action: UserAction) -> Result<(), SessionError> {
        let UserAction { conversation_id, agent, kind } = action;
        let for_us = conversation_id == self.shared.conversation;
        let wanted = agent.as_ref();
        let runs = self.agents.runs();
        let run = wanted.map_or(Some(0), |agent| runs.position(agent));
        if !for_us && (run.is_none() || !matches!(kind, UserActionKind::Answer { .. })) {
            tracing::warn!(other = %conversation_id, ?kind, "an action for another session is ignored");
            return Ok(());
        }
        let at_work = run.filter(|at| runs.get(*at).is_some_and(|run| !run.is_over()));
        match (kind, at_work) {
            (UserActionKind::Agent(action), at_work) => self.act_on_agent(agent, at_work, action),
            (UserActionKind::Answer { id, answer }, _) => match run {
                Some(run) => self.request(run, Request::Answer { id, answer, for_us }),
                None => self.log_untaken(agent, &UserActionKind::Answer { id, answer }),
            },
            // The session has continued by now.
            (UserActionKind::RetryLog, _) => Ok(()),
            (UserActionKind::Plan { text }, _) => self.agents.start_planner(&mut self.shared, text),
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
            self.rewinding.give_up_preview();
        }
        self.agents.withdraw(&mut self.shared, &action);
        self.agents.take_back_from_plans(&mut self.shared, &action)?;
        if let Some(named) = agent.as_ref().filter(|named| **named != AgentId::root())
            && let Some(first) = self.agents.runs().first().filter(|first| !first.is_over())
            && takes_away(&action, first.agent().standing().mode())
        {
            self.request(0, Request::Act(action.clone()))?;
            // A sub-agent has its access from the first agent, and has lost it by now.
            if !named.is_top_level() {
                return Ok(());
            }
        }
        match run {
            _ if ends => self.feed_each(&Input::Op(Op::Act(action))),
            Some(run) => self.request(run, Request::Act(action)),
            None => self.log_untaken(agent, &UserActionKind::Agent(action)),
        }
    }

    /// Begins a rewind, or a preview of it if the user confirmed no preview. Refused while an agent is working.
    fn begin_rewind(
        &mut self,
        target: RewindTarget,
        only: Vec<WirePath>,
        digest: Option<String>,
    ) -> Result<(), SessionError> {
        if self.agents.runs().any_is_busy() {
            return self
                .notice(NoticeCode::RewindRefused, "an agent is working: stop the agent before you rewind");
        }
        let Some(snapshots) = &self.shared.snapshots else {
            return self
                .notice(NoticeCode::RewindRefused, "this session has no saved copies of files to restore");
        };
        let Some(first) = self.agents.runs().first() else { return Ok(()) };
        let (rewinder, log) = (snapshots.rewinder().clone(), self.shared.log.path().to_owned());
        self.rewinding.begin(rewinder, log, first.rewind_journal(), target, only, digest);
        Ok(())
    }

    fn on_rewound(&mut self, ended: Result<RewindEnded, RewindError>) -> Result<(), SessionError> {
        self.tell_changes()?;
        match ended {
            Err(error) => self.notice(NoticeCode::RewindRefused, &format!("nothing was restored: {error}")),
            Ok(RewindEnded::Previewed(preview)) => {
                self.shared.show(&AgentId::root(), UiEventKind::RewindPreview(Box::new(preview)));
                Ok(())
            }
            Ok(RewindEnded::Done(RewoundFiles { files, left, error, target }, mut events)) => {
                let rewound = Rewound { target, files, left, error };
                let told = told(&rewound);
                let Some(first) = self.agents.runs_mut().first_mut() else { return Ok(()) };
                let logged = self.shared.record(
                    &AgentId::root(),
                    EventKind::Rewound(rewound),
                    ObservedBy::Supervisor,
                )?;
                if let UiEventKind::Logged(event) = &logged {
                    events.push((**event).clone());
                }
                let conversation = target.scope.has_conversation().then_some(events.as_slice());
                first.rewind(&mut self.shared, logged, conversation, told)
            }
        }
    }

    fn tell_changes(&mut self) -> Result<(), SessionError> {
        let changes = self.shared.snapshots.as_mut().map(Snapshots::changes).unwrap_or_default();
        changes.into_iter().try_for_each(|changed| self.record(EventKind::FilesChanged(changed)))
    }

    /// Gives every run an input.
    fn feed_each(&mut self, input: &Input) -> Result<(), SessionError> {
        self.agents.runs_mut().for_each(&mut self.shared, |run, shared| run.feed(shared, input.clone()))
    }

    /// Lets every run begin its waiting calls.
    fn release_each(&mut self) -> Result<(), SessionError> {
        self.agents.runs_mut().for_each(&mut self.shared, AgentRun::release)
    }

    fn request(&mut self, run: usize, request: Request) -> Result<(), SessionError> {
        self.agents.runs_mut().request(&mut self.shared, run, request)
    }

    /// Ends every run because of an error of the session. Fails if that cannot be logged, because no run can report it.
    fn break_off(&mut self, error: SessionError) -> Result<(), SessionError> {
        match error {
            // Without a base snapshot, no change set can be taken.
            SessionError::Changes(_) => self.shared.changes = None,
            SessionError::Tripwire(_) => self.shared.tripwire = None,
            SessionError::Panicked(_) => {}
            SessionError::Log(_) | SessionError::NoEnd => return Err(error),
        }
        self.agents.runs_mut().break_off(&mut self.shared, &error)
    }

    fn log_untaken(&mut self, agent: Option<AgentId>, kind: &UserActionKind) -> Result<(), SessionError> {
        let agent = agent.unwrap_or_else(AgentId::root);
        let nothing = || (NoticeCode::NoAgent, format!("no agent {agent} is working: nothing was done"));
        let (code, message) = too_late(&agent, kind).unwrap_or_else(nothing);
        self.notice(code, &message)
    }

    /// Logs an event that concerns all agents equally.
    fn record(&mut self, kind: EventKind) -> Result<(), SessionError> {
        self.agents.runs_mut().record(&mut self.shared, kind)
    }

    fn notice(&mut self, code: NoticeCode, message: &str) -> Result<(), SessionError> {
        self.agents.runs_mut().notice(&mut self.shared, code, message)
    }
}

/// Converts a panic to an error.
async fn caught<T>(work: impl Future<Output = Result<T, SessionError>>) -> Result<T, SessionError> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(panicked(&*panic)))
}

async fn base_taken(changes: &mut Option<ChangeTracker>) -> Result<(), ObserverError> {
    match changes {
        Some(tracker) if tracker.base_is_open() => tracker.base().await,
        _ => std::future::pending().await,
    }
}

async fn snapshot_taken(snapshots: &mut Option<Snapshots>) -> Result<Vec<String>, ObserverError> {
    match snapshots {
        Some(snapshots) => snapshots.next().await,
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
