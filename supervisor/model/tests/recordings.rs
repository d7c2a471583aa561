//! Tests that the decoder and the vendor's SDK give the same result for recorded traffic.
//!
//! `BAILIWICK_WIRE` names the directory of the recordings, which are not in the repository.

#![expect(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod delivery;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use delivery::{assert_same_however_it_comes, play};
use model::provider::anthropic::{Anthropic, AnthropicConfig};
use model::provider::{Message, ModelRequest, ProviderKind, RequestOptions, StreamEvent, UserBlock, debug};
use model::replay::{ReplayServer, Reply, Script};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

const VARIABLE: &str = "BAILIWICK_WIRE";

/// Recorded streams for which decoder and SDK give different results.
const OTHERWISE: &[(&str, Expected)] = &[
    // Two generations in one stream are never merged.
    ("vercel-anthropic-duplicate-message-start", Expected::Error("invalid_response")),
    ("vercel-anthropic-spliced-message-start", Expected::Error("invalid_response")),
    // A gateway's `[DONE]`, on which the SDK fails.
    ("rig-streaming-gateway-message-delta-metadata-t0", Expected::Text("max_tokens")),
    // A tool input that was cut off. The SDK repairs it; the decoder gives it as invalid text.
    ("sdk-incomplete-partial-json-response", Expected::InvalidInput("max_tokens")),
];

enum Expected {
    Error(&'static str),
    Text(&'static str),
    InvalidInput(&'static str),
}

fn recordings() -> Option<PathBuf> {
    let Some(root) = std::env::var_os(VARIABLE) else {
        eprintln!("skipped: no recordings: set {VARIABLE} to their directory");
        return None;
    };
    Some(PathBuf::from(root).join("anthropic"))
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(members.map(|(name, value)| (name, without_nulls(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Returns the token counts of a message. If a stream has several values of a count, the SDK also keeps the last.
fn counters(message: &Value) -> [Option<u64>; 4] {
    ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]
        .map(|name| message["usage"][name].as_u64())
}

fn check(name: &str, ours: &Value, theirs: &Value) {
    match OTHERWISE.iter().find(|(odd, _)| *odd == name).map(|(_, expected)| expected) {
        Some(Expected::Error(kind)) => assert_eq!(ours["error"]["type"], *kind, "{name}"),
        Some(Expected::Text(stop)) => {
            assert_eq!(ours["message"]["stop_reason"], *stop, "{name}: {ours}");
            assert_eq!(ours["message"]["content"][0]["type"], "text", "{name}");
        }
        Some(Expected::InvalidInput(stop)) => {
            assert_eq!(ours["message"]["stop_reason"], *stop, "{name}: {ours}");
            assert!(ours["message"]["content"][1]["input"]["invalid_json"].is_string(), "{name}: {ours}");
        }
        None if theirs["ok"] == true => check_message(name, &ours["message"], &theirs["message"]),
        None => {
            assert_eq!(ours["ok"], false, "{name}: {ours}");
            assert_eq!(ours["error"]["type"], theirs["error"]["type"], "{name}: {ours}");
        }
    }
}

fn check_message(name: &str, ours: &Value, theirs: &Value) {
    for field in ["id", "type", "role", "model", "stop_reason", "stop_sequence"] {
        assert_eq!(ours[field], theirs[field], "{name}: {field}: {ours}");
    }
    assert_eq!(without_nulls(ours["content"].clone()), without_nulls(theirs["content"].clone()), "{name}");
    assert_eq!(counters(ours), counters(theirs), "{name}: usage");
}

fn streams() -> Vec<(String, PathBuf, Bytes)> {
    let Some(directory) = recordings() else { return Vec::new() };
    let paths = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut streams: Vec<_> = paths
        .filter_map(|path| {
            let body = fs::read(path.join("response.sse")).ok()?;
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            Some((name, path, Bytes::from(body)))
        })
        .collect();
    assert!(streams.len() >= 80, "only {} recordings", streams.len());
    streams.sort();
    streams
}

#[tokio::test]
async fn every_recorded_stream_is_understood_as_the_sdk_understands_it() {
    for (name, path, body) in streams() {
        let ours = debug::decode(ProviderKind::Anthropic, body).await;
        check(&name, &ours, &json(&path.join("expected.json")));
    }
}

#[tokio::test]
async fn s1_every_recorded_stream_means_the_same_however_it_comes() {
    for (name, _, body) in streams() {
        assert_same_however_it_comes(ProviderKind::Anthropic, &name, &body).await;
    }
}

/// Returns the blocks of a reply in the form in which the next request contains them.
fn echoed(content: Vec<Box<RawValue>>) -> Vec<Box<RawValue>> {
    #[derive(serde::Deserialize)]
    struct Body {
        messages: Vec<Content>,
    }
    #[derive(serde::Deserialize)]
    struct Content {
        content: Vec<Box<RawValue>>,
    }
    let user = || Arc::new(Message::User(vec![UserBlock::Text("go on".to_owned())]));
    let request = ModelRequest {
        model: "m".to_owned(),
        system: Arc::from(""),
        tools: Arc::from([]),
        messages: vec![user(), Arc::new(Message::Assistant(content)), user()],
        max_tokens: 1,
        options: RequestOptions::default(),
    };
    let body =
        Anthropic::new(AnthropicConfig::new(None)).expect("a provider").body(&request).expect("a body");
    let mut body: Body = serde_json::from_slice(&body).expect("JSON");
    if body.messages.len() == 3 { body.messages.remove(1).content } else { Vec::new() }
}

/// Returns the blocks to which no delta adds content, with the bytes that the stream has.
fn sent_whole(body: &Bytes) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Event<'a> {
        index: Option<usize>,
        #[serde(borrow)]
        content_block: Option<&'a RawValue>,
        #[serde(borrow)]
        delta: Option<&'a RawValue>,
    }
    let text = std::str::from_utf8(body).expect("UTF-8");
    let data = text.lines().filter_map(|line| line.trim_end().strip_prefix("data: "));
    let events: Vec<Event<'_>> = data.filter_map(|data| serde_json::from_str(data).ok()).collect();
    let is_whole = |index| !events.iter().any(|event| event.delta.is_some() && event.index == index);
    let blocks = events.iter().filter(|event| is_whole(event.index)).filter_map(|event| event.content_block);
    blocks.map(|block| block.get().to_owned()).collect()
}

#[tokio::test]
async fn r6_every_recorded_reply_goes_back_as_it_came() {
    let mut whole = 0;
    for (name, path, body) in streams() {
        let items = play(ProviderKind::Anthropic, body.clone(), None).await;
        if items.iter().any(Result::is_err) {
            continue;
        }
        let mut blocks: Vec<_> = items
            .into_iter()
            .filter_map(|item| match item {
                Ok(StreamEvent::BlockClosed { index, block }) => Some((index, block.raw)),
                _ => None,
            })
            .collect();
        blocks.sort_by_key(|(index, _)| *index);
        let echo = echoed(blocks.into_iter().map(|(_, raw)| raw).collect());
        // The API rejects a text of blanks in a request.
        let is_empty = |block: &Value| {
            block["type"] == "text" && block["text"].as_str().is_some_and(|text| text.trim().is_empty())
        };
        if !OTHERWISE.iter().any(|(odd, _)| *odd == name) {
            let theirs = json(&path.join("expected.json"))["message"]["content"].clone();
            let theirs: Vec<Value> =
                theirs.as_array().into_iter().flatten().filter(|block| !is_empty(block)).cloned().collect();
            let ours = echo.iter().map(|block| serde_json::from_str(block.get()).expect("JSON")).collect();
            assert_eq!(without_nulls(Value::Array(ours)), without_nulls(Value::Array(theirs)), "{name}");
        }
        for block in
            sent_whole(&body).iter().filter(|block| !is_empty(&serde_json::from_str(block).expect("JSON")))
        {
            assert!(echo.iter().any(|echoed| echoed.get() == block), "{name}: {block}");
            whole += 1;
        }
    }
    assert!(recordings().is_none() || whole >= 20, "only {whole} blocks that were sent whole");
}

#[tokio::test]
async fn every_recorded_error_is_understood_as_the_sdk_understands_it() {
    let Some(directory) = recordings() else { return };
    let mut checked = 0;
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let Ok(body) = fs::read(path.join("response.json")) else {
            continue;
        };
        let meta = json(&path.join("meta.json"));
        let theirs = json(&path.join("expected.json"));
        let status = meta["status"].as_u64().and_then(|status| status.try_into().ok()).expect("a status");
        let server = ReplayServer::start(Script::new().push(Reply::new(status, body))).expect("a server");
        let kind = ProviderKind::Anthropic;
        let key = Some("sk-ant-0123456789".into());
        let connection = kind.connection(Some(server.base_url()), key, String::new());
        let ours = debug::stream(kind, connection, b"{}").await;
        let (ours, theirs) = (&ours["error"], &theirs["error"]);
        assert_eq!(
            (&ours["type"], &ours["status"]),
            (&theirs["type"], &theirs["status"]),
            "{}",
            path.display()
        );
        let said = theirs["message"].as_str().expect("a message").trim_end_matches('.');
        assert!(ours["message"].as_str().expect("a message").contains(said), "{ours}");
        checked += 1;
    }
    assert!(checked >= 8, "only {checked} recordings");
}
