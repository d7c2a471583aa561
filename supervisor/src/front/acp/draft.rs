//! A message before it is sent: typed text, or the text of a command.

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use ipc::id::ConversationId;
use ipc::image::Image;
use protocol::own_command::OwnCommand;
use protocol::rpc::ResponseOutcome;
use protocol::server_prompt::ExpandedPrompt;
use sha2::{Digest, Sha256};

use super::shown;

#[derive(Debug, Default, PartialEq)]
pub(super) struct Draft {
    /// Name and owner of the command from which the text comes; `None` for typed text.
    pub(super) of: Option<String>,
    pub(super) text: String,
    pub(super) images: Vec<Image>,
    /// True if the agent may only read in the turn.
    pub(super) reads: bool,
    /// Model for this turn; `None` for the session's model.
    pub(super) model: Option<String>,
    /// True if the person is asked before the text is sent, because the text is not the person's own.
    pub(super) asks: bool,
}

/// The person's answer to the question whether a text may be sent.
#[derive(Debug, PartialEq)]
pub(super) enum DraftAnswer {
    Allowed,
    Denied,
    Cancelled,
    Invalid(String),
}

const SEND: &str = "allow_once";
const LEAVE: &str = "reject_once";

impl Draft {
    pub(super) fn of_command(command: &OwnCommand, arguments: &str) -> Result<Self, String> {
        let owner = if command.of_project { "a command of the project" } else { "a command of yours" };
        Ok(Self {
            of: Some(format!("/{}, {owner}", command.name)),
            text: command.with_arguments(arguments)?,
            images: Vec::new(),
            reads: command.reads,
            model: command.model.clone(),
            asks: command.of_project,
        })
    }

    /// Makes a draft from a prompt of an MCP server. Fails if the server returned no text.
    pub(super) fn of_prompt(expanded: ExpandedPrompt, images: Vec<Image>) -> Result<Self, String> {
        let ExpandedPrompt { server, name, text, failed } = expanded;
        let text =
            text.ok_or_else(|| failed.unwrap_or_else(|| "the MCP server returned no text".to_owned()))?;
        let of = Some(format!("/{server}:{name}, a prompt of the MCP server {server}"));
        Ok(Self { of, text, images, asks: true, ..Self::default() })
    }

    fn digest(&self) -> String {
        let digest = Sha256::digest(self.text.as_bytes());
        digest.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
    }

    /// Returns the whole text, with a description of the command's effect on the turn, as Markdown.
    pub(super) fn shown(&self) -> String {
        let of = shown::line(self.of.as_deref().unwrap_or_default());
        format!("\n\n_Bailiwick sends the text of {of}{}:_\n\n{}\n\n", self.effects(), self.block())
    }

    fn effects(&self) -> String {
        let reads = if self.reads { "; the agent can only read in this turn" } else { "" };
        let model = self.model.as_ref().map(|model| format!("; the model is {}", shown::line(model)));
        format!("{reads}{}", model.unwrap_or_default())
    }

    fn block(&self) -> String {
        shown::block(&self.text, "")
    }

    /// Returns the permission request that shows the whole text and asks if it may be sent.
    pub(super) fn question(&self, session: &ConversationId, call: &str) -> RequestPermissionRequest {
        let digest = self.digest();
        let option = |kind: &str, name, means| PermissionOption::new(format!("{kind}:{digest}"), name, means);
        let options = vec![
            option(SEND, "Send exactly this text", PermissionOptionKind::AllowOnce),
            option(LEAVE, "Do not send this text", PermissionOptionKind::RejectOnce),
        ];
        let of = self.of.as_deref().unwrap_or_default();
        let facts = format!("The text of {}{}", shown::line(of), self.effects());
        let content = vec![ToolCallContent::from(self.block()), ToolCallContent::from(facts)];
        let fields = ToolCallUpdateFields::new()
            .title(shown::title(&format!("Send the text of {of}")))
            .kind(ToolKind::Other)
            .content(content);
        let call = ToolCallUpdate::new(call.to_owned(), fields);
        RequestPermissionRequest::new(session.as_str().to_owned(), call, options)
    }

    /// Returns the person's decision from the client's response to [`Draft::question`].
    pub(super) fn sent(&self, outcome: &ResponseOutcome) -> DraftAnswer {
        let ResponseOutcome::Result(result) = outcome else {
            return DraftAnswer::Invalid("the client answered with an error".to_owned());
        };
        let outcome = match serde_json::from_str::<RequestPermissionResponse>(result.get()) {
            Ok(response) if result.get().starts_with('{') => response.outcome,
            _ => return DraftAnswer::Invalid("the client's answer cannot be understood".to_owned()),
        };
        let id = match outcome {
            RequestPermissionOutcome::Selected(selected) => selected.option_id,
            RequestPermissionOutcome::Cancelled => return DraftAnswer::Cancelled,
            _ => return DraftAnswer::Invalid("the client's answer has an unknown outcome".to_owned()),
        };
        match id.0.split_once(':') {
            Some((SEND, digest)) if digest == self.digest() => DraftAnswer::Allowed,
            Some((LEAVE, digest)) if digest == self.digest() => DraftAnswer::Denied,
            _ => DraftAnswer::Invalid("the client named an option that was not offered".to_owned()),
        }
    }
}

/// Returns a pending tool call, which stands for the text of a command until the text is sent.
pub(super) fn waiting(call: &str, name: &str) -> ToolCall {
    ToolCall::new(call.to_owned(), shown::title(&format!("/{name}")))
        .kind(ToolKind::Other)
        .status(ToolCallStatus::Pending)
}

pub(super) fn ended(call: &str, is_sent: bool, why: Option<&str>) -> ToolCallUpdate {
    let status = if is_sent { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
    let content = why.map(|why| vec![ToolCallContent::from(shown::visible(why))]);
    ToolCallUpdate::new(call.to_owned(), ToolCallUpdateFields::new().status(status).content(content))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn answered(draft: &Draft, result: &serde_json::Value) -> DraftAnswer {
        draft.sent(&ResponseOutcome::Result(to_raw_value(result).unwrap()))
    }

    fn selected(id: &str) -> serde_json::Value {
        json!({"outcome": {"outcome": "selected", "optionId": id}})
    }

    #[test]
    fn only_the_option_with_the_digest_of_the_text_sends_it() {
        let text = "Greet Ada.".to_owned();
        let draft = Draft { text, ..Draft::default() };
        let other = Draft { text: "Greet Bob.".to_owned(), ..Draft::default() };
        let asked = serde_json::to_value(draft.question(&"s".into(), "prompt:1")).unwrap();
        let ids: Vec<_> = (0..2).map(|at| asked["options"][at]["optionId"].as_str().unwrap()).collect();
        assert_eq!(answered(&draft, &selected(ids[0])), DraftAnswer::Allowed);
        assert_eq!(answered(&draft, &selected(ids[1])), DraftAnswer::Denied);
        assert!(matches!(answered(&other, &selected(ids[0])), DraftAnswer::Invalid(_)));
        assert_eq!(answered(&draft, &json!({"outcome": {"outcome": "cancelled"}})), DraftAnswer::Cancelled);
        for odd in
            [selected("allow_once"), selected("allow_once:"), json!({}), json!([]), json!("allow_once")]
        {
            assert!(matches!(answered(&draft, &odd), DraftAnswer::Invalid(_)), "{odd}");
        }
    }

    #[test]
    fn the_question_shows_the_whole_text_and_what_it_changes() {
        let text = "Do it.\n```\n\u{202e}\n".to_owned();
        let draft = Draft { text, reads: true, model: Some("m".to_owned()), ..Draft::default() };
        let asked = serde_json::to_value(draft.question(&"s".into(), "prompt:1")).unwrap();
        let shown = |at: usize| asked["toolCall"]["content"][at]["content"]["text"].as_str().unwrap();
        assert_eq!(shown(0), "````\nDo it.\n```\n\\u{202e}\n````");
        assert!(shown(1).ends_with("; the agent can only read in this turn; the model is m"), "{}", shown(1));
    }
}
