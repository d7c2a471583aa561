use serde_json::{Value, json};

use super::sse::{Block, Usage, pieces};

/// Returns the text of a stream in the shape of the vendor's API, from the first chunk to `[DONE]`. Thinking is in the
/// field `reasoning_content`, without a signature.
pub fn message(blocks: &[Block], finish_reason: &str, usage: Usage) -> String {
    let mut text = delta(&json!({"role": "assistant", "content": ""}));
    let mut calls = 0;
    for block in blocks {
        for part in deltas(block, calls) {
            text += &delta(&part);
        }
        calls += usize::from(matches!(block, Block::ToolUse { .. }));
    }
    text += &chunk(&json!([{"index": 0, "delta": {}, "finish_reason": finish_reason}]), &Value::Null);
    text += &chunk(&json!([]), &counters(usage));
    text + "data: [DONE]\n\n"
}

fn deltas(block: &Block, call: usize) -> Vec<Value> {
    match block {
        Block::Text(text) => pieces(text).map(|text| json!({"content": text})).collect(),
        Block::Thinking { text, .. } => {
            pieces(text).map(|text| json!({"content": null, "reasoning_content": text})).collect()
        }
        Block::ToolUse { id, name, input } => {
            let start = json!({
                "index": call, "id": id, "type": "function", "function": {"name": name, "arguments": ""},
            });
            let rest = pieces(input).map(|text| json!({"index": call, "function": {"arguments": text}}));
            std::iter::once(start).chain(rest).map(|call| json!({"tool_calls": [call]})).collect()
        }
    }
}

fn delta(delta: &Value) -> String {
    chunk(&json!([{"index": 0, "delta": delta, "finish_reason": null}]), &Value::Null)
}

fn chunk(choices: &Value, usage: &Value) -> String {
    let data = json!({
        "id": "chatcmpl-replay", "object": "chat.completion.chunk", "created": 0, "model": "replay",
        "choices": choices, "usage": usage,
    });
    format!("data: {data}\n\n")
}

/// Returns token counts in the vendor's form. Prompt tokens include those from the cache.
fn counters(usage: Usage) -> Value {
    let prompt = usage.input + usage.cache_creation + usage.cache_read;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_creation},
    })
}
