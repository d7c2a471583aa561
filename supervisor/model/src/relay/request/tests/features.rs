//! Tests that features of the APIs are rejected if Bailiwick's own client does not use them.

use serde_json::{Value, json};

use crate::provider::ProviderKind;

pub(super) fn features(kind: ProviderKind) -> Vec<(&'static str, Value)> {
    let url = json!("https://x.example/a.png");
    match kind {
        ProviderKind::Anthropic => of_messages(&url),
        ProviderKind::OpenAi => of_chat(&url),
        ProviderKind::Responses => of_responses(&url),
    }
}

fn of_messages(url: &Value) -> Vec<(&'static str, Value)> {
    vec![
        ("tools[+]", json!({"type": "web_search_20250305", "name": "web_search"})),
        ("tools[+]", json!({"type": "web_fetch_20250910", "name": "web_fetch"})),
        ("tools[+]", json!({"type": "code_execution_20250825", "name": "code_execution"})),
        ("tools[+]", json!({"type": "bash_20250124", "name": "bash"})),
        ("tools[+]", json!({"type": "computer_20250124", "name": "computer", "display_width_px": 1})),
        ("tools[+]", json!({"type": "memory_20250818", "name": "memory"})),
        ("tools[+]", json!({"type": "mcp_toolset", "mcp_server_name": "m"})),
        ("tools[+]", json!({"name": "f", "input_schema": {"type": "object", "$ref": "https://x.example/s"}})),
        ("tools[0].allowed_callers", json!(["code_execution_20250825"])),
        ("tools[0].defer_loading", json!(true)),
        ("mcp_servers", json!([{"type": "url", "url": "https://x.example", "name": "m"}])),
        ("container", json!("c")),
        ("metadata", json!({"user_id": "u"})),
        ("service_tier", json!("auto")),
        ("inference_geo", json!("us")),
        ("speed", json!("fast")),
        ("context_management", json!({"edits": []})),
        ("fallbacks", json!(["claude-x"])),
        ("diagnostics", json!({"previous_message_id": "m"})),
        ("tool_choice", json!({"type": "any"})),
        ("stop_sequences", json!(["x"])),
        ("top_k", json!(1)),
        ("n", json!(2)),
        ("thinking", json!({"type": "enabled", "budget_tokens": 8_000})),
        ("messages[0].content[0].source", json!({"type": "url", "url": url})),
        ("messages[0].content[0].source", json!({"type": "file", "file_id": "file_1"})),
        ("messages[0].content[0].source.url", url.clone()),
        ("messages[0].content[+]", json!({"type": "document", "source": {"type": "url", "url": url}})),
        ("messages[0].content[+]", json!({"type": "container_upload", "file_id": "f"})),
        (
            "messages[0].content[+]",
            json!({"type": "search_result", "source": "s", "title": "t", "content": []}),
        ),
        (
            "messages[1].content[+]",
            json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        ),
        (
            "messages[1].content[+]",
            json!({"type": "mcp_tool_use", "id": "s", "name": "n", "server_name": "m", "input": {}}),
        ),
        ("messages[1].content[4].caller", json!({"type": "code_execution_20250825", "tool_id": "t"})),
        (
            "messages[2].content[0].content[+]",
            json!({"type": "document", "source": {"type": "file", "file_id": "f"}}),
        ),
        ("messages[+]", json!({"role": "system", "content": "x"})),
    ]
}

fn of_chat(url: &Value) -> Vec<(&'static str, Value)> {
    vec![
        ("tools[+]", json!({"type": "web_search"})),
        ("tools[+]", json!({"type": "code_interpreter", "container": {"type": "auto"}})),
        ("tools[+]", json!({"type": "custom", "custom": {"name": "x"}})),
        ("tools[+]", json!({"type": "mcp", "server_url": "https://x.example"})),
        ("web_search_options", json!({})),
        ("search_parameters", json!({"mode": "on"})),
        ("plugins", json!([{"id": "web"}])),
        ("functions", json!([])),
        ("metadata", json!({"a": "b"})),
        ("store", json!(true)),
        ("n", json!(2)),
        ("service_tier", json!("priority")),
        ("prediction", json!({"type": "content", "content": "x"})),
        ("modalities", json!(["audio"])),
        ("audio", json!({"voice": "v", "format": "wav"})),
        ("user", json!("u")),
        ("models", json!(["a", "b"])),
        ("provider", json!({"order": ["x"]})),
        ("prompt_cache_key", json!("k")),
        ("logit_bias", json!({"1": 1})),
        ("response_format", json!({"type": "json_object"})),
        ("stream", json!(false)),
        ("messages[1].content[0].image_url.url", url.clone()),
        ("messages[1].content[0].image_url.url", json!("data:text/html;base64,AAAA")),
        ("messages[1].content[+]", json!({"type": "file", "file": {"file_id": "f"}})),
        (
            "messages[1].content[+]",
            json!({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}),
        ),
        ("messages[2].audio", json!({"id": "a"})),
        ("messages[2].tool_calls[0].extra_content", json!({"other": {}})),
        ("messages[+]", json!({"role": "developer", "content": "x"})),
    ]
}

fn of_responses(url: &Value) -> Vec<(&'static str, Value)> {
    vec![
        ("tools[+]", json!({"type": "web_search"})),
        ("tools[+]", json!({"type": "web_search_preview"})),
        ("tools[+]", json!({"type": "file_search", "vector_store_ids": ["v"]})),
        ("tools[+]", json!({"type": "code_interpreter", "container": {"type": "auto"}})),
        ("tools[+]", json!({"type": "mcp", "server_label": "m", "server_url": "https://x.example"})),
        ("tools[+]", json!({"type": "image_generation"})),
        ("tools[+]", json!({"type": "computer_use_preview"})),
        ("tools[+]", json!({"type": "local_shell"})),
        ("background", json!(true)),
        ("store", json!(true)),
        ("previous_response_id", json!("resp_1")),
        ("conversation", json!("conv_1")),
        ("prompt", json!({"id": "pmpt_1"})),
        ("metadata", json!({"a": "b"})),
        ("service_tier", json!("flex")),
        ("safety_identifier", json!("s")),
        ("user", json!("u")),
        ("truncation", json!("auto")),
        ("max_tool_calls", json!(3)),
        ("include[0]", json!("web_search_call.action.sources")),
        ("include[+]", json!("file_search_call.results")),
        ("stream", json!(false)),
        ("input[0].content[0].image_url", url.clone()),
        ("input[0].content[0].file_id", json!("file_1")),
        ("input[0].content[+]", json!({"type": "input_file", "file_url": url})),
        ("input[+]", json!({"type": "item_reference", "id": "msg_1"})),
        ("input[+]", json!({"type": "web_search_call", "id": "w", "status": "completed"})),
        ("input[+]", json!({"type": "mcp_approval_response", "approve": true, "approval_request_id": "a"})),
        ("input", json!("text alone")),
    ]
}
