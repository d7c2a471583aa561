//! Tests of the server that checks requests (`strict`): in each API, it rejects exactly the requests that break a rule.

use serde_json::{Value, json};

use crate::strict::Sent;

const PATHS: [&str; 3] = ["/v1/messages", "/v1/chat/completions", "/v1/responses"];

const PNG: &str = "iVBORw0KGgo=";

fn whole() -> [Value; 3] {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let url = format!("data:image/png;base64,{PNG}");
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    [
        json!({
            "model": "m", "max_tokens": 64_000, "stream": true, "system": [{"type": "text", "text": "be good"}],
            "tools": [{"name": "f", "input_schema": schema}],
            "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "go"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                ]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "", "signature": "s"},
                    {"type": "tool_use", "id": "c", "name": "f", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": "out"}, {"type": "text", "text": "and"},
                ]},
            ],
        }),
        json!({
            "model": "m", "max_tokens": 64_000, "stream": true, "stream_options": {"include_usage": true},
            "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
            "messages": [
                {"role": "system", "content": "be good"},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]},
                {"role": "assistant", "content": "So.", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": "out"},
            ],
        }),
        json!({
            "model": "m", "max_output_tokens": 64_000, "stream": true, "store": false,
            "tools": [{"type": "function", "name": "f", "parameters": schema}],
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": url}]},
                {"type": "reasoning", "id": "rs_1", "encrypted_content": "e", "summary": []},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "out"},
            ],
        }),
    ]
}

fn headers(dialect: usize) -> Vec<(String, String)> {
    let mut headers = vec![("content-type", "application/json"), ("user-agent", "tests")];
    headers.extend_from_slice(match dialect {
        0 => &[("anthropic-version", "2026-10-21"), ("x-api-key", "k")],
        _ => &[("authorization", "Bearer k")],
    });
    headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn fault(dialect: usize, headers: &[(String, String)], body: &[u8]) -> Option<String> {
    Sent { method: "POST", path: PATHS[dialect], headers, body }.fault()
}

/// Replaces the value at a JSON Pointer; null removes the field.
fn with(mut body: Value, pointer: &str, value: Value) -> Vec<u8> {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = body.pointer_mut(parent).expect("the parent");
    match (parent, value) {
        (Value::Object(members), Value::Null) => drop(members.remove(name)),
        (Value::Object(members), value) => drop(members.insert(name.to_owned(), value)),
        (Value::Array(items), Value::Null) => drop(items.remove(name.parse().expect("an index"))),
        (Value::Array(items), value) => items[name.parse::<usize>().expect("an index")] = value,
        _ => unreachable!("no members"),
    }
    serde_json::to_vec(&body).expect("JSON")
}

#[test]
fn what_holds_to_every_rule_is_taken() {
    for (dialect, body) in whole().iter().enumerate() {
        let body = serde_json::to_vec(body).expect("JSON");
        assert_eq!(fault(dialect, &headers(dialect), &body), None, "{}", PATHS[dialect]);
    }
}

#[test]
fn r1_what_stands_around_a_body_is_looked_at() {
    let changes: [(usize, &str, &[&str]); 13] = [
        (0, "content-type", &[]),
        (1, "content-type", &["text/plain"]),
        (2, "content-type", &["application/json", "application/json"]),
        (0, "user-agent", &[]),
        (1, "user-agent", &[""]),
        (2, "user-agent", &[]),
        (0, "anthropic-version", &[]),
        (0, "anthropic-version", &["2024-01-01"]),
        (0, "authorization", &["Bearer k"]),
        (0, "anthropic-beta", &["one, ,two"]),
        (1, "x-api-key", &["k"]),
        (2, "x-api-key", &["k"]),
        (2, "anthropic-version", &["2026-10-21"]),
    ];
    let bodies = whole().map(|body| serde_json::to_vec(&body).expect("JSON"));
    for (dialect, name, values) in changes {
        let mut headers = headers(dialect);
        headers.retain(|(header, _)| header != name);
        headers.extend(values.iter().map(|value| (name.to_owned(), (*value).to_owned())));
        assert!(fault(dialect, &headers, &bodies[dialect]).is_some(), "{dialect}: {name} {values:?}");
    }
    for dialect in 0..3 {
        let headers = headers(dialect);
        for (method, path) in [("GET", PATHS[dialect]), ("POST", "/v1/message"), ("POST", "/")] {
            let sent = Sent { method, path, headers: &headers, body: &bodies[dialect] };
            assert!(sent.fault().is_some(), "{method} {path}");
        }
        assert_eq!(
            Sent {
                method: "POST",
                path: &format!("/p{}?beta=true", PATHS[dialect]),
                headers: &headers,
                body: &bodies[dialect]
            }
            .fault(),
            None
        );
    }
}

#[test]
fn r2_a_body_is_strict_json_in_utf_8_and_not_too_long() {
    for (dialect, body) in whole().iter().enumerate() {
        let text = serde_json::to_string(body).expect("JSON");
        let bodies = [
            Vec::new(),
            b"[]".to_vec(),
            text.replace("64000", "NaN").into_bytes(),
            text.replace("\"c\"", "\"\\ud800\"").into_bytes(),
            text.bytes().map(|byte| if byte == b'm' { 0xff } else { byte }).collect(),
            text.as_bytes()[..text.len() - 1].to_vec(),
            format!("{text}{}", " ".repeat(32_000_001 - text.len())).into_bytes(),
        ];
        for body in bodies {
            let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            assert!(fault(dialect, &headers(dialect), &body).is_some(), "{dialect}: {shown}");
        }
    }
}

/// A rule's name, the index of an API, and a JSON Pointer with a value that breaks the rule if it is set there.
type Row<'a> = (&'a str, usize, &'a str, Value);

fn are_refused(rows: Vec<Row<'_>>) {
    for (rule, dialect, pointer, value) in rows {
        let body = with(whole()[dialect].clone(), pointer, value.clone());
        let fault = fault(dialect, &headers(dialect), &body);
        assert!(fault.is_some(), "{rule} {}: {pointer} = {value}", PATHS[dialect]);
    }
}

#[test]
fn each_rule_about_options_tools_and_markers_is_held_to() {
    let many = |count: usize| {
        let tool = |n| json!({"name": format!("f{n}"), "strict": true, "input_schema": {"type": "object"}});
        Value::Array((0..count).map(tool).collect())
    };
    let strict = |schema: Value| json!([{"name": "f", "strict": true, "input_schema": schema}]);
    let optional: serde_json::Map<_, _> = (0..25).map(|n| (format!("p{n}"), json!({}))).collect();
    let unions: serde_json::Map<_, _> = (0..17).map(|n| (format!("p{n}"), json!({"anyOf": []}))).collect();
    let required: Vec<_> = unions.keys().cloned().collect();
    let marked =
        |ttl: &str| json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": ttl}});
    let edit = |kind: &str| json!({"edits": [{"type": kind}]});
    are_refused(vec![
        ("0.1", 0, "/temperature", json!(1)),
        ("0.1", 0, "/top_p", json!(1)),
        ("0.1", 0, "/top_k", json!(0)),
        ("0.1", 0, "/messages/0/content/0/citations", json!([{}])),
        ("0.1", 0, "/messages/1/content/0", json!({"type": "document"})),
        ("0.4", 0, "/thinking", json!({"type": "enabled"})),
        ("0.4", 0, "/thinking", json!({"type": "enabled", "budget_tokens": 100})),
        ("0.4", 0, "/thinking", json!({"type": "enabled", "budget_tokens": 64_000})),
        ("0.4", 0, "/thinking", json!({"type": "adaptive", "budget_tokens": 2_000})),
        ("0.4", 0, "/output_config", json!({"effort": "none"})),
        ("0.4", 1, "/reasoning_effort", json!("max")),
        ("0.4", 2, "/reasoning", json!({"effort": "max"})),
        ("R1", 0, "/model", Value::Null),
        ("R1", 1, "/model", json!(" ")),
        ("R1", 2, "/model", json!(1)),
        ("R7", 0, "/tools/0/name", json!("a.b")),
        ("R7", 0, "/tools/0/input_schema/type", Value::Null),
        ("R7", 0, "/tools", Value::Null),
        ("R7", 0, "/tools", many(21)),
        ("R7", 0, "/tools", strict(json!({"type": "object", "properties": optional}))),
        ("R7", 0, "/tools", strict(json!({"type": "object", "properties": unions, "required": required}))),
        ("R7", 0, "/tools", strict(json!({"type": "object", "items": {"$ref": "#"}}))),
        ("R7", 1, "/tools/0/function/name", json!("f".repeat(65))),
        ("R7", 2, "/tools/0/parameters", json!({})),
        ("R8", 0, "/messages/1/content/0/cache_control", json!({"type": "ephemeral"})),
        ("R8", 0, "/system", json!([marked("5m"), marked("1h")])),
        ("R8", 0, "/system", json!([marked("1h"), marked("1h"), marked("5m"), marked("5m"), marked("5m")])),
        ("R9", 0, "/max_tokens", Value::Null),
        ("R9", 0, "/max_tokens", json!(0)),
        ("R9", 0, "/max_tokens", json!("9")),
        ("R9", 0, "/stream", Value::Null),
        ("R9", 1, "/max_tokens", Value::Null),
        ("R9", 1, "/max_completion_tokens", json!(9)),
        ("R9", 1, "/max_tokens", json!(-1)),
        ("R9", 1, "/stream", json!(false)),
        ("R9", 2, "/max_output_tokens", Value::Null),
        ("R9", 2, "/max_output_tokens", json!(1.5)),
        ("R9", 2, "/stream", Value::Null),
        ("R13", 0, "/context_management", edit("clear_tool_uses_20250919")),
        ("R13", 0, "/context_management", edit("compact_20260112")),
        ("R13", 0, "/context_management", edit("forget")),
    ]);
}

#[test]
fn each_rule_about_the_conversation_is_held_to() {
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let jpeg = "data:image/jpeg;base64,iVBORw0KGgo=";
    are_refused(vec![
        ("R3", 0, "/messages/0", Value::Null),
        ("R3", 0, "/messages", json!([])),
        ("R3", 1, "/messages", json!([])),
        ("R3", 1, "/messages/2/role", json!("user")),
        ("R3", 2, "/input", json!([])),
        ("R4", 0, "/messages/2/content/0/tool_use_id", json!("d")),
        ("R4", 0, "/messages/2/content/0", Value::Null),
        (
            "R4",
            0,
            "/messages/2/content/1",
            json!({"type": "tool_result", "tool_use_id": "c", "content": "x"}),
        ),
        ("R4", 0, "/messages/1/content/1/id", json!("a:b")),
        ("R4", 1, "/messages/3", Value::Null),
        ("R4", 1, "/messages/3/tool_call_id", json!("d")),
        ("R4", 2, "/input/3", Value::Null),
        ("R4", 2, "/input/3/call_id", json!("d")),
        ("R4", 2, "/input/2/call_id", json!("c".repeat(65))),
        ("R5", 0, "/messages/0/content/0/text", json!("")),
        ("R5", 0, "/messages/2/content/0/content", json!("")),
        ("R5", 1, "/messages/3/content", json!(" ")),
        ("R5", 2, "/input/3/output", json!("")),
        (
            "R5",
            0,
            "/messages/2/content/0",
            json!({"type": "tool_result", "tool_use_id": "c", "is_error": true, "content": [{"type": "image"}]}),
        ),
        ("R6", 0, "/messages/1/content/0/signature", Value::Null),
        ("R6", 0, "/messages/1/content/0", json!({"type": "reasoning"})),
        ("R6", 2, "/input/1/encrypted_content", Value::Null),
        ("R6", 2, "/input/2", json!({"type": "message", "role": "user", "content": "x"})),
        ("R10", 0, "/messages/0/content/1/source/media_type", json!("image/jpeg")),
        ("R10", 0, "/messages/0/content/1/source/media_type", json!("image/bmp")),
        ("R10", 1, "/messages/1/content/0/image_url/url", json!(jpeg)),
        ("R10", 2, "/input/0/content/0/image_url", json!(jpeg)),
        (
            "R11",
            0,
            "/messages",
            json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": "so"}]),
        ),
        ("Z1", 0, "/messages/0/content", text("\n ")),
        ("Z1", 0, "/system", text(" ")),
        ("Z1", 1, "/messages/1/content", json!("\n")),
        ("Z1", 2, "/input/0/content", json!("\t")),
    ]);
}

#[test]
fn r12_a_count_of_tokens_has_neither_a_limit_nor_a_stream() {
    let path = "/v1/messages/count_tokens";
    let (headers, [body, ..]) = (headers(0), whole());
    let fault = |body: &[u8]| Sent { method: "POST", path, headers: &headers, body }.fault();
    let without_stream: Value =
        serde_json::from_slice(&with(body.clone(), "/stream", Value::Null)).expect("JSON");
    assert_eq!(fault(&with(without_stream.clone(), "/max_tokens", Value::Null)), None);
    assert!(fault(&serde_json::to_vec(&without_stream).expect("JSON")).is_some());
    assert!(fault(&with(body, "/max_tokens", Value::Null)).is_some());
}

#[test]
fn r13_an_edit_of_the_context_has_its_beta_feature() {
    let mut headers = headers(0);
    headers.push(("anthropic-beta".to_owned(), "other-1,compact-2026-01-12".to_owned()));
    let edits = |tokens: u64| json!({"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": tokens}}]});
    let [body, ..] = whole();
    let fault = |tokens| fault(0, &headers, &with(body.clone(), "/context_management", edits(tokens)));
    assert_eq!(fault(50_000), None);
    assert!(fault(49_999).is_some());
}
