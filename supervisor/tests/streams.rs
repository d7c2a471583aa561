//! What every stream of `fixtures/streams` means, and that no cut and no chunking of it does any harm.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use supervisor::provider::{
    ModelProvider, ModelRequest, ProviderError, ReplayProvider, RequestOptions, StreamEvent,
};

fn fixtures() -> Vec<(String, Bytes)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/streams/anthropic");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, Bytes::from(fs::read(path).expect("a file")))
        })
        .collect()
}

fn request() -> ModelRequest {
    ModelRequest {
        model: "m".to_owned(),
        system: Arc::from(""),
        tools: Arc::from([]),
        messages: Vec::new(),
        max_tokens: 1,
        options: RequestOptions::default(),
    }
}

type Item = Result<StreamEvent, ProviderError>;

async fn play(body: Bytes, chunk: Option<usize>) -> Vec<Item> {
    let provider = ReplayProvider::new([body]);
    let provider = match chunk.and_then(NonZeroUsize::new) {
        Some(size) => provider.in_chunks(size),
        None => provider,
    };
    provider.stream(request()).collect().await
}

fn lines(items: &[Item]) -> Vec<String> {
    items
        .iter()
        .map(|item| match item {
            Ok(event) => format!("{event:?}"),
            Err(error) => {
                let retry = if error.retryable { "retryable" } else { "final" };
                format!("error {} ({retry}): {}", error.kind, error.message)
            }
        })
        .collect()
}

#[tokio::test]
async fn every_stream_means_what_its_snapshot_says() {
    for (name, body) in fixtures() {
        let lines = lines(&play(body, None).await);
        insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!(name, lines.join("\n"));
        });
    }
}

#[tokio::test]
async fn a_stream_means_the_same_in_chunks_of_any_size() {
    for (name, body) in fixtures() {
        let whole = lines(&play(body.clone(), None).await);
        for size in [1, 2, 3, 7, 64, 1000] {
            assert_eq!(lines(&play(body.clone(), Some(size)).await), whole, "{name} in chunks of {size}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_is_the_same_reply_or_a_typed_error() {
    for (name, body) in fixtures() {
        let whole = lines(&play(body.clone(), None).await);
        for length in 0..body.len() {
            let cut = play(body.slice(..length), None).await;
            assert_cut(&name, length, &cut, &whole);
        }
    }
}

/// Either everything came, or what came is the beginning of it and the last item an error.
fn assert_cut(name: &str, length: usize, cut: &[Item], whole: &[String]) {
    let came = lines(cut);
    if came == whole {
        return;
    }
    let (last, before) = cut.split_last().expect("at least an error");
    let Err(error) = last else { panic!("{name} cut at {length} ends without an error: {came:?}") };
    assert!(
        matches!(error.kind.as_str(), "truncated_stream" | "invalid_response"),
        "{name} cut at {length}: {error:?}"
    );
    assert!(before.iter().all(Result::is_ok), "{name} cut at {length}");
    assert_eq!(came[..before.len()], whole[..before.len()], "{name} cut at {length}");
}

#[tokio::test]
async fn s7_a_reply_that_is_cut_before_its_stop_reason_is_worth_another_attempt() {
    let (_, body) = fixtures().into_iter().find(|(name, _)| name == "text").expect("the fixture");
    let stop = body.windows(13).position(|window| window == b"message_delta").expect("a message_delta");
    for length in 0..stop {
        let Some(Err(error)) = play(body.slice(..length), None).await.pop() else {
            panic!("cut at {length}: no error")
        };
        assert_eq!((error.kind.as_str(), error.retryable), ("truncated_stream", true), "cut at {length}");
    }
}
