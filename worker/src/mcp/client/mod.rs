//! MCP client for one server, based on the crate `rmcp`.
//!
//! The client first sends `server/discover` (protocol version 2026-07-28). A server that answers with an error, or not
//! within ten seconds, gets `initialize` (2025-11-25, or an older version that the server chooses).

mod content;
mod form;
mod handler;
mod listing;
mod request;
mod transport;

use std::sync::Arc;

use ipc::mcp::{MAX_WORDS, McpFailure};
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RoleClient, RunningService,
    ServiceError,
};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

pub(super) use request::Request;

use super::Patience;
use super::server::Streams;
use super::state::GuestState;
use handler::Handler;
use transport::LineTransport;

type McpPeer = Peer<RoleClient>;
type McpService = RunningService<RoleClient, Handler>;

#[derive(Clone, Debug)]
pub(super) struct Ready(McpPeer);

/// Asks the server for its description, then makes requests until the connection ends. Returns the failure; `None` if
/// the server only closed its output.
pub(super) async fn speak(
    streams: Streams,
    state: Arc<GuestState>,
    patience: Patience,
    ready: watch::Sender<Option<Ready>>,
) -> Option<McpFailure> {
    let closed = Arc::new(Notify::new());
    let transport = LineTransport::new(streams, Arc::clone(&state), Arc::clone(&closed));
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    let started = Handler::new(Arc::clone(&state)).serve_with_lifecycle(transport, lifecycle);
    let service = match timeout(patience.handshake, started).await {
        Ok(Ok(service)) => service,
        Ok(Err(error)) => return state.fault().or_else(|| not_initialised(error)),
        Err(_) => return Some(McpFailure::Silent { seconds: patience.handshake.as_secs() }),
    };
    match timeout(patience.listing, listing::describe(&service, &state)).await {
        Ok(Ok(description)) => state.described(description).await,
        Ok(Err(failure)) => return state.fault().or(failure),
        Err(_) => return Some(McpFailure::Silent { seconds: patience.listing.as_secs() }),
    }
    let _ = ready.send(Some(Ready(service.peer().clone())));
    tokio::select! {
        () = note_changes(&service, &state) => {}
        () = closed.notified() => {}
    }
    state.fault()
}

async fn note_changes(service: &McpService, state: &GuestState) {
    let peer = service.peer();
    let tells = peer.peer_info().is_some_and(|info| {
        let tools = info.capabilities.tools.as_ref();
        !info.protocol_version.has_initialize() && tools.is_some_and(|tools| tools.list_changed == Some(true))
    });
    if tells
        && let Ok(mut changes) = peer.listen(SubscriptionFilter::builder().tools_list_changed().build()).await
    {
        while let Ok(Some(_)) = changes.next().await {
            state.tools_changed().await;
        }
    }
    std::future::pending::<()>().await;
}

/// Returns the failure of the first exchange; `None` if the server closed its output.
fn not_initialised(error: ClientInitializeError) -> Option<McpFailure> {
    match error {
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => None,
        ClientInitializeError::JsonRpcError(error) => {
            Some(McpFailure::Refused { code: error.code.0.into(), message: words(&error.message) })
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => not_initialised(*fallback),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => Some(McpFailure::Broken(
            "the server supports no version of MCP that Bailiwick supports".to_owned(),
        )),
        _ => Some(McpFailure::Broken(
            "the server's answer to the first message does not match that message".to_owned(),
        )),
    }
}

/// Returns the failure of one request; `None` if the server has ended.
fn request_failed(error: ServiceError) -> Option<McpFailure> {
    match error {
        ServiceError::McpError(error) => {
            Some(McpFailure::Refused { code: error.code.0.into(), message: words(&error.message) })
        }
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => None,
        ServiceError::Cancelled { .. } => Some(McpFailure::Cancelled),
        _ => Some(McpFailure::Broken("an answer does not match its request".to_owned())),
    }
}

fn words(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_WORDS)].to_owned()
}
