//! Requests and notifications of a server.

#![expect(
    deprecated,
    reason = "roots are deprecated, and a server that asks for them is still told that there are none"
)]

use std::fmt::Write;
use std::sync::Arc;

use ipc::mcp::{McpAnswer, McpForm};
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability, Implementation, ListRootsResult,
    ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};

use super::form;
use crate::mcp::state::GuestState;

/// Maximum number of characters of a progress message.
const MOST_WORDS: usize = 200;

/// Handler of the server's requests and notifications.
#[derive(Debug)]
pub(super) struct Handler {
    state: Arc<GuestState>,
}

impl Handler {
    pub(super) fn new(state: Arc<GuestState>) -> Self {
        Self { state }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new().with_form(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        let client = Implementation::new("bailiwick", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, client).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            answered = elicit(&self.state, None, request) => answered,
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "roots were not announced", None))
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.state.progress(&progress.progress_token.0.to_string(), progress_words(&progress));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.state.tools_changed().await;
    }
}

/// Asks the user a question of the server.
pub(super) async fn elicit(
    state: &GuestState,
    request: Option<u64>,
    question: ElicitRequestParams,
) -> Result<ElicitResult, ErrorData> {
    let (message, form) = match question {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            (message, form::of(&requested_schema))
        }
        ElicitRequestParams::UrlElicitationParams { message, .. } => (message, McpForm::Page),
        _ => return Err(ErrorData::invalid_params("only forms were announced", None)),
    };
    let answer = state
        .ask(request, message, form)
        .await
        .map_err(|reason| ErrorData::invalid_params(reason.to_string(), None))?;
    Ok(match answer {
        McpAnswer::Accepted(form) => match serde_json::from_str(&form) {
            Ok(form) => ElicitResult::new(ElicitationAction::Accept).with_content(form),
            Err(_) => ElicitResult::new(ElicitationAction::Cancel),
        },
        McpAnswer::Declined => ElicitResult::new(ElicitationAction::Decline),
        McpAnswer::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
    })
}

/// Describes progress in one line.
fn progress_words(progress: &ProgressNotificationParam) -> String {
    let mut words = format!("{}", progress.progress);
    if let Some(total) = progress.total {
        let _ = write!(words, " of {total}");
    }
    if let Some(message) = &progress.message {
        let line = message.lines().next().unwrap_or_default();
        let _ = write!(words, ": {line}");
    }
    words.chars().take(MOST_WORDS).collect()
}
