//! An agent's worker through all its generations: it is started, gets calls, and is replaced when it dies.

use std::collections::VecDeque;
use std::sync::Arc;

use boundary::monitor::{GuestLog, StartError, WorkerEvent};
use futures_util::future::BoxFuture;
use ipc::confinement::Confinement;
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::Work;
use protocol::event::WorkerEnd;
use tokio::sync::oneshot;

use super::super::boundary::{Boundary, StartedWorker, WorkerOrder};
use super::super::modes::WatchedConfinement;
use super::patience::Patience;

type StartOutcome = Result<StartedWorker, StartError>;

/// The worker of an agent, in its present generation.
pub struct SessionWorker {
    boundary: Arc<dyn Boundary>,
    agent: AgentId,
    confinement: WatchedConfinement,
    guests: GuestLog,
    asks_hosts: bool,
    generation: Generation,
    state: WorkerState,
    waiting: VecDeque<(CallId, Work)>,
    /// Confinement of the next worker, which starts once the present worker is gone; an error if none may start.
    replacement: Option<Result<WatchedConfinement, StartError>>,
    renewal: Renewal,
    /// True while a sub-agent's worker is being ended to withdraw access. This agent's next worker waits for that.
    waits_for_subtree: bool,
    not_enforced: Vec<String>,
    /// Reason why the latest worker does not run on the full tier, although the best tier was requested.
    no_full_tier: Option<String>,
}

/// State of a replacement by a worker with the same access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renewal {
    No,
    /// The worker is replaced as soon as it has no open call.
    Wanted,
    Ending,
}

enum WorkerState {
    /// No worker runs. The next call starts one.
    None,
    /// No worker runs, for the reason in the field. Only a replacement starts one.
    Closed(String),
    Starting {
        starting: BoxFuture<'static, StartOutcome>,
        cancel: Option<oneshot::Sender<()>>,
        replaces: bool,
    },
    /// A worker serves calls. If `announced` is false, its start was not reported and it is being ended.
    Serving { worker: StartedWorker, announced: bool, patience: Box<Patience> },
}

pub enum WorkerUpdate {
    /// The next generation is ready, and the waiting calls have been sent.
    Started,
    /// No worker started, so that these calls cannot be served.
    NotStarted(StartError, Vec<CallId>),
    /// No worker may be started for this reason, so that these calls cannot be served.
    Closed {
        reason: String,
        calls: Vec<CallId>,
    },
    Event {
        generation: Generation,
        event: WorkerEvent,
    },
}

impl SessionWorker {
    /// Creates the state before the first call, which starts the worker.
    pub fn new(boundary: Arc<dyn Boundary>, agent: AgentId, confinement: WatchedConfinement) -> Self {
        Self {
            boundary,
            agent,
            confinement,
            guests: GuestLog::default(),
            asks_hosts: false,
            generation: Generation(0),
            state: WorkerState::None,
            waiting: VecDeque::new(),
            replacement: None,
            renewal: Renewal::No,
            waits_for_subtree: false,
            not_enforced: Vec::new(),
            no_full_tier: None,
        }
    }

    pub(in crate::engine::driver) fn log_guests(&mut self, guests: GuestLog) {
        self.guests = guests;
    }

    pub(in crate::engine::driver) fn changes_rights(&self) -> bool {
        let rights = |confinement: &WatchedConfinement| confinement.get().rights.clone();
        matches!(&self.replacement, Some(Ok(next)) if rights(next) != rights(&self.confinement))
    }

    /// Returns the next generation's confinement. While a worker is being replaced, the present worker has another one.
    pub fn confinement(&self) -> &Confinement {
        self.watched().get()
    }

    pub(in crate::engine::driver) fn watched(&self) -> &WatchedConfinement {
        match &self.replacement {
            Some(Ok(confinement)) => confinement,
            Some(Err(_)) | None => &self.confinement,
        }
    }

    /// Returns the latest generation; 0 before the first start.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    pub fn serving(&self) -> Option<&StartedWorker> {
        match &self.state {
            WorkerState::Serving { worker, announced: true, .. } => Some(worker),
            _ => None,
        }
    }

    /// True if only a replacement can start a worker.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, WorkerState::Closed(_))
    }

    /// True if the worker is being ended so that another one replaces it.
    pub fn is_being_replaced(&self) -> bool {
        self.replacement.is_some()
    }

    /// True if a replacement waits for the end of sub-agents' workers or, if `others_end`, of other processes.
    pub(in crate::engine::driver) fn is_held_back(&self, others_end: bool) -> bool {
        self.is_being_replaced() && (others_end || self.waits_for_subtree)
    }

    pub(in crate::engine::driver) fn wait_for_subtree(&mut self, waits: bool) {
        self.waits_for_subtree = waits;
    }

    pub(in crate::engine::driver) fn not_enforced(&self) -> &[String] {
        &self.not_enforced
    }

    pub(in crate::engine::driver) fn no_full_tier(&self) -> Option<&str> {
        self.no_full_tier.as_deref()
    }

    /// Returns the boundary, which can start further workers for the agent.
    pub fn boundary(&self) -> Arc<dyn Boundary> {
        Arc::clone(&self.boundary)
    }

    /// Returns a generation for a further worker. The generation is unique within the agent.
    pub fn reserve_generation(&mut self) -> Generation {
        self.generation = self.generation.next();
        self.generation
    }

    /// Sends a call at once or, if no worker can take it now, once there is one.
    pub fn call(&mut self, call: CallId, work: Work) {
        match &mut self.state {
            WorkerState::Serving { worker, patience, .. }
                if self.replacement.is_none() && self.renewal == Renewal::No =>
            {
                patience.sent(call, &work, &self.confinement.get().rights.limits);
                worker.control.call(call, work);
            }
            _ => self.waiting.push_back((call, work)),
        }
        self.start();
    }

    /// Ends the worker with everything below it, then starts one with this confinement; none if that is an error.
    ///
    /// Calls wait during the replacement. [`SessionWorker::next`] reports the end and the start.
    pub fn replace(&mut self, confinement: Result<WatchedConfinement, StartError>) {
        self.renewal = Renewal::No;
        self.replacement = Some(confinement);
        match &mut self.state {
            WorkerState::Serving { worker, .. } => worker.control.kill(),
            WorkerState::Starting { cancel, .. } => {
                // A worker that is ready already is ended without being reported.
                let _ = cancel.take().map(|cancel| cancel.send(()));
            }
            WorkerState::None | WorkerState::Closed(_) => self.state = WorkerState::None,
        }
    }

    /// Replaces the worker by one with the same access once its open calls are over. The new caches include what was
    /// added to the caches of levels with more access.
    pub fn renew(&mut self) {
        let lives = matches!(self.state, WorkerState::Starting { .. } | WorkerState::Serving { .. });
        if lives && self.replacement.is_none() {
            self.renewal = Renewal::Wanted;
        }
    }

    /// Sets whether the user is asked about unlisted hosts. After a change, a worker with a list of hosts is renewed.
    pub(in crate::engine::driver) fn ask_hosts(&mut self, asks: bool) {
        if std::mem::replace(&mut self.asks_hosts, asks) != asks
            && self.confinement.get().rights.net.hosts().is_some()
        {
            self.renew();
        }
    }

    fn end_for_renewal(&mut self) {
        if let WorkerState::Serving { worker, patience, .. } = &self.state
            && self.renewal == Renewal::Wanted
            && patience.is_idle()
        {
            worker.control.kill();
            self.renewal = Renewal::Ending;
        }
    }

    /// Starts the next generation, unless a worker is alive or none may be started.
    pub fn start(&mut self) {
        if matches!(self.state, WorkerState::None) && self.replacement.is_none() {
            self.start_as(false);
        }
    }

    fn start_as(&mut self, replaces: bool) {
        self.renewal = Renewal::No;
        self.generation = self.generation.next();
        let order = WorkerOrder {
            agent: self.agent.clone(),
            generation: self.generation,
            confinement: Confinement { asks_hosts: self.asks_hosts, ..self.confinement.get().clone() },
            // Caches in a sub-agent's own temp directory would be copied anew for each sub-agent.
            reads_down: self.agent.is_top_level() || !self.confinement.has_caches_in_temp(),
            guests: self.guests.clone(),
        };
        let (cancel, cancelled) = oneshot::channel();
        let starting = self.boundary.start(order, cancelled);
        self.state = WorkerState::Starting { starting, cancel: Some(cancel), replaces };
    }

    pub fn cancel(&mut self, call: CallId) -> Cancelled {
        let before = self.waiting.len();
        self.waiting.retain(|(waiting, _)| *waiting != call);
        if self.waiting.len() < before {
            return Cancelled::BeforeItWasSent;
        }
        if let WorkerState::Serving { worker, .. } = &self.state {
            worker.control.cancel(call);
        }
        Cancelled::OutcomeFollows
    }

    /// Waits for the next update; pends while no worker is alive. Cancel safe.
    pub async fn next(&mut self) -> WorkerUpdate {
        loop {
            if let Some(happening) = self.step().await {
                return happening;
            }
        }
    }

    async fn step(&mut self) -> Option<WorkerUpdate> {
        self.end_for_renewal();
        match &mut self.state {
            WorkerState::None => match self.replacement.take() {
                Some(Ok(confinement)) => {
                    self.confinement = confinement;
                    self.start_as(true);
                    None
                }
                Some(Err(error)) => Some(self.close(error)),
                None if self.renewal != Renewal::No => {
                    self.start();
                    None
                }
                None => std::future::pending().await,
            },
            WorkerState::Closed(_) if self.waiting.is_empty() => std::future::pending().await,
            WorkerState::Closed(reason) => {
                let reason = reason.clone();
                Some(WorkerUpdate::Closed { reason, calls: self.take_waiting() })
            }
            WorkerState::Starting { starting, replaces, .. } => {
                let (started, replaces) = (starting.await, *replaces);
                self.on_start(started, replaces)
            }
            WorkerState::Serving { worker, patience, .. } => {
                let generation = worker.generation;
                let event = tokio::select! {
                    // Messages that have arrived count even if the limit is exceeded.
                    biased;
                    event = worker.events.recv() => event,
                    () = patience.is_over() => {
                        patience.give_up();
                        worker.control.kill();
                        return None;
                    }
                };
                self.on_event(generation, event.unwrap_or(GONE))
            }
        }
    }

    fn on_start(&mut self, started: StartOutcome, replaces: bool) -> Option<WorkerUpdate> {
        let announced = self.replacement.is_none();
        match started {
            Ok(worker) if announced => {
                let mut patience = Box::new(Patience::new());
                // If this worker is to be renewed, calls wait for the next one.
                let calls = if self.renewal == Renewal::No { self.waiting.len() } else { 0 };
                for (call, work) in self.waiting.drain(..calls) {
                    patience.sent(call, &work, &self.confinement.get().rights.limits);
                    worker.control.call(call, work);
                }
                self.not_enforced.clone_from(&worker.ruleset.missing);
                self.no_full_tier = worker.ruleset.no_full_tier.as_ref().map(|reason| reason.detail.clone());
                self.state = WorkerState::Serving { worker, announced, patience };
                Some(WorkerUpdate::Started)
            }
            Ok(worker) => {
                worker.control.kill();
                self.state = WorkerState::Serving { worker, announced, patience: Box::new(Patience::new()) };
                None
            }
            Err(_) if !announced => {
                self.state = WorkerState::None;
                None
            }
            Err(error) if replaces => Some(self.close(error)),
            Err(error) => {
                self.state = WorkerState::None;
                Some(WorkerUpdate::NotStarted(error, self.take_waiting()))
            }
        }
    }

    fn on_event(&mut self, generation: Generation, mut event: WorkerEvent) -> Option<WorkerUpdate> {
        let announced = self.serving().is_some();
        if let WorkerState::Serving { patience, .. } = &mut self.state {
            match &mut event {
                WorkerEvent::Outcome { call, .. } => patience.ended(*call),
                WorkerEvent::Ended { reason, violation: None, .. } if patience.is_given_up() => {
                    *reason = WorkerEnd::Silent;
                }
                WorkerEvent::Output { .. }
                | WorkerEvent::Prepared { .. }
                | WorkerEvent::Refused(_)
                | WorkerEvent::HostsUsed(_)
                | WorkerEvent::HostAsked(_)
                | WorkerEvent::Ended { .. } => {}
            }
        }
        if matches!(event, WorkerEvent::Ended { .. }) {
            self.state = WorkerState::None;
        }
        announced.then_some(WorkerUpdate::Event { generation, event })
    }

    /// Closes the worker after an error. Waiting calls then fail, and never run in an outdated confinement.
    fn close(&mut self, error: StartError) -> WorkerUpdate {
        self.state = WorkerState::Closed(format!("no worker could be started: {error}"));
        WorkerUpdate::NotStarted(error, self.take_waiting())
    }

    fn take_waiting(&mut self) -> Vec<CallId> {
        self.waiting.drain(..).map(|(call, _)| call).collect()
    }

    /// Begins to end the worker and everything below it, even if the worker is still starting. No worker replaces it.
    pub fn abandon(&mut self) {
        self.waiting.clear();
        self.replace(Err(StartError::Cancelled));
    }

    /// Ends the worker and all below it, and waits for the end. Returns its last events; none if no start was reported.
    pub async fn end(&mut self) -> Vec<(Generation, WorkerEvent)> {
        self.abandon();
        let mut last = Vec::new();
        while !self.is_closed() {
            if let Some(WorkerUpdate::Event {
                generation,
                event:
                    event @ (WorkerEvent::Refused(_) | WorkerEvent::HostsUsed(_) | WorkerEvent::Ended { .. }),
            }) = self.step().await
            {
                last.push((generation, event));
            }
        }
        self.state = WorkerState::None;
        last
    }
}

const GONE: WorkerEvent =
    WorkerEvent::Ended { reason: WorkerEnd::ReaderGone, violation: None, open: Vec::new() };

/// State of a call when it was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// No worker had the call, so that no outcome follows.
    BeforeItWasSent,
    /// The worker has the call, and its outcome follows.
    OutcomeFollows,
}
