//! Tests of the provider over real HTTP on loopback. The name of a test may begin with the number of the vendor's rule
//! that it tests: `r` for requests, `s` for streams, `e` for errors.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../asking/mod.rs"]
mod asking;
mod connections;
mod errors;
mod markers;
mod options;
mod requests;

use std::sync::Arc;

use futures_util::StreamExt;
use model::provider::anthropic::{Anthropic, AnthropicConfig};
use model::provider::{Message, ModelProvider, ModelRequest, ProviderError};
use model::replay::{Block, ReplayServer, Reply, Script, Usage, sse};
use secrecy::SecretString;

use crate::asking::request_of;
pub(crate) use crate::asking::{Item, raw, user};

pub(crate) const KEY: &str = "sk-ant-canary-0123456789-tail";

pub(crate) fn request(messages: &[Arc<Message>]) -> ModelRequest {
    request_of("claude-opus-5-5", messages)
}

pub(crate) fn config(base_url: &str) -> AnthropicConfig {
    let mut config = AnthropicConfig::new(Some(SecretString::from(KEY)));
    base_url.clone_into(&mut config.connection.base_url);
    config
}

pub(crate) fn provider(base_url: &str) -> Anthropic {
    Anthropic::new(config(base_url)).expect("a provider")
}

pub(crate) fn serve(script: Script) -> ReplayServer {
    ReplayServer::start(script).expect("a server")
}

pub(crate) async fn ask(provider: &Anthropic) -> Vec<Item> {
    provider.stream(request(&[user("hello")])).collect().await
}

/// Sends a request to a server that returns an error. Returns this error, which must be the only item of the reply.
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
