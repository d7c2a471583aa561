//! Tests that recorded replies of providers are accepted in the form in which the next request sends them back.
//!
//! The recordings are not a part of the repository: `BAILIWICK_WIRE` names their directory.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{PRICED, body_of, read};
use crate::provider::{Message, ProviderKind, RequestOptions, StreamEvent};

/// Phrases in errors about content that recorded replies may have and the relay rejects: tools of the provider, and
/// results of options that Bailiwick's own client does not send.
const OF_OTHERS: [&str; 10] = [
    "_tool_use\"",
    "_call\"",
    "\"mcp_list_tools\"",
    "\"compaction\"",
    "citations: must be empty",
    "annotations: must be empty",
    "logprobs: must be empty",
    "trigger: is not relayed",
    "_tool_result\"",
    "\"container_upload\"",
];

fn streams(place: PathBuf) -> Vec<PathBuf> {
    let (mut places, mut found) = (vec![place], Vec::new());
    while let Some(path) = places.pop() {
        if path.is_dir() {
            places.extend(fs::read_dir(&path).expect("a directory").flatten().map(|entry| entry.path()));
        } else if path.extension().is_some_and(|kind| kind == "sse") {
            found.push(path);
        }
    }
    found
}

fn reply(kind: ProviderKind, stream: &Path) -> Message {
    let text = String::from_utf8_lossy(&fs::read(stream).expect("a file")).into_owned();
    let (mut decoder, mut events) = (kind.decoder(), VecDeque::new());
    for data in text.lines().filter_map(|line| line.strip_prefix("data:")) {
        // A stream that violates the protocol still gives the earlier blocks.
        let _ = decoder.push(data.trim_start(), &mut events);
    }
    let block = |event| match event {
        StreamEvent::BlockClosed { block, .. } => Some(block.raw),
        _ => None,
    };
    Message::Assistant(events.into_iter().filter_map(block).collect())
}

#[test]
fn recorded_replies_go_back_unless_a_provider_s_own_tool_made_them() {
    let Some(root) = std::env::var_os("BAILIWICK_WIRE").map(PathBuf::from) else {
        eprintln!("skipped: no recordings: set BAILIWICK_WIRE to their directory");
        return;
    };
    let mut passed = 0;
    for ((kind, model), place) in PRICED.into_iter().zip(["anthropic", "chat", "responses"]) {
        for stream in streams(root.join(place)) {
            let messages = vec![Arc::new(reply(kind, &stream))];
            match read(kind, &body_of(kind, model, RequestOptions::default(), messages)) {
                Ok(_) => passed += 1,
                Err(why) => {
                    let known = OF_OTHERS.iter().any(|part| why.contains(part));
                    assert!(known, "{}: {why}", stream.display());
                }
            }
        }
    }
    assert!(passed > 100, "{passed}");
}
