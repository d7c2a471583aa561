//! Chat completions: what streams mean, what requests hold, and what errors say.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod decoder;
mod errors;
mod recordings;
mod requests;
mod streams;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::value::RawValue;
use supervisor::provider::chat::{Config, OpenAiChat};
use supervisor::provider::{
    Message, ModelProvider, ModelRequest, ProviderError, ProviderKind, ReplayProvider, RequestOptions,
    StreamEvent, UserBlock,
};
use supervisor::replay::{ReplayServer, Reply, Script};
use supervisor::tools::ToolDefinition;

const KEY: &str = "sk-canary-0123456789-tail";

type Item = Result<StreamEvent, ProviderError>;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("JSON")
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(vec![UserBlock::Text(text.to_owned())]))
}

fn request(messages: &[Arc<Message>]) -> ModelRequest {
    let tool = ToolDefinition {
        name: "read_file",
        description: "Reads a file.",
        input_schema: raw(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#),
    };
    ModelRequest {
        model: "gpt-x".to_owned(),
        system: Arc::from("You are a test."),
        tools: Arc::from([tool]),
        messages: messages.to_vec(),
        max_tokens: 32_000,
        options: RequestOptions::default(),
    }
}

/// What a recorded body means.
async fn play(body: Bytes, chunk: Option<usize>) -> Vec<Item> {
    let provider = ReplayProvider::new([body]).of(ProviderKind::OpenAi);
    let provider = match chunk.and_then(NonZeroUsize::new) {
        Some(size) => provider.in_chunks(size),
        None => provider,
    };
    provider.stream(request(&[])).collect().await
}

fn serve(script: Script) -> ReplayServer {
    ReplayServer::start(script).expect("a server")
}

fn provider(server: &ReplayServer, key: Option<&str>) -> OpenAiChat {
    let mut config = Config::new(key.map(Into::into));
    config.connection.base_url = server.base_url();
    OpenAiChat::new(config).expect("a provider")
}

/// The error that a reply amounts to.
async fn answer(reply: Reply) -> ProviderError {
    let server = serve(Script::new().push(reply));
    let mut items: Vec<Item> = provider(&server, Some(KEY)).stream(request(&[user("hi")])).collect().await;
    match (items.pop(), items.len()) {
        (Some(Err(error)), 0) => error,
        other => panic!("no error alone: {other:?}"),
    }
}

/// The files of a directory by their names.
fn files(directory: &Path) -> Vec<(String, Bytes)> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    paths.into_iter().map(|path| (name(&path), Bytes::from(fs::read(&path).expect("a file")))).collect()
}
