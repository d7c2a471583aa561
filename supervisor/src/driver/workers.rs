//! The session worker through its generations: started, fed with calls, and replaced when it dies.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

use ipc::confinement::Confinement;
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::Work;
use tokio::sync::mpsc;

use crate::monitor::{Programs, Spawner, StartError, Worker, WorkerEvent, WorkerSpec};

type Started = Result<(Worker, mpsc::Receiver<WorkerEvent>), StartError>;
type Starting = Pin<Box<dyn Future<Output = Started> + Send>>;

/// An agent's worker, whichever generation is alive.
pub struct SessionWorker {
    spawner: Spawner,
    programs: Programs,
    agent: AgentId,
    confinement: Confinement,
    generation: Generation,
    state: State,
    waiting: VecDeque<(CallId, Work)>,
}

enum State {
    /// No worker; the next call starts one.
    None,
    /// One is on its way.
    Starting(Starting),
    /// One serves.
    Serving { worker: Worker, events: mpsc::Receiver<WorkerEvent> },
}

/// What happened to the worker.
pub enum Happening {
    /// The next generation is ready; the calls that waited have been sent.
    Started,
    /// The next generation did not come to be; these calls cannot be served.
    NotStarted(StartError, Vec<CallId>),
    /// It said something, or ended.
    Event(WorkerEvent),
}

impl SessionWorker {
    /// A worker that starts with its first call.
    pub fn new(spawner: Spawner, programs: Programs, agent: AgentId, confinement: Confinement) -> Self {
        Self {
            spawner,
            programs,
            agent,
            confinement,
            generation: Generation(0),
            state: State::None,
            waiting: VecDeque::new(),
        }
    }

    /// The confinement of every generation.
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// The current generation; 0 before the first.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The worker that serves, if one does.
    pub fn serving(&self) -> Option<&Worker> {
        match &self.state {
            State::Serving { worker, .. } => Some(worker),
            State::None | State::Starting(_) => None,
        }
    }

    /// Sends a call, as soon as there is a worker.
    pub fn call(&mut self, call: CallId, work: Work) {
        match &self.state {
            State::Serving { worker, .. } => worker.calls().call(call, work),
            State::Starting(_) => self.waiting.push_back((call, work)),
            State::None => {
                self.waiting.push_back((call, work));
                self.start();
            }
        }
    }

    /// Starts the next generation, if none is alive.
    pub fn start(&mut self) {
        if !matches!(self.state, State::None) {
            return;
        }
        self.generation = self.generation.next();
        let spec = WorkerSpec {
            agent: self.agent.clone(),
            generation: self.generation,
            confinement: self.confinement.clone(),
            program: self.programs.worker.clone(),
        };
        let spawner = self.spawner.clone();
        self.state = State::Starting(Box::pin(async move { Worker::start(&spawner, spec).await }));
    }

    /// Cancels a call, wherever it is.
    pub fn cancel(&mut self, call: CallId) -> Cancelled {
        let before = self.waiting.len();
        self.waiting.retain(|(waiting, _)| *waiting != call);
        if self.waiting.len() < before {
            return Cancelled::BeforeItWasSent;
        }
        if let State::Serving { worker, .. } = &self.state {
            worker.calls().cancel(call);
        }
        Cancelled::OutcomeFollows
    }

    /// What happens next; pends while no worker is alive. Cancel safe.
    pub async fn next(&mut self) -> Happening {
        match &mut self.state {
            State::None => std::future::pending().await,
            State::Starting(starting) => match starting.await {
                Ok((worker, events)) => {
                    for (call, work) in self.waiting.drain(..) {
                        worker.calls().call(call, work);
                    }
                    self.state = State::Serving { worker, events };
                    Happening::Started
                }
                Err(error) => {
                    self.state = State::None;
                    Happening::NotStarted(error, self.waiting.drain(..).map(|(call, _)| call).collect())
                }
            },
            State::Serving { events, .. } => {
                let event = events.recv().await.unwrap_or_else(|| WorkerEvent::Ended {
                    reason: "its reader is gone".to_owned(),
                    violation: None,
                    open: Vec::new(),
                });
                if matches!(event, WorkerEvent::Ended { .. }) {
                    self.state = State::None;
                }
                Happening::Event(event)
            }
        }
    }

    /// Ends the worker and everything below it; gives the reason, and the moment when the last process was gone.
    pub async fn end(&mut self) -> Option<(Generation, String, Instant)> {
        self.waiting.clear();
        if let State::Starting(_) = self.state {
            // What is dropped on its way takes its broker along.
            self.state = State::None;
        }
        if let State::Serving { worker, .. } = &self.state {
            worker.kill();
        }
        while let State::Serving { .. } = self.state {
            if let Happening::Event(WorkerEvent::Ended { reason, .. }) = self.next().await {
                return Some((self.generation, reason, Instant::now()));
            }
        }
        None
    }
}

/// Where a call was when it was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// No worker had it: nothing will be heard of it.
    BeforeItWasSent,
    /// The worker has it; its outcome follows.
    OutcomeFollows,
}
