//! Imitates the provider's prompt cache as documented: it stores prefixes that end at a marker, and finds them again at
//! a marker or the blocks before it, for a limited time.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use serde_json::Value;

/// Number of blocks at which a cached prefix is looked for: the block with a marker, and those before it.
const LOOK_BACK: usize = 20;

/// Minimum tokens of a cached prefix.
const MIN_PREFIX: usize = 1024;

#[derive(Default)]
pub(crate) struct Cache {
    now: Duration,
    entries: HashMap<u64, Entry>,
}

struct Entry {
    lifetime: Duration,
    expires: Duration,
}

/// Tokens of one request's prompt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Split {
    pub(crate) read: usize,
    pub(crate) prompt: usize,
    /// Tokens of the prompt up to the last marker.
    pub(crate) marked: usize,
}

/// A block of a prompt, which is a tool, the system prompt or a part of a message.
struct Block {
    hash: u64,
    tokens: usize,
    lifetime: Option<Duration>,
}

impl Cache {
    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    pub(crate) fn take(&mut self, body: &Value) -> Split {
        let blocks = blocks(body);
        let markers: Vec<usize> = (0..blocks.len()).filter(|at| blocks[*at].lifetime.is_some()).collect();
        assert!(markers.len() <= 4, "{} markers", markers.len());
        let lifetimes: Vec<_> = markers.iter().map(|at| blocks[*at].lifetime).collect();
        assert!(lifetimes.is_sorted_by(|before, after| before >= after), "longer ones come first");
        let lives =
            |at: &usize| self.entries.get(&blocks[*at].hash).is_some_and(|entry| entry.expires > self.now);
        let found = markers
            .iter()
            .filter_map(|&marker| (marker.saturating_sub(LOOK_BACK - 1)..=marker).rev().find(lives));
        let hit = found.max();
        if let Some(entry) = hit.and_then(|at| self.entries.get_mut(&blocks[at].hash)) {
            entry.expires = self.now + entry.lifetime;
        }
        for &marker in &markers {
            if let Some(lifetime) = blocks[marker].lifetime.filter(|_| blocks[marker].tokens >= MIN_PREFIX) {
                let expires = self.now + lifetime;
                self.entries.insert(blocks[marker].hash, Entry { lifetime, expires });
            }
        }
        let tokens = |at: Option<usize>| at.map_or(0, |at| blocks[at].tokens);
        Split {
            read: tokens(hit),
            prompt: tokens(blocks.len().checked_sub(1)),
            marked: tokens(markers.last().copied()),
        }
    }
}

fn blocks(body: &Value) -> Vec<Block> {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    body["model"].to_string().hash(&mut hasher);
    let mut blocks = Vec::new();
    let mut tokens = 0;
    for block in items(&body["tools"]).into_iter().chain(items(&body["system"])) {
        push(&mut blocks, &mut hasher, &mut tokens, block);
    }
    // A change of effort or thinking invalidates the cached messages, but not tools and system prompt.
    (body["thinking"].to_string(), body["output_config"].to_string()).hash(&mut hasher);
    for message in items(&body["messages"]) {
        message["role"].to_string().hash(&mut hasher);
        for block in items(&message["content"]) {
            push(&mut blocks, &mut hasher, &mut tokens, block);
        }
    }
    blocks
}

fn push(blocks: &mut Vec<Block>, hasher: &mut DefaultHasher, tokens: &mut usize, mut block: Value) {
    let marker = block.as_object_mut().expect("a block").remove("cache_control");
    if marker.is_some() {
        assert!(!block["type"].to_string().contains("thinking"), "thinking takes no marker");
        assert_ne!(block["text"], "", "nor does empty text");
    }
    let lifetime = marker.map(|marker| match marker["ttl"].as_str() {
        Some("1h") => Duration::from_hours(1),
        _ => Duration::from_mins(5),
    });
    let text = block.to_string();
    text.hash(hasher);
    *tokens += text.len().div_ceil(4);
    blocks.push(Block { hash: hasher.finish(), tokens: *tokens, lifetime });
}
