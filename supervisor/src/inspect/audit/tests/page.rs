use serde_json::json;

use super::Log;
use crate::inspect::audit::by_agent::EventsByAgent;
use crate::inspect::audit::page::page;
use crate::journal::shown::LOADS;

fn html(log: &Log) -> String {
    page(&log.account(), &EventsByAgent::of(&log.loaded().tree))
}

const ELEMENTS: &[&str] = &[
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "header",
    "nav",
    "main",
    "section",
    "h1",
    "h2",
    "h3",
    "p",
    "ul",
    "li",
    "input",
    "a",
    "small",
    "dl",
    "dt",
    "dd",
    "blockquote",
    "details",
    "summary",
    "table",
    "tr",
    "td",
];

/// The attributes that a page may have. None of them contains code.
const ATTRIBUTES: &[&str] =
    &["lang", "charset", "http-equiv", "content", "name", "class", "type", "checked", "id", "href", "open"];

/// Checks that a page contains only known elements, and that all are closed.
fn assert_well_formed(page: &str) {
    let mut rest = page.strip_prefix("<!DOCTYPE html>").unwrap();
    let mut open = Vec::new();
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains('>') || open.last() == Some(&"style"), "a loose > in {text:?}");
        let (tag, next) = after.split_once('>').unwrap();
        rest = next;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        let (tag, is_closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let name = tag.split(' ').next().unwrap();
        assert!(ELEMENTS.contains(&name), "{tag:?}");
        let quoted: Vec<_> = tag[name.len()..].split('"').collect();
        assert_eq!(quoted.len() % 2, 1, "{tag:?}");
        for attribute in quoted[..quoted.len() - 1].iter().step_by(2) {
            let attribute = attribute.trim().strip_suffix('=').unwrap();
            assert!(ATTRIBUTES.contains(&attribute), "{tag:?}");
        }
        if !is_closed {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    assert!(!rest.contains('>'));
}

const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "</style><style>*{display:none}</style>",
    "\" onmouseover=\"alert(1)",
    "' autofocus onfocus='alert(1)",
    "--><!-- ]]> <![CDATA[",
    "</td></tr></table><h1>the chain holds</h1>",
    "&lt;img src=x onerror=alert(1)&gt;",
    "\u{202e}drowssap\u{202c} \u{200b}\u{feff}",
    "\u{1b}[31mred\u{7}\0\r",
];

/// Returns a log with the text in every field that can hold untrusted text.
fn everywhere(text: &str) -> Log {
    // Paths cannot contain NUL.
    let name = text.replace('\0', "");
    let denied = json!({
        "layer": "landlock", "operation": "write", "object": {"path": format!("/p/{name}")}, "program": text,
        "missing_right": text, "grade": "likely", "rights": text,
    });
    let call = json!({"call": 1, "tool_use": text, "name": text, "input": {"command": text}});
    let finished =
        json!({"call": 1, "tool_use": text, "status": "failed", "content": text, "duration_ms": 1});
    let answered =
        json!({"call": 1, "decision": {"decision": "denied", "message": text}, "by": "user", "cause": text});
    let restored = json!({"places": [{"path": name, "what": {"keys": [text]}, "restored": true}]});
    Log::new()
        .said("1", text)
        .spawned(
            "1.1",
            json!({"task": text, "model": text, "write": [format!("/p/{name}")], "rights_digest": text}),
        )
        .worker("1.1", 1, text)
        .with("1.1", "worker_ended", json!({"generation": 1, "reason": text}))
        .with("1.1", "tool_call_started", call)
        .with("1.1", "denied", denied)
        .with("1.1", "tool_call_finished", finished)
        .with("1.1", "approval_answered", answered)
        .with("1.1", "restored", restored)
        .with("1.1", "notice", json!({"code": text, "message": text}))
        .with("1.1", "protocol_violation", json!({"generation": 1, "violation": text}))
        .with("1.1", "model_failed", json!({"kind": "other", "message": text}))
        .result("1.1", text)
        .said(&format!("1.2{text}"), text)
        .end()
}

#[test]
fn no_text_of_a_log_becomes_markup() {
    let plain = html(&everywhere("x"));
    assert_well_formed(&plain);
    for text in HOSTILE {
        let page = html(&everywhere(text));
        assert_well_formed(&page);
        assert_eq!(page.matches('<').count(), plain.matches('<').count(), "{text:?}");
        let is_shown = |c: char| {
            c == '\n'
                || !(c.is_control()
                    || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{feff}'))
        };
        assert!(page.chars().all(is_shown), "{text:?}");
    }
}

#[test]
fn a_page_loads_nothing_and_runs_nothing() {
    let page = html(&everywhere("x"));
    for word in LOADS {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'"));
    for link in page.split("href=\"").skip(1) {
        assert!(link.starts_with("#agent-"), "{link:.20}");
    }
}

#[test]
fn every_agent_has_a_link_a_box_and_a_section() {
    let log = Log::new().said("1", "go").spawned("1.1", json!({})).spawned("1.1.1", json!({}));
    let page = html(&log);
    for index in 0..3 {
        for part in ["href=\"#agent-", "id=\"agent-", "id=\"show-", "body:has(#show-"] {
            assert!(page.contains(&format!("{part}{index}")), "{part}{index}");
        }
    }
    assert!(page.contains("level-0") && page.contains("level-1") && page.contains("level-2"));
}

#[test]
fn a_verdict_says_whether_everything_agrees() {
    let sound = html(&Log::new().said("1", "go"));
    assert!(
        sound.contains("<p class=\"sound\">ok: 1 event, the log is intact, its events are consistent</p>"),
        "{sound}"
    );
    let finding = html(&Log::new().said("1.1", "go"));
    assert!(finding.contains("<p class=\"unsound\">FAIL: 1 event, the log is intact, 1 FINDING</p>"));
    assert!(finding.contains("<li>finding: agent 1.1 has events before its start"), "{finding}");
}

#[test]
fn a_page_has_a_bound_and_says_what_it_leaves_out() {
    let task = "<".repeat(100_000);
    let words = "<".repeat(1000);
    let log = (0..1500).fold(Log::new().said("1", &task), |log, _| {
        log.with("1", "notice", json!({"code": "x", "message": words}))
    });
    let log = (1..=300).fold(log, |log, n| log.spawned(&format!("1.{n}"), json!({"task": "t"})));
    let page = html(&log);
    assert!(page.len() < 4 << 20, "{}", page.len());
    assert_well_formed(&page);
    for said in ["801 more rows are in the log.", "101 more agents are in the log.", "98000 more characters"]
    {
        assert!(page.contains(said), "{said}");
    }
}
