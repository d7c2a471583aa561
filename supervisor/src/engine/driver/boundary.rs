//! Trait by which a session starts workers. Tests implement it without processes, to choose the order of events.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use boundary::monitor::{
    FetchEnd, FetchSpec, GuestError, GuestLog, Programs, Spawner, StartError, Worker, WorkerEvent, WorkerSpec,
};
use boundary::policy::levels::LevelPlaces;
use futures_util::future::BoxFuture;
use gate::tools::PermittedFetch;
use ipc::confinement::{Confinement, RulesetReport};
use ipc::effect::{Effect, EffectError};
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::{Leftovers, Work};
use ipc::path::WirePath;
use protocol::event::HostUse;
use tokio::sync::{mpsc, oneshot};

use super::tripwire::apart;

/// Starts workers, and guests: other confined processes of an agent.
pub trait Boundary: Send + Sync {
    /// Starts a worker. The start can be cancelled until the worker is ready. No process is left after an error.
    fn start(
        &self,
        order: WorkerOrder,
        cancelled: oneshot::Receiver<()>,
    ) -> BoxFuture<'static, Result<StartedWorker, StartError>>;

    /// Fetches a page by a guest process. Ends the process early if `cancelled` fires or its sender is dropped.
    fn fetch(&self, order: PageOrder, cancelled: oneshot::Receiver<()>) -> BoxFuture<'static, FetchEnd> {
        drop((order, cancelled));
        Box::pin(async { FetchEnd { outcome: Err(GuestError::Ended), used: HostUse::default() } })
    }
}

#[derive(Clone, Debug)]
pub struct PageOrder {
    pub agent: Confinement,
    pub fetch: PermittedFetch,
    pub guests: GuestLog,
}

#[derive(Clone, Debug)]
pub struct WorkerOrder {
    pub agent: AgentId,
    pub generation: Generation,
    pub confinement: Confinement,
    /// True if caches of levels with more access are copied to the worker's caches.
    pub reads_down: bool,
    pub guests: GuestLog,
}

/// A worker that is ready, and whose reported rules were checked.
pub struct StartedWorker {
    pub generation: Generation,
    pub pid: u32,
    pub ruleset: RulesetReport,
    /// Time from the start of the process until the worker was ready.
    pub startup: Duration,
    pub control: Box<dyn WorkerControl>,
    /// Messages of the worker. [`WorkerEvent::Ended`] is the last one.
    pub events: mpsc::Receiver<WorkerEvent>,
}

pub trait WorkerControl: Send + Sync {
    /// Sends a call. Has no effect if the worker is gone: the worker's `Ended` event lists the call as open.
    fn call(&self, call: CallId, work: Work);

    /// Asks the worker to cancel a call. The outcome of the call still arrives.
    fn cancel(&self, call: CallId);

    /// Sends an approved effect. The worker accepts nothing after it. After an error, nothing was sent.
    fn commit(&self, call: CallId, effect: &Effect) -> Result<(), EffectError>;

    fn drain(&self);

    /// Ends the worker and all processes below it at once, by force if necessary. The `Ended` event follows.
    fn kill(&self);
}

/// Boundary with real worker processes, which the kernel confines.
#[derive(Clone, Debug)]
pub struct Processes {
    pub spawner: Spawner,
    pub programs: Programs,
    /// Files of writes that an earlier process of the session did not finish.
    pub leftovers: Option<Leftovers>,
    /// Cache directories for each level of access; `None` if workers have no such caches.
    pub places: Option<LevelPlaces>,
}

impl Processes {
    pub fn shared(
        spawner: Spawner,
        programs: Programs,
        leftovers: Option<Leftovers>,
        places: Option<LevelPlaces>,
    ) -> Arc<dyn Boundary> {
        Arc::new(Self { spawner, programs, leftovers, places })
    }
}

impl Boundary for Processes {
    fn start(
        &self,
        order: WorkerOrder,
        cancelled: oneshot::Receiver<()>,
    ) -> BoxFuture<'static, Result<StartedWorker, StartError>> {
        let WorkerOrder { agent, generation, confinement, reads_down, guests } = order;
        let (program, leftovers) = (self.programs.worker.clone(), self.leftovers.clone());
        let places = self.places.clone().filter(|_| reads_down);
        let spec = WorkerSpec { agent, generation, confinement, program, leftovers, guests };
        let spawner = self.spawner.clone();
        Box::pin(async move {
            let mut cancelled = pin!(cancellation(cancelled));
            if let Some(places) = places {
                tokio::select! {
                    () = read_down(places, &spec.confinement) => {}
                    () = cancelled.as_mut() => return Err(StartError::Cancelled),
                }
            }
            let (worker, events) = Worker::start_unless(&spawner, spec, cancelled).await?;
            let Worker { generation, pid, startup, .. } = worker;
            let ruleset = worker.ruleset.clone();
            Ok(StartedWorker { generation, pid, ruleset, startup, control: Box::new(worker), events })
        })
    }

    fn fetch(&self, order: PageOrder, cancelled: oneshot::Receiver<()>) -> BoxFuture<'static, FetchEnd> {
        let PageOrder { agent, fetch: PermittedFetch { url, hosts, reach, .. }, guests } = order;
        let program = self.programs.worker.clone();
        let spec = FetchSpec { program, agent, reach, url, hosts, log: guests };
        let spawner = self.spawner.clone();
        Box::pin(async move { boundary::monitor::fetch(&spawner, spec, cancelled).await })
    }
}

/// Waits until `cancelled` fires. Pends for ever if its sender is dropped.
async fn cancellation(cancelled: oneshot::Receiver<()>) {
    if cancelled.await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Copies the caches of levels with more access to those of this level. Errors are only logged: caches are dispensable.
pub(crate) async fn read_down(places: LevelPlaces, confinement: &Confinement) {
    let Confinement { temp, environment, .. } = confinement;
    let Some(caches) = environment.caches.clone() else { return };
    let temp = temp.clone();
    let read = apart(move || places.read_down(caches.as_path(), temp.as_ref().map(WirePath::as_path))).await;
    if let Err(error) = read.and_then(|read| read) {
        tracing::warn!(%error, "caches of wider access are not read");
    }
}

impl WorkerControl for Worker {
    fn call(&self, call: CallId, work: Work) {
        self.calls().call(call, work);
    }

    fn cancel(&self, call: CallId) {
        self.calls().cancel(call);
    }

    fn commit(&self, call: CallId, effect: &Effect) -> Result<(), EffectError> {
        self.calls().commit(call, effect)
    }

    fn drain(&self) {
        self.calls().drain();
    }

    fn kill(&self) {
        Self::kill(self);
    }
}
