//! Trajectories in the formats of mini-swe-agent and of ATIF, the Agent Trajectory Interchange Format of Harbor. They
//! are made from the first agent's events in the session log.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use protocol::cost::Usd;
use protocol::event::{
    AssistantMessage, EndReason, EventKind, RunResult, SessionEvent, SessionStarted, TokenUsage,
};
use serde_json::{Map, Value, json};

use super::state::store;
use crate::journal::session::load;

const ATIF: &str = "ATIF-v1.4";

const MINI: &str = "mini-swe-agent-1.1";

pub(super) const LOG: &str = "session.jsonl";

/// Maximum size in bytes of a log. The whole log is held in memory.
const MOST_LOG: u64 = 32 << 20;

#[derive(Debug, PartialEq)]
pub(super) struct Trajectories {
    pub mini: Value,
    pub atif: Value,
}

/// The parts of a model's reply that both formats contain.
#[derive(Default)]
struct TrajectoryReply {
    text: String,
    thinking: String,
    calls: Vec<TrajectoryCall>,
}

struct TrajectoryCall {
    id: String,
    name: String,
    input: Value,
}

#[derive(Default)]
struct Making {
    started: Option<(String, SessionStarted)>,
    messages: Vec<Value>,
    steps: Vec<Value>,
    /// For each call without a result so far, the index of the step that made the call.
    open: BTreeMap<String, usize>,
    result: Option<RunResult>,
    replies: u32,
}

/// Writes `ID.traj.json` and `trajectory.json` next to the session's log.
pub(super) fn write(instance: &Path, id: &str, patch: &str) -> io::Result<()> {
    let log = instance.join(LOG);
    if fs::metadata(&log)?.len() > MOST_LOG {
        return Err(io::Error::other("the log has more than 32 MiB"));
    }
    let loaded = load(&log).map_err(io::Error::other)?;
    let Trajectories { mini, atif } = trajectories(loaded.tree.events(), patch);
    store(&instance.join(format!("{id}.traj.json")), &mini)?;
    store(&instance.join("trajectory.json"), &atif)
}

pub(super) fn trajectories<'a>(
    events: impl IntoIterator<Item = &'a SessionEvent>,
    patch: &str,
) -> Trajectories {
    let mut making = Making::default();
    for event in events {
        if event.agent.is_top_level() {
            making.add(event);
        }
    }
    making.finish(patch)
}

impl Making {
    fn add(&mut self, event: &SessionEvent) {
        let time = event.time_ms;
        match &event.kind {
            EventKind::SessionStarted(started) => {
                self.started = Some((event.session.to_string(), started.clone()));
            }
            EventKind::UserMessage { text, .. } | EventKind::ContextAdded { text, .. } => {
                self.said("user", time, text);
            }
            EventKind::AssistantMessage(message) => self.replied(time, message),
            EventKind::ToolCallFinished { tool_use, content, .. } => {
                self.answered(&tool_use.to_string(), time, content);
            }
            EventKind::Result(result) => self.result = Some(result.clone()),
            _ => {}
        }
    }

    fn said(&mut self, by: &str, time: u64, text: &str) {
        self.messages.push(json!({"role": by, "content": text, "extra": {"timestamp": seconds(time)}}));
        self.step(time, by, text, Map::new());
    }

    fn replied(&mut self, time: u64, message: &AssistantMessage) {
        self.replies += 1;
        let reply = TrajectoryReply::of(message);
        let cost = message.cost_usd.map(Usd::dollars);
        let mut spoken = json!({
            "role": "assistant",
            "content": reply.text,
            "extra": {"timestamp": seconds(time), "cost": cost, "model": message.model, "usage": message.usage},
        });
        let mut more = Map::new();
        more.insert("model_name".to_owned(), json!(message.model));
        more.insert("metrics".to_owned(), metrics(message.usage, cost));
        if !reply.thinking.is_empty() {
            spoken["reasoning_content"] = json!(reply.thinking);
            more.insert("reasoning_content".to_owned(), json!(reply.thinking));
        }
        if !reply.calls.is_empty() {
            let function =
                |call: &TrajectoryCall| json!({"name": call.name, "arguments": call.input.to_string()});
            let tool = |call: &TrajectoryCall| json!({"id": call.id, "type": "function", "function": function(call)});
            spoken["tool_calls"] = reply.calls.iter().map(tool).collect();
            let tool = |call: &TrajectoryCall| json!({"tool_call_id": call.id, "function_name": call.name, "arguments": call.input});
            more.insert("tool_calls".to_owned(), reply.calls.iter().map(tool).collect());
            self.open.extend(reply.calls.iter().map(|call| (call.id.clone(), self.steps.len())));
        }
        self.messages.push(spoken);
        self.step(time, "agent", &reply.text, more);
    }

    /// Adds the result of a call to the step that made the call.
    fn answered(&mut self, call: &str, time: u64, content: &str) {
        let Some(step) = self.open.remove(call).and_then(|at| self.steps.get_mut(at)) else { return };
        let result = json!({"source_call_id": call, "content": content});
        match step["observation"]["results"].as_array_mut() {
            Some(results) => results.push(result),
            None => step["observation"] = json!({"results": [result]}),
        }
        self.messages.push(json!({
            "role": "tool", "tool_call_id": call, "content": content, "extra": {"timestamp": seconds(time)},
        }));
    }

    fn step(&mut self, time: u64, source: &str, message: &str, more: Map<String, Value>) {
        let mut step = Map::new();
        step.insert("step_id".to_owned(), json!(self.steps.len() + 1));
        step.insert("timestamp".to_owned(), json!(timestamp(time)));
        step.insert("source".to_owned(), json!(source));
        step.insert("message".to_owned(), json!(message));
        step.extend(more);
        self.steps.push(Value::Object(step));
    }

    fn finish(self, patch: &str) -> Trajectories {
        let Self { started, messages, steps, result, replies, .. } = self;
        let (session, started) = started.unzip();
        let version = started.as_ref().map(|started| started.version.as_str()).unwrap_or_default();
        let model = started.as_ref().map(|started| started.model.as_str()).unwrap_or_default();
        let usage = result.as_ref().map(|result| result.usage).unwrap_or_default();
        let cost = result.as_ref().and_then(|result| result.cost_usd).map(Usd::dollars);
        let ended = result.as_ref().map(|result| result.reason);
        let status = |reason: EndReason| match reason {
            EndReason::Done => "Submitted",
            EndReason::StepLimit | EndReason::TokenLimit | EndReason::CostLimit | EndReason::TimeLimit => {
                "LimitsExceeded"
            }
            reason => reason.as_str(),
        };
        let mini = json!({
            "info": {
                "model_stats": {"instance_cost": cost.unwrap_or(0.0), "api_calls": replies},
                "config": {
                    "agent": {"name": "bailiwick", "version": version},
                    "agent_type": "bailiwick",
                    "model": {"model_name": model},
                },
                "exit_status": ended.map(status),
                "submission": patch,
            },
            "messages": messages,
            "trajectory_format": MINI,
        });
        let atif = json!({
            "schema_version": ATIF,
            "session_id": session.unwrap_or_default(),
            "agent": {"name": "bailiwick", "version": version, "model_name": model},
            "final_metrics": {
                "total_prompt_tokens": prompt_tokens(usage),
                "total_completion_tokens": usage.output,
                "total_cached_tokens": usage.cache_read,
                "total_cost_usd": cost,
                "total_steps": steps.len(),
            },
            "steps": steps,
            "extra": {"end_reason": ended, "patch": patch},
        });
        Trajectories { mini, atif }
    }
}

impl TrajectoryReply {
    fn of(message: &AssistantMessage) -> Self {
        let mut reply = Self::default();
        for block in &message.content {
            // Blocks of an unknown kind are skipped. The log has them.
            let Ok(mut block) = serde_json::from_str::<Value>(block.get()) else { continue };
            match block["type"].as_str() {
                Some("text") => reply.text += block["text"].as_str().unwrap_or_default(),
                Some("thinking") => reply.thinking += block["thinking"].as_str().unwrap_or_default(),
                Some("tool_use") => reply.calls.push(TrajectoryCall {
                    id: block["id"].as_str().unwrap_or_default().to_owned(),
                    name: block["name"].as_str().unwrap_or_default().to_owned(),
                    input: block["input"].take(),
                }),
                _ => {}
            }
        }
        reply
    }
}

fn metrics(usage: TokenUsage, cost: Option<f64>) -> Value {
    json!({
        "prompt_tokens": prompt_tokens(usage),
        "completion_tokens": usage.output,
        "cached_tokens": usage.cache_read,
        "cost_usd": cost,
    })
}

fn prompt_tokens(usage: TokenUsage) -> u64 {
    usage.input.saturating_add(usage.cache_creation).saturating_add(usage.cache_read)
}

fn timestamp(time_ms: u64) -> String {
    let time = i64::try_from(time_ms).ok().and_then(|time| Timestamp::from_millisecond(time).ok());
    time.unwrap_or_default().to_string()
}

fn seconds(time_ms: u64) -> f64 {
    std::time::Duration::from_millis(time_ms).as_secs_f64()
}
