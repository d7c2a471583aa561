#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../asking/mod.rs"]
mod asking;
mod decoder;
mod errors;
#[path = "../played/mod.rs"]
mod played;
mod reasoning;
mod recordings;
mod requests;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use model::provider::chat::{Config, OpenAiChat};
use model::provider::{Message, ModelProvider, ModelRequest, ProviderError, ProviderKind};
use model::replay::{ReplayServer, Reply, Script};

use crate::asking::{Item, raw, request_of, user};
use crate::played::play_as;

const KEY: &str = "sk-canary-0123456789-tail";

fn request(messages: &[Arc<Message>]) -> ModelRequest {
    request_of("gpt-x", messages)
}

async fn play(body: Bytes, chunk: Option<usize>) -> Vec<Item> {
    play_as(ProviderKind::OpenAi, request(&[]), body, chunk).await
}

fn serve(script: Script) -> ReplayServer {
    ReplayServer::start(script).expect("a server")
}

fn provider(server: &ReplayServer, key: Option<&str>) -> OpenAiChat {
    let mut config = Config::new(key.map(Into::into));
    config.connection.base_url = server.base_url();
    OpenAiChat::new(config).expect("a provider")
}

async fn answer(reply: Reply) -> ProviderError {
    let server = serve(Script::new().push(reply));
    let mut items: Vec<Item> = provider(&server, Some(KEY)).stream(request(&[user("hi")])).collect().await;
    match (items.pop(), items.len()) {
        (Some(Err(error)), 0) => error,
        other => panic!("no error alone: {other:?}"),
    }
}
