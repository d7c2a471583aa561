//! Tests of the files in which exchanges are recorded.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use model::provider::anthropic::{Anthropic, AnthropicConfig};
use model::provider::{Message, ModelProvider, ModelRequest, RequestOptions, UserBlock};
use model::recording::Recorder;
use model::replay::{Block, ReplayServer, Reply, Script, Usage, sse};
use secrecy::SecretString;

const KEY: &str = "sk-ant-canary-77aa31c0";

fn request(text: &str) -> ModelRequest {
    ModelRequest {
        model: "m".to_owned(),
        system: Arc::from("s"),
        tools: Arc::from([]),
        messages: vec![Arc::new(Message::User(vec![UserBlock::Text(text.to_owned())]))],
        max_tokens: 10,
        options: RequestOptions::default(),
    }
}

/// Records one request for each reply of a script. Returns the requests' bodies, and the recorder's complaints.
async fn record(directory: &Path, script: Script, text: &str) -> (Vec<Vec<u8>>, Vec<String>) {
    let complaints = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&complaints);
    let complain = move |text: &str| told.lock().expect("no panic").push(text.to_owned());
    let recorder = Recorder::create(directory, complain).expect("a directory");
    if directory.ends_with("gone") {
        fs::remove_dir(directory).expect("it is empty");
    }
    let server = ReplayServer::start(script).expect("a server");
    let mut config = AnthropicConfig::new(Some(SecretString::from(KEY)));
    config.connection.base_url = format!("{}/prefix", server.base_url());
    config.connection.recorder = Some(recorder);
    let provider = Anthropic::new(config).expect("a provider");
    while server.remaining() > 0 {
        let _: Vec<_> = provider.stream(request(text)).collect().await;
    }
    let bodies = server.requests().into_iter().map(|request| request.body.to_vec()).collect();
    let complaints = complaints.lock().expect("no panic").clone();
    (bodies, complaints)
}

fn read(directory: &Path, name: &str) -> Vec<u8> {
    fs::read(directory.join(name)).expect(name)
}

fn meta(directory: &Path, number: usize) -> serde_json::Value {
    serde_json::from_slice(&read(directory, &format!("{number:04}.meta.json"))).expect("JSON")
}

#[tokio::test]
async fn bodies_are_byte_for_byte_what_went_and_came_cut_ones_too() {
    let temp = tempfile::tempdir().expect("a directory");
    let place = temp.path().join("run");
    let whole = sse::message(&[Block::text("hi there")], "end_turn", Usage::default());
    let script = Script::new()
        .push(Reply::sse(whole.clone()).chunked(100))
        .push(Reply::sse(whole.clone()).cut_after(300))
        .push(Reply::error(529, "overloaded_error", "Overloaded").header("retry-after", "7"))
        .push(Reply::new(502, "<html>").header("content-type", "text/html"));
    let (sent, complaints) = record(&place, script, "hello").await;
    assert_eq!(complaints, [""; 0]);
    for (number, body) in (1..).zip(&sent) {
        assert_eq!(&read(&place, &format!("{number:04}.request.json")), body);
    }
    assert_eq!(read(&place, "0001.response.sse"), whole.as_bytes());
    assert_eq!(read(&place, "0002.response.sse"), &whole.as_bytes()[..300]);
    assert!(String::from_utf8_lossy(&read(&place, "0003.response.json")).contains("Overloaded"));
    assert_eq!(read(&place, "0004.response.txt"), b"<html>");
    let metas: Vec<_> = (1..=4).map(|number| meta(&place, number)).collect();
    let of = |member: &str| metas.iter().map(|meta| meta[member].clone()).collect::<Vec<_>>();
    assert_eq!(of("end"), ["whole", "cut", "whole", "whole"]);
    let statuses: Vec<_> = metas.iter().map(|meta| meta["response"]["status"].as_u64()).collect();
    assert_eq!(statuses, [Some(200), Some(200), Some(529), Some(502)]);
    assert_eq!(metas[0]["request"]["path"], "/prefix/v1/messages");
    assert_eq!(metas[0]["request"]["endpoint"], "/v1/messages");
    assert!(metas[2]["response"]["headers"].to_string().contains(r#"["retry-after","7"]"#));
}

#[tokio::test]
async fn no_key_and_no_account_is_in_a_recording_whoever_says_it() {
    let temp = tempfile::tempdir().expect("a directory");
    let place = temp.path().join("run");
    let echo =
        sse::message(&[Block::text(format!("your key {KEY}, again {KEY}"))], "end_turn", Usage::default());
    let account = |reply: Reply| {
        reply
            .header("anthropic-organization-id", "org-canary-1")
            .header("openai-organization", "org-canary-2")
            .header("set-cookie", "session=canary-3")
            .header("cf-ray", "canary-4")
            .header("request-id", &format!("req {KEY}"))
            .header("x-echo", KEY)
    };
    let script = Script::new()
        .push(account(Reply::sse(echo.clone())))
        // The key is found however the chunks split it.
        .push(account(Reply::sse(echo.clone()).chunked(7)))
        .push(account(Reply::error(401, "authentication_error", &format!("bad key {KEY}"))));
    record(&place, script, &format!("is {KEY} my key?")).await;
    let mut files = 0;
    for entry in fs::read_dir(&place).expect("the recording") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("text");
        assert!(!text.contains(KEY) && !text.contains("canary-"), "{}: {text}", path.display());
        files += 1;
    }
    assert_eq!(files, 9);
    assert_eq!(read(&place, "0002.response.sse").len(), echo.len(), "lengths stay");
}

#[tokio::test]
async fn a_recording_that_cannot_be_written_ends_and_says_so_once() {
    let temp = tempfile::tempdir().expect("a directory");
    let reply = || Reply::sse(sse::message(&[Block::text("hi")], "end_turn", Usage::default()));
    let script = Script::new().push(reply()).push(reply().paced(Duration::from_millis(1)));
    let (sent, complaints) = record(&temp.path().join("gone"), script, "hello").await;
    assert_eq!(sent.len(), 2, "the run goes on");
    assert!(matches!(&complaints[..], [one] if one.contains("ends here")), "{complaints:?}");
}
