//! Tests that cut recorded replies at every byte. The result is the same reply, or its beginning and an error.
//!
//! After each cut, only the event with the cut is decoded, by a copy of the decoder that has decoded the events before:
//! so the tests take linear time. Events up to 1 KB are cut at every byte, longer ones at every 61st byte.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::anthropic::AnthropicDecoder;
use super::decode::{Decode, Events};
use super::reply::{Context, HttpReply};
use super::sse;
use super::{ProviderError, StreamEvent};

type DecodedItem = Result<StreamEvent, ProviderError>;

/// Maximum bytes of an event that is cut at every byte.
const LONG_EVENT: usize = 1024;

/// Distance in bytes between two cuts of a longer event: a prime, so that all kinds of positions occur.
const LONG_STRIDE: usize = 61;

fn bodies(directory: &Path) -> Vec<(PathBuf, Bytes)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let file = |path: PathBuf| if path.is_dir() { path.join("response.sse") } else { path };
    let mut bodies: Vec<_> = entries
        .map(file)
        .filter(|path| path.extension().is_some_and(|extension| extension == "sse"))
        .filter_map(|path| Some((path.clone(), Bytes::from(fs::read(path).ok()?))))
        .collect();
    bodies.sort();
    bodies
}

async fn play<D: Decode + Clone + 'static>(decoder: &D, bytes: Bytes) -> Vec<DecodedItem> {
    let reply = HttpReply::new(stream::iter([Ok(bytes)]), Box::new(decoder.clone()), Context::default());
    let items = stream::unfold(reply, async |mut reply| Some((reply.next().await?, reply)));
    items.collect().await
}

/// Replaces CR and CR LF by LF, so that the tests find the ends of events easily.
fn with_lf(body: &[u8]) -> Bytes {
    let crlf = |(index, byte): (usize, &u8)| match byte {
        b'\n' if index > 0 && body[index - 1] == b'\r' => None,
        b'\r' => Some(b'\n'),
        byte => Some(*byte),
    };
    body.iter().enumerate().filter_map(crlf).collect()
}

/// Returns the positions between two events, which are those after a blank line.
fn boundaries(body: &[u8]) -> Vec<usize> {
    let ends = body.windows(2).enumerate().filter(|(_, pair)| *pair == b"\n\n").map(|(at, _)| at + 2);
    std::iter::once(0).chain(ends).collect()
}

/// Cuts a reply at every tested position, and checks the results. Returns the number of cuts.
async fn assert_harmless_where_it_is_cut<D: Decode + Clone + 'static>(
    name: &str,
    body: &Bytes,
    new: D,
) -> usize {
    let body = with_lf(body);
    let whole = play(&new, body.clone()).await;
    let (mut decoder, mut rest, mut cuts) = (new, &whole[..], 0);
    let boundaries = boundaries(&body);
    for (index, &begin) in boundaries.iter().enumerate() {
        let end = boundaries.get(index + 1).copied().unwrap_or(body.len());
        let stride = if end - begin > LONG_EVENT { LONG_STRIDE } else { 1 };
        for cut in (begin..end).step_by(stride) {
            let items = play(&decoder, body.slice(begin..cut)).await;
            assert_cut(&format!("{name} cut at {cut}"), &items, rest);
            cuts += 1;
        }
        // A decoder reads nothing after an error.
        let Ok(events) = take(&mut decoder, body.slice(begin..end)).await else { break };
        let came: Vec<_> = events.into_iter().map(Ok).collect();
        rest = rest.strip_prefix(&came[..]).expect("what came before a cut is what came of the whole");
    }
    cuts
}

async fn take(decoder: &mut impl Decode, bytes: Bytes) -> Result<Events, ProviderError> {
    let mut data = sse::events(stream::iter([Ok::<_, ProviderError>(bytes)]));
    let mut events = Events::new();
    while let Some(data) = data.next().await {
        let data = data.map_err(|error| ProviderError::new("invalid_response", error.to_string()))?;
        decoder.push(&data, &mut events)?;
    }
    Ok(events)
}

/// Checks a cut. `items` were decoded after the cut, `rest` without a cut; both begin with the event that was cut.
fn assert_cut(name: &str, items: &[DecodedItem], rest: &[DecodedItem]) {
    if items == rest {
        return;
    }
    let (last, items) = items.split_last().expect("at least an error");
    let Err(error) = last else { panic!("{name} ends without an error: {items:?}") };
    assert!(matches!(error.kind.as_str(), "truncated_stream" | "invalid_response"), "{name}: {error:?}");
    assert!(items.iter().all(Result::is_ok) && rest.starts_with(items), "{name}: {items:?}");
}

#[tokio::test]
async fn s7_every_cut_of_every_stream_is_harmless() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/streams/anthropic");
    let mut cuts = 0;
    for (path, body) in bodies(&fixtures) {
        cuts += assert_harmless_where_it_is_cut(&path.display().to_string(), &body, AnthropicDecoder::new())
            .await;
    }
    assert!(cuts > 30_000, "only {cuts} cuts");
}

#[tokio::test]
async fn s7_every_cut_of_every_recording_is_harmless() {
    let Some(recordings) = std::env::var_os("BAILIWICK_WIRE") else {
        eprintln!("skipped: no recordings: set BAILIWICK_WIRE to their directory");
        return;
    };
    let mut cuts = 0;
    for (path, body) in bodies(&PathBuf::from(recordings).join("anthropic")) {
        cuts += assert_harmless_where_it_is_cut(&path.display().to_string(), &body, AnthropicDecoder::new())
            .await;
    }
    assert!(cuts > 200_000, "only {cuts} cuts");
}
