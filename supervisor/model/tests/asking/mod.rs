use std::sync::Arc;

use gate::tools::ToolDefinition;
use model::provider::{Message, ModelRequest, ProviderError, RequestOptions, StreamEvent, UserBlock};
use serde_json::value::RawValue;

pub(crate) type Item = Result<StreamEvent, ProviderError>;

pub(crate) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("JSON")
}

pub(crate) fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(vec![UserBlock::Text(text.to_owned())]))
}

pub(crate) fn request_of(model: &str, messages: &[Arc<Message>]) -> ModelRequest {
    let tool = ToolDefinition {
        name: "read_file".into(),
        description: "Reads a file.".into(),
        input_schema: raw(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#),
    };
    ModelRequest {
        model: model.to_owned(),
        system: Arc::from("You are a test."),
        tools: Arc::from([tool]),
        messages: messages.to_vec(),
        max_tokens: 32_000,
        options: RequestOptions::default(),
    }
}
