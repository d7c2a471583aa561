use std::sync::Arc;

use futures_util::StreamExt;
use model::provider::chat::{Config, OpenAiChat, ReplyLimit};
use model::provider::{
    AssistantBlock, Effort, Message, ModelProvider, ModelRequest, ProviderKind, RequestOptions, StreamEvent,
    UserBlock, debug,
};
use model::replay::{RecordedRequest, Script};
use serde_json::{Value, json};

use crate::{Item, KEY, provider, raw, request, serve, user};

async fn sent(key: Option<&str>, request: ModelRequest) -> RecordedRequest {
    let server = serve(Script::new().reply(HELLO));
    let items: Vec<Item> = provider(&server, key).stream(request).collect().await;
    assert!(matches!(items.last(), Some(Ok(StreamEvent::MessageCompleted { .. }))), "{items:?}");
    server.requests().remove(0)
}

const HELLO: &str = concat!(
    r#"data: {"id":"c","model":"gpt-x","choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}"#,
    "\n\ndata: [DONE]\n\n"
);

fn body(request: &RecordedRequest) -> String {
    String::from_utf8(request.body.to_vec()).expect("UTF-8")
}

#[tokio::test]
async fn a_request_is_as_every_server_takes_it() {
    let request = sent(Some(KEY), request(&[user("hello")])).await;
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("authorization"), Some("Bearer [25 bytes]"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("x-api-key"), None);
    insta::assert_snapshot!(body(&request), @r#"{"model":"gpt-x","stream":true,"stream_options":{"include_usage":true},"max_tokens":32000,"tools":[{"type":"function","function":{"name":"read_file","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}],"messages":[{"role":"system","content":"You are a test."},{"role":"user","content":"hello"}]}"#);
}

#[tokio::test]
async fn a_server_that_needs_no_key_gets_none() {
    let request = sent(None, request(&[user("hello")])).await;
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn a_conversation_without_system_prompt_and_tools_has_neither() {
    let bare = ModelRequest { system: Arc::from(""), tools: Arc::from([]), ..request(&[user("hello")]) };
    insta::assert_snapshot!(body(&sent(None, bare).await), @r#"{"model":"gpt-x","stream":true,"stream_options":{"include_usage":true},"max_tokens":32000,"messages":[{"role":"user","content":"hello"}]}"#);
}

#[tokio::test]
async fn the_reply_is_bounded_by_the_member_that_the_server_knows() {
    let limits = |base_url: &str, reply_limit| {
        let mut config = Config { reply_limit, ..Config::new(None) };
        base_url.clone_into(&mut config.connection.base_url);
        let provider = OpenAiChat::new(config).expect("a provider");
        let body = provider.body(&request(&[user("hello")])).expect("a body");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        ["max_tokens", "max_completion_tokens", "stream_options"].map(|name| !body[name].is_null())
    };
    assert_eq!(limits("https://api.openai.com", None), [false, true, true]);
    assert_eq!(limits("http://127.0.0.1:1", None), [true, false, true]);
    assert_eq!(limits("https://api.mistral.ai", None), [true, false, false]);
    assert_eq!(limits("http://127.0.0.1:1", Some(ReplyLimit::MaxCompletionTokens)), [false, true, true]);
}

#[tokio::test]
async fn effort_is_asked_for_in_the_servers_words() {
    let asked = |effort| {
        let options = RequestOptions { effort, ..RequestOptions::default() };
        let provider = OpenAiChat::new(Config::new(None)).expect("a provider");
        let body = provider.body(&ModelRequest { options, ..request(&[user("hello")]) }).expect("a body");
        serde_json::from_slice::<Value>(&body).expect("JSON")["reasoning_effort"].clone()
    };
    assert_eq!(asked(None), Value::Null);
    assert_eq!(asked(Some(Effort::Low)), "low");
    assert_eq!(asked(Some(Effort::Max)), "high");
}

async fn blocks(provider: &OpenAiChat, messages: &[Arc<Message>]) -> Vec<AssistantBlock> {
    let items: Vec<Item> = provider.stream(request(messages)).collect().await;
    let mut blocks: Vec<_> = items
        .into_iter()
        .filter_map(|item| match item.expect("no error") {
            StreamEvent::BlockClosed { index, block } => Some((index, block)),
            _ => None,
        })
        .collect();
    blocks.sort_by_key(|(index, _)| *index);
    blocks.into_iter().map(|(_, block)| block).collect()
}

fn echo(blocks: &[AssistantBlock]) -> Arc<Message> {
    Arc::new(Message::Assistant(blocks.iter().map(|block| block.raw.clone()).collect()))
}

fn result(id: &str, content: &str) -> Arc<Message> {
    let result = UserBlock::ToolResult {
        tool_use: id.into(),
        content: content.to_owned(),
        is_error: false,
        images: vec![],
    };
    Arc::new(Message::User(vec![result]))
}

#[tokio::test]
async fn r6_what_a_server_sent_goes_back_to_it_as_it_sent_it() {
    const REPLY: &str = concat!(
        r#"data: {"id":"c","choices":[{"index":0,"delta":{"reasoning":"Hm","reasoning_details":[{"type":"reasoning.encrypted", "data":"\u00e9"}]}}]}"#,
        "\n\n",
        r#"data: {"id":"c","choices":[{"index":0,"delta":{"content":"Look.","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read_file","arguments":"{\n \"path\": 1.0}"}}]}}]}"#,
        "\n\n",
        r#"data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        "\n\ndata: [DONE]\n\n"
    );
    let server = serve(Script::new().reply(REPLY).reply(HELLO));
    let provider = provider(&server, None);
    let mut messages = vec![user("look")];
    messages.push(echo(&blocks(&provider, &messages).await));
    messages.push(result("c1", "there"));
    blocks(&provider, &messages).await;
    let body = body(&server.requests()[1]);
    let (_, tail) = body.split_once(r#"{"role":"assistant""#).expect("an assistant message");
    assert_eq!(
        tail,
        concat!(
            r#","content":"Look.","reasoning_details":[{"type":"reasoning.encrypted", "data":"\u00e9"}],"#,
            r#""tool_calls":[{"id":"c1","type":"function","function":{"name":"read_file","#,
            r#""arguments":"{\n \"path\": 1.0}"}}]},{"role":"tool","tool_call_id":"c1","content":"there"}]}"#
        )
    );
}

#[tokio::test]
async fn r4_calls_without_ids_get_some_that_no_other_call_of_the_conversation_has() {
    const REPLY: &str = concat!(
        r#"data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"read_file","arguments":"{}"}},"#,
        r#"{"function":{"name":"read_file","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
        "\n\n"
    );
    let server = serve(Script::new().reply(REPLY).reply(REPLY).reply(HELLO));
    let provider = provider(&server, None);
    let mut messages = vec![user("look")];
    for _ in 0..2 {
        let blocks = blocks(&provider, &messages).await;
        messages.push(echo(&blocks));
        let results = blocks.iter().map(|block| {
            let block: Value = serde_json::from_str(block.raw.get()).expect("JSON");
            let id = block["id"].as_str().expect("an id");
            UserBlock::ToolResult {
                tool_use: id.into(),
                content: "ok".to_owned(),
                is_error: false,
                images: vec![],
            }
        });
        messages.push(Arc::new(Message::User(results.collect())));
    }
    blocks(&provider, &messages).await;
    let body: Value = serde_json::from_slice(&server.requests()[2].body).expect("JSON");
    let of = |role: &str, pointer: &str| -> Vec<Value> {
        let messages = body["messages"].as_array().expect("a list").iter();
        messages
            .filter(|message| message["role"] == role)
            .filter_map(|message| message.pointer(pointer).cloned())
            .collect()
    };
    assert_eq!(of("tool", "/tool_call_id"), ["call_bw_0", "call_bw_1", "call_bw_2", "call_bw_3"]);
    assert_eq!(of("assistant", "/tool_calls/0/id"), ["call_bw_0", "call_bw_2"]);
}

#[tokio::test]
async fn r8_a_request_begins_with_the_whole_request_before_it() {
    let mut messages = vec![user("begin")];
    let provider = OpenAiChat::new(Config::new(None)).expect("a provider");
    let mut before: Vec<u8> = Vec::new();
    for turn in 0..30 {
        let body = provider.body(&request(&messages)).expect("a body");
        let common = before.strip_suffix(b"]}").unwrap_or_default();
        assert!(body.starts_with(common), "turn {turn}");
        before = body.to_vec();
        let call = json!({"type": "tool_use", "id": format!("c{turn}"), "name": "read_file", "input": {"path": turn}});
        let thinking = json!({"type": "thinking", "thinking": "Hm.", "field": "reasoning_content"});
        let reply = [thinking, call].map(|block| raw(&block.to_string()));
        messages.push(Arc::new(Message::Assistant(reply.into())));
        messages.push(result(&format!("c{turn}"), "ok"));
    }
}

#[tokio::test]
async fn debug_stream_sends_the_body_and_shows_the_message_in_the_shape_of_the_messages_api() {
    let server = serve(Script::new().reply(HELLO));
    let kind = ProviderKind::OpenAi;
    let connection = kind.connection(Some(server.base_url()), None, String::new());
    let answer = debug::stream(kind, connection, br#"{"model":"m","messages":[]}"#).await;
    assert_eq!(server.requests()[0].body, br#"{"model":"m","messages":[],"stream":true}"#.as_slice());
    insta::assert_snapshot!(answer, @r#"{"ok":true,"message":{"id":"c","type":"message","role":"assistant","model":"gpt-x","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{}}}"#);
}
