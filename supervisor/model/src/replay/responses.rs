//! Creates the text of a Responses API stream from values in the form of the Messages API.

use serde_json::{Value, json};

use super::sse::{Block, Usage, event, pieces};

/// Returns the text of a stream, from `response.created` to its end. `stop_reason` is that of the Messages API: with
/// `max_tokens` the response is incomplete.
pub fn message(blocks: &[Block], stop_reason: &str, usage: Usage) -> String {
    let mut text = event("response.created", &json!({"response": response("in_progress", &[])}));
    let items: Vec<_> = blocks.iter().enumerate().map(|(index, block)| item(index, block)).collect();
    for (index, (block, item)) in blocks.iter().zip(&items).enumerate() {
        text += &event("response.output_item.added", &json!({"output_index": index, "item": begun(item)}));
        let (kind, whole) = streamed(block);
        for piece in pieces(whole) {
            text += &event(kind, &json!({"item_id": item["id"], "output_index": index, "delta": piece}));
        }
        text += &event("response.output_item.done", &json!({"output_index": index, "item": item}));
    }
    let (kind, mut last) = match stop_reason {
        "max_tokens" => ("response.incomplete", response("incomplete", &items)),
        _ => ("response.completed", response("completed", &items)),
    };
    if kind == "response.incomplete" {
        last["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    last["usage"] = in_their_words(usage);
    text + &event(kind, &json!({"response": last}))
}

fn response(status: &str, output: &[Value]) -> Value {
    json!({"id": "resp_replay", "object": "response", "status": status, "model": "replay", "output": output})
}

/// Returns token counts in the API's form. Input tokens include those from the cache.
fn in_their_words(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input + usage.cache_read + usage.cache_creation,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_creation,
        },
        "output_tokens": usage.output,
    })
}

fn item(index: usize, block: &Block) -> Value {
    match block {
        Block::Text(text) => json!({
            "id": format!("msg_{index}"), "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "annotations": [], "text": text}],
        }),
        Block::Thinking { text, signature } => json!({
            "id": format!("rs_{index}"), "type": "reasoning", "encrypted_content": signature,
            "summary": [{"type": "summary_text", "text": text}],
        }),
        Block::ToolUse { id, name, input } => json!({
            "id": format!("fc_{index}"), "type": "function_call", "status": "completed",
            "arguments": input, "call_id": id, "name": name,
        }),
    }
}

fn begun(item: &Value) -> Value {
    let mut begun = item.clone();
    for (name, empty) in [("content", json!([])), ("summary", json!([])), ("arguments", json!(""))] {
        if begun.get(name).is_some() {
            begun[name] = empty;
        }
    }
    if begun.get("status").is_some() {
        begun["status"] = "in_progress".into();
    }
    begun
}

/// Returns the kind of event in which a block's deltas arrive, and the joined text of these deltas.
fn streamed(block: &Block) -> (&'static str, &str) {
    match block {
        Block::Text(text) => ("response.output_text.delta", text),
        Block::Thinking { text, .. } => ("response.reasoning_summary_text.delta", text),
        Block::ToolUse { input, .. } => ("response.function_call_arguments.delta", input),
    }
}
