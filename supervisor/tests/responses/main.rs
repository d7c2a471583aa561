//! The Responses API: what streams mean, and what requests hold.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod decoder;
mod recordings;
mod requests;
mod streams;

use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::value::RawValue;
use supervisor::provider::{
    Message, ModelProvider, ModelRequest, ProviderError, ProviderKind, ReplayProvider, RequestOptions,
    StreamEvent, UserBlock,
};
use supervisor::tools::ToolDefinition;

type Item = Result<StreamEvent, ProviderError>;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("JSON")
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(vec![UserBlock::Text(text.to_owned())]))
}

fn request(messages: &[Arc<Message>]) -> ModelRequest {
    let tool = ToolDefinition {
        name: "read_file",
        description: "Reads a file.",
        input_schema: raw(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#),
    };
    ModelRequest {
        model: "gpt-5.6".to_owned(),
        system: Arc::from("You are a test."),
        tools: Arc::from([tool]),
        messages: messages.to_vec(),
        max_tokens: 32_000,
        options: RequestOptions::default(),
    }
}

/// What a recorded body means.
async fn play(body: Bytes, chunk: Option<usize>) -> Vec<Item> {
    let provider = ReplayProvider::new([body]).of(ProviderKind::Responses);
    let provider = match chunk.and_then(NonZeroUsize::new) {
        Some(size) => provider.in_chunks(size),
        None => provider,
    };
    provider.stream(request(&[])).collect().await
}

/// One line for each item.
fn lines(items: &[Item]) -> Vec<String> {
    let line = |item: &Item| match item {
        Ok(event) => format!("{event:?}"),
        Err(error) => {
            let retry = if error.retryable { "retryable" } else { "final" };
            format!("error {} ({retry}): {}", error.kind, error.message)
        }
    };
    items.iter().map(line).collect()
}
