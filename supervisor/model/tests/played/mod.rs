//! Recorded bodies: where they are, and what they mean.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::StreamExt;
use model::provider::{ModelProvider, ModelRequest, ProviderKind, ReplayProvider};

use crate::asking::Item;

/// What a body means as the answer to a request, in chunks of this size.
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

/// One line for each item.
pub(crate) fn lines(items: &[Item]) -> Vec<String> {
    let line = |item: &Item| match item {
        Ok(event) => format!("{event:?}"),
        Err(error) => {
            let retry = if error.retryable { "retryable" } else { "final" };
            format!("error {} ({retry}): {}", error.kind, error.message)
        }
    };
    items.iter().map(line).collect()
}

/// The files of a directory by their names.
pub(crate) fn files(directory: &Path) -> Vec<(String, Bytes)> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    paths.into_iter().map(|path| (name(&path), Bytes::from(fs::read(&path).expect("a file")))).collect()
}
