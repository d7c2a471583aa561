//! Runs one turn, and returns the tool results that the model gets.

use serde_json::{Value, json};
use tests::replies::{calls, done, model_of};
use tests::world::tool_results;
use tests::{Finished, World};

/// Runs one turn with these calls. Returns the tool results, and the run.
pub(crate) fn turn(world: &World, asked: &[(&str, Value)], arguments: &[&str]) -> (Vec<Value>, Finished) {
    let server = model_of([calls(asked), done()]);
    let run = world.run(&server, arguments);
    assert!([0, 4].contains(&run.code), "{}\n{}", run.stdout, run.stderr);
    (tool_results(&server, 1), run)
}

/// Runs one turn with a single call, and returns the text of the tool result.
pub(crate) fn told(world: &World, name: &str, input: Value, arguments: &[&str]) -> String {
    let (results, _) = turn(world, &[(name, input)], arguments);
    content(&results[0])
}

pub(crate) fn content(result: &Value) -> String {
    match &result["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        other => other.to_string(),
    }
}

pub(crate) fn command(line: &str) -> (&'static str, Value) {
    ("shell_exec", json!({"command": line}))
}

/// Returns the path of a directory outside of the project.
pub(crate) fn outside(world: &World) -> String {
    world.outside().display().to_string()
}
