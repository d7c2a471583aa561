//! The vendors' own rules for a request, as far as they are about the conversation in it: a server that holds to all of them.
//!
//! Messages: the documentation's pages on messages, tool use and extended thinking, and the texts of its errors. Chat completions and
//! responses: the reference, the SDK's types, and the texts of errors of the servers that many people use.

use std::collections::BTreeSet;

use serde_json::Value;

/// Finds the first fault of a request that goes to this path: the text of the error that a vendor answers with.
pub fn fault(path: &str, body: &Value) -> Option<String> {
    let checked = if path.ends_with("/messages") {
        of_messages(list(&body["messages"])).and_then(|()| around_messages(body))
    } else if path.ends_with("/chat/completions") {
        of_chat(list(&body["messages"])).and_then(|()| {
            of_tools(list(&body["tools"]).iter().map(|tool| &tool["function"]), "parameters", 64)
        })
    } else if path.ends_with("/responses") {
        of_responses(list(&body["input"]))
            .and_then(|()| of_tools(list(&body["tools"]).iter(), "parameters", 64))
    } else {
        Ok(())
    };
    checked.err()
}

/// Checks the parts of a request of the Messages API around the conversation.
fn around_messages(body: &Value) -> Checked {
    of_tools(list(&body["tools"]).iter(), "input_schema", 128)?;
    let last = list(&body["messages"]).last();
    // A turn that paused while a tool of the vendor's ran goes back as it is.
    let is_paused = |message: &Value| {
        list(&message["content"]).last().is_some_and(|block| word(block, "type") == "server_tool_use")
    };
    let goes_on = last.is_some_and(|message| word(message, "role") == "user" || is_paused(message));
    need(goes_on, || {
        "This model does not support assistant message prefill. The conversation must end with a user message."
            .to_owned()
    })?;
    let texts = list(&body["system"]).iter().all(|part| !is_blank(word(part, "text")));
    need(texts, || "system: text content blocks must be non-empty".to_owned())?;
    of_cache(body)
}

/// R7: the names of tools, and the root of their schemas.
fn of_tools<'a>(tools: impl Iterator<Item = &'a Value>, schema: &str, longest: usize) -> Checked {
    let mut names = BTreeSet::new();
    for (n, tool) in tools.enumerate() {
        let name = word(tool, "name");
        need(is_word(name, longest), || format!("tools.{n}.name: String should match pattern: {name:?}"))?;
        need(names.insert(name), || "tools: Tool names must be unique.".to_owned())?;
        need(tool[schema]["type"] == "object", || format!("tools.{n}.custom.{schema}.type: Field required"))?;
    }
    Ok(())
}

/// R8: at most four markers in the order of the prompt, none on thinking, the long ones first.
fn of_cache(body: &Value) -> Checked {
    let messages = list(&body["messages"]);
    let content = messages.iter().flat_map(|message| list(&message["content"]));
    let places: Vec<&Value> =
        list(&body["tools"]).iter().chain(list(&body["system"])).chain(content).collect();
    let marked: Vec<&&Value> = places.iter().filter(|place| place["cache_control"].is_object()).collect();
    let all = marked.len() + usize::from(body["cache_control"].is_object());
    need(all <= 4, || format!("A maximum of 4 blocks with cache_control may be provided. Found {all}."))?;
    let on_thinking = marked.iter().any(|place| word(place, "type").ends_with("thinking"));
    need(!on_thinking, || "cache_control cannot be set on thinking blocks".to_owned())?;
    let long = marked.iter().map(|place| place["cache_control"]["ttl"] == "1h");
    let is_sorted = long.skip_while(|is_long| *is_long).all(|is_long| !is_long);
    need(is_sorted, || "a ttl='1h' cache_control block must not come after a ttl='5m' one".to_owned())
}

type Checked = Result<(), String>;

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn need(holds: bool, fault: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(fault()) }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// True of letters, digits, `_` and `-`, at least one and at most so many.
fn is_word(text: &str, longest: usize) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !text.is_empty() && text.len() <= longest && text.chars().all(fits)
}

fn of_messages(messages: &[Value]) -> Checked {
    need(!messages.is_empty(), || "messages: at least one message is required".to_owned())?;
    need(messages[0]["role"] == "user", || "messages: first message must use the \"user\" role".to_owned())?;
    let mut ids = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let at = format!("messages.{n}");
        let other = if n % 2 == 0 { "user" } else { "assistant" };
        need(message["role"] == other, || format!("{at}: roles must alternate"))?;
        let content = list(&message["content"]);
        let says = message["content"].as_str().is_some_and(|text| !is_blank(text));
        need(says || !content.is_empty(), || format!("{at}: all messages must have non-empty content"))?;
        let results: Vec<&str> =
            of_type(content, "tool_result").map(|result| word(result, "tool_use_id")).collect();
        let (mut wanted, mut told) = (open.clone(), results.clone());
        wanted.sort_unstable();
        told.sort_unstable();
        need(wanted == told, || {
            format!(
                "{at}: `tool_use` ids were found without `tool_result` blocks immediately after, or the reverse: {wanted:?}, {told:?}"
            )
        })?;
        for (m, block) in content.iter().enumerate() {
            of_block(&format!("{at}.content.{m}"), block, &mut ids)?;
        }
        let first_other = content.iter().position(|block| block["type"] != "tool_result");
        let behind = first_other.is_some_and(|at| content[at..].iter().any(|it| it["type"] == "tool_result"));
        need(!behind, || format!("{at}: `tool_result` blocks must stand before text"))?;
        let last = content.last().map_or("", |block| word(block, "type"));
        need(!last.ends_with("thinking"), || {
            format!("{at}: The final block in an assistant message cannot be `thinking`.")
        })?;
        open = of_type(content, "tool_use").map(|call| word(call, "id")).collect();
    }
    need(open.is_empty(), || "the last calls have no results".to_owned())
}

fn of_block<'a>(at: &str, block: &'a Value, ids: &mut BTreeSet<&'a str>) -> Checked {
    match word(block, "type") {
        "text" => need(!is_blank(word(block, "text")), || {
            format!("{at}: text content blocks must contain non-whitespace text")
        }),
        "thinking" => {
            need(block["signature"].is_string(), || format!("{at}.thinking.signature: Field required"))
        }
        "tool_use" => {
            let id = word(block, "id");
            need(is_word(id, 64), || {
                format!("{at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
            })?;
            need(ids.insert(id), || format!("{at}: `tool_use` ids must be unique"))?;
            need(is_word(word(block, "name"), 128), || {
                format!("{at}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
            })?;
            need(block["input"].is_object(), || {
                format!("{at}.tool_use.input: Input should be a valid dictionary")
            })
        }
        "tool_result" => of_result(at, block),
        "image" => of_image(at, &block["source"]),
        "reasoning" | "reasoning_details" | "output_item" | "" => Err(format!(
            "{at}: Input tag '{}' found using 'type' does not match any of the expected tags",
            block["type"]
        )),
        _ => Ok(()),
    }
}

/// R10: bytes of the kind that they are said to be.
fn of_image(at: &str, source: &Value) -> Checked {
    let kinds =
        [("image/png", "iVBOR"), ("image/jpeg", "/9j/"), ("image/gif", "R0lG"), ("image/webp", "UklGR")];
    let fits = kinds
        .iter()
        .any(|(kind, first)| source["media_type"] == *kind && word(source, "data").starts_with(first));
    need(source["type"] != "base64" || fits, || {
        format!("{at}.image.source.base64: The image was specified using another media type")
    })
}

fn of_result(at: &str, block: &Value) -> Checked {
    let parts = list(&block["content"]);
    let says = match &block["content"] {
        Value::String(text) => !is_blank(text),
        _ => !parts.is_empty() && of_type(parts, "text").all(|part| !is_blank(word(part, "text"))),
    };
    need(says, || format!("{at}.tool_result: content cannot be empty"))?;
    let seen = parts.iter().any(|part| part["type"] != "text");
    need(block["is_error"] != true || !seen, || {
        format!("{at}.tool_result: all content must be type \"text\" if \"is_error\" is true")
    })
}

fn of_type<'a>(content: &'a [Value], kind: &'static str) -> impl Iterator<Item = &'a Value> {
    content.iter().filter(move |block| block["type"] == kind)
}

/// The roles that chat templates let stand in a row: results of one reply, and nothing else.
fn of_chat(messages: &[Value]) -> Checked {
    let mut open: Vec<String> = Vec::new();
    let mut ids = BTreeSet::new();
    let mut before = "";
    for (n, message) in messages.iter().enumerate() {
        let at = format!("messages[{n}]");
        let role = word(message, "role");
        if role == "tool" {
            let id = word(message, "tool_call_id");
            need(!is_blank(word(message, "content")), || format!("{at}.content: an empty result"))?;
            let known = open.iter().position(|call| call == id);
            let Some(known) = known else {
                return Err(format!(
                    "{at}: a message with role 'tool' must be a response to a preceding message with 'tool_calls'"
                ));
            };
            open.remove(known);
            before = role;
        } else {
            need(open.is_empty(), || {
                format!(
                    "{at}: An assistant message with 'tool_calls' must be followed by tool messages: {open:?}"
                )
            })?;
            need(role != before || role == "system", || {
                format!("{at}: Conversation roles must alternate user/assistant/user/assistant/...")
            })?;
            need(says_something(message), || format!("{at}.content: blank, and no calls"))?;
            for call in list(&message["tool_calls"]) {
                let (id, name) = (word(call, "id"), word(&call["function"], "name"));
                need(!id.is_empty() && ids.insert(id), || {
                    format!("{at}.tool_calls: the id {id:?} stands twice")
                })?;
                need(is_word(name, 64), || format!("{at}.tool_calls: Invalid name {name:?}"))?;
                let arguments: Result<Value, _> = serde_json::from_str(word(&call["function"], "arguments"));
                need(arguments.is_ok_and(|it| it.is_object()), || format!("{at}.tool_calls: arguments"))?;
                open.push(id.to_owned());
            }
            before = role;
        }
    }
    need(open.is_empty(), || "the last calls have no results".to_owned())
}

fn says_something(message: &Value) -> bool {
    let calls = !list(&message["tool_calls"]).is_empty();
    match &message["content"] {
        Value::String(text) => !is_blank(text),
        Value::Array(parts) => {
            !parts.is_empty() && of_type(parts, "text").all(|part| !is_blank(word(part, "text")))
        }
        _ => calls,
    }
}

fn of_responses(items: &[Value]) -> Checked {
    let mut open = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for (n, item) in items.iter().enumerate() {
        let at = format!("input[{n}]");
        match word(item, "type") {
            "function_call" => {
                let id = word(item, "call_id");
                need(!id.is_empty() && id.len() <= 64, || {
                    format!("Invalid '{at}.call_id': string too long")
                })?;
                need(ids.insert(id) && open.insert(id), || format!("{at}: the id {id} stands twice"))?;
                need(is_word(word(item, "name"), 64), || format!("Invalid '{at}.name'"))?;
                need(item["arguments"].is_string(), || format!("Invalid '{at}.arguments'"))?;
            }
            "function_call_output" => {
                need(open.remove(word(item, "call_id")), || {
                    format!("No tool call found for function call output with call_id {}", item["call_id"])
                })?;
                need(item["output"].as_str().is_none_or(|text| !is_blank(text)), || format!("{at}.output"))?;
            }
            "reasoning" => {
                let leads_on = item["format"].as_str().is_none_or(|format| format.starts_with("openai"));
                let next = items
                    .get(n + 1)
                    .filter(|next| next["role"] != "user" && next["type"] != "function_call_output");
                need(!leads_on || next.is_some(), || {
                    "Item of type 'reasoning' was provided without its required following item.".to_owned()
                })?;
            }
            "message" => {
                let parts = list(&item["content"]);
                let text = |part: &Value| part["text"].as_str().is_none_or(|text| !is_blank(text));
                let says = item["content"]
                    .as_str()
                    .map_or_else(|| !parts.is_empty() && parts.iter().all(text), |it| !is_blank(it));
                need(says, || format!("{at}.content: blank"))?;
            }
            _ => {}
        }
    }
    need(open.is_empty(), || format!("No tool output found for function call {open:?}"))
}
