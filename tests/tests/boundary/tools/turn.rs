//! One turn with the model's results.

use serde_json::{Value, json};
use tests::replies::{calls, done, model_of};
use tests::world::tool_results;
use tests::{Finished, World};

/// The tool results of one turn with these calls, and the run.
pub(crate) fn turn(world: &World, asked: &[(&str, Value)], arguments: &[&str]) -> (Vec<Value>, Finished) {
    let server = model_of([calls(asked), done()]);
    let run = world.run(&server, arguments);
    assert!([0, 4].contains(&run.code), "{}\n{}", run.stdout, run.stderr);
    (tool_results(&server, 1), run)
}

/// Returns the model's result of one call.
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

/// A directory outside the project, as text.
pub(crate) fn outside(world: &World) -> String {
    world.outside().display().to_string()
}
