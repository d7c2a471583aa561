//! Tests with the real APIs. They run by hand before a release, with `BAILIWICK_LIVE=1` and a key for each API.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

use std::env;
use std::sync::Arc;

use futures_util::StreamExt;
use gate::tools::ToolDefinition;
use model::provider::anthropic::ApiVersion;
use model::provider::{
    ContentBlock, Message, ModelProvider, ModelRequest, ProviderKind, RequestOptions, StopReason,
    StreamEvent, Thinking, UserBlock, open,
};
use protocol::event::TokenUsage;
use secrecy::SecretString;
use serde_json::value::RawValue;

fn live(kind: ProviderKind, model_variable: &str, model: &str) -> Option<(Arc<dyn ModelProvider>, String)> {
    let variable = kind.key_variable();
    let key = env::var(variable).ok().filter(|_| env::var("BAILIWICK_LIVE").as_deref() == Ok("1"));
    let Some(key) = key else {
        eprintln!("skipped: set BAILIWICK_LIVE=1 and {variable}");
        return None;
    };
    let base_url = env::var(kind.address_variable()).ok();
    let connection = kind.connection(base_url, Some(SecretString::from(key)), variable.to_owned());
    let opened = open(kind, connection, ApiVersion::default()).expect("a provider");
    Some((opened.provider, env::var(model_variable).unwrap_or_else(|_| model.to_owned())))
}

fn anthropic() -> Option<(Arc<dyn ModelProvider>, String)> {
    live(ProviderKind::Anthropic, "BAILIWICK_LIVE_MODEL", "claude-haiku-5-5")
}

fn request(model: String, system: &str, first: Vec<UserBlock>) -> ModelRequest {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#;
    let tool = ToolDefinition {
        name: "read_file".into(),
        description: "Reads a file of the project.".into(),
        input_schema: RawValue::from_string(schema.to_owned()).expect("JSON"),
    };
    ModelRequest {
        model,
        system: Arc::from(system),
        tools: Arc::from([tool]),
        messages: vec![Arc::new(Message::User(first))],
        max_tokens: 4096,
        options: RequestOptions::default(),
    }
}

fn says(text: &str) -> UserBlock {
    UserBlock::Text(text.to_owned())
}

/// Requests a tool call, sends its result, and receives the final reply. Returns the token counts of both replies.
async fn tool_loop(provider: &Arc<dyn ModelProvider>, mut request: ModelRequest) -> [TokenUsage; 2] {
    let first = reply(provider, &request).await;
    assert_eq!(first.stop_reason, StopReason::ToolUse);
    let results = first.blocks.iter().filter_map(|(content, _)| match content {
        ContentBlock::ToolUse { id, .. } => Some(UserBlock::ToolResult {
            tool_use: id.clone(),
            content: "bailiwick".to_owned(),
            is_error: false,
            images: vec![],
        }),
        _ => None,
    });
    let results = results.collect();
    let echo = first.blocks.iter().map(|(_, raw)| raw.clone()).collect();
    request.messages.push(Arc::new(Message::Assistant(echo)));
    request.messages.push(Arc::new(Message::User(results)));
    let second = reply(provider, &request).await;
    assert_eq!(second.stop_reason, StopReason::EndTurn);
    assert!(format!("{:?}", second.blocks).contains("bailiwick"), "{:?}", second.blocks);
    [first.usage, second.usage]
}

#[tokio::test]
async fn thinking_and_a_tool_call_go_back_as_they_came_and_the_prompt_is_cached() {
    let Some((provider, model)) = anthropic() else { return };
    // The prompt is longer than the shortest prefix that any model caches.
    let system = format!("You read files with the tool when asked to. {}", "Answer briefly. ".repeat(2_000));
    let mut request = request(model, &system, vec![says("Think, then say what is in hello.txt.")]);
    request.options.thinking = Thinking::Adaptive { display: None };
    let [first, second] = tool_loop(&provider, request).await;
    assert!(first.cache_creation + first.cache_read > 4_000, "{first:?}");
    assert!(second.cache_read >= first.cache_creation.max(first.cache_read), "{first:?} {second:?}");
}

#[tokio::test]
async fn r10_a_picture_is_seen() {
    let Some((provider, model)) = anthropic() else { return };
    let image = picture::read(&include_bytes!("../../../fixtures/images/shapes.png")[..]).expect("a picture");
    let question = says("What colour is the round shape? One word.");
    let reply = reply(&provider, &request(model, "", vec![UserBlock::Image(image), question])).await;
    assert!(format!("{:?}", reply.blocks).to_lowercase().contains("red"), "{:?}", reply.blocks);
}

#[tokio::test]
async fn chat_completions_take_a_tool_call_and_its_result() {
    let Some((provider, model)) = live(ProviderKind::OpenAi, "BAILIWICK_LIVE_CHAT_MODEL", "gpt-5-mini")
    else {
        return;
    };
    let question = vec![says("What is in hello.txt?")];
    let [first, _] =
        tool_loop(&provider, request(model, "You read files with the tool when asked to.", question)).await;
    assert!(first.prompt() > 0 && first.output > 0, "{first:?}");
}

struct Replied {
    blocks: Vec<(ContentBlock, Box<RawValue>)>,
    stop_reason: StopReason,
    usage: TokenUsage,
}

async fn reply(provider: &Arc<dyn ModelProvider>, request: &ModelRequest) -> Replied {
    let mut events = provider.stream(request.clone());
    let mut blocks = Vec::new();
    while let Some(event) = events.next().await {
        match event.expect("no error") {
            StreamEvent::BlockClosed { block, .. } => blocks.push((block.content, block.raw)),
            StreamEvent::MessageCompleted { stop_reason, usage } => {
                return Replied { blocks, stop_reason, usage };
            }
            _ => {}
        }
    }
    panic!("the stream ended early")
}
