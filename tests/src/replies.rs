//! Replies of the scripted model server.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use model::replay::{Check, RecordedRequest, ReplayServer, Reply, Script, sse};
use serde_json::{Value, json};

use crate::strict;

/// Returns a reply with these tool calls. Their ids are `toolu_0`, `toolu_1` and so on.
pub fn calls(calls: &[(&str, Value)]) -> String {
    let blocks: Vec<_> = calls.iter().enumerate().map(call).collect();
    sse::message(&blocks, "tool_use", sse::Usage::default())
}

fn call((index, (name, input)): (usize, &(&str, Value))) -> sse::Block {
    sse::Block::tool_use(format!("toolu_{index}"), *name, input.to_string())
}

pub fn shell(command: &str) -> String {
    calls(&[("shell_exec", json!({"command": command}))])
}

pub fn says(text: &str, stop_reason: &str) -> String {
    sse::message(&[sse::Block::text(text)], stop_reason, sse::Usage::default())
}

/// Returns a reply that ends the turn.
pub fn done() -> String {
    says("Done.", "end_turn")
}

/// Starts a model server that makes these tool calls, one in each reply, and then ends the turn.
pub fn model(calls: &[(&str, Value)]) -> ReplayServer {
    let reply = |asked| sse::message(&[call(asked)], "tool_use", sse::Usage::default());
    model_of(calls.iter().enumerate().map(reply).chain([done()]))
}

pub fn model_of(replies: impl IntoIterator<Item = String>) -> ReplayServer {
    serve(replies.into_iter().map(Reply::sse))
}

/// Starts a model server for several agents. If the first message of a request is one of the tasks, the task's next
/// reply is sent; otherwise the next one of `rest`.
pub fn model_of_agents(
    rest: impl IntoIterator<Item = String>,
    tasks: impl IntoIterator<Item = (String, Vec<String>)>,
) -> ReplayServer {
    let rest: VecDeque<_> = rest.into_iter().collect();
    let tasks: BTreeMap<_, VecDeque<_>> =
        tasks.into_iter().map(|(task, replies)| (task, replies.into())).collect();
    // There is one entry for each reply, so that the server counts unused ones.
    let script = rest.iter().chain(tasks.values().flatten()).cloned().fold(Script::new(), Script::reply);
    serve_checked(script, by_task(rest, tasks))
}

fn by_task(mut rest: VecDeque<String>, mut tasks: BTreeMap<String, VecDeque<String>>) -> Check {
    Box::new(move |number, request| {
        let of_task = tasks.iter_mut().find(|(task, _)| has_task(request, task));
        let reply = of_task.map_or(&mut rest, |(_, replies)| replies).pop_front();
        let nothing = || Reply::error(500, "api_error", &format!("request {number} has no reply"));
        Some(reply.map_or_else(nothing, Reply::sse))
    })
}

fn has_task(request: &RecordedRequest, task: &str) -> bool {
    let body: Value = serde_json::from_slice(&request.body).expect("a request is JSON");
    let blocks = body["messages"][0]["content"].as_array().cloned().unwrap_or_default();
    blocks.iter().any(|block| block["text"] == task)
}

/// Starts a model server with these replies and network faults. It rejects requests that break the vendor's rules.
pub fn serve(replies: impl IntoIterator<Item = Reply>) -> ReplayServer {
    let script = replies.into_iter().fold(Script::new(), Script::push);
    serve_checked(script, Box::new(|_, _| None))
}

/// Starts a model server with this script. `check` gets each valid request, and may return a reply that is sent instead
/// of the script's.
pub fn serve_checked(script: Script, mut check: Check) -> ReplayServer {
    let strict: Check = Box::new(move |number, request| refusal(request).or_else(|| check(number, request)));
    ReplayServer::start_checked(script, strict).expect("loopback")
}

/// Returns the vendor's error for a request that breaks one of the vendor's rules; `None` if the request is valid.
fn refusal(request: &RecordedRequest) -> Option<Reply> {
    let RecordedRequest { method, path, headers, body, .. } = request;
    let fault = strict::Sent { method, path, headers, body }.fault()?;
    Some(Reply::error(400, "invalid_request_error", &fault).header("x-should-retry", "false"))
}

/// Returns a reply with status 200 and a body compressed with gzip.
pub fn gzipped(body: impl AsRef<[u8]>) -> Reply {
    Reply::sse(gzip(body)).header("content-encoding", "gzip")
}

pub fn gzip(body: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body.as_ref()).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

/// Starts a model server that slowly writes NAME into the file `answer` if the prompt contains `task NAME`.
pub fn answers_with_the_tasks_name(pace: Duration) -> ReplayServer {
    let check = move |_: usize, request: &RecordedRequest| {
        let body: Value = serde_json::from_slice(&request.body).expect("a request is JSON");
        let messages = body["messages"].as_array().expect("a request has messages");
        let prompt = messages[0].to_string();
        let (_, name) = prompt.split_once("task ").expect("a prompt names its task");
        let name: String = name.chars().take_while(|c| c.is_alphanumeric()).collect();
        let reply = match messages.iter().filter(|message| message["role"] == "assistant").count() {
            0 => calls(&[("write_file", json!({"path": "answer", "content": format!("{name}\n")}))]),
            _ => done(),
        };
        Some(Reply::sse("").pieces([(pace, reply.into())]))
    };
    serve_checked(Script::new(), Box::new(check))
}
