//! Tests of the decoder of the Messages API with any events: replies that no provider would send, and valid ones.

use std::collections::VecDeque;

use model::provider::Decode;
use model::provider::anthropic::AnthropicDecoder;
use model::provider::{ContentBlock, ProviderError, StreamEvent};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Returns any JSON, in place of a value that has another type.
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

/// Returns a block, a delta or a message. Some fields are valid, others are not.
fn part() -> impl Strategy<Value = Value> {
    let kind = word(&[
        "text",
        "thinking",
        "tool_use",
        "redacted_thinking",
        "hologram",
        "fallback",
        "text_delta",
        "thinking_delta",
        "signature_delta",
        "input_json_delta",
        "citations_delta",
        "compaction_delta",
        "hologram_delta",
    ]);
    let stop = word(&["end_turn", "tool_use", "max_tokens", "refusal", "bored"]);
    let piece = prop_oneof![
        ".{0,6}".prop_map(Value::from),
        word(&["", "{", "}", "{\"a\":1}", "[", "\"", "\\ud83e", "\n"])
    ];
    (kind, piece.clone(), piece, prop::option::of(stop), prop::option::weighted(0.2, any_json())).prop_map(
        |(kind, text, json, stop, odd)| {
            let mut part = json!({
                "type": kind, "id": "i", "name": "n", "text": text, "thinking": text, "partial_json": json,
                "signature": text, "citation": {"cited": text}, "content": [], "stop_reason": stop,
                "usage": {"output_tokens": 3},
            });
            if let Some(odd) = odd {
                let names = ["text", "input", "content", "usage", "type", "id", "citations", "stop_details"];
                let index = odd.to_string().len() % names.len();
                part[names[index]] = odd;
            }
            part
        },
    )
}

fn event(kind: &str, index: usize, part: &Value) -> Value {
    json!({
        "type": kind, "index": index, "delta": part, "content_block": part, "message": part, "usage": part["usage"],
    })
}

fn any_event() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(vec![
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
        "error",
        "weather",
    ]);
    let event =
        (kind, 0..3_usize, part()).prop_map(|(kind, index, part)| event(kind, index, &part).to_string());
    // Some events are cut short, have half a character as an escape, or are no JSON at all.
    (event, 0..5_u8, any::<prop::sample::Index>()).prop_map(|(event, fate, at)| match fate {
        0 => event.chars().take(at.index(event.chars().count())).collect(),
        1 => event.replace("\\n", "\\ud83e"),
        2 => "[DONE]".to_owned(),
        _ => event,
    })
}

/// Returns a block: start event, deltas that may be of another kind, and false if the end is missing.
fn block() -> impl Strategy<Value = (Value, Vec<Value>, bool)> {
    let kind = word(&["text", "thinking", "tool_use", "tool_use", "redacted_thinking", "hologram"]);
    let start = (kind, any_input()).prop_map(|(kind, input)| {
        json!({"type": kind, "id": "i", "name": "n", "text": "", "thinking": "", "input": input})
    });
    (start, prop::collection::vec(part(), 0..5), prop::bool::weighted(0.9))
}

fn any_input() -> impl Strategy<Value = Value> {
    prop_oneof![4 => Just(json!({})), 1 => any_json()]
}

/// Returns the events of a valid reply, with some invalid events between them.
fn reply() -> impl Strategy<Value = Vec<String>> {
    let odd = prop::collection::vec((any_event(), any::<prop::sample::Index>()), 0..2);
    (prop::collection::vec(block(), 0..5), prop::option::weighted(0.9, Just("tool_use")), odd).prop_map(
        |(blocks, stop, odd)| {
            let mut data =
                vec![json!({"type": "message_start", "message": {"id": "m", "model": "x"}}).to_string()];
            for (index, (start, deltas, closed)) in blocks.into_iter().enumerate() {
                data.push(event("content_block_start", index, &start).to_string());
                data.extend(
                    deltas.iter().map(|delta| event("content_block_delta", index, delta).to_string()),
                );
                data.extend(
                    closed.then(|| json!({"type": "content_block_stop", "index": index}).to_string()),
                );
            }
            data.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}}).to_string());
            for (event, at) in odd {
                // The events come after the first one: a stream that begins with something else is another test.
                data.insert(1 + at.index(data.len()), event);
            }
            data
        },
    )
}

fn decode(data: &[String]) -> (Vec<StreamEvent>, Result<(), ProviderError>) {
    let mut decoder = AnthropicDecoder::new();
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
        for event in &events {
            if let StreamEvent::BlockClosed { block, .. } = event {
                let raw = block.raw.get();
                prop_assert!(!raw.contains(['\n', '\r']), "one line of the log: {raw}");
                if let ContentBlock::ToolUse { input, .. } = &block.content {
                    let echoed: Value = serde_json::from_str(raw).expect("JSON");
                    prop_assert!(echoed["input"].is_object(), "{raw}");
                    if let Ok(input) = input {
                        prop_assert_eq!(&serde_json::from_str::<Value>(input).expect("JSON"), &echoed["input"]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_text_is_the_sum_of_its_pieces_wherever_it_is_cut(units in prop::collection::vec(prop_oneof![
        any::<char>().prop_map(|c| c.encode_utf16(&mut [0; 2]).to_vec()),
        any::<u16>().prop_map(|unit| vec![unit]),
    ], 0..20), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5)) {
        // The text is written as escapes of UTF-16 units, so that a cut may fall within a character.
        let units = units.concat();
        let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(units.len() + 1)).chain([0, units.len()]).collect();
        at.sort_unstable();
        let escapes = |units: &[u16]| units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat();
        let deltas = at.windows(2).map(|pair| format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{}"}}}}"#,
            escapes(&units[pair[0]..pair[1]])
        ));
        let mut data = vec![
            json!({"type": "message_start", "message": {}}).to_string(),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}).to_string(),
        ];
        data.extend(deltas);
        data.push(json!({"type": "content_block_stop", "index": 0}).to_string());
        data.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}).to_string());
        let (events, result) = decode(&data);
        prop_assert_eq!(result, Ok(()));
        let expected = String::from_utf16_lossy(&units);
        let shown: String = events.iter().filter_map(|event| match event {
            StreamEvent::TextDelta { text, .. } => Some(text.as_str()),
            _ => None,
        }).collect();
        prop_assert_eq!(&shown, &expected);
        let closed = events.iter().find_map(|event| match event {
            StreamEvent::BlockClosed { block, .. } => Some(block),
            _ => None,
        }).expect("a block");
        prop_assert_eq!(&closed.content, &ContentBlock::Text { text: expected.clone() });
        prop_assert_eq!(&serde_json::from_str::<Value>(closed.raw.get()).expect("JSON")["text"], &json!(expected));
    }
}
