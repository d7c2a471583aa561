//! Runs commands in a session, and collects the reports about each.

use ipc::confinement::Tier;
use serde_json::{Value, json};
use tests::replies::{calls, done, model_of};
use tests::world::tool_results;
use tests::{Finished, World, tier};

#[derive(Debug)]
pub(crate) struct Told {
    /// Tool result for the model.
    pub(crate) content: String,
    /// True if the tool result is marked as an error.
    pub(crate) failed: bool,
    /// Denials of the call in the session log.
    pub(crate) denials: Vec<Value>,
}

/// Makes these tool calls in one session, one in each reply. Returns the report about each.
pub(crate) fn tell(world: &World, tier: Tier, flags: &[&str], asked: &[(&str, Value)]) -> Vec<Told> {
    let replies = asked.iter().map(|one| calls(std::slice::from_ref(one)));
    let server = model_of(replies.chain([done()]));
    let mut exec = world.exec(&server, flags);
    let run = Finished::of(exec.args(tier::flags(tier)).args(["--max-steps", "999"]));
    assert!([0, 4].contains(&run.code), "{}\n{}", run.stdout, run.stderr);
    let denied = run.events_of("denied");
    let told = |index: usize| {
        let result = tool_results(&server, index + 1).remove(0);
        let of_this = |denied: &&Value| denied["call"] == json!(index + 1);
        Told {
            content: content(&result),
            failed: result["is_error"] == true,
            denials: denied.iter().filter(of_this).cloned().collect(),
        }
    };
    (0..asked.len()).map(told).collect()
}

pub(crate) fn command(line: &str) -> (&'static str, Value) {
    ("shell_exec", json!({"command": line}))
}

fn content(result: &Value) -> String {
    match &result["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        other => other.to_string(),
    }
}
