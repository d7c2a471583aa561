//! The provider over real HTTP on loopback. The names of the tests begin with the rule of the wire that they show.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod connections;
mod errors;
mod markers;
mod options;
mod requests;

use std::sync::Arc;

use futures_util::StreamExt;
use secrecy::SecretString;
use serde_json::value::RawValue;
use supervisor::provider::anthropic::{Anthropic, Config};
use supervisor::provider::{
    Message, ModelProvider, ModelRequest, ProviderError, RequestOptions, StreamEvent, UserBlock,
};
use supervisor::replay::{Block, ReplayServer, Reply, Script, Usage, sse};
use supervisor::tools::ToolDefinition;

pub(crate) const KEY: &str = "sk-ant-canary-0123456789-tail";

pub(crate) type Item = Result<StreamEvent, ProviderError>;

pub(crate) fn config(base_url: &str) -> Config {
    let mut config = Config::new(Some(SecretString::from(KEY)));
    base_url.clone_into(&mut config.connection.base_url);
    config
}

pub(crate) fn provider(base_url: &str) -> Anthropic {
    Anthropic::new(config(base_url)).expect("a provider")
}

pub(crate) fn serve(script: Script) -> ReplayServer {
    ReplayServer::start(script).expect("a server")
}

pub(crate) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("JSON")
}

pub(crate) fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(vec![UserBlock::Text(text.to_owned())]))
}

pub(crate) fn request(messages: &[Arc<Message>]) -> ModelRequest {
    let tool = ToolDefinition {
        name: "read_file",
        description: "Reads a file.",
        input_schema: raw(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#),
    };
    ModelRequest {
        model: "claude-opus-5-5".to_owned(),
        system: Arc::from("You are a test."),
        tools: Arc::from([tool]),
        messages: messages.to_vec(),
        max_tokens: 32_000,
        options: RequestOptions::default(),
    }
}

pub(crate) async fn ask(provider: &Anthropic) -> Vec<Item> {
    provider.stream(request(&[user("hello")])).collect().await
}

/// The only item, which is an error.
pub(crate) async fn failure(base_url: &str) -> ProviderError {
    let mut items = ask(&provider(base_url)).await;
    match (items.pop(), items.len()) {
        (Some(Err(error)), 0) => error,
        other => panic!("no error alone: {other:?}"),
    }
}

pub(crate) async fn answer(reply: Reply) -> ProviderError {
    failure(&serve(Script::new().push(reply)).base_url()).await
}

pub(crate) fn hello() -> String {
    sse::message(&[Block::text("Hello there.")], "end_turn", Usage::default())
}
