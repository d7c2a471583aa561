//! Tests that history is append-only: each request of a context begins with the bytes of the previous request.

use model::provider::RequestOptions;
use model::replay::{Block, Usage, sse};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::driver::{Answer, Conversation};

const MARKER: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Returns the parts of a request without cache markers: everything except the messages, then each block with its role.
fn parts(body: &[u8]) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        messages: Vec<Message<'a>>,
    }
    #[derive(serde::Deserialize)]
    struct Message<'a> {
        role: &'a str,
        #[serde(borrow)]
        content: Vec<&'a RawValue>,
    }
    let text = std::str::from_utf8(body).expect("R2: UTF-8");
    let parsed: Body<'_> = serde_json::from_str(text).expect("R2: JSON");
    let (fixed, _) = text.split_once(r#","messages":["#).expect("messages");
    let blocks = parsed.messages.iter().flat_map(|message| {
        let unmarked = |block: &&RawValue| format!("{} {}", message.role, block.get().replace(MARKER, ""));
        message.content.iter().map(unmarked).collect::<Vec<_>>()
    });
    std::iter::once(fixed.to_owned()).chain(blocks).collect()
}

fn block() -> impl Strategy<Value = Block> {
    let id = "[a-d]";
    prop_oneof![
        any::<String>().prop_map(Block::text),
        ".{0,20}".prop_map(|text| Block::thinking(text, "c2ln")),
        (id, any::<String>()).prop_map(|(id, command)| {
            Block::tool_use(id, "shell_exec", serde_json::json!({ "command": command }).to_string())
        }),
        (id, ".{0,9}").prop_map(|(id, input)| Block::tool_use(id, "shell_exec", input)),
    ]
}

/// Returns any reaction of the model except one that fills the context, because a full context would be replaced.
fn answer() -> impl Strategy<Value = Answer> {
    let stop = prop::sample::select(vec![
        "tool_use",
        "tool_use",
        "tool_use",
        "end_turn",
        "max_tokens",
        "pause_turn",
        "refusal",
        "stop_sequence",
        "bored",
    ]);
    let reply = (prop::collection::vec(block(), 0..6), stop)
        .prop_map(|(blocks, stop)| sse::message(&blocks, stop, Usage::default()));
    (reply, 0..10_u8, any::<prop::sample::Index>()).prop_map(|(reply, fate, at)| {
        let length = at.index(reply.len());
        match fate {
            0 => Answer::Overloaded,
            1 => Answer::Cut(reply, length),
            2 => Answer::Interrupted(reply, length),
            _ => Answer::Stream(reply),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r6_r8_each_request_begins_with_the_bytes_of_the_one_before(
        answers in prop::collection::vec(answer(), 1..12), turns in 1..6_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let bodies = runtime.block_on(async {
            let mut conversation = Conversation::new(answers, RequestOptions::default());
            for turn in 0..turns {
                conversation.user(&format!("turn {turn}")).await;
            }
            conversation.bodies
        });
        let mut before = Vec::new();
        for body in bodies {
            let now = parts(&body);
            prop_assert!(now.starts_with(&before), "{now:?}\nafter {before:?}");
            assert_answered(&serde_json::from_slice(&body).expect("JSON"));
            before = now;
        }
    }
}

/// Checks that the next message has the result of every call before any text, and no other results, and that no block
/// is empty text.
fn assert_answered(body: &Value) {
    let messages = body["messages"].as_array().expect("messages");
    let ids = |message: Option<&Value>, kind: &str, id: &str| {
        let blocks = message.and_then(|message| message["content"].as_array());
        let blocks = blocks.into_iter().flatten().filter(|block| block["type"] == kind);
        blocks.map(|block| block[id].to_string()).collect::<Vec<_>>()
    };
    for (place, message) in messages.iter().enumerate() {
        let calls = ids(Some(message), "tool_use", "id");
        assert_eq!(calls, ids(messages.get(place + 1), "tool_result", "tool_use_id"), "{body}");
        let kinds =
            message["content"].as_array().expect("blocks").iter().map(|block| block["type"] != "tool_result");
        assert!(message["role"] != "user" || kinds.is_sorted(), "results come first: {body}");
        assert!(
            !message["content"].as_array().expect("blocks").iter().any(|block| block["text"] == ""),
            "{body}"
        );
    }
}
