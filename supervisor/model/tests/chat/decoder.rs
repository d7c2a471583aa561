use std::collections::{BTreeSet, VecDeque};

use model::provider::chat::Decoder;
use model::provider::{ContentBlock, Decode, ProviderError, StreamEvent};
use proptest::prelude::*;
use serde_json::{Value, json};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let name =
            prop::sample::select(vec!["text", "thinking", "type", "index", "id", "function", "arguments"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..3).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => ".{0,6}".prop_map(Value::from),
        3 => prop::sample::select(vec!["", "{", "}", "{\"a\":1}", "[", "\"", "\n", "\\ud83e"]).prop_map(Value::from),
        1 => Just(Value::Null),
    ]
}

fn call() -> impl Strategy<Value = Value> {
    let id = prop_oneof![Just(json!("c1")), Just(json!("c2")), Just(json!("")), Just(Value::Null)];
    let name = prop_oneof![Just(json!("read_file")), Just(json!("")), Just(Value::Null)];
    let index = prop_oneof![4 => (0..3_u8).prop_map(Value::from), 1 => Just(Value::Null)];
    (index, id, name, text()).prop_map(|(index, id, name, arguments)| {
        json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    })
}

fn delta() -> impl Strategy<Value = Value> {
    let detail = (prop::sample::select(vec!["reasoning.text", "reasoning.encrypted"]), text(), 0..2_u8)
        .prop_map(|(kind, text, index)| json!({"type": kind, "text": text, "index": index}));
    (
        prop::option::of(text()),
        prop::option::weighted(0.2, text()),
        prop::option::weighted(0.2, prop::collection::vec(detail, 0..2)),
        prop::option::weighted(0.4, prop::collection::vec(call(), 0..3)),
        prop::option::weighted(
            0.1,
            (prop::sample::select(vec!["content", "tool_calls", "reasoning_details", "refusal"]), any_json()),
        ),
    )
        .prop_map(|(content, reasoning, details, calls, odd)| {
            let mut delta = json!({
                "content": content, "reasoning": reasoning, "reasoning_details": details, "tool_calls": calls,
            });
            if let Some((name, odd)) = odd {
                delta[name] = odd;
            }
            delta
        })
}

fn reply() -> impl Strategy<Value = Vec<String>> {
    let finish = prop::sample::select(vec!["stop", "tool_calls", "length", "content_filter", "bored"]);
    let broken = prop::option::weighted(0.2, any::<prop::sample::Index>());
    (prop::collection::vec(delta(), 0..6), prop::option::weighted(0.9, finish), any::<bool>(), broken)
        .prop_map(|(deltas, finish, done, broken)| {
            let chunk =
                |delta: Value| json!({"id": "r", "choices": [{"index": 0, "delta": delta}]}).to_string();
            let mut data: Vec<_> = deltas.into_iter().map(chunk).collect();
            data.push(json!({"choices": [{"delta": {}, "finish_reason": finish}]}).to_string());
            data.extend(done.then(|| "[DONE]".to_owned()));
            if let Some(at) = broken {
                let last = at.index(data.len());
                let length = at.index(data[last].chars().count() + 1);
                data[last] = data[last].chars().take(length).collect();
                data.truncate(last + 1);
            }
            data
        })
}

fn decode(data: &[String]) -> (Vec<StreamEvent>, Result<(), ProviderError>) {
    let mut decoder = Decoder::new();
    let mut events = VecDeque::new();
    let pushed = data.iter().try_for_each(|data| decoder.push(data, &mut events));
    let result = pushed.and_then(|()| decoder.finish(&mut events));
    (events.into(), result)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_the_events_are_in_order_and_what_is_kept_is_json(data in reply()) {
        let (events, result) = decode(&data);
        let is_start = |event: &&StreamEvent| matches!(event, StreamEvent::MessageStarted { .. });
        let is_end = |event: &&StreamEvent| matches!(event, StreamEvent::MessageCompleted { .. });
        prop_assert!(events.iter().filter(is_start).count() <= 1);
        prop_assert!(events.first().as_ref().is_none_or(is_start));
        prop_assert_eq!(events.iter().filter(is_end).count(), usize::from(result.is_ok()));
        prop_assert_eq!(events.last().as_ref().is_some_and(is_end), result.is_ok());
        let (mut closed, mut begun) = (BTreeSet::new(), BTreeSet::new());
        for event in &events {
            match event {
                StreamEvent::TextDelta { index, .. }
                | StreamEvent::ThinkingDelta { index, .. }
                | StreamEvent::ToolUseStarted { index, .. } => {
                    begun.insert(*index);
                    prop_assert!(!closed.contains(index), "block {index} goes on after its end");
                }
                StreamEvent::BlockClosed { index, block } => {
                    prop_assert!(closed.insert(*index), "block {index} twice");
                    assert_block(&block.content, block.raw.get());
                }
                _ => {}
            }
        }
        prop_assert!(result.is_err() || closed.is_superset(&begun), "a block is lost");
    }

    #[test]
    fn no_data_makes_the_decoder_panic(data in prop::collection::vec(prop_oneof![
        any_json().prop_map(|json| json.to_string()),
        any_json().prop_map(|json| json!({"choices": json, "usage": json, "error": null}).to_string()),
        any_json().prop_map(|json| json!({"choices": [{"delta": json, "finish_reason": json}]}).to_string()),
        ".{0,20}",
    ], 0..4)) {
        let (events, result) = decode(&data);
        prop_assert!(result.is_err() || !events.is_empty());
    }
}

/// Checks a stored block: it is one line of JSON, and arguments are an object even if the model wrote something else.
fn assert_block(content: &ContentBlock, raw: &str) {
    assert!(!raw.contains(['\n', '\r']), "one line of the log: {raw}");
    let kept: Value = serde_json::from_str(raw).expect("JSON");
    if let ContentBlock::ToolUse { input, .. } = content {
        assert!(kept["input"].is_object(), "{raw}");
        if let Ok(input) = input {
            assert_eq!(serde_json::from_str::<Value>(input).expect("JSON"), kept["input"]);
        }
    }
}
