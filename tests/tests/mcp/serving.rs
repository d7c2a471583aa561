//! Tests MCP servers that behave well.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use ipc::mcp::{McpAnswer, McpContent, McpFailure, McpForm, McpLink, McpOrder, McpReport, McpRequest};
use serde_json::{Value, json};
use worker::mcp::Patience;

use crate::harness::{Guest, SHORT, call, fake, words};

#[test]
fn a_server_is_described_with_its_tools_and_prompts() {
    let mut guest = Guest::new("plain");
    let McpReport::Tool(tool) = guest.report() else { panic!("no tool") };
    assert_eq!((tool.name.as_str(), tool.title.as_deref()), ("echo", Some("A tool")));
    assert_eq!(tool.input_schema, r#"{"type":"object","properties":{"text":{"type":"string"}}}"#);
    assert_eq!(tool.annotations.as_deref(), Some(r#"{"readOnlyHint":true}"#));
    assert!(matches!(guest.report(), McpReport::Tool(tool) if tool.name == "other"));
    let McpReport::Prompt(prompt) = guest.report() else { panic!("no prompt") };
    let arguments: Vec<_> =
        prompt.arguments.iter().map(|argument| (argument.name.as_str(), argument.required)).collect();
    assert_eq!((prompt.name.as_str(), arguments), ("greet", vec![("who", true), ("how", false)]));
    let McpReport::Described(description) = guest.report() else { panic!("no description") };
    assert_eq!(description.name, "fake");
    assert_eq!((description.version.as_str(), description.protocol.as_str()), ("1.2.3", "2025-11-25"));
    assert_eq!(description.instructions, "Use with care.");
    assert!(description.resources);
    guest.end();
}

#[test]
fn a_server_without_a_handshake_is_served_too() {
    let mut guest = Guest::new("modern");
    let described = guest.described();
    assert_eq!(described.description.protocol, "2026-07-28");
    assert_eq!(described.description.name, "modern");
    // The server reports changes only to a client that listens.
    assert_eq!(guest.report(), McpReport::ToolsChanged);
    assert_eq!(guest.call(1, r#"{"text":"hi"}"#), r#"{"text":"hi"}"#);
    guest.end();
}

#[test]
fn requests_overlap_and_may_come_before_the_server_is_ready() {
    let mut guest = Guest::new("backwards");
    for request in 1..=3 {
        guest.request(request, call(&json!({"text": format!("call {request}")}).to_string()));
    }
    guest.described();
    let mut done: Vec<_> = (0..3)
        .map(|_| match guest.report() {
            McpReport::Done { request, outcome } => (request, words(outcome)),
            other => panic!("{other:?}"),
        })
        .collect();
    done.sort();
    let expected = [1, 2, 3].map(|request| (request, format!("call {request}")));
    assert_eq!(done, expected);
}

#[test]
fn all_kinds_of_content_cross() {
    let mut guest = Guest::serving("all-kinds");
    guest.request(1, call("{}"));
    let result = guest.done(1).unwrap();
    let [text, image, no_image, no_base64, audio, resource, blob, link] = result.content.as_slice() else {
        panic!("{result:?}");
    };
    assert_eq!(text, &McpContent::Text("words".to_owned()));
    assert!(matches!(image, McpContent::Image(image) if image.size() == (48, 32)));
    let other = |kind: &str, bytes, note: &str| McpContent::Other {
        kind: kind.to_owned(),
        bytes,
        note: note.to_owned(),
    };
    assert_eq!(no_image, &other("image/png", 12, "is not a PNG, JPEG, GIF or WebP picture"));
    assert_eq!(no_base64, &other("image/jpeg", 3, "is not in base64"));
    assert_eq!(audio, &other("audio/wav", 3, ""));
    assert_eq!(blob, &other("application/pdf", 3, "is file:///c.pdf"));
    assert_eq!(resource, &McpContent::Resource { uri: "file:///a".to_owned(), text: "inside".to_owned() });
    assert_eq!(link, &McpContent::Link(linked("file:///b", "b", "")));
    assert_eq!(result.structured.as_deref(), Some(r#"{"answer":42}"#));
}

fn linked(uri: &str, name: &str, about: &str) -> McpLink {
    McpLink { uri: uri.to_owned(), name: name.to_owned(), about: about.to_owned() }
}

#[test]
fn a_failed_call_is_a_result_and_a_refused_one_is_not() {
    let mut guest = Guest::serving("fails");
    guest.request(1, call("{}"));
    assert!(guest.done(1).unwrap().failed);
    let mut guest = Guest::serving("refuses");
    guest.request(1, call("{}"));
    let refused = McpFailure::Refused { code: -32602, message: "no such tool".to_owned() };
    assert_eq!(guest.done(1), Err(refused));
    guest.request(2, call("no json"));
    assert!(matches!(guest.done(2), Err(McpFailure::Broken(_))));
}

#[test]
fn resources_and_prompts_are_read() {
    let mut guest = Guest::serving("plain");
    guest.request(1, McpRequest::ListResources);
    let listed = [
        McpContent::Link(linked("file:///a", "a", "The first.")),
        McpContent::Link(linked("file:///b", "b", "")),
        McpContent::Template(linked("file:///{name}", "files", "All of them.")),
    ];
    assert_eq!(guest.done(1).unwrap().content, listed);
    guest.request(2, McpRequest::ReadResource { uri: "file:///b".to_owned() });
    let part = McpContent::Resource { uri: "file:///b".to_owned(), text: "inside".to_owned() };
    assert_eq!(guest.done(2).unwrap().content, [part]);
    let arguments = json!({"who": "Ada"}).to_string();
    guest.request(3, McpRequest::GetPrompt { name: "greet".to_owned(), arguments });
    assert_eq!(words(guest.done(3)), "Greet Ada.");
}

#[test]
fn lists_have_pages() {
    assert_eq!(Guest::new("two-pages").described().tools, ["first", "second"]);
}

#[test]
fn text_before_the_first_message_is_left_out() {
    assert_eq!(Guest::serving("greets").call(1, "{}"), "{}");
    assert_eq!(Guest::serving("broken-once").call(1, "{}"), "fine");
}

#[test]
fn progress_is_reported_and_gives_more_time() {
    let patience = Patience { request: Duration::from_millis(600), ..SHORT };
    let mut guest = Guest::serving_with("progresses", patience);
    guest.request(1, call("{}"));
    for step in 1..=3 {
        let words = format!("{step} of 3: step");
        assert_eq!(guest.report(), McpReport::Progress { request: 1, words });
    }
    assert_eq!(words(guest.done(1)), "done");
}

#[test]
fn a_question_goes_to_the_person_whose_time_is_not_the_servers() {
    for (answer, expected) in [
        (
            McpAnswer::Accepted(r#"{"name":"Ada"}"#.to_owned()),
            r#""action":"accept","content":{"name":"Ada"}"#,
        ),
        (McpAnswer::Declined, r#""action":"decline""#),
        (McpAnswer::Cancelled, r#""action":"cancel""#),
    ] {
        let patience =
            Patience { request: Duration::from_millis(300), total: Duration::from_millis(300), ..SHORT };
        let mut guest = Guest::serving_with("asks", patience);
        guest.request(1, call("{}"));
        let McpReport::Question { question, request: 1, message, form } = guest.report() else {
            panic!("no question");
        };
        assert_eq!(message, "Your name?");
        let McpForm::Fields(fields) = form else { panic!("{form:?}") };
        assert!(fields.len() == 1 && fields[0].name == "name" && fields[0].required, "{fields:?}");
        thread::sleep(Duration::from_secs(1));
        guest.answer(question + 5, McpAnswer::Declined);
        guest.answer(question, answer);
        let said = words(guest.done(1));
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_result_that_requires_input_is_asked_for_again_with_it() {
    let mut guest = Guest::with(fake(&["modern-asks"]), Patience::default());
    guest.described();
    assert_eq!(guest.report(), McpReport::ToolsChanged);
    guest.request(1, call("{}"));
    let McpReport::Question { question, request: 1, .. } = guest.report() else { panic!("no question") };
    guest.answer(question, McpAnswer::Accepted(r#"{"name":"Ada"}"#.to_owned()));
    let said: Value = serde_json::from_str(&words(guest.done(1))).unwrap();
    assert_eq!(said["state"], "s1");
    assert_eq!(said["answer"]["name"]["content"], json!({"name": "Ada"}));
}

#[test]
fn a_request_can_be_taken_back() {
    let mut guest = Guest::serving("silent-call");
    guest.request(1, call("{}"));
    guest.order(McpOrder::Cancel { request: 1 });
    assert_eq!(guest.done(1), Err(McpFailure::Cancelled));
    guest.order(McpOrder::Cancel { request: 1 });
    guest.end();
}

#[test]
fn a_server_ends_with_its_guest() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("alive").display().to_string();
    let mut guest = Guest::with(fake(&["plain"]), Patience::default());
    guest.described();
    let begun = Instant::now();
    guest.end();
    assert!(begun.elapsed() < Duration::from_secs(1), "a server that ends by itself was killed");
    assert!(fs::metadata(path).is_err());
}

#[test]
fn a_program_that_does_not_exist_is_told_by_its_error_number() {
    let mut command = fake(&["plain"]);
    command.program = "/nonexistent/server".to_owned();
    let mut guest = Guest::with(command, Patience::default());
    assert_eq!(guest.gone(), McpFailure::NotStarted { errno: nix::libc::ENOENT });
}
