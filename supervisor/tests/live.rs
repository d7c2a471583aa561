//! The real API: run by hand before a release, with `BAILIWICK_LIVE=1` and `ANTHROPIC_API_KEY`.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

use std::env;
use std::sync::Arc;

use futures_util::StreamExt;
use secrecy::SecretString;
use serde_json::value::RawValue;
use supervisor::provider::anthropic::{Anthropic, Config};
use supervisor::provider::{
    ContentBlock, Message, ModelProvider, ModelRequest, RequestOptions, StopReason, StreamEvent,
    ToolDefinition, UserBlock,
};

fn provider() -> Option<Anthropic> {
    if env::var("BAILIWICK_LIVE").as_deref() != Ok("1") {
        eprintln!("skipped: set BAILIWICK_LIVE=1 and ANTHROPIC_API_KEY");
        return None;
    }
    let key = env::var("ANTHROPIC_API_KEY").expect("ANTHROPIC_API_KEY");
    let base_url = env::var("ANTHROPIC_BASE_URL").ok();
    let mut config = Config::new(Some(SecretString::from(key)));
    if let Some(base_url) = base_url {
        config.connection.base_url = base_url;
    }
    Some(Anthropic::new(config).expect("a provider"))
}

#[tokio::test]
async fn a_tool_call_and_its_result_are_accepted_by_the_real_api() {
    let Some(provider) = provider() else { return };
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#;
    let tool = ToolDefinition {
        name: "read_file",
        description: "Reads a file of the project.",
        input_schema: RawValue::from_string(schema.to_owned()).expect("JSON"),
    };
    let mut request = ModelRequest {
        model: env::var("BAILIWICK_LIVE_MODEL").unwrap_or_else(|_| "claude-haiku-5-5".to_owned()),
        system: Arc::from("You read files with the tool when asked to."),
        tools: Arc::from([tool]),
        messages: vec![Arc::new(Message::User(vec![UserBlock::Text("What is in hello.txt?".to_owned())]))],
        max_tokens: 4096,
        options: RequestOptions::default(),
    };
    let (blocks, stop_reason) = reply(&provider, &request).await;
    assert_eq!(stop_reason, StopReason::ToolUse);
    let results = blocks.iter().filter_map(|(content, _)| match content {
        ContentBlock::ToolUse { id, .. } => Some(UserBlock::ToolResult {
            tool_use: id.clone(),
            content: "bailiwick".to_owned(),
            is_error: false,
            images: vec![],
        }),
        _ => None,
    });
    let results = results.collect();
    request.messages.push(Arc::new(Message::Assistant(blocks.into_iter().map(|(_, raw)| raw).collect())));
    request.messages.push(Arc::new(Message::User(results)));
    let (blocks, stop_reason) = reply(&provider, &request).await;
    assert_eq!(stop_reason, StopReason::EndTurn);
    assert!(format!("{blocks:?}").contains("bailiwick"), "{blocks:?}");
}

async fn reply(
    provider: &Anthropic,
    request: &ModelRequest,
) -> (Vec<(ContentBlock, Box<RawValue>)>, StopReason) {
    let mut events = provider.stream(request.clone());
    let mut blocks = Vec::new();
    while let Some(event) = events.next().await {
        match event.expect("no error") {
            StreamEvent::BlockClosed { block, .. } => blocks.push((block.content, block.raw)),
            StreamEvent::MessageCompleted { stop_reason, .. } => return (blocks, stop_reason),
            _ => {}
        }
    }
    panic!("the stream ended early")
}
