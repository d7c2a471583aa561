#![expect(
    deprecated,
    reason = "roots are deprecated, and a server that asks for them is still told that there are none"
)]

use std::fmt::Write;
use std::sync::Arc;

use ipc::form::MAX_MESSAGE;
use ipc::mcp::{McpAnswer, McpForm};
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ConstString, CustomRequest, CustomResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ElicitationCreateRequestMethod, ErrorCode,
    ErrorData, FormElicitationCapability, Implementation, ListRootsResult, ProgressNotificationParam,
    ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::Value;

use super::form;
use crate::mcp::state::GuestState;

/// Maximum number of characters of a server's progress message.
const MOST_WORDS: usize = 200;

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
            answered = AskedForm::of(request).ask(&self.state, None) => answered,
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    /// Receives a server's requests that `rmcp` cannot parse, such as questions with an unknown kind of form.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != ElicitationCreateRequestMethod::VALUE {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let question = AskedForm::unread(&request.params.unwrap_or_default());
        let answered = tokio::select! {
            answered = question.ask(&self.state, None) => answered?,
            () = context.ct.cancelled() => ElicitResult::new(ElicitationAction::Cancel),
        };
        let answer = serde_json::to_value(answered)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(CustomResult::new(answer))
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

pub(super) struct AskedForm {
    message: String,
    form: McpForm,
}

impl AskedForm {
    /// Converts a question that `rmcp` has parsed.
    pub(super) fn of(question: ElicitRequestParams) -> Self {
        match question {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                Self { message, form: form::of(&requested_schema) }
            }
            ElicitRequestParams::UrlElicitationParams { message, .. } => {
                Self { message, form: McpForm::Page }
            }
            _ => Self {
                message: String::new(),
                form: McpForm::Unshown("the server's question is not a form".to_owned()),
            },
        }
    }

    pub(super) fn unread(params: &Value) -> Self {
        let message = params["message"].as_str().unwrap_or_default().to_owned();
        let form =
            if params["mode"] == "url" { McpForm::Page } else { form::unread(&params["requestedSchema"]) };
        Self { message, form }
    }

    /// Asks the user, and waits for the answer. If `request` is `None`, the question belongs to the newest request.
    pub(super) async fn ask(
        self,
        state: &GuestState,
        request: Option<u64>,
    ) -> Result<ElicitResult, ErrorData> {
        let Self { message, form } = self.bounded();
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

    /// Shortens a question that is too long, and drops its form: the user would answer another question.
    fn bounded(self) -> Self {
        if self.message.len() <= MAX_MESSAGE {
            return self;
        }
        let message = self.message.chars().take(MOST_WORDS).collect();
        Self { message, form: McpForm::Unshown("the text of the question is too long".to_owned()) }
    }
}

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
