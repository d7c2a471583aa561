//! Tests of the decoder of the Responses API with any events: replies that no provider would send, and valid ones.

use std::collections::VecDeque;

use model::provider::responses::ResponsesDecoder;
use model::provider::{ContentBlock, Decode, ProviderError, StopReason, StreamEvent};
use proptest::prelude::*;
use serde_json::{Value, json};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,5}", inner), 0..3)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn word(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::sample::select(words).prop_map(Value::from)
}

fn item() -> impl Strategy<Value = Value> {
    let kind = word(&["message", "reasoning", "function_call", "function_call", "web_search_call", "text"]);
    let text = prop_oneof![".{0,6}".prop_map(Value::from), word(&["", "{}", "{\"a\":1}", "[1]", "\n"])];
    let status = word(&["completed", "incomplete", "in_progress"]);
    (kind, text, status, prop::option::weighted(0.2, any_json())).prop_map(|(kind, text, status, odd)| {
        let parts = json!([{"type": "output_text", "text": text}]);
        let mut item = json!({
            "type": kind, "id": "i", "call_id": "c", "name": "n", "arguments": text, "status": status,
            "content": parts, "summary": parts, "encrypted_content": "e",
        });
        if let Some(odd) = odd {
            let names = ["type", "id", "call_id", "name", "arguments", "content", "summary", "status"];
            let index = odd.to_string().len() % names.len();
            item[names[index]] = odd;
        }
        item
    })
}

const KINDS: [&str; 18] = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_item.done",
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_part.added",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.done",
    "error",
    "weather",
];

fn any_event() -> impl Strategy<Value = String> {
    let parts = (prop::sample::select(&KINDS[..]), prop::option::of(0..3_usize), item(), any_json());
    let event = parts.prop_map(|(kind, index, item, odd)| {
        let response = json!({"id": "r", "status": "completed", "output": [item], "usage": odd});
        json!({
            "type": kind, "output_index": index, "item_id": "i", "item": item, "delta": item["arguments"],
            "response": response, "error": odd,
        })
        .to_string()
    });
    // Some events are cut short, have half a character as an escape, or are no JSON at all.
    (event, 0..6_u8, any::<prop::sample::Index>()).prop_map(|(event, fate, at)| match fate {
        0 => event.chars().take(at.index(event.chars().count())).collect(),
        1 => event.replace("\\n", "\\ud83e"),
        2 => "[DONE]".to_owned(),
        _ => event,
    })
}

/// Returns the events of a valid reply, with some invalid events between them.
fn reply() -> impl Strategy<Value = Vec<String>> {
    let pieces = prop::collection::vec(".{0,4}", 0..4);
    let streamed = (item(), pieces, prop::bool::weighted(0.9));
    let odd = prop::collection::vec((any_event(), any::<prop::sample::Index>()), 0..2);
    let end = word(&["response.completed", "response.completed", "response.incomplete"]);
    (prop::collection::vec(streamed, 0..5), end, odd).prop_map(|(items, end, odd)| {
        let response = json!({"id": "r", "model": "m", "output": []});
        let mut data = vec![json!({"type": "response.created", "response": response}).to_string()];
        for (index, (item, pieces, done)) in items.into_iter().enumerate() {
            let event = |kind: &str| json!({"type": kind, "output_index": index, "item": item}).to_string();
            data.push(event("response.output_item.added"));
            data.extend(pieces.iter().map(|piece| {
                json!({"type": "response.output_text.delta", "output_index": index, "delta": piece})
                    .to_string()
            }));
            data.extend(done.then(|| event("response.output_item.done")));
        }
        data.push(json!({"type": end, "response": response}).to_string());
        for (event, at) in odd {
            // The events come after the first one: a stream that begins with something else is another test.
            data.insert(1 + at.index(data.len()), event);
        }
        data
    })
}

fn decode(data: &[String]) -> (Vec<StreamEvent>, Result<(), ProviderError>) {
    let mut decoder = ResponsesDecoder::new();
    let mut events = VecDeque::new();
    let pushed = data.iter().try_for_each(|data| decoder.push(data, &mut events));
    let result = pushed.and_then(|()| decoder.finish(&mut events));
    (events.into(), result)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_the_events_are_in_order_and_what_is_echoed_is_json(data in reply()) {
        let (events, result) = decode(&data);
        let is_start = |event: &&StreamEvent| matches!(event, StreamEvent::MessageStarted { .. });
        let is_end = |event: &&StreamEvent| matches!(event, StreamEvent::MessageCompleted { .. });
        prop_assert_eq!(events.iter().filter(is_start).count(), 1);
        prop_assert!(events.first().as_ref().is_some_and(is_start));
        prop_assert_eq!(events.iter().filter(is_end).count(), usize::from(result.is_ok()));
        prop_assert_eq!(events.last().as_ref().is_some_and(is_end), result.is_ok());
        let mut closed = std::collections::BTreeSet::new();
        for event in &events {
            let StreamEvent::BlockClosed { index, block } = event else { continue };
            prop_assert!(closed.insert(*index), "block {index} twice");
            let raw = block.raw.get();
            prop_assert!(!raw.contains(['\n', '\r']), "one line of the log: {raw}");
            let echoed: Value = serde_json::from_str(raw).expect("JSON");
            if let ContentBlock::ToolUse { input, .. } = &block.content {
                prop_assert!(echoed["input"].is_object(), "{raw}");
                if let Ok(input) = input {
                    prop_assert_eq!(&serde_json::from_str::<Value>(input).expect("JSON"), &echoed["input"]);
                }
            }
        }
    }

    #[test]
    fn s5_only_a_complete_response_asks_for_tools_and_only_with_calls_in_it(data in reply()) {
        let (events, _) = decode(&data);
        let calls = events.iter().filter(|event| matches!(event, StreamEvent::BlockClosed { block, .. }
            if matches!(block.content, ContentBlock::ToolUse { .. }))).count();
        if let Some(StreamEvent::MessageCompleted { stop_reason: StopReason::ToolUse, .. }) = events.last() {
            prop_assert!(calls > 0);
            prop_assert!(data.iter().any(|data| data.contains("completed") || data.contains("done")));
        }
    }

    #[test]
    fn no_sequence_of_events_makes_the_decoder_panic(data in prop::collection::vec(any_event(), 0..8)) {
        let (events, result) = decode(&data);
        let ends = events.iter().filter(|event| matches!(event, StreamEvent::MessageCompleted { .. })).count();
        prop_assert_eq!(ends, usize::from(result.is_ok()));
    }

    #[test]
    fn a_whole_reply_of_any_shape_is_a_reply_or_an_error(reply in any_json(), item in item(), status in word(&["completed", "queued", "failed"])) {
        for json in [reply.to_string(), json!({"status": status, "output": [item], "error": reply}).to_string()] {
            let mut decoder = ResponsesDecoder::new();
            let mut events = VecDeque::new();
            let result = decoder.push_whole(&json, &mut events);
            prop_assert_eq!(result.is_ok(), decoder.is_complete());
        }
    }
}
