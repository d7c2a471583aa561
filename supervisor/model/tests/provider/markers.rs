//! Tests of the cache markers in a request.

use std::sync::Arc;

use model::provider::{CacheLifetime, Message, ModelRequest, RequestOptions, UserBlock};
use serde_json::{Value, json};

use crate::{provider, raw, request, user};

fn markers(request: &ModelRequest) -> Vec<(String, Value)> {
    let body = provider("http://127.0.0.1:1").body(request).expect("a body");
    let mut found = Vec::new();
    find(&serde_json::from_slice(&body).expect("JSON"), "", &mut found);
    found
}

fn places(messages: &[Arc<Message>]) -> Vec<String> {
    markers(&request(messages)).into_iter().map(|(place, _)| place).collect()
}

fn find(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => return,
    };
    for (name, child) in children {
        if name == "cache_control" {
            found.push((path.to_owned(), child.clone()));
        }
        find(child, &format!("{path}/{name}"), found);
    }
}

fn turn(calls: usize) -> [Arc<Message>; 2] {
    let call = |id| raw(&format!(r#"{{"type":"tool_use","id":"{id}","name":"read_file","input":{{}}}}"#));
    let result = |id: usize| UserBlock::ToolResult {
        tool_use: id.to_string().as_str().into(),
        content: "x".to_owned(),
        is_error: false,
        images: vec![],
    };
    [
        Arc::new(Message::Assistant((0..calls).map(call).collect())),
        Arc::new(Message::User((0..calls).map(result).collect())),
    ]
}

#[test]
fn r8_markers_are_at_the_system_prompt_and_the_last_two_user_messages() {
    let first = vec![user("hello")];
    let second = [&first[..], &turn(2)].concat();
    let said = Arc::new(Message::Assistant(vec![raw(r#"{"type":"text","text":"so"}"#)]));
    let third = [&second[..], &[said, user("and?")]].concat();
    assert_eq!(places(&first), ["/system/0", "/messages/0/content/0"]);
    assert_eq!(places(&second), ["/system/0", "/messages/0/content/0", "/messages/2/content/1"]);
    assert_eq!(places(&third), ["/system/0", "/messages/2/content/1", "/messages/4/content/0"]);
}

#[test]
fn r8_a_turn_that_is_longer_than_the_look_back_is_marked_in_its_middle_too() {
    let after = |calls| places(&[&[user("hello")], &turn(calls)[..]].concat());
    assert_eq!(after(10).len(), 3);
    let last_call = "/messages/1/content/10";
    assert_eq!(after(11), ["/system/0", "/messages/0/content/0", last_call, "/messages/2/content/10"]);
    // A turn whose last block cannot have a marker gets no marker in its middle.
    let [mut calls, results] = turn(30);
    let Some(Message::Assistant(blocks)) = Arc::get_mut(&mut calls) else { panic!("a reply") };
    blocks.push(raw(r#"{"type":"of_a_later_version"}"#));
    assert_eq!(places(&[user("hello"), calls, results]).len(), 3);
}

#[test]
fn r8_tools_and_system_prompt_are_kept_for_an_hour_on_request_and_the_messages_never() {
    let short = json!({"type": "ephemeral"});
    let long = json!({"type": "ephemeral", "ttl": "1h"});
    let of = |cache| {
        let options = RequestOptions { cache, ..RequestOptions::default() };
        markers(&ModelRequest { options, ..request(&[user("hello")]) })
    };
    let at = |place: &str, marker: &Value| (place.to_owned(), marker.clone());
    let message = at("/messages/0/content/0", &short);
    assert_eq!(of(CacheLifetime::FiveMinutes), [at("/system/0", &short), message.clone()]);
    assert_eq!(of(CacheLifetime::OneHour), [at("/system/0", &long), message.clone()]);
    let options = RequestOptions { cache: CacheLifetime::OneHour, ..RequestOptions::default() };
    let without_system = ModelRequest { system: Arc::from(""), options, ..request(&[user("hello")]) };
    assert_eq!(markers(&without_system), [at("/tools/0", &long), message]);
}
