//! Tests of every output form with hostile logs.

mod forms;
mod hostile;

use ipc::rights::Rights;
use serde_json::{Value, json};

use super::Reading;
use super::entry::ShownText;
use crate::journal::session::made::Log;

impl Log {
    fn began(self) -> Self {
        let data = json!({
            "version": "0.1.0", "project": "/p", "activity": "execute", "mode": "ask", "model": "m", "provider": "anthropic",
            "rights": "ro / · net off",
        });
        self.with("1", "session_started", data)
    }

    fn replied(self, agent: &str, blocks: Value) -> Self {
        let usage = json!({"input": 100, "cache_creation": 0, "cache_read": 0, "output": 20});
        let data = json!({
            "message_id": "i", "model": "m", "content": blocks, "stop_reason": "end_turn", "usage": usage, "cost_usd": 0.01,
        });
        self.with(agent, "assistant_message", data)
    }

    fn called(self, agent: &str, name: &str, input: Value) -> Self {
        self.with(
            agent,
            "tool_call_started",
            json!({"call": 1, "tool_use": "t", "name": name, "input": input}),
        )
    }

    fn finished(self, agent: &str, status: &str, content: &str) -> Self {
        let data =
            json!({"call": 1, "tool_use": "t", "status": status, "content": content, "duration_ms": 5});
        self.with(agent, "tool_call_finished", data)
    }

    fn delegated(self, agent: &str, task: &str) -> Self {
        let data = json!({
            "agent": agent, "call": 1, "task": task, "model": "m", "write": [], "net": "off",
            "reach": {"host": false, "link_local": false, "metadata": false}, "rights_digest": "d1",
        });
        self.with(agent.rsplit_once('.').unwrap().0, "sub_agent_spawned", data)
    }

    fn guest_started(self, number: u64, kind: &str, name: Option<&str>, more: &Value) -> Self {
        let mut data = json!({
            "guest": number, "kind": kind, "pid": 9, "tier": "full", "landlock_abi": 6, "rules": 1, "startup_us": 1,
            "rights": {"write": ["temp"], "net": "off", "hidden": 1, "protected": 0}, "rights_digest": "d", "ruleset_digest": "d",
        });
        let more = more.as_object().cloned().unwrap_or_default();
        data.as_object_mut()
            .unwrap()
            .extend(name.map(|name| ("name".to_owned(), json!(name))).into_iter().chain(more));
        self.with("1", "guest_started", data)
    }

    fn guest_ended(self, number: u64, reason: &Value) -> Self {
        let data = json!({"guest": number, "reason": reason, "totals": {"calls": 2, "denials": 0}});
        self.with("1", "guest_ended", data)
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.log.path()).unwrap()
    }

    fn shown(&self, full: bool) -> ShownText {
        Reading::new(None, full).read(&self.loaded())
    }
}

fn plan_request(place: &str, text: &str, steps: Value) -> Value {
    let rights = Rights { write: vec![place.into()], ..Rights::default() };
    json!({"id": 3, "request": {"method": "planApproval", "params": {
        "conversation_id": text, "agent": "1", "call_id": 1, "path": place, "markdown": text,
        "plan": {"title": text, "steps": steps}, "rights": rights, "digest": text, "timeout_ms": 1, "reason": text,
        "grant": {"write": [], "net": "off", "reach": {"host": false, "link_local": false, "metadata": false}},
    }}})
}

/// Returns a log with the text in every field that can hold untrusted text.
fn everywhere(text: &str) -> Log {
    // Paths cannot contain NUL.
    let name = text.replace('\0', "");
    let path = format!("/p/{name}");
    let denied = json!({
        "call": 1, "layer": "landlock", "operation": "write", "object": {"path": path}, "program": text,
        "missing_right": text, "grant": text, "grade": "likely", "rights": text,
    });
    let asked = json!({"id": 1, "request": {"method": "execCommandApproval", "params": {
        "conversation_id": text, "agent": "1", "call_id": 1, "command": [text, text], "cwd": path, "environment": [],
        "access": "write", "digest": text, "grant": {"write": [path], "net": "off",
        "reach": {"host": false, "link_local": false, "metadata": false}}, "rights": text, "timeout_ms": 1, "reason": text,
    }}});
    let changes = json!({"id": 2, "request": {"method": "applyPatchApproval", "params": {
        "conversation_id": text, "agent": "1", "call_id": 1, "file_changes": {path.as_str(): {"add": {"content": text}}},
        "digest": text, "grant": {"write": [path], "net": "off",
        "reach": {"host": false, "link_local": false, "metadata": false}}, "rights": text, "timeout_ms": 1,
    }}});
    let plan = plan_request(
        &path,
        text,
        json!([{"title": text, "files": [text], "acceptance": [
            {"type": "command", "text": text}, {"type": "criterion", "text": text},
        ]}]),
    );
    let answered =
        json!({"call": 1, "decision": {"decision": "denied", "message": text}, "by": "user", "cause": text});
    let usage = json!({"input": 1, "cache_creation": 0, "cache_read": 0, "output": 1});
    let result = json!({
        "agent": format!("1.1{text}"), "call": 1, "status": "done", "message": text, "files": [path], "denials": 0, "steps": 1,
        "usage": usage, "duration_ms": 2500, "text": text,
    });
    let began = json!({
        "version": text, "project": path, "activity": "execute", "mode": "ask", "model": text, "provider": text, "rights": text,
    });
    let ended = json!({
        "exit_code": 0, "reason": "done", "message": text, "text": text, "steps": 1, "usage": usage, "duration_ms": 1,
    });
    let blocks =
        json!([{"type": "thinking", "thinking": text, "signature": text}, {"type": "text", "text": text}]);
    Log::new()
        .with("1", "session_started", began)
        .said("1", text)
        .with("1", "context_added", json!({"source": text, "text": text}))
        .replied("1", blocks)
        .called("1", text, json!({"command": text, text: text}))
        .with("1", "denied", denied)
        .with("1", "approval_requested", asked)
        .with("1", "approval_requested", changes)
        .with("1", "approval_requested", plan)
        .with("1", "approval_answered", answered)
        .finished("1", "failed", text)
        .with(
            "1",
            "restored",
            json!({"places": [{"path": name, "what": {"keys": [text]}, "restored": true}]}),
        )
        .with("1", "notice", json!({"code": text, "message": text}))
        .with("1", "protocol_violation", json!({"generation": 1, "violation": text}))
        .with("1", "model_failed", json!({"kind": "other", "message": text}))
        .with("1", "change_set", json!({"files": [{"path": name, "change": "added"}]}))
        .guest_started(1, "mcp_server", Some(text), &json!({"variables": [text]}))
        .guest_ended(1, &json!({"type": "failed", "failure": text}))
        .delegated("1.1", text)
        .said(&format!("1.1{text}"), text)
        .with("1", "sub_agent_result", result)
        .with("1", "result", ended)
}
