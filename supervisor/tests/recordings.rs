//! The decoder against recorded traffic: what the vendor's SDK makes of the same bytes, message by message.
//!
//! The recordings are not part of the repository: `BAILIWICK_WIRE` names their directory.

#![expect(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::{Map, Value};
use supervisor::provider::{ProviderKind, debug};
use supervisor::replay::{ReplayServer, Reply, Script};

/// Names the directory with the recordings.
const VARIABLE: &str = "BAILIWICK_WIRE";

/// Streams of which we make something else than the SDK does, and what.
const OTHERWISE: &[(&str, Expected)] = &[
    // S9: two generations in one stream are never merged.
    ("vercel-anthropic-duplicate-message-start", Expected::Error("invalid_response")),
    ("vercel-anthropic-spliced-message-start", Expected::Error("invalid_response")),
    // A gateway's `[DONE]`, on which the SDK fails.
    ("rig-streaming-gateway-message-delta-metadata", Expected::Text("max_tokens")),
    // S5: a tool input that was cut off; the SDK repairs it, we show it as the text that it is.
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

/// Without null members: the SDK fills some in and drops others.
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

/// The counters of which the SDK keeps the last value too.
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
        None => assert_eq!(ours["error"]["type"], theirs["error"]["type"], "{name}: {ours}"),
    }
}

fn check_message(name: &str, ours: &Value, theirs: &Value) {
    for field in ["id", "type", "role", "model", "stop_reason", "stop_sequence"] {
        assert_eq!(ours[field], theirs[field], "{name}: {field}: {ours}");
    }
    assert_eq!(without_nulls(ours["content"].clone()), without_nulls(theirs["content"].clone()), "{name}");
    assert_eq!(counters(ours), counters(theirs), "{name}: usage");
}

#[tokio::test]
async fn every_recorded_stream_is_understood_as_the_sdk_understands_it() {
    let Some(directory) = recordings() else { return };
    let mut checked = 0;
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let Ok(body) = fs::read(path.join("response.sse")) else {
            continue;
        };
        let ours = debug::decode(ProviderKind::Anthropic, Bytes::from(body)).await;
        check(&name, &ours, &json(&path.join("expected.json")));
        checked += 1;
    }
    assert!(checked >= 80, "only {checked} recordings");
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
