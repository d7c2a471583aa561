//! Tests of the decoder with recorded traffic of many servers. `BAILIWICK_WIRE` names the directory of the recordings,
//! which are not in the repository. The expected results are stored as structure and digests.

#![expect(clippy::print_stderr, reason = "a test says aloud what it skips")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::provider::{ProviderKind, debug};
use model::replay::{Reply, Script};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{play, serve};

const VARIABLE: &str = "BAILIWICK_WIRE";

fn recordings() -> Option<PathBuf> {
    let Some(root) = std::env::var_os(VARIABLE) else {
        eprintln!("skipped: no recordings: set {VARIABLE} to their directory");
        return None;
    };
    Some(PathBuf::from(root).join("chat"))
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

/// Returns the recordings that have the file `file`, by name: each is a body and its data in `meta.json`.
fn bodies(directory: &Path, file: &str) -> BTreeMap<String, (Bytes, Value)> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry"));
    let one = |entry: fs::DirEntry| {
        let body = fs::read(entry.path().join(file)).ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        Some((name, (Bytes::from(body), json(&entry.path().join("meta.json")))))
    };
    entries.filter_map(one).collect()
}

fn outline(answer: &Value) -> String {
    if answer["ok"] != true {
        let error = &answer["error"];
        return format!("error {} retryable={}", error["type"], error["retryable"]);
    }
    let message = &answer["message"];
    let mut outline = String::new();
    for block in message["content"].as_array().expect("a list") {
        let _ = write!(outline, "{}; ", outline_of(block));
    }
    let usage = &message["usage"];
    let _ = write!(
        outline,
        "{}; {}+{}+{}/{}",
        message["stop_reason"].as_str().expect("a reason"),
        usage["input_tokens"].as_u64().unwrap_or(0),
        usage["cache_read_input_tokens"].as_u64().unwrap_or(0),
        usage["cache_creation_input_tokens"].as_u64().unwrap_or(0),
        usage["output_tokens"].as_u64().unwrap_or(0),
    );
    outline
}

fn outline_of(block: &Value) -> String {
    let kind = block["type"].as_str().expect("a type");
    let (what, content) = match kind {
        "text" => (String::new(), block["text"].as_str().expect("a text").to_owned()),
        "thinking" => {
            let field = block["field"].as_str().unwrap_or("-");
            (format!(" {field}"), block["thinking"].as_str().expect("a text").to_owned())
        }
        "tool_use" => (format!(" {}", block["name"].as_str().expect("a name")), block["input"].to_string()),
        _ => (String::new(), block.to_string()),
    };
    let [a, b, c, d, ..]: [u8; 32] = Sha256::digest(content.as_bytes()).into();
    format!("{kind}{what} {}:{:08x}", content.len(), u32::from_be_bytes([a, b, c, d]))
}

#[tokio::test]
async fn every_recorded_stream_means_what_its_outline_says() {
    let Some(directory) = recordings() else { return };
    let mut outlines = Vec::new();
    for (name, (body, _)) in bodies(&directory, "response.sse") {
        let answer = debug::decode(ProviderKind::OpenAi, body).await;
        outlines.push(format!("{name}: {}", outline(&answer)));
    }
    assert!(outlines.len() >= 60, "only {} recordings", outlines.len());
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("recorded_streams", outlines.join("\n"));
    });
}

#[tokio::test]
async fn every_recorded_stream_means_the_same_byte_by_byte() {
    let Some(directory) = recordings() else { return };
    for (name, (body, _)) in bodies(&directory, "response.sse") {
        let whole = format!("{:?}", play(body.clone(), None).await);
        assert_eq!(format!("{:?}", play(body, Some(1)).await), whole, "{name}");
    }
}

#[tokio::test]
async fn every_recorded_error_is_told_with_its_status_and_words() {
    let Some(directory) = recordings() else { return };
    let mut outlines = Vec::new();
    for (name, (body, meta)) in bodies(&directory, "response.json") {
        let status = meta["status"].as_u64().and_then(|status| status.try_into().ok()).expect("a status");
        let server = serve(Script::new().push(Reply::new(status, body)));
        let kind = ProviderKind::OpenAi;
        let connection = kind.connection(Some(server.base_url()), None, "OPENAI_API_KEY".to_owned());
        let error = &debug::stream(kind, connection, b"{}").await["error"];
        assert_eq!(error["status"], status, "{name}");
        let length = error["message"].as_str().expect("a message").replace(&server.base_url(), "").len();
        outlines.push(format!("{name}: {} retryable={} {length} bytes", error["type"], error["retryable"]));
    }
    assert!(outlines.len() >= 6, "only {} recordings", outlines.len());
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("recorded_errors", outlines.join("\n"));
    });
}
