//! Tests with damaged replies: every decoder returns a reply or a typed error. The result is the same for chunks of any
//! size, and over HTTP on loopback, compressed or not.
//!
//! A random generator with a seed damages the bodies of `fixtures/streams`. The suite runs a few hundred cases; for a
//! long run set `BAILIWICK_SOAK_S` to its seconds, and `BAILIWICK_SEED` to another seed (`just soak`).

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod corpus;
mod damage;
mod reader;
mod weight;

use std::io::Write;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use model::provider::{ProviderKind, StreamEvent};
use model::replay::Reply;

use corpus::{Body, corpus};
use damage::{Damage, Random};
use reader::{Item, Model, in_memory};

/// Maximum time to decode a reply. Replies of a few kilobytes usually take a hundredth of it.
const PATIENCE: Duration = Duration::from_secs(20);

const FEW: usize = 400;

/// Distance in bytes between two cuts of a body in a short run: a prime, so that all kinds of positions occur.
const STRIDE: usize = 211;

/// Returns the duration of a long run; `None` if the run is short.
fn soak() -> Option<Duration> {
    std::env::var("BAILIWICK_SOAK_S").ok()?.parse().ok().map(Duration::from_secs)
}

fn seed() -> u64 {
    std::env::var("BAILIWICK_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

/// Checks that a reply begins once, ends once or with an error, and has each block closed once, as one line of JSON.
fn assert_in_order(case: &str, items: &[Item]) {
    let count = |wanted: fn(&Item) -> bool| items.iter().filter(|item| wanted(item)).count();
    let is_start = |item: &Item| matches!(item, Ok(StreamEvent::MessageStarted { .. }));
    let is_end = |item: &Item| matches!(item, Ok(StreamEvent::MessageCompleted { .. }) | Err(_));
    let begins = items.iter().position(is_start).is_none_or(|at| at == 0);
    assert!(count(is_start) <= 1 && begins, "{case}: {items:?}");
    assert!(count(is_end) == 1 && items.last().is_some_and(is_end), "{case}: {items:?}");
    let mut closed = std::collections::BTreeSet::new();
    for item in items {
        if let Ok(StreamEvent::BlockClosed { index, block }) = item {
            let raw = block.raw.get();
            assert!(closed.insert(*index) && !raw.contains(['\n', '\r']), "{case}: {items:?}");
            serde_json::from_str::<serde_json::Value>(raw).expect("R2: JSON that a request may hold");
        }
    }
}

/// Decodes a body as a whole and in chunks, compares the results, and returns them.
async fn assert_harmless(case: &str, kind: ProviderKind, body: &Bytes, chunk: usize) -> Vec<Item> {
    let began = Instant::now();
    let whole = in_memory(kind, body.clone(), None).await;
    assert_in_order(case, &whole);
    assert_eq!(whole, in_memory(kind, body.clone(), Some(chunk)).await, "{case} in chunks of {chunk}");
    assert!(began.elapsed() < PATIENCE, "{case}: {:?}", began.elapsed());
    whole
}

/// Decodes a body over HTTP: plain, compressed, and cut while it is compressed. Compares the results with `whole`.
async fn assert_harmless_over_http(case: &str, model: &Model, body: &Bytes, cut: usize, whole: &[Item]) {
    let packed = gzip(body);
    let as_packed = |bytes: Vec<u8>| Reply::sse(bytes).header("content-encoding", "gzip");
    let plain = model.play(Reply::sse(body.clone()).chunked(1 + cut % 900)).await;
    assert_same(case, &plain, whole);
    assert_same(case, &model.play(as_packed(packed.clone())).await, whole);
    let cut = cut % (packed.len() + 1);
    assert_in_order(case, &model.play(as_packed(packed).cut_after(cut)).await);
}

/// Compares two results. Errors must have the same kind; over HTTP their text is longer.
fn assert_same(case: &str, items: &[Item], expected: &[Item]) {
    let plain = |items: &[Item]| -> Vec<_> {
        items.iter().map(|item| item.clone().map_err(|error| (error.kind, error.retryable))).collect()
    };
    assert_eq!(plain(items), plain(expected), "{case}");
}

#[tokio::test]
async fn a_damaged_reply_is_a_reply_or_a_typed_error_however_it_comes() {
    let (corpus, mut random) = (corpus(), Random::new(seed()));
    let models = ProviderKind::ALL.map(Model::new);
    let (began, soak) = (Instant::now(), soak());
    let mut cases = 0;
    while soak.map_or(cases < FEW, |soak| began.elapsed() < soak) {
        let state = random.state();
        let Body { kind, bytes, name } = &corpus[random.below(corpus.len())];
        // The stream of another API counts as damage, too.
        let model = &models[if random.below(8) == 0 { random.below(3) } else { *kind as usize }];
        let body = Bytes::from(Damage::inflict(bytes, &corpus, &mut random));
        let case = format!("{name} as {:?}, seed {state}", model.kind);
        let whole = assert_harmless(&case, model.kind, &body, 1 + random.below(50)).await;
        if cases % 4 == 0 {
            assert_harmless_over_http(&case, model, &body, random.below(5000), &whole).await;
        }
        cases += 1;
    }
    println!("{cases} damaged replies in {:?}", began.elapsed());
}

#[tokio::test]
async fn s7_a_reply_that_is_cut_anywhere_packed_or_not_is_harmless() {
    let stride = if soak().is_some() { 1 } else { STRIDE };
    for Body { kind, bytes, name } in corpus().iter().filter(|body| body.bytes.len() < 8192) {
        let model = Model::new(*kind);
        for cut in (0..bytes.len()).step_by(stride) {
            let case = format!("{name} cut at {cut}");
            assert_harmless(&case, *kind, &bytes.slice(..cut), 7).await;
        }
        let packed = gzip(bytes);
        for cut in (0..packed.len()).step_by(stride) {
            let reply = Reply::sse(packed.clone()).header("content-encoding", "gzip").cut_after(cut);
            assert_in_order(&format!("{name} packed, cut at {cut}"), &model.play(reply).await);
        }
    }
}
