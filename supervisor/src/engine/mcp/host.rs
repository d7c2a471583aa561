use std::collections::BTreeMap;
use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use boundary::monitor::{GuestLog, McpServerProcess};
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, TryFutureExt};
use gate::tools::{ExternalCall, ServedCall};
use ipc::id::{AgentId, ConversationId};
use protocol::frontend::{UiEvent, UiEventKind};
use protocol::server_prompt::{ServerPrompt, WantedPrompt};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::find::{Catalogue, FIND};
use super::names::visible;
use super::offer::MOST_RUNNING;
use super::pin::digest_of_resources;
use super::progress::ProgressLines;
use super::resources::{READ, uri};
use super::server::{ServerOrder, ServerSpec, ToolCall, WantedCall, attend};
use crate::engine::driver::{Caller, ServedAnswer, ToolServer};

/// Time limit for a server to end.
const LEAVING: Duration = Duration::from_secs(5);

/// Tool server for MCP tools. An MCP server starts with its first call.
pub(crate) struct McpHost {
    servers: Mutex<BTreeMap<String, HostedServer>>,
    catalogue: Arc<Catalogue>,
    /// Digests by the names of servers. A call for a server's resources has this in place of a tool's digest.
    reads: BTreeMap<String, String>,
    /// Permits for running servers, shared by all agents of the session.
    places: Arc<Semaphore>,
    prompts: Vec<ServerPrompt>,
    last: AtomicU64,
    guests: Mutex<GuestLog>,
}

enum HostedServer {
    Idle(Box<ServerSpec>),
    Running { orders: UnboundedSender<ServerOrder>, task: JoinHandle<()> },
}

impl McpHost {
    pub(super) fn new(
        servers: Vec<ServerSpec>,
        catalogue: Arc<Catalogue>,
        prompts: Vec<ServerPrompt>,
        places: Arc<Semaphore>,
    ) -> Self {
        let reads = servers.iter().map(|spec| (spec.server.name.clone(), digest_of_resources(&spec.server)));
        let reads = reads.collect();
        let idle = |spec: ServerSpec| (spec.server.name.clone(), HostedServer::Idle(Box::new(spec)));
        Self {
            servers: Mutex::new(servers.into_iter().map(idle).collect()),
            catalogue,
            reads,
            places,
            prompts,
            last: AtomicU64::new(0),
            guests: Mutex::default(),
        }
    }

    /// Returns the channel to a server's task, and starts the task if necessary. The error says why the call fails.
    fn orders(&self, name: &str) -> Result<UnboundedSender<ServerOrder>, String> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let server = servers.get_mut(name);
        let server = server.ok_or_else(|| format!("there is no server `{name}` in this session"))?;
        match server {
            HostedServer::Running { orders, .. } => Ok(orders.clone()),
            HostedServer::Idle(spec) => {
                let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| no_place(name))?;
                let (orders, inbox) = unbounded_channel();
                let log = self.guests.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let spec = ServerSpec { log, ..(**spec).clone() };
                let attended = attend::<McpServerProcess>(spec, inbox);
                let task = tokio::spawn(async move {
                    attended.await;
                    drop(place);
                });
                *server = HostedServer::Running { orders: orders.clone(), task };
                Ok(orders)
            }
        }
    }

    fn call(
        &self,
        call: ExternalCall,
        caller: Option<Caller>,
    ) -> BoxFuture<'static, Result<ServedAnswer, String>> {
        let ExternalCall { server, tool, json, guest } = call;
        let Some(guest) = guest else {
            return ready(Err(format!("no sandbox for the server `{server}`"))).boxed();
        };
        let definition = guest.definition.clone();
        let reads = tool == READ && self.reads.get(&server) == Some(&definition);
        let wanted = if reads {
            WantedCall::Resource(uri(&json))
        } else {
            WantedCall::Tool { tool, json, definition }
        };
        self.ask(server, wanted, caller)
    }

    /// Sends a call to its server, and starts the server if it does not run.
    fn ask(
        &self,
        server: String,
        wanted: WantedCall,
        caller: Option<Caller>,
    ) -> BoxFuture<'static, Result<ServedAnswer, String>> {
        let orders = match self.orders(&server) {
            Ok(orders) => orders,
            Err(why) => return ready(Err(why)).boxed(),
        };
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let progress = ProgressLines::of(caller.clone());
        // An error means that the session ends; then there is no answer either.
        let _ = orders.send(ServerOrder::Call(Box::new(ToolCall { id, wanted, caller, progress, answer })));
        let mut waiting = WaitingCall { id, orders: Some(orders) };
        async move {
            let outcome = answered.await;
            waiting.is_over();
            outcome.unwrap_or_else(|_| Err(format!("the server `{server}` has ended with the session")))
        }
        .boxed()
    }
}

/// Reports the prompts of the servers to a front end, and returns these prompts.
pub(crate) fn tell_prompts(
    host: Option<&McpHost>,
    ui: &UnboundedSender<UiEvent>,
    conversation: &ConversationId,
) -> Vec<ServerPrompt> {
    let prompts = host.map(|host| host.prompts.clone()).unwrap_or_default();
    if !prompts.is_empty() {
        let (conversation_id, agent) = (conversation.clone(), AgentId::root());
        let kind = UiEventKind::ServerPrompts { prompts: prompts.clone() };
        // An error means that the front end is gone.
        let _ = ui.send(UiEvent { conversation_id, agent, kind });
    }
    prompts
}

fn no_place(name: &str) -> String {
    format!(
        "the server `{name}` was not started: {MOST_RUNNING} servers run in this session, which is the limit; the servers of a sub-agent end when the sub-agent ends"
    )
}

/// A call whose answer is awaited. Dropping this cancels the call.
struct WaitingCall {
    id: u64,
    orders: Option<UnboundedSender<ServerOrder>>,
}

impl WaitingCall {
    fn is_over(&mut self) {
        self.orders = None;
    }
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        if let Some(orders) = &self.orders {
            // An error means that the server has ended.
            let _ = orders.send(ServerOrder::Cancel(self.id));
        }
    }
}

impl ToolServer for McpHost {
    fn serve(&self, caller: &Caller, call: ServedCall) -> BoxFuture<'static, Result<ServedAnswer, String>> {
        match call {
            ServedCall::External(call) => self.call(call, Some(caller.clone())),
            ServedCall::Supervisor(call) if call.tool == FIND => {
                ready(Ok(self.catalogue.find(&call.json).into())).boxed()
            }
            ServedCall::Supervisor(_) | ServedCall::Fetch(_) => {
                ready(Err("this tool is not available here".to_owned())).boxed()
            }
        }
    }

    fn log_guests(&self, guests: GuestLog) {
        *self.guests.lock().unwrap_or_else(PoisonError::into_inner) = guests;
    }

    fn expand(&self, wanted: WantedPrompt) -> BoxFuture<'static, Result<String, String>> {
        let WantedPrompt { server, name, arguments } = wanted;
        if !self.prompts.iter().any(|prompt| prompt.server == server && prompt.name == name) {
            let why = format!("no MCP server {server} with a prompt {name} in this session");
            return ready(Err(visible(&why))).boxed();
        }
        let arguments = serde_json::to_string(&arguments).unwrap_or_default();
        self.ask(server, WantedCall::Prompt { name, arguments }, None).map_ok(|answer| answer.text).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let running = std::mem::take(&mut *servers).into_values().filter_map(|server| match server {
            HostedServer::Running { task, .. } => Some(task),
            HostedServer::Idle(_) => None,
        });
        // The end of `orders` makes the task end its server.
        let ends: Vec<_> = running.map(|task| timeout(LEAVING, task)).collect();
        join_all(ends).map(drop).boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use boundary::monitor::Spawner;
    use boundary::policy::HiddenInodes;
    use gate::tools::GuestTool;
    use ipc::confinement::Confinement;
    use ipc::rights::Rights;
    use protocol::approval::ServerAccess;

    use super::super::own_code::OwnCode;
    use super::super::pin::tests::server;
    use super::super::server::{ApprovedBy, ApprovedTools};
    use super::*;

    #[tokio::test]
    async fn a_server_without_a_place_is_not_started_and_the_limit_is_told() {
        let spec = ServerSpec {
            server: server(),
            spawner: Spawner::of_this_process("/none".into(), HiddenInodes::default()).unwrap(),
            program: PathBuf::from("/none"),
            confinement: Confinement::new(Rights::default(), "/".into()),
            most: 100,
            installed: None,
            code: OwnCode::default(),
            approved: ApprovedTools { digest: String::new(), by: ApprovedBy::Person },
            log: GuestLog::default(),
        };
        let name = spec.server.name.clone();
        let places = Arc::new(Semaphore::new(1));
        let host = McpHost::new(vec![spec], Arc::default(), Vec::new(), Arc::clone(&places));
        let guest = GuestTool {
            rights: Rights::default(),
            access: ServerAccess::default(),
            definition: "d".to_owned(),
            always: false,
        };
        let call = |server: &str| ExternalCall {
            server: server.to_owned(),
            tool: "a".to_owned(),
            json: "{}".to_owned(),
            guest: Some(Arc::new(guest.clone())),
        };
        let other = places.try_acquire().unwrap();
        let full = host.call(call(&name), None).await.unwrap_err();
        assert!(full.contains("16 servers run in this session, which is the limit"), "{full}");
        drop(other);
        let tried = host.call(call(&name), None).await.unwrap_err();
        assert!(tried.contains("could not be started"), "{tried}");
        assert!(host.call(call("evil"), None).await.unwrap_err().contains("there is no server `evil`"));
        host.close().await;
        assert_eq!(places.available_permits(), 1, "the place is free again");
    }
}
