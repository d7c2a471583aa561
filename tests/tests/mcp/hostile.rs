//! Tests MCP servers that misbehave: each is limited, reported as one failure, and affects no other server.

use std::time::{Duration, Instant};

use ipc::mcp::{MAX_ROUNDS, McpAnswer, McpFailure, McpForm, McpOrder, McpReport, McpRequest};
use serde_json::Value;
use worker::mcp::Patience;

use crate::harness::{Guest, SHORT, broken, call, fake, words};

fn not_described(behaviour: &str) -> String {
    broken(Guest::new(behaviour).gone())
}

#[test]
fn descriptions_beyond_a_bound_end_the_server() {
    for (behaviour, reason) in [
        ("many-tools", "more than 512 tools"),
        ("many-pages", "more than 128 pages of a list"),
        ("leads-back", "a list refers back to one of its own pages"),
        ("twice", "two tools have the same name"),
        ("nameless", "a tool without a name"),
        ("deep-schema", "more than 32 levels of a schema"),
        ("large-schema", "more than 65536 bytes of a schema"),
        ("no-schema", "an answer does not match its request"),
    ] {
        assert_eq!(not_described(behaviour), reason, "{behaviour}");
    }
}

#[test]
fn a_schema_that_refers_to_itself_or_is_just_deep_enough_passes() {
    for behaviour in ["cyclic-schema", "deepest-schema"] {
        assert_eq!(Guest::new(behaviour).described().tools, ["shaped"]);
    }
}

#[test]
fn a_server_that_dies_is_told_with_its_code_and_last_words() {
    let said = |words: &str, code| McpFailure::Ended { code: Some(code), said: words.to_owned() };
    assert_eq!(Guest::new("dies").gone(), said("cannot find the database", 3));
    let mut guest = Guest::serving("dies-in-a-call");
    guest.request(1, call("{}"));
    assert_eq!(guest.gone_in(1), said("out of luck", 7));
}

#[test]
fn an_answer_before_the_end_of_a_server_counts() {
    let mut guest = Guest::serving("answers-and-dies");
    assert_eq!(guest.call(1, "{}"), "last words");
    assert!(matches!(guest.gone(), McpFailure::Ended { code: Some(0), .. }));
}

#[test]
fn a_server_that_never_answers_is_told_after_its_time() {
    for behaviour in ["silent", "never-reads"] {
        let mut guest = Guest::with(fake(&[behaviour]), SHORT);
        assert_eq!(guest.gone(), McpFailure::Silent { seconds: 1 });
    }
    for behaviour in ["silent-call", "silent-call-after-progress"] {
        let mut guest = Guest::serving_with(behaviour, SHORT);
        guest.request(1, call("{}"));
        let mut report = guest.report();
        if matches!(report, McpReport::Progress { .. }) {
            report = guest.report();
        }
        let outcome = Err(McpFailure::Silent { seconds: 1 });
        assert_eq!(report, McpReport::Done { request: 1, outcome });
        // The server is not ended, and answers the next request.
        guest.request(2, McpRequest::ListResources);
        assert_eq!(guest.done(2).unwrap().content.len(), 3);
    }
}

#[test]
fn progress_gives_no_time_beyond_the_whole() {
    let mut guest = Guest::serving_with("drips", SHORT);
    let begun = Instant::now();
    guest.request(1, call("{}"));
    let mut reports = 0;
    let outcome = loop {
        match guest.report() {
            McpReport::Progress { .. } => reports += 1,
            McpReport::Done { outcome, .. } => break outcome,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(outcome, Err(McpFailure::Silent { seconds: 3 }));
    assert!(begun.elapsed() < Duration::from_secs(6));
    assert!((2..=20).contains(&reports), "{reports} reports of progress");
}

#[test]
fn answers_that_nobody_asked_for_have_no_effect_and_a_bound() {
    let mut guest = Guest::serving("answers-others");
    assert_eq!(guest.call(1, "{}"), "true");
    assert_eq!(guest.call(2, "{}"), "true");
    let mut guest = Guest::serving("floods-strays");
    guest.request(1, call("{}"));
    assert_eq!(guest.broken_in(1), "the server sent too many answers without a request");
}

#[test]
fn lines_that_are_no_messages_end_the_server() {
    for behaviour in ["broken", "not-utf8"] {
        let mut guest = Guest::serving(behaviour);
        guest.request(1, call("{}"));
        assert_eq!(guest.broken_in(1), "too many lines are not messages of MCP");
    }
    assert_eq!(not_described("greets-much"), "too many lines are not messages of MCP");
}

#[test]
fn a_line_without_an_end_takes_bounded_memory() {
    assert_eq!(not_described("never-ends-a-line"), "a line of more than 4194304 bytes");
    let mut guest = Guest::serving("long-line");
    guest.request(1, call("{}"));
    assert_eq!(guest.broken_in(1), "a line of more than 4194304 bytes");
}

#[test]
fn a_result_beyond_a_bound_fails_alone() {
    for (behaviour, reason) in [
        ("large-result", "a result of more than 3145728 bytes"),
        ("many-parts", "a result of more than 1024 parts"),
        ("wrong-kind", "an answer does not match its request"),
    ] {
        let mut guest = Guest::serving(behaviour);
        guest.request(1, call("{}"));
        assert_eq!(broken(guest.done(1).unwrap_err()), reason, "{behaviour}");
        guest.request(2, McpRequest::ListResources);
        assert_eq!(guest.done(2).unwrap().content.len(), 3);
    }
}

#[test]
fn changed_tools_are_reported_once() {
    let mut guest = Guest::serving("changes");
    for request in [1, 2] {
        guest.request(request, call("{}"));
        let mut report = guest.report();
        if request == 1 {
            assert_eq!(report, McpReport::ToolsChanged);
            report = guest.report();
        }
        assert!(matches!(report, McpReport::Done { .. }), "{report:?}");
    }
    let mut guest = Guest::serving("changes-early");
    assert_eq!(guest.report(), McpReport::ToolsChanged);
}

#[test]
fn questions_during_a_request_are_bounded() {
    let mut guest = Guest::serving("asks-much");
    guest.request(1, call("{}"));
    for _ in 0..MAX_ROUNDS {
        let McpReport::Question { question, .. } = guest.report() else { panic!("no question") };
        guest.answer(question, McpAnswer::Declined);
    }
    assert_eq!(words(guest.done(1)), (20 - MAX_ROUNDS).to_string());
    let mut guest = Guest::with(fake(&["modern-asks", "always"]), Patience::default());
    guest.described();
    assert_eq!(guest.report(), McpReport::ToolsChanged);
    guest.request(1, call("{}"));
    for _ in 0..MAX_ROUNDS {
        let McpReport::Question { question, .. } = guest.report() else { panic!("no question") };
        guest.answer(question, McpAnswer::Declined);
    }
    assert!(broken(guest.done(1).unwrap_err()).starts_with("more than 8 questions"));
}

#[test]
fn a_storm_of_questions_ends_the_server() {
    let mut guest = Guest::serving("asks-in-a-storm");
    guest.request(1, call("{}"));
    let mut questions = 0;
    let failure = loop {
        match guest.report() {
            McpReport::Question { .. } => questions += 1,
            McpReport::Done { outcome, .. } => break outcome.unwrap_err(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(broken(failure), "the server sent too many requests at a time");
    assert!(questions <= MAX_ROUNDS);
}

#[test]
fn only_a_form_may_be_asked_for() {
    let mut guest = Guest::serving("asks-everything");
    guest.request(1, call("{}"));
    // The person is told of a page that a server wants to be opened.
    let McpReport::Question { question, form: McpForm::Page, .. } = guest.report() else { panic!("no page") };
    guest.answer(question, McpAnswer::Declined);
    let replies: Value = serde_json::from_str(&words(guest.done(1))).unwrap();
    let has_failed: Vec<_> =
        replies.as_array().unwrap().iter().map(|reply| !reply["error"].is_null()).collect();
    assert_eq!(has_failed, [true, true, false, false], "{replies}");
    assert_eq!(replies[3]["result"], serde_json::json!({"action": "decline"}));
}

#[test]
fn a_flood_of_standard_error_holds_nothing_up() {
    let mut guest = Guest::serving("floods-stderr");
    for request in 1..20 {
        assert_eq!(guest.call(request, "{}"), "{}");
    }
}

#[test]
fn a_server_that_closes_its_output_alone_is_gone() {
    assert_eq!(not_described("closes-output"), "the server closed its standard output, but kept running");
}

#[test]
fn an_order_that_may_not_come_ends_the_guest() {
    let mut guest = Guest::serving("plain");
    guest.order(McpOrder::Start(fake(&["plain"])));
    assert!(matches!(guest.reports_end(), Err(worker::mcp::McpError::Order)));
}

#[test]
fn lists_of_resources_are_bounded_and_need_no_templates() {
    let mut guest = Guest::serving("many-resources");
    guest.request(1, McpRequest::ListResources);
    assert_eq!(broken(guest.done(1).unwrap_err()), "a list refers back to one of its own pages");
    let mut guest = Guest::serving("no-templates");
    guest.request(1, McpRequest::ListResources);
    assert_eq!(guest.done(1).unwrap().content.len(), 2);
}
