//! What every stream of `fixtures/streams` means, and that no cut and no chunking of it does any harm.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod delivery;

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use delivery::{Item, assert_same_however_it_comes, play};
use model::provider::StreamEvent;
use proptest::prelude::*;

/// Our own streams of the Messages API, by name.
fn fixtures() -> Vec<(String, Bytes)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/streams/anthropic");
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

/// One line an event or error.
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
async fn s1_a_stream_means_the_same_in_any_chunks_with_any_line_ends_comments_and_byte_order_mark() {
    for (name, body) in fixtures() {
        assert_same_however_it_comes(&name, &body).await;
    }
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

/// What a bad line, a bad proxy or a bad server does to a body at one place.
#[derive(Clone, Debug)]
enum Damage {
    Replace(u8),
    Remove(usize),
    Repeat(usize),
    Insert(&'static str),
}

impl Damage {
    fn inflict(&self, body: &mut Vec<u8>, at: usize) {
        let end = |length: &usize| (at + length).min(body.len());
        match self {
            Self::Replace(byte) => {
                if let Some(hit) = body.get_mut(at) {
                    *hit = *byte;
                }
            }
            Self::Remove(length) => drop(body.drain(at..end(length))),
            Self::Repeat(length) => {
                let again = body[at..end(length)].to_vec();
                body.splice(at..at, again);
            }
            Self::Insert(text) => drop(body.splice(at..at, text.bytes())),
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let pieces = [
        "\r",
        "\n\n",
        "\u{feff}",
        "data: {",
        "data: [DONE]\n\n",
        "\"",
        "\\ud83e",
        "null",
        "9e999",
        "-1",
        "}",
        "{\"type\":",
        "event: error\ndata: {\"type\":\"error\"}\n\n",
        "18446744073709551616",
    ];
    prop_oneof![
        any::<u8>().prop_map(Damage::Replace),
        (1..200_usize).prop_map(Damage::Remove),
        (1..400_usize).prop_map(Damage::Repeat),
        prop::sample::select(pieces.to_vec()).prop_map(Damage::Insert),
    ]
}

/// What holds of any reply: it begins once, it ends once or with an error, each block is closed once and is one line of JSON.
fn assert_in_order(items: &[Item]) {
    let place = |wanted: fn(&Item) -> bool| items.iter().position(wanted);
    let count = |wanted: fn(&Item) -> bool| items.iter().filter(|item| wanted(item)).count();
    let is_start = |item: &Item| matches!(item, Ok(StreamEvent::MessageStarted { .. }));
    let is_end = |item: &Item| matches!(item, Ok(StreamEvent::MessageCompleted { .. }) | Err(_));
    assert!(count(is_start) <= 1 && place(is_start).is_none_or(|at| at == 0), "{items:?}");
    assert!(count(is_end) == 1 && items.last().is_some_and(is_end), "{items:?}");
    let mut closed = Vec::new();
    for item in items {
        if let Ok(StreamEvent::BlockClosed { index, block }) = item {
            assert!(!closed.contains(index) && !block.raw.get().contains(['\n', '\r']), "{items:?}");
            serde_json::from_str::<serde_json::Value>(block.raw.get())
                .expect("R2: JSON that a request may hold");
            closed.push(*index);
        }
    }
}

/// How many bodies are tried: more on demand, as a long run for an idle machine.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_stream_is_a_reply_or_a_typed_error_and_the_same_in_any_chunks(
        stream in any::<prop::sample::Index>(),
        damages in prop::collection::vec((damage(), any::<prop::sample::Index>()), 1..6),
        chunk in 1..50_usize,
    ) {
        let fixtures = fixtures();
        let (name, body) = &fixtures[stream.index(fixtures.len())];
        let mut body = body.to_vec();
        for (damage, at) in &damages {
            let at = at.index(body.len() + 1);
            damage.inflict(&mut body, at);
        }
        let body = Bytes::from(body);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (whole, pieces) =
            runtime.block_on(async { (play(body.clone(), None).await, play(body, Some(chunk)).await) });
        assert_in_order(&whole);
        prop_assert_eq!(whole, pieces, "{} in chunks of {}", name, chunk);
    }
}
