//! Tests of the Responses API: streams and requests.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../asking/mod.rs"]
mod asking;
mod decoder;
#[path = "../played/mod.rs"]
mod played;
mod recordings;
mod requests;

use std::sync::Arc;

use bytes::Bytes;
use model::provider::{Message, ModelRequest, ProviderKind};

use crate::asking::{Item, raw, request_of, user};
use crate::played::play_as;

fn request(messages: &[Arc<Message>]) -> ModelRequest {
    request_of("gpt-5.6", messages)
}

async fn play(body: Bytes, chunk: Option<usize>) -> Vec<Item> {
    play_as(ProviderKind::Responses, request(&[]), body, chunk).await
}

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
