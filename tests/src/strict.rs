//! Checks requests by the rules of the vendors.
//!
//! Messages API: the documentation's pages on messages, tool use and extended thinking, and the texts of its errors.
//! Chat completions and responses: the API reference, the SDK's types, and the error texts of widely used servers.

use std::collections::BTreeSet;

use serde_json::Value;

pub struct Sent<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a [(String, String)],
    pub body: &'a [u8],
}

impl Sent<'_> {
    /// Returns the vendor's error message for the first rule that the request breaks. `None` if it breaks none.
    pub fn fault(&self) -> Option<String> {
        let path = self.path.split('?').next().unwrap_or_default();
        self.envelope(path).and_then(|()| self.content(path)).err()
    }

    fn content(&self, path: &str) -> Checked {
        // Serde_json takes neither NaN nor half of a surrogate pair.
        need(self.body.len() <= MAX_BODY, || "Request exceeds the maximum size".to_owned())?;
        let body: Value = serde_json::from_slice(self.body)
            .map_err(|error| format!("The request body is not valid JSON: {error}"))?;
        need(body.is_object(), || "The request body is not a JSON object".to_owned())?;
        fault(path, &body).map_or(Ok(()), Err)?;
        self.of_version(path, &body)
    }

    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// Checks the method, the path and the headers.
    fn envelope(&self, path: &str) -> Checked {
        need(self.method == "POST", || format!("{}: method not allowed", self.method))?;
        let is_messages = is_of_messages(path);
        need(is_messages || path.ends_with("/chat/completions") || path.ends_with("/responses"), || {
            format!("{path}: not found")
        })?;
        let json = self.values("content-type").all(|value| value.starts_with("application/json"));
        need(json && self.values("content-type").count() == 1, || {
            "content-type: JSON is required".to_owned()
        })?;
        need(self.values("user-agent").any(|value| !is_blank(value)), || "user-agent: required".to_owned())?;
        let [own, bearer] = ["x-api-key", "authorization"].map(|name| self.values(name).count());
        need(own + bearer <= 1 && (is_messages || own == 0), || "the key stands in two headers".to_owned())?;
        if !is_messages {
            let strange = self.headers.iter().find(|(name, _)| name.starts_with("anthropic-"));
            return strange.map_or(Ok(()), |(name, _)| Err(format!("{name}: unknown header")));
        }
        need(self.version().is_some(), || "anthropic-version: header is required".to_owned())?;
        let mut betas = self.values("anthropic-beta").flat_map(|value| value.split(','));
        need(betas.all(|beta| is_word(beta.trim(), 128)), || "anthropic-beta: unexpected value".to_owned())
    }

    fn version(&self) -> Option<&str> {
        let mut versions = self.values("anthropic-version");
        let version = versions.next().filter(|version| matches!(*version, "2023-06-01" | NEW));
        version.filter(|_| versions.next().is_none())
    }

    /// Checks the rules that depend on the version of the API and on the requested beta features.
    fn of_version(&self, path: &str, body: &Value) -> Checked {
        if !is_of_messages(path) {
            return Ok(());
        }
        if self.version() == Some(NEW) {
            let sampling = ["temperature", "top_p", "top_k"].iter().find(|name| !body[**name].is_null());
            need(sampling.is_none(), || format!("{}: is not supported", sampling.unwrap_or(&"")))?;
            for message in list(&body["messages"]) {
                let of_user = message["role"] == "user";
                let void = list(&message["content"]).iter().find(|block| {
                    if of_user { !list(&block["citations"]).is_empty() } else { block["type"] == "document" }
                });
                need(void.is_none(), || "document and citations: not in a message of this role".to_owned())?;
            }
        }
        of_context_management(list(&body["context_management"]["edits"]), |beta| {
            self.values("anthropic-beta").any(|value| value.split(',').any(|part| part.trim() == beta))
        })
    }
}

/// Maximum size of an accepted body in bytes.
const MAX_BODY: usize = 32_000_000;

/// First API version that accepts no sampling parameters.
const NEW: &str = "2026-10-21";

/// Checks that a request edits the context only with the beta feature. `has` is true for each requested beta feature.
fn of_context_management(edits: &[Value], has: impl Fn(&str) -> bool) -> Checked {
    for edit in edits {
        let kind = word(edit, "type");
        let beta = match kind {
            "clear_tool_uses_20250919" | "clear_thinking_20251015" => "context-management-2025-06-27",
            "compact_20260112" => "compact-2026-01-12",
            _ => return Err(format!("context_management.edits: unknown type {kind:?}")),
        };
        need(has(beta), || format!("context_management: {kind} needs the beta header {beta}"))?;
        let trigger = edit["trigger"]["value"].as_u64();
        need(kind != "compact_20260112" || trigger.is_none_or(|tokens| tokens >= 50_000), || {
            "context_management: trigger must be at least 50000 tokens".to_owned()
        })?;
    }
    Ok(())
}

fn is_of_messages(path: &str) -> bool {
    path.ends_with("/messages") || path.ends_with("/messages/count_tokens")
}

/// Returns the vendor's error message for the first rule that a body for this path breaks. `None` if it breaks none.
pub fn fault(path: &str, body: &Value) -> Option<String> {
    let checked = of_options(path, body).and_then(|()| {
        if is_of_messages(path) {
            of_messages(list(&body["messages"])).and_then(|()| around_messages(body))
        } else if path.ends_with("/chat/completions") {
            let functions = list(&body["tools"]).iter().map(|tool| &tool["function"]);
            of_chat(list(&body["messages"])).and_then(|()| of_tools(functions, "parameters", 64))
        } else {
            of_responses(list(&body["input"]))?;
            of_stateless(body)?;
            of_tools(list(&body["tools"]).iter(), "parameters", 64)
        }
    });
    checked.err()
}

/// Checks the model, the maximum length of the reply, streaming and similar options.
fn of_options(path: &str, body: &Value) -> Checked {
    need(!is_blank(word(body, "model")), || "model: Field required".to_owned())?;
    let conversation = [&body["messages"], &body["input"]].map(list).concat();
    need(!conversation.is_empty(), || "messages, input: at least one message is required".to_owned())?;
    let counts = path.ends_with("/count_tokens");
    let limits: &[&str] = match path {
        _ if is_of_messages(path) => &["max_tokens"],
        _ if path.ends_with("/responses") => &["max_output_tokens"],
        _ => &["max_tokens", "max_completion_tokens"],
    };
    let given: Vec<_> = limits.iter().filter(|name| !body[**name].is_null()).collect();
    if counts {
        let extra = !given.is_empty() || !body["stream"].is_null();
        return need(!extra, || "max_tokens, stream: Extra inputs are not permitted".to_owned());
    }
    need(given.len() == 1, || format!("{}: one of them is required", limits.join(", ")))?;
    let limit = body[*given[0]].as_u64().unwrap_or(0);
    need(limit >= 1, || format!("{}: must be a positive number", given[0]))?;
    let streams = body["stream"] == true;
    need(streams || limit < 32_000, || "Streaming is required for long replies".to_owned())?;
    need(streams || body["stream_options"].is_null(), || "stream_options: only with stream".to_owned())?;
    let known = &["none", "minimal", "low", "medium", "high", "xhigh"][..];
    let efforts = [
        (&body["output_config"]["effort"], &["low", "medium", "high", "xhigh", "max"][..]),
        (&body["reasoning_effort"], known),
        (&body["reasoning"]["effort"], known),
    ];
    for (effort, known) in efforts {
        need(effort.is_null() || effort.as_str().is_some_and(|effort| known.contains(&effort)), || {
            format!("effort: unknown value {effort}")
        })?;
    }
    of_thinking(&body["thinking"], limit, &body["temperature"])
}

/// Checks that the thinking budget is below the maximum length of the reply, and that no temperature is set with
/// thinking.
fn of_thinking(thinking: &Value, limit: u64, temperature: &Value) -> Checked {
    match (word(thinking, "type"), thinking["budget_tokens"].as_u64()) {
        ("enabled", Some(budget)) => need(budget >= 1024 && budget < limit, || {
            "thinking.enabled.budget_tokens: at least 1024, and below max_tokens".to_owned()
        }),
        ("disabled" | "adaptive", None) => Ok(()),
        _ if thinking.is_null() => return Ok(()),
        _ => Err(format!("thinking: {thinking}")),
    }?;
    need(thinking["type"] == "disabled" || temperature.is_null(), || {
        "`temperature` may only be set to 1 when thinking is enabled".to_owned()
    })
}

/// Checks that reasoning has its encrypted content, because a stateless server keeps no copy of reasoning.
fn of_stateless(body: &Value) -> Checked {
    let reasoning = of_type(list(&body["input"]), "reasoning").filter(|item| !item["format"].is_string());
    let kept = |item: &Value| item["encrypted_content"].is_string();
    need(body["store"] != false || reasoning.into_iter().all(kept), || {
        "Item with id 'rs_…' not found. Items are not persisted when `store` is set to false.".to_owned()
    })
}

/// Checks a Messages API request, except for the messages in it.
fn around_messages(body: &Value) -> Checked {
    of_tools(list(&body["tools"]).iter(), "input_schema", 128)?;
    let content = list(&body["messages"]).iter().flat_map(|message| list(&message["content"]));
    need(
        content.into_iter().all(|block| block["type"] != "tool_use") || !list(&body["tools"]).is_empty(),
        || "tools: Requests which include `tool_use` or `tool_result` blocks must define tools".to_owned(),
    )?;
    let last = list(&body["messages"]).last();
    // A turn that was paused while a tool of the vendor's ran is sent back unchanged.
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

/// Checks the names of tools and the roots of their schemas.
fn of_tools<'a>(tools: impl Iterator<Item = &'a Value>, schema: &str, longest: usize) -> Checked {
    let mut names = BTreeSet::new();
    let [mut strict, mut optional, mut unions] = [0; 3];
    for (n, tool) in tools.enumerate() {
        let name = word(tool, "name");
        need(is_word(name, longest), || format!("tools.{n}.name: String should match pattern: {name:?}"))?;
        need(names.insert(name), || "tools: Tool names must be unique.".to_owned())?;
        need(tool[schema]["type"] == "object", || format!("tools.{n}.custom.{schema}.type: Field required"))?;
        if tool["strict"] == true {
            strict += 1;
            count_strict(&tool[schema], &mut optional, &mut unions)?;
        }
    }
    need(strict <= 20 && optional <= 24 && unions <= 16, || {
        format!("tools: Too many strict tools, optional parameters or unions: {strict}, {optional}, {unions}")
    })
}

/// Counts the optional parameters and unions in a strict schema: their numbers are limited. Rejects recursive schemas.
fn count_strict(schema: &Value, optional: &mut usize, unions: &mut usize) -> Checked {
    need(schema["$ref"].is_null(), || "tools: Recursive schemas are not supported with strict".to_owned())?;
    *unions += usize::from(schema["anyOf"].is_array() || schema["type"].is_array());
    let properties = schema["properties"].as_object();
    let required = list(&schema["required"]);
    for (name, property) in properties.into_iter().flatten() {
        *optional += usize::from(!required.iter().any(|it| it == name.as_str()));
        count_strict(property, optional, unions)?;
    }
    let parts = list(&schema["anyOf"]).iter().chain(schema.get("items"));
    parts.into_iter().try_for_each(|part| count_strict(part, optional, unions))
}

/// Checks the cache markers. In the order of the prompt there are at most four, none on thinking, and those with a long
/// lifetime come first.
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

/// True if the text has one to `longest` characters, all of them letters, digits, `_` or `-`.
fn is_word(text: &str, longest: usize) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !text.is_empty() && text.len() <= longest && text.chars().all(fits)
}

fn of_messages(messages: &[Value]) -> Checked {
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

/// Checks that the bytes are a picture of the claimed type.
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

/// Checks a picture in a data URL, the form of chat completions and of the Responses API.
fn of_picture(at: &str, url: &Value) -> Checked {
    let parts = url.as_str().and_then(|url| url.strip_prefix("data:")?.split_once(";base64,"));
    let Some((kind, data)) = parts else { return Ok(()) };
    of_image(at, &serde_json::json!({"type": "base64", "media_type": kind, "data": data}))
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

/// Checks that the roles alternate, as chat templates require. Only the results of one reply's calls may follow each
/// other.
fn of_chat(messages: &[Value]) -> Checked {
    let mut open: Vec<String> = Vec::new();
    let mut ids = BTreeSet::new();
    let mut before = "";
    for (n, message) in messages.iter().enumerate() {
        let at = format!("messages[{n}]");
        let role = word(message, "role");
        for part in list(&message["content"]) {
            of_picture(&at, &part["image_url"]["url"])?;
        }
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
        for part in list(&item["content"]).iter().chain(list(&item["output"])) {
            of_picture(&at, &part["image_url"])?;
        }
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
