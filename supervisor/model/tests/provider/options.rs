//! Tests of the options of a request.

use futures_util::StreamExt;
use model::provider::anthropic::{Anthropic, AnthropicConfig, ApiVersion};
use model::provider::{
    Effort, ModelProvider, ModelRequest, RequestOptions, Temperature, Thinking, ThinkingDisplay,
};
use model::replay::Script;

use crate::{config, hello, request, serve, user};

/// Returns the part of a request before its tools.
fn head(options: RequestOptions, version: ApiVersion) -> String {
    head_of(&ModelRequest { options, ..request(&[user("hello")]) }, version)
}

fn head_of(request: &ModelRequest, version: ApiVersion) -> String {
    let config = AnthropicConfig { version, ..config("http://127.0.0.1:1") };
    let body = Anthropic::new(config).expect("a provider").body(request).expect("a body");
    let text = String::from_utf8(body.to_vec()).expect("UTF-8");
    text.split_once(r#","tools":"#).expect("tools").0.to_owned()
}

fn thinking(thinking: Thinking) -> RequestOptions {
    RequestOptions { thinking, ..RequestOptions::default() }
}

#[test]
fn what_is_not_said_is_not_sent() {
    for version in [ApiVersion::V2026_10_21, ApiVersion::V2023_06_01] {
        let head = head(RequestOptions::default(), version);
        assert_eq!(head, r#"{"model":"claude-opus-5-5","max_tokens":32000,"stream":true"#);
    }
}

#[test]
fn effort_and_thinking_are_sent_as_the_api_names_them() {
    let effort = |effort| RequestOptions { effort: Some(effort), ..RequestOptions::default() };
    let levels = [Effort::Low, Effort::Medium, Effort::High, Effort::Xhigh, Effort::Max].map(effort);
    let adaptive = |display| thinking(Thinking::Adaptive { display });
    let all = levels.into_iter().chain([
        adaptive(None),
        adaptive(Some(ThinkingDisplay::Omitted)),
        RequestOptions { effort: Some(Effort::High), ..adaptive(Some(ThinkingDisplay::Summarized)) },
        thinking(Thinking::Budget { tokens: 8000 }),
        thinking(Thinking::Off),
    ]);
    let said = |options| {
        let head = head(options, ApiVersion::V2026_10_21);
        head.strip_prefix(r#"{"model":"claude-opus-5-5","max_tokens":32000,"stream":true,"#)
            .map(str::to_owned)
    };
    let all: Vec<_> = all.map(|options| said(options).expect("a head")).collect();
    insta::assert_snapshot!(all.join("\n"), @r#"
    "output_config":{"effort":"low"}
    "output_config":{"effort":"medium"}
    "output_config":{"effort":"high"}
    "output_config":{"effort":"xhigh"}
    "output_config":{"effort":"max"}
    "thinking":{"type":"adaptive"}
    "thinking":{"type":"adaptive","display":"omitted"}
    "thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}
    "thinking":{"type":"enabled","budget_tokens":8000}
    "thinking":{"type":"disabled"}
    "#);
}

#[test]
fn a_thinking_budget_is_within_the_bounds_of_the_api() {
    let budget = |tokens, max_tokens| {
        let options = thinking(Thinking::Budget { tokens });
        let request = ModelRequest { options, max_tokens, ..request(&[user("hello")]) };
        let head = head_of(&request, ApiVersion::V2023_06_01);
        head.split_once(r#""budget_tokens":"#).map(|(_, budget)| budget.trim_end_matches('}').to_owned())
    };
    assert_eq!(budget(10, 4096).as_deref(), Some("1024"));
    assert_eq!(budget(u32::MAX, 4096).as_deref(), Some("4095"));
    // The reply is shorter than the smallest budget, so that the API would reject any budget.
    assert_eq!(budget(2000, 1024), None);
}

#[test]
fn r1_a_temperature_is_sent_only_where_the_api_takes_one() {
    let temperature = Temperature::new(0.5);
    let sent = |thinking, version| {
        let options = RequestOptions { temperature, thinking, ..RequestOptions::default() };
        head(options, version).contains(r#""temperature":0.5"#)
    };
    assert!(sent(Thinking::ByModel, ApiVersion::V2023_06_01));
    assert!(!sent(Thinking::ByModel, ApiVersion::V2026_10_21));
    assert!(!sent(Thinking::Budget { tokens: 2000 }, ApiVersion::V2023_06_01));
    assert!(!sent(Thinking::Adaptive { display: None }, ApiVersion::V2023_06_01));
}

#[tokio::test]
async fn r1_the_beta_header_names_what_is_used_and_is_absent_otherwise() {
    let server = serve(Script::new().reply(hello()).reply(hello()));
    let provider = Anthropic::new(config(&server.base_url())).expect("a provider");
    for options in [RequestOptions::default(), thinking(Thinking::Budget { tokens: 2000 })] {
        let request = ModelRequest { options, ..request(&[user("hello")]) };
        provider.stream(request).collect::<Vec<_>>().await;
    }
    let betas: Vec<_> =
        server.requests().iter().map(|sent| sent.header("anthropic-beta").map(str::to_owned)).collect();
    assert_eq!(betas, [None, Some("interleaved-thinking-2025-05-14".to_owned())]);
}
