//! Tests that every request of a long conversation is valid by the types of each vendor's Python SDK.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bytes::Bytes;
use model::provider::anthropic::ApiVersion;
use model::provider::{
    CacheLifetime, Effort, ProviderKind, RequestOptions, Temperature, Thinking, ThinkingDisplay,
};

use crate::plan;

/// Environment variable with the path of a Python that has the SDKs, unless the default Python has them.
const VARIABLE: &str = "BAILIWICK_PYTHON";

/// Exit status of the script if the vendor's SDK is not installed.
const NOT_INSTALLED: i32 = 77;

const fn package(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Anthropic => "anthropic",
        ProviderKind::OpenAi | ProviderKind::Responses => "openai",
    }
}

pub(crate) fn validate(kind: ProviderKind, directory: &Path, bodies: &[Bytes]) -> Option<Output> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python/validate_requests.py");
    let write = |(index, body): (usize, &Bytes)| {
        let path = directory.join(format!("{index:04}.json"));
        fs::write(&path, body).expect("our own directory");
        path
    };
    let paths: Vec<PathBuf> = bodies.iter().enumerate().map(write).collect();
    let python = std::env::var_os(VARIABLE).unwrap_or_else(|| "python3".into());
    match Command::new(python).arg(script).arg(kind.as_str()).args(paths).output() {
        Ok(output) if output.status.code() != Some(NOT_INSTALLED) => Some(output),
        _ => {
            eprintln!(
                "skipped: the Python package {} is not installed: {VARIABLE} names a Python that has it",
                package(kind)
            );
            None
        }
    }
}

/// Returns options of requests, for both versions of the Messages API.
fn options() -> [(ApiVersion, RequestOptions); 4] {
    let usual = RequestOptions::default();
    [
        (ApiVersion::V2026_10_21, usual),
        (
            ApiVersion::V2026_10_21,
            RequestOptions {
                effort: Some(Effort::Xhigh),
                thinking: Thinking::Adaptive { display: Some(ThinkingDisplay::Omitted) },
                cache: CacheLifetime::OneHour,
                temperature: Temperature::new(1.0),
            },
        ),
        (ApiVersion::V2023_06_01, RequestOptions { thinking: Thinking::Budget { tokens: 8000 }, ..usual }),
        (ApiVersion::V2023_06_01, RequestOptions { thinking: Thinking::Off, ..usual }),
    ]
}

#[tokio::test]
async fn every_request_of_a_long_conversation_is_valid_for_the_vendors_own_types() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut bodies = Vec::new();
    for (version, options) in options() {
        bodies.extend(plan::play(version, options).await.bodies);
    }
    assert!(bodies.len() >= 120, "{}", bodies.len());
    all_are_valid(ProviderKind::Anthropic, directory.path(), &bodies);
}

fn all_are_valid(kind: ProviderKind, directory: &Path, bodies: &[Bytes]) {
    let Some(output) = validate(kind, directory, bodies) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with(&format!("{} requests are valid", bodies.len())), "{said}");
    eprint!("{said}");
}

#[tokio::test]
async fn every_request_in_the_other_dialects_is_valid_for_their_vendors_own_types() {
    for kind in [ProviderKind::OpenAi, ProviderKind::Responses] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut bodies = Vec::new();
        for (_, options) in options() {
            bodies.extend(plan::play_as(kind, options).await.bodies);
        }
        assert!(bodies.len() >= 120, "{}", bodies.len());
        all_are_valid(kind, directory.path(), &bodies);
    }
}

#[tokio::test]
async fn a_request_that_is_wrong_anywhere_is_not_valid() {
    let body = plan::play(ApiVersion::default(), options()[1].1).await.bodies.pop().expect("a request");
    let body = String::from_utf8(body.to_vec()).expect("UTF-8");
    let wrong = [
        (r#""stream":true"#, r#""stream":"yes""#),
        (r#""max_tokens":32000"#, r#""max_tokens":"32000""#),
        (r#""effort":"xhigh""#, r#""effort":"all""#),
        (r#""display":"omitted""#, r#""display":"none""#),
        (r#""ttl":"1h""#, r#""ttl":"2h""#),
        (r#""role":"assistant""#, r#""role":"robot""#),
        (r#""tool_use_id":"#, r#""tool_id":"#),
        (r#""signature":"#, r#""signed":"#),
        (r#""is_error":true"#, r#""is_error":"yes""#),
        (r#""input_schema":{"type":"object""#, r#""input_schema":{"type":"array""#),
        (r#""messages":["#, r#""n":1,"messages":["#),
    ];
    none_is_valid(ProviderKind::Anthropic, &body, &wrong);
}

/// Checks that the vendor's types reject a body with any of these mistakes.
fn none_is_valid(kind: ProviderKind, body: &str, wrong: &[(&str, &str)]) {
    let directory = tempfile::tempdir().expect("a directory");
    let replaced = |(right, wrong): &(&str, &str)| {
        assert!(body.contains(right), "{right} is part of a request");
        Bytes::from(body.replacen(right, wrong, 1))
    };
    let bodies: Vec<_> = wrong.iter().map(replaced).collect();
    let Some(output) = validate(kind, directory.path(), &bodies) else { return };
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    for (index, (_, wrong)) in wrong.iter().enumerate() {
        assert!(said.contains(&format!("{index:04}.json: ")), "{wrong} was taken: {said}");
    }
}

#[tokio::test]
async fn a_request_that_is_wrong_in_another_dialect_is_not_valid() {
    let last = async |kind| {
        let body = plan::play_as(kind, options()[1].1).await.bodies.pop().expect("a request");
        String::from_utf8(body.to_vec()).expect("UTF-8")
    };
    let wrong = [
        (r#""stream":true"#, r#""stream":"yes""#),
        (r#""max_completion_tokens":32000"#, r#""max_completion_tokens":"32000""#),
        (r#""reasoning_effort":"high""#, r#""reasoning_effort":"all""#),
        (r#""role":"assistant""#, r#""role":"robot""#),
        (r#""tool_call_id":"#, r#""tool_id":"#),
        (r#""type":"function""#, r#""type":"tool""#),
        (r#""type":"image_url""#, r#""type":"image""#),
        (r#""include_usage":true"#, r#""include_usage":"yes""#),
        (r#""messages":["#, r#""seeds":1,"messages":["#),
    ];
    none_is_valid(ProviderKind::OpenAi, &last(ProviderKind::OpenAi).await, &wrong);
    let wrong = [
        (r#""stream":true"#, r#""stream":"yes""#),
        (r#""max_output_tokens":32000"#, r#""max_output_tokens":"32000""#),
        (r#""effort":"xhigh""#, r#""effort":"all""#),
        (r#""strict":false"#, r#""strict":"no""#),
        (r#""type":"input_text""#, r#""type":"text""#),
        (r#""type":"input_image""#, r#""type":"image""#),
        (r#""type":"function_call_output","call_id""#, r#""type":"function_call_output","id_of_call""#),
        (r#""reasoning.encrypted_content""#, r#""reasoning.content""#),
        (r#""input":["#, r#""seeds":1,"input":["#),
    ];
    none_is_valid(ProviderKind::Responses, &last(ProviderKind::Responses).await, &wrong);
}
