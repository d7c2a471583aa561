//! Tests a task that exceeds the model's context window: the run continues in new contexts to its end.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use model::replay::{ReplayServer, sse};
use serde_json::{Value, json};
use tests::Finished;
use tests::World;
use tests::replies::model_of;
use tests::tier::everywhere;

/// Returns a reply to a prompt of `input` tokens.
fn reply(block: sse::Block, stop_reason: &str, input: u64) -> String {
    sse::message(&[block], stop_reason, sse::Usage { input, ..sse::Usage::default() })
}

fn call(id: &str, name: &str, input: &Value, prompt: u64) -> String {
    reply(sse::Block::tool_use(id, name, input.to_string()), "tool_use", prompt)
}

fn words(text: &str, prompt: u64) -> String {
    reply(sse::Block::text(text), "end_turn", prompt)
}

/// Starts a model server with a window of 16,000 tokens. The task fills it twice.
fn model() -> ReplayServer {
    let long = json!({"command": "seq 1 100000"});
    let look = json!({"command": "tail -n 1 $TMPDIR/bailiwick-output/call-*.log; echo made > made.txt"});
    let write = json!({"path": "done.txt", "content": "done\n"});
    model_of([
        call("a", "read_file", &json!({"path": "big.txt"}), 5_000),
        call("b", "shell_exec", &long, 9_800),
        words("### Plan\nWrite done.txt.", 10_500),
        call("c", "shell_exec", &look, 4_000),
        call("d", "write_file", &write, 11_900),
        words("### Plan\nIt is written.", 12_000),
        words("Done.", 4_100),
    ])
}

fn prompt_of(server: &ReplayServer, request: usize) -> Value {
    serde_json::from_slice(&server.requests()[request].body).unwrap()
}

#[test]
fn a_run_that_fills_its_window_twice_comes_to_its_end() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        world.file("big.txt", "a line of a long file\n".repeat(200));
        world.file(".bailiwick.toml", "[limits]\ncontext_tokens = 16000\n");
        world.file("AGENTS.md", "Use tabs.\n");
        let server = model();
        let done = Finished::of(&mut world.exec(&server, &["--mode", "auto"])).expect(0);
        assert_eq!(server.remaining(), 0);
        let of_kind = |kind: &str| -> Vec<Value> {
            done.events()
                .into_iter()
                .filter(|event| event["type"] == kind)
                .map(|event| event["data"].clone())
                .collect()
        };
        assert_eq!(of_kind("compaction_started").len(), 2);
        let compacted = of_kind("context_compacted");
        assert_eq!(
            compacted.iter().map(|it| &it["summary"]).collect::<Vec<_>>(),
            ["conversation", "conversation"]
        );
        assert_eq!(compacted[0]["usage"]["input"], 10_500);
        assert_eq!(done.result()["steps"], 7);
        // The summary is asked for at the end of the conversation, with the same tools.
        let (before, asked) = (prompt_of(&server, 1), prompt_of(&server, 2));
        assert_eq!((&before["tools"], &before["system"]), (&asked["tools"], &asked["system"]));
        assert_eq!(asked["messages"].as_array().unwrap().len(), 5);
        // The first message in the log is the one that is sent, and has the facts that the run needs.
        let sent = prompt_of(&server, 6)["messages"].clone();
        assert_eq!(sent.as_array().unwrap().len(), 1, "{sent}");
        for (block, text) in sent[0]["content"]
            .as_array()
            .unwrap()
            .iter()
            .zip(compacted[1]["first_message"].as_array().unwrap())
        {
            assert_eq!(block["text"], *text);
        }
        let text = sent.to_string();
        for known in ["> do it", "It is written.", "big.txt: read once", "done.txt: created", "Use tabs."] {
            assert!(text.contains(known), "{known}: {text}");
        }
        assert_eq!(std::fs::read_to_string(world.project().join("done.txt")).unwrap(), "done\n");
        // The file with the complete output was there for the next command.
        let results = of_kind("tool_call_finished");
        assert!(
            results[1]["content"].as_str().unwrap().contains("bailiwick-output/call-2.log: search_files"),
            "{results:?}"
        );
        assert!(results[2]["content"].as_str().unwrap().starts_with("100000\n"), "{results:?}");
    }
}
