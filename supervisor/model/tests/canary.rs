//! Tests that the API key appears in no reply, error or log, at any log level.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use model::provider::anthropic::{Anthropic, AnthropicConfig};
use model::provider::{Credential, Message, ModelProvider, ModelRequest, RequestOptions, UserBlock};
use model::replay::{Block, ReplayServer, Reply, Script, Usage, sse};
use secrecy::SecretString;
use tracing_subscriber::fmt::MakeWriter;

const KEY: &str = "sk-ant-canary-5b2e9d1f";

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn request() -> ModelRequest {
    ModelRequest {
        model: "m".to_owned(),
        system: Arc::from("s"),
        tools: Arc::from([]),
        messages: vec![Arc::new(Message::User(vec![UserBlock::Text("hello".to_owned())]))],
        max_tokens: 10,
        options: RequestOptions::default(),
    }
}

#[tokio::test]
async fn no_key_is_traced_at_any_level_nor_said_in_any_error() {
    let log = Log::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    tracing::subscriber::set_global_default(subscriber).expect("the only one in this process");
    let echo = format!("the key {KEY} is bad");
    for credential in [Credential::ApiKey, Credential::Bearer] {
        ask_in_every_way(credential, &echo).await;
    }
    let log = String::from_utf8(log.0.lock().expect("no panic").clone()).expect("UTF-8");
    assert!(log.contains("model request"), "something is traced: {log}");
    assert!(!log.contains(KEY), "{log}");
}

async fn ask_in_every_way(credential: Credential, echo: &str) {
    let echo = echo.to_owned();
    let script = Script::new()
        .reply(sse::message(&[Block::text("hi")], "end_turn", Usage::default()))
        .push(
            Reply::error(401, "authentication_error", &echo)
                .header("x-request-id", KEY)
                .header("location", KEY),
        )
        .push(Reply::new(500, echo.clone()))
        .push(Reply::new(302, "").header("location", &format!("http://x/{KEY}")))
        .push(Reply::sse(sse::event("error", &serde_json::json!({"error": {"type": KEY, "message": echo}}))));
    let server = ReplayServer::start(script).expect("a server");
    let mut config = AnthropicConfig::new(Some(SecretString::from(KEY)));
    config.connection.base_url = server.base_url();
    config.connection.credential = credential;
    assert!(!format!("{config:?}").contains(KEY));
    let provider = Anthropic::new(config).expect("a provider");
    for _ in 0..5 {
        let items: Vec<_> = provider.stream(request()).collect().await;
        assert!(!format!("{items:?}").contains(KEY), "{items:?}");
    }
    assert_eq!(server.remaining(), 0);
}
