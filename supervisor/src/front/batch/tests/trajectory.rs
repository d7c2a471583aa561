use serde_json::{Value, json};

use super::super::trajectory::{Trajectories, trajectories};
use crate::journal::session::made::Log;

fn reply(content: &Value, stop: &str) -> Value {
    json!({
        "message_id": "m", "model": "m-1", "content": content, "stop_reason": stop, "cost_usd": 0.25,
        "usage": {"input": 10, "cache_creation": 2, "cache_read": 3, "output": 5},
    })
}

fn made() -> Trajectories {
    let calls = json!([
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Look."},
        {"type": "tool_use", "id": "t1", "name": "shell_exec", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "t2", "name": "read_file", "input": {"path": "a"}},
    ]);
    let finished = |call: u64, id: &str, content: &str| json!({"call": call, "tool_use": id, "status": "completed", "content": content, "duration_ms": 1});
    let started = json!({
        "version": "0.1.0", "project": "/p", "activity": "execute", "mode": "auto", "model": "m-1", "provider": "anthropic",
        "rights": "rw .",
    });
    let usage = json!({"input": 20, "cache_creation": 4, "cache_read": 6, "output": 10});
    let log = Log::new()
        .with("1", "session_started", started)
        .with("1", "context_added", json!({"source": "environment", "text": "here"}))
        .said("1", "fix it")
        .with("1", "assistant_message", reply(&calls, "tool_use"))
        .with("1.1", "assistant_message", reply(&json!([{"type": "text", "text": "of a sub-agent"}]), "end_turn"))
        .with("1", "tool_call_finished", finished(2, "t2", "content of a"))
        .with("1", "tool_call_finished", finished(1, "t1", "a"))
        .with("1", "tool_call_finished", finished(9, "t9", "of no call"))
        .with("1", "assistant_message", reply(&json!([{"type": "text", "text": "Done."}, {"type": "odd"}]), "end_turn"))
        .with("1", "result", json!({
            "exit_code": 0, "reason": "done", "text": "Done.", "steps": 2, "usage": usage, "cost_usd": 0.5, "duration_ms": 7,
        }));
    let loaded = log.loaded();
    trajectories(loaded.tree.events(), "diff")
}

fn text(mut value: Value) -> String {
    for message in value["messages"].as_array_mut().into_iter().flatten() {
        assert!(message["extra"]["timestamp"].take().as_f64().unwrap() > 1.7e9);
    }
    for step in value["steps"].as_array_mut().into_iter().flatten() {
        let time = step["timestamp"].take();
        assert!(time.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second() > 1_700_000_000);
    }
    serde_json::to_string_pretty(&value).unwrap()
}

#[test]
fn a_session_in_the_format_of_mini_swe_agent() {
    insta::assert_snapshot!(text(made().mini));
}

#[test]
fn a_session_in_atif() {
    insta::assert_snapshot!(text(made().atif));
}

#[test]
fn an_empty_log_has_an_empty_trajectory() {
    let Trajectories { mini, atif } = trajectories(&[], "");
    assert_eq!((&mini["messages"], &atif["steps"]), (&json!([]), &json!([])));
    assert_eq!(mini["info"]["exit_status"], Value::Null);
}
