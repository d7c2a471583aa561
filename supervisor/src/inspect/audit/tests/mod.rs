//! Tests of audits with logs that are built here.

mod account;
mod findings;
mod guests;
mod page;

use serde_json::{Value, json};

use super::account::AuditAccount;
use super::by_agent::EventsByAgent;
use crate::journal::session::made::Log;

impl Log {
    fn spawned(self, agent: &str, changes: Value) -> Self {
        let parent = agent.rsplit_once('.').unwrap().0;
        let mut data = json!({
            "agent": agent, "call": 1, "task": "look around", "model": "m", "write": [], "net": "off",
            "reach": {"host": false, "link_local": false, "metadata": false}, "rights_digest": "d1",
        });
        merge(&mut data, changes);
        self.with(parent, "sub_agent_spawned", data)
    }

    fn worker(self, agent: &str, generation: u32, digest: &str) -> Self {
        let data = json!({
            "generation": generation, "pid": 7, "tier": "floor", "landlock_abi": 7, "rules": 12,
            "rights": "read-only · network off · secrets hidden", "rights_digest": digest,
            "ruleset_digest": "0123456789abcdef", "startup_us": 1,
        });
        self.with(agent, "worker_started", data)
    }

    fn guest(self, agent: &str, guest: u32, changes: Value) -> Self {
        let mut data = json!({
            "guest": guest, "kind": "gateway", "worker": 1, "pid": 7, "tier": "full", "landlock_abi": 7, "rules": 12,
            "rights": {"read": ["system"], "net": "on", "exec": "denied", "hidden": 0, "protected": 0},
            "hosts": ["a.example"], "rights_digest": "d", "ruleset_digest": "0123456789abcdef", "startup_us": 1,
        });
        merge(&mut data, changes);
        self.with(agent, "guest_started", data)
    }

    fn guest_end(self, agent: &str, guest: u32, reason: &str, more: Value) -> Self {
        let mut data = json!({"guest": guest, "reason": {"type": reason}});
        merge(&mut data, more);
        self.with(agent, "guest_ended", data)
    }

    fn result(self, agent: &str, text: &str) -> Self {
        let parent = agent.rsplit_once('.').unwrap().0;
        let data = json!({
            "agent": agent, "call": 1, "status": "done", "denials": 0, "steps": 1, "duration_ms": 2500, "text": text,
            "usage": usage(),
        });
        self.with(parent, "sub_agent_result", data)
    }

    fn end(self) -> Self {
        let data = json!({
            "exit_code": 0, "reason": "done", "text": "", "steps": 1, "usage": usage(), "duration_ms": 1,
        });
        self.with("1", "result", data)
    }

    fn account(&self) -> AuditAccount {
        let loaded = self.loaded();
        AuditAccount::of("/state/s-1.jsonl".as_ref(), &loaded, &EventsByAgent::of(&loaded.tree))
    }
}

fn usage() -> Value {
    json!({"input": 10, "cache_creation": 0, "cache_read": 0, "output": 2})
}

fn merge(data: &mut Value, changes: Value) {
    for (name, value) in changes.as_object().unwrap() {
        data[name] = value.clone();
    }
}
