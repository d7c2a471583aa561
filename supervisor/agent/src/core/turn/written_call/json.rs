//! Recognises calls in JSON. Each family of models has its own names for the members with the tool and the arguments.

use serde_json::{Map, Value};

/// Members whose value is the name of the tool.
const NAMES: [&str; 9] = [
    "name",
    "tool",
    "tool_name",
    "toolName",
    "function",
    "function_name",
    "action",
    "recipient_name",
    "command_name",
];

/// Members whose value is the arguments.
const ARGUMENTS: [&str; 9] = [
    "arguments",
    "parameters",
    "input",
    "args",
    "action_input",
    "tool_input",
    "toolInput",
    "params",
    "kwargs",
];

/// Members whose value is a call, or a list of calls.
const AROUND: [&str; 5] = ["tool_calls", "tool_call", "function_call", "tool_uses", "function"];

pub(super) fn tool_of<'a>(value: &Value, tools: &[&'a str]) -> Option<&'a str> {
    match value {
        Value::Array(calls) => {
            let called: Option<Vec<_>> = calls.iter().map(|call| tool_of(call, tools)).collect();
            called?.first().copied()
        }
        Value::Object(call) => AROUND
            .iter()
            .find_map(|member| call.get(*member).filter(|inner| !inner.is_string()))
            .map_or_else(|| of_call(call, tools), |inner| tool_of(inner, tools)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn of_call<'a>(call: &Map<String, Value>, tools: &[&'a str]) -> Option<&'a str> {
    // This is the definition of a tool, and no call.
    if call.contains_key("description") || call.contains_key("input_schema") {
        return None;
    }
    let (member, name) = NAMES.iter().find_map(|member| Some((*member, call.get(*member)?.as_str()?)))?;
    let tool = offered(name, tools)?;
    let has_arguments = match ARGUMENTS.iter().find_map(|member| call.get(*member)) {
        Some(Value::Object(arguments)) => !is_schema(arguments),
        Some(Value::String(_)) => true,
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => false,
        // The arguments are members beside the tool's name. A `name` alone can mean anything.
        None => member != "name",
    };
    has_arguments.then_some(tool)
}

fn is_schema(arguments: &Map<String, Value>) -> bool {
    arguments.contains_key("properties") && arguments.get("type").is_some_and(Value::is_string)
        || arguments.contains_key("$schema")
}

/// Returns the tool with this name; `None` if there is none. Models may add a namespace and a number to the name.
pub(super) fn offered<'a>(name: &str, tools: &[&'a str]) -> Option<&'a str> {
    let name = name.trim();
    let name = ["functions.", "function.", "tools.", "default_api."]
        .iter()
        .find_map(|space| name.strip_prefix(space))
        .unwrap_or(name);
    let name = name.rsplit_once(':').filter(|(_, number)| is_number(number)).map_or(name, |(name, _)| name);
    tools.iter().find(|tool| **tool == name).copied()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
