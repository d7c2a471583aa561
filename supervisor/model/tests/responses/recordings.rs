//! Tests of the decoder with recorded traffic of many servers. `BAILIWICK_WIRE` names the directory of the recordings,
//! which are not in the repository. The expected results are stored as structure and digests.

#![expect(clippy::print_stderr, reason = "a test says aloud what it skips")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

use bytes::Bytes;
use model::provider::{AssistantBlock, ContentBlock, StreamEvent};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Item, lines, play};

const VARIABLE: &str = "BAILIWICK_WIRE";

/// A recording whose deltas were shortened, but not its final text.
const ABRIDGED: &str = "vercel-openai-shell-container-1";

fn recordings() -> Option<BTreeMap<String, Bytes>> {
    let Some(root) = env::var_os(VARIABLE) else {
        eprintln!("skipped: no recordings: set {VARIABLE} to their directory");
        return None;
    };
    let entries = fs::read_dir(PathBuf::from(root).join("responses")).expect("a directory");
    let one = |entry: fs::DirEntry| {
        let body = fs::read(entry.path().join("response.sse")).ok()?;
        Some((entry.file_name().to_string_lossy().into_owned(), Bytes::from(body)))
    };
    let bodies: BTreeMap<_, _> = entries.filter_map(|entry| one(entry.expect("an entry"))).collect();
    assert!(bodies.len() >= 38, "only {} recordings", bodies.len());
    Some(bodies)
}

fn outline(items: &[Item]) -> String {
    let mut parts = Vec::new();
    for item in items {
        let part = match item {
            Ok(StreamEvent::BlockClosed { index, block }) => format!("{index} {}", outline_of(block)),
            Ok(StreamEvent::MessageCompleted { stop_reason, usage }) => format!(
                "{}; {}+{}+{}/{}",
                stop_reason.as_str(),
                usage.input,
                usage.cache_read,
                usage.cache_creation,
                usage.output
            ),
            Ok(_) => continue,
            Err(error) => format!("error {} retryable={}", error.kind, error.retryable),
        };
        parts.push(part);
    }
    parts.join("; ")
}

fn outline_of(block: &AssistantBlock) -> String {
    let (kind, content) = match &block.content {
        ContentBlock::Text { text } => ("text".to_owned(), text.clone()),
        ContentBlock::Thinking { thinking } => ("thinking".to_owned(), thinking.clone()),
        ContentBlock::ToolUse { name, input, .. } => (format!("call {name}"), format!("{input:?}")),
        ContentBlock::Other { kind } => (format!("other {kind}"), String::new()),
        ContentBlock::RedactedThinking => ("redacted".to_owned(), String::new()),
    };
    let item: Value = serde_json::from_str(block.raw.get()).expect("JSON");
    let item = digest(&item["item"].to_string());
    format!("{kind} {}:{} item {item}", content.len(), digest(&content))
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3])
}

#[tokio::test]
async fn every_recorded_stream_means_what_its_outline_says() {
    let Some(recordings) = recordings() else { return };
    let mut outlines = Vec::new();
    for (name, body) in recordings {
        outlines.push(format!("{name}: {}", outline(&play(body, None).await)));
    }
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("recorded_streams", outlines.join("\n"));
    });
}

#[tokio::test]
async fn every_recorded_stream_means_the_same_byte_by_byte() {
    let Some(recordings) = recordings() else { return };
    for (name, body) in recordings {
        let whole = lines(&play(body.clone(), None).await);
        assert_eq!(lines(&play(body, Some(1)).await), whole, "{name}");
    }
}

#[tokio::test]
async fn what_is_shown_of_a_recorded_text_is_the_text_and_its_item_is_the_one_that_came() {
    let Some(recordings) = recordings() else { return };
    for (name, body) in recordings {
        let recorded = String::from_utf8(body.to_vec()).expect("UTF-8");
        let mut shown: BTreeMap<usize, String> = BTreeMap::new();
        for item in play(body, None).await {
            match item {
                Ok(StreamEvent::TextDelta { index, text }) => *shown.entry(index).or_default() += &text,
                Ok(StreamEvent::BlockClosed { index, block }) => {
                    let item = echoed(&block);
                    assert!(recorded.contains(&format!(r#""item":{item}"#)), "{name}: {item}");
                    let all = shown.remove(&index).unwrap_or_default();
                    if let ContentBlock::Text { text } = block.content {
                        assert!(all == text || name == ABRIDGED, "{name}: {all:?} {text:?}");
                    }
                }
                _ => {}
            }
        }
        assert_eq!(shown, BTreeMap::new(), "{name}");
    }
}

fn echoed(block: &AssistantBlock) -> String {
    let raw = block.raw.get();
    let at = raw.find(r#""item":{"#).expect("an item");
    raw[at + r#""item":"#.len()..raw.len() - 1].to_owned()
}
