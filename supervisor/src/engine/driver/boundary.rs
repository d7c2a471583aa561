//! The boundary as a session sees it: workers are ordered, told, and ended.
//!
//! [`Processes`] are the real one. Tests put workers behind it that exist in their imagination only, and so choose what
//! happens, in which order, and when.

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

/// What a session may have of the boundary.
pub trait Boundary: Send + Sync {
    /// Starts a worker, unless it is cancelled before the worker is ready. After an error nothing is left of it.
    fn start(
        &self,
        order: WorkerOrder,
        cancelled: oneshot::Receiver<()>,
    ) -> BoxFuture<'static, Result<StartedWorker, StartError>>;

    /// Fetches a page, until it is cancelled by the end of its sender. No process is left of it then.
    fn fetch(&self, order: PageOrder, cancelled: oneshot::Receiver<()>) -> BoxFuture<'static, FetchEnd> {
        drop((order, cancelled));
        Box::pin(async { FetchEnd { outcome: Err(GuestError::Ended), used: HostUse::default() } })
    }
}

/// A page that is to be fetched.
#[derive(Clone, Debug)]
pub struct PageOrder {
    pub agent: Confinement,
    pub fetch: PermittedFetch,
    pub guests: GuestLog,
}

/// A worker that is to be started.
#[derive(Clone, Debug)]
pub struct WorkerOrder {
    /// The agent that it serves.
    pub agent: AgentId,
    /// The generation of the worker.
    pub generation: Generation,
    pub confinement: Confinement,
    /// True if its caches get copies from places of more rights.
    pub reads_down: bool,
    /// The log of the guests that it has.
    pub guests: GuestLog,
}

/// A worker that is ready and verified.
pub struct StartedWorker {
    /// The generation of the worker.
    pub generation: Generation,
    pub pid: u32,
    /// The enforced rules.
    pub ruleset: RulesetReport,
    /// From spawning to readiness.
    pub startup: Duration,
    pub control: Box<dyn WorkerControl>,
    /// Its messages; [`WorkerEvent::Ended`] last.
    pub events: mpsc::Receiver<WorkerEvent>,
}

/// Commands to a worker.
pub trait WorkerControl: Send + Sync {
    /// Sends a call. Nothing happens if the worker is gone: its `Ended` event names the call as open.
    fn call(&self, call: CallId, work: Work);

    /// Cancels a call; its outcome still comes.
    fn cancel(&self, call: CallId);

    /// Sends an effect to be carried out. A worker takes one, and nothing after it.
    fn commit(&self, call: CallId, effect: &Effect) -> Result<(), EffectError>;

    /// Asks the worker to finish its calls and exit.
    fn drain(&self);

    /// Ends the worker and everything below it, at once and by force if need be. The `Ended` event follows.
    fn kill(&self);
}

/// The boundary that the kernel holds.
#[derive(Clone, Debug)]
pub struct Processes {
    /// Where processes come from.
    pub spawner: Spawner,
    /// Which programs they are.
    pub programs: Programs,
    /// Writes of an earlier process of the session that were cut off.
    pub leftovers: Option<Leftovers>,
    /// The places of the levels of rights.
    pub places: Option<LevelPlaces>,
}

impl Processes {
    /// The real boundary, for agents that share it.
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

/// Waits until it is cancelled; a sender that is gone cancels nothing.
async fn cancellation(cancelled: oneshot::Receiver<()>) {
    if cancelled.await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Copies to a program's caches what places of more rights have. What cannot be copied is fetched and built again.
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
