//! Decodes recorded bodies, for tests.

use std::num::NonZeroUsize;

use bytes::Bytes;
use futures_util::StreamExt;
use model::provider::{ModelProvider, ModelRequest, ProviderKind, ReplayProvider};

use crate::asking::Item;

pub(crate) async fn play_as(
    kind: ProviderKind,
    request: ModelRequest,
    body: Bytes,
    chunk: Option<usize>,
) -> Vec<Item> {
    let provider = ReplayProvider::new([body]).of(kind);
    let provider = match chunk.and_then(NonZeroUsize::new) {
        Some(size) => provider.in_chunks(size),
        None => provider,
    };
    provider.stream(request).collect().await
}
