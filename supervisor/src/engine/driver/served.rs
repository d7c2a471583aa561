//! Calls that no worker serves, while they are served: each in a task of its own, which ends when it is not waited for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use agent::core::{Input, ServedOutcome};
use boundary::monitor::GuestLog;
use futures_util::future::BoxFuture;
use gate::tools::{ExternalCall, PermittedFetch, ServedCall};
use ipc::confinement::Confinement;
use ipc::id::{AgentId, CallId};
use ipc::image::Image;
use protocol::event::{HostUse, NoticeCode};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout};

use super::flushes::After;
use super::pages;
use super::{AgentRun, Boundary, PageOrder, SessionError, Shared, millis};

/// Answer of a server to a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedAnswer {
    /// Text for the model, which names the places of the pictures.
    pub text: String,
    pub images: Vec<Image>,
}

impl From<String> for ServedAnswer {
    fn from(text: String) -> Self {
        Self { text, images: Vec::new() }
    }
}

impl From<ServedAnswer> for ServedOutcome {
    fn from(ServedAnswer { text, images }: ServedAnswer) -> Self {
        if images.is_empty() { Self::Answered(text) } else { Self::Pictured(text, images) }
    }
}

/// Serves the calls of a session that no worker serves.
pub trait ToolServer: Send + Sync {
    /// Carries a call out. The texts are for the model, whether they are an answer or say what failed. A future that is dropped ends
    /// the call: nobody waits for it any more.
    fn serve(&self, agent: &AgentId, call: ServedCall) -> BoxFuture<'static, Result<ServedAnswer, String>>;

    /// Sets the log of the guests that it starts for calls.
    fn log_guests(&self, guests: GuestLog) {
        drop(guests);
    }

    /// Writes into the person's settings that a tool runs without a question in this project. Both results are for the person.
    fn keep(&self, _: &ExternalCall) -> Result<String, String> {
        Err("no settings can keep it here".to_owned())
    }

    /// Ends everything that was started for calls, when the agent ends.
    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The calls that are served outside the workers.
#[derive(Default)]
pub(super) struct ServedCalls {
    server: Option<Arc<dyn ToolServer>>,
    /// Approved calls, until that is on the disk.
    unwritten: HashMap<CallId, (ServedCall, Duration)>,
    running: HashMap<CallId, Running>,
    tasks: JoinSet<ServedOutcome>,
    /// Absent before the first call and after the end.
    fetchers: Option<Fetchers>,
}

/// Origin of the guests that fetch pages.
struct Fetchers {
    boundary: Arc<dyn Boundary>,
    /// The confinement of the agent's worker.
    agent: Confinement,
    uses: mpsc::UnboundedSender<HostUse>,
    guests: GuestLog,
}

struct Running {
    began: Instant,
    task: AbortHandle,
}

impl ServedCalls {
    /// Takes a call in. True if it was approved and waits for the disk: then [`Self::release`] begins it.
    fn take(&mut self, agent: &AgentId, call: CallId, wanted: ServedCall, longest: Duration) -> bool {
        let waits = match &wanted {
            ServedCall::External(_) => true,
            ServedCall::Fetch(fetch) => fetch.is_approved,
            ServedCall::Supervisor(_) => false,
        };
        if waits {
            self.unwritten.insert(call, (wanted, longest));
        } else {
            self.begin(agent, call, wanted, longest);
        }
        waits
    }

    /// Begins a call that waited for the disk, unless it was ended meanwhile; true if it begins.
    fn release(&mut self, agent: &AgentId, call: CallId) -> bool {
        let waited = self.unwritten.remove(&call);
        waited.map(|(wanted, longest)| self.begin(agent, call, wanted, longest)).is_some()
    }

    fn begin(&mut self, agent: &AgentId, call: CallId, wanted: ServedCall, longest: Duration) {
        if let ServedCall::Fetch(fetch) = wanted {
            return self.begin_fetch(call, fetch);
        }
        let server = self.server.clone();
        let agent = agent.clone();
        let task = self.tasks.spawn(async move {
            let Some(server) = server else {
                return ServedOutcome::Unserved("nothing serves this tool in this session".to_owned());
            };
            match timeout(longest, server.serve(&agent, wanted)).await {
                Ok(Ok(answer)) => answer.into(),
                Ok(Err(text)) => ServedOutcome::Failed(text),
                Err(_) => ServedOutcome::Late(longest),
            }
        });
        self.running.insert(call, Running { began: Instant::now(), task });
    }

    /// Has a guest fetch a page, in a task that outlives the call until the guest is gone.
    fn begin_fetch(&mut self, call: CallId, fetch: PermittedFetch) {
        let Some(Fetchers { boundary, agent, uses, guests }) = &self.fetchers else {
            let unserved = ServedOutcome::Unserved("nothing fetches pages in this session".to_owned());
            let task = self.tasks.spawn(std::future::ready(unserved));
            self.running.insert(call, Running { began: Instant::now(), task });
            return;
        };
        let (waits, cancelled) = oneshot::channel();
        let uses = uses.clone();
        let guests = guests.of_call(call);
        let order = PageOrder { agent: agent.clone(), fetch: fetch.clone(), guests };
        let fetching = boundary.fetch(order, cancelled);
        let fetched = tokio::spawn(async move {
            let (outcome, host) = pages::outcome(&fetch, fetching.await);
            // Nobody counts any more if the session is over.
            let _ = uses.send(host);
            outcome
        });
        let task = self.tasks.spawn(async move {
            let _waits = waits;
            fetched.await.unwrap_or_else(|error| ServedOutcome::Unserved(format!("its task failed: {error}")))
        });
        self.running.insert(call, Running { began: Instant::now(), task });
    }

    /// Ends a call; true if it is one of these.
    pub(super) fn cancel(&mut self, call: CallId) -> bool {
        if let Some(running) = self.running.remove(&call) {
            running.task.abort();
            return true;
        }
        self.unwritten.remove(&call).is_some()
    }

    /// The next call that is over; pends while there is none. Cancel safe.
    pub(super) async fn next(&mut self) -> Input {
        loop {
            let Some(over) = self.tasks.join_next_with_id().await else {
                return std::future::pending().await;
            };
            if let Some(input) = self.over(over) {
                return input;
            }
        }
    }

    /// The core's input, unless nobody waits for it.
    fn over(&mut self, over: Result<(Id, ServedOutcome), JoinError>) -> Option<Input> {
        let (id, outcome) = match over {
            Ok(over) => over,
            Err(error) => (error.id(), ServedOutcome::Unserved(format!("its task failed: {error}"))),
        };
        let call =
            self.running.iter().find_map(|(call, running)| (running.task.id() == id).then_some(*call))?;
        let began = self.running.remove(&call)?.began;
        Some(Input::Served { call, outcome, duration_ms: millis(began.elapsed()) })
    }

    /// Ends all of them, and waits for that.
    pub(super) async fn end(&mut self) {
        self.fetchers = None;
        self.unwritten.clear();
        self.running.clear();
        self.tasks.shutdown().await;
        if let Some(server) = &self.server {
            server.close().await;
        }
    }
}

impl AgentRun {
    /// The same run, whose calls that are no worker's this server carries out. Without one they fail.
    #[must_use]
    pub fn served_by(mut self, server: Arc<dyn ToolServer>) -> Self {
        server.log_guests(self.guests.log().clone());
        self.served.server = Some(server);
        self
    }

    /// Has a call served: one that was approved when that is on the disk.
    pub(super) fn serve(&mut self, shared: &mut Shared, call: CallId, wanted: ServedCall, longest: Duration) {
        self.served.fetchers = Some(Fetchers {
            boundary: self.worker.boundary(),
            agent: self.worker.confinement().clone(),
            uses: self.page_uses.sender(),
            guests: self.guests.log().clone(),
        });
        if self.served.take(&self.id, call, wanted, longest) {
            self.flushes.push(shared.flush(), After::Serve(call));
        } else {
            self.begins(call);
        }
    }

    /// Keeps an approval of a tool for later sessions, and tells the person.
    pub(super) fn keep_tool(&mut self, shared: &mut Shared, call: &ExternalCall) -> Result<(), SessionError> {
        let kept = self
            .served
            .server
            .as_ref()
            .map_or_else(|| Err("no server is there".to_owned()), |server| server.keep(call));
        let text = kept.unwrap_or_else(|why| format!("the approval holds for this session only: {why}"));
        self.notice(shared, NoticeCode::Settings, &text)
    }

    /// The log is on the disk: an approved call begins.
    pub(super) fn serve_approved(&mut self, call: CallId) {
        if self.served.release(&self.id, call) {
            self.begins(call);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use gate::tools::SupervisorCall;

    /// Answers with its arguments, or never.
    struct Echo;

    impl ToolServer for Echo {
        fn serve(&self, _: &AgentId, call: ServedCall) -> BoxFuture<'static, Result<ServedAnswer, String>> {
            match call {
                ServedCall::Supervisor(call) => std::future::ready(Ok(call.json.into())).boxed(),
                ServedCall::External(_) | ServedCall::Fetch(_) => std::future::pending().boxed(),
            }
        }
    }

    fn served() -> ServedCalls {
        ServedCalls { server: Some(Arc::new(Echo)), ..ServedCalls::default() }
    }

    fn take(calls: &mut ServedCalls, call: u64, wanted: ServedCall) -> bool {
        calls.take(&AgentId::root(), CallId(call), wanted, Duration::from_millis(20))
    }

    fn own(json: &str) -> ServedCall {
        ServedCall::Supervisor(SupervisorCall { tool: "note".into(), json: json.to_owned() })
    }

    fn external() -> ServedCall {
        let [server, tool, json] = ["docs", "search", "{}"].map(str::to_owned);
        ServedCall::External(ExternalCall { server, tool, json, guest: None })
    }

    async fn next(calls: &mut ServedCalls) -> (u64, ServedOutcome) {
        let next = timeout(Duration::from_secs(20), calls.next()).await.unwrap();
        let Input::Served { call, outcome, .. } = next else { panic!("{next:?}") };
        (call.0, outcome)
    }

    #[tokio::test]
    async fn an_approved_call_waits_for_the_disk_and_is_given_up_at_its_deadline() {
        let mut calls = served();
        assert!(take(&mut calls, 1, external()) && calls.running.is_empty());
        calls.release(&AgentId::root(), CallId(1));
        assert_eq!(next(&mut calls).await, (1, ServedOutcome::Late(Duration::from_millis(20))));
    }

    #[tokio::test]
    async fn an_approved_call_that_was_ended_before_it_is_on_the_disk_never_begins() {
        let mut calls = served();
        take(&mut calls, 1, external());
        assert!(calls.cancel(CallId(1)));
        calls.release(&AgentId::root(), CallId(1));
        assert!(calls.running.is_empty() && calls.tasks.is_empty());
    }

    #[tokio::test]
    async fn a_call_that_was_ended_is_told_no_more() {
        let mut calls = served();
        assert!(!take(&mut calls, 1, own("{}")), "one of our own begins at once");
        assert!(calls.cancel(CallId(1)) && !calls.cancel(CallId(1)));
        take(&mut calls, 2, own("[]"));
        assert_eq!(next(&mut calls).await, (2, ServedOutcome::Answered("[]".to_owned())));
        assert!(calls.running.is_empty());
    }

    #[tokio::test]
    async fn without_a_server_a_call_fails() {
        let mut calls = ServedCalls::default();
        take(&mut calls, 1, own("{}"));
        assert!(matches!(next(&mut calls).await, (1, ServedOutcome::Unserved(_))));
    }
}
