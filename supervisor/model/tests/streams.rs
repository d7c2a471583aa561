//! Tests of the decoders with the streams in `fixtures/streams`, in chunks of any size, and cut at every position.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod delivery;

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use bytes::Bytes;
use delivery::{Item, assert_same_however_it_comes, play};
use model::provider::{ProviderKind, StreamEvent};
use proptest::prelude::*;
use protocol::event::TokenUsage;
use tokio::runtime::Builder;

struct Dialect {
    kind: ProviderKind,
    /// Directory of the streams and their snapshots.
    place: &'static str,
    end: (&'static str, &'static str),
}

const DIALECTS: [Dialect; 3] = [
    Dialect { kind: ProviderKind::Anthropic, place: "anthropic", end: ("text", "message_delta") },
    Dialect {
        kind: ProviderKind::OpenAi,
        place: "chat",
        end: ("tool_call", r#""finish_reason":"tool_calls""#),
    },
    Dialect {
        kind: ProviderKind::Responses,
        place: "responses",
        end: ("tool_call", r#""response.completed""#),
    },
];

impl Dialect {
    fn streams(&self) -> Vec<(String, Bytes)> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/streams").join(self.place);
        let entries = fs::read_dir(directory).expect("a directory");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
        paths.into_iter().map(|path| (name(&path), Bytes::from(fs::read(&path).expect("a file")))).collect()
    }
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

#[tokio::test]
async fn every_stream_means_what_its_snapshot_says() {
    for dialect in DIALECTS {
        let snapshots = format!("snapshots/{}", dialect.place);
        for (name, body) in dialect.streams() {
            let lines = lines(&play(dialect.kind, body, None).await);
            insta::with_settings!({
                snapshot_path => &snapshots, prepend_module_to_snapshot => false, omit_expression => true
            }, {
                insta::assert_snapshot!(name, lines.join("\n"));
            });
        }
    }
}

#[tokio::test]
async fn s1_a_stream_means_the_same_in_any_chunks_with_any_line_ends_comments_and_byte_order_mark() {
    for dialect in DIALECTS {
        for (name, body) in dialect.streams() {
            assert_same_however_it_comes(dialect.kind, &name, &body).await;
        }
    }
}

#[tokio::test]
async fn s7_a_reply_that_is_cut_before_its_end_is_worth_another_attempt() {
    for dialect in &DIALECTS {
        let (name, end) = dialect.end;
        let (_, body) = dialect.streams().into_iter().find(|(found, _)| found == name).expect("the stream");
        let end = body.windows(end.len()).position(|window| window == end.as_bytes()).expect("the end");
        for length in 0..end {
            let Some(Err(error)) = play(dialect.kind, body.slice(..length), None).await.pop() else {
                panic!("{name} cut at {length}: no error")
            };
            let told = (error.kind.as_str(), error.retryable);
            assert_eq!(told, ("truncated_stream", true), "{name} cut at {length}");
        }
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_is_the_same_reply_or_a_typed_error() {
    let streams: Vec<_> = DIALECTS
        .iter()
        .flat_map(|dialect| dialect.streams().into_iter().map(|(name, body)| (dialect.kind, name, body)))
        .collect();
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let cut = async |streams: Vec<&(ProviderKind, String, Bytes)>| {
        for (kind, name, body) in streams {
            let whole = lines(&without_usage(play(*kind, body.clone(), None).await));
            for length in 0..body.len() {
                let cut = without_usage(play(*kind, body.slice(..length), None).await);
                assert_cut(name, length, &cut, &whole);
            }
        }
    };
    thread::scope(|scope| {
        for part in 0..threads {
            let own = streams.iter().skip(part).step_by(threads).collect();
            scope.spawn(move || {
                Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(cut(own));
            });
        }
    });
}

/// Checks the result of a cut: it is the whole result, or the beginning of it and an error.
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

/// Removes the events with token counts. Servers send these last, so that a reply can be complete without them.
fn without_usage(mut items: Vec<Item>) -> Vec<Item> {
    if let Some(Ok(StreamEvent::MessageCompleted { usage, .. })) = items.last_mut() {
        *usage = TokenUsage::default();
    }
    items.retain(|item| !matches!(item, Ok(StreamEvent::UsageTold { .. })));
    items
}

/// Damage to a body at one position, as a bad connection, proxy or server may cause it.
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

/// Checks that a reply begins once, ends once or with an error, and has each block closed once, as one line of JSON.
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

/// Returns the number of damaged bodies to test. The environment variable `PROPTEST_CASES` is set for a long run.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_stream_is_a_reply_or_a_typed_error_and_the_same_in_any_chunks(
        dialect in prop::sample::select((0..DIALECTS.len()).collect::<Vec<_>>()),
        stream in any::<prop::sample::Index>(),
        damages in prop::collection::vec((damage(), any::<prop::sample::Index>()), 1..6),
        chunk in 1..50_usize,
    ) {
        let dialect = &DIALECTS[dialect];
        let streams = dialect.streams();
        let (name, body) = &streams[stream.index(streams.len())];
        let mut body = body.to_vec();
        for (damage, at) in &damages {
            let at = at.index(body.len() + 1);
            damage.inflict(&mut body, at);
        }
        let body = Bytes::from(body);
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (whole, pieces) =
            runtime.block_on(async {
                (play(dialect.kind, body.clone(), None).await, play(dialect.kind, body, Some(chunk)).await)
            });
        assert_in_order(&whole);
        prop_assert_eq!(whole, pieces, "{} in chunks of {}", name, chunk);
    }
}
