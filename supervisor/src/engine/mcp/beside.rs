use std::sync::Arc;

use boundary::monitor::GuestLog;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gate::tools::ServedCall;
use protocol::server_prompt::WantedPrompt;

use super::find::FIND;
use super::host::McpHost;
use crate::engine::driver::{Caller, ServedAnswer, ToolServer};

/// Tool server for MCP tools and other tools. Passes calls that are not about MCP servers to `other`.
pub(crate) struct BesideServers {
    pub(crate) servers: Arc<McpHost>,
    pub(crate) other: Arc<dyn ToolServer>,
}

impl ToolServer for BesideServers {
    fn serve(&self, caller: &Caller, call: ServedCall) -> BoxFuture<'static, Result<ServedAnswer, String>> {
        let is_of_servers = match &call {
            ServedCall::External(_) => true,
            ServedCall::Supervisor(call) => call.tool == FIND,
            ServedCall::Fetch(_) => false,
        };
        if is_of_servers { self.servers.serve(caller, call) } else { self.other.serve(caller, call) }
    }

    fn expand(&self, wanted: WantedPrompt) -> BoxFuture<'static, Result<String, String>> {
        self.servers.expand(wanted)
    }

    fn log_guests(&self, guests: GuestLog) {
        self.servers.log_guests(guests);
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let (servers, other) = (self.servers.close(), self.other.close());
        async move {
            servers.await;
            other.await;
        }
        .boxed()
    }
}
