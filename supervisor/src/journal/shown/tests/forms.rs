use protocol::event::SessionEvent;
use serde_json::json;

use super::{Log, plan_request};
use crate::journal::session::rebuild;
use crate::journal::shown::{Reading, ShownLive, markdown, page, text};

/// Returns the text without times, and without facts that depend on times.
fn stable(text: &str) -> String {
    let is_time = |word: &&str| word.len() == 8 && word.matches(':').count() == 2;
    let line = |line: &str| {
        let words: Vec<_> =
            line.split(' ').map(|word| if is_time(&word) { "00:00:00" } else { word }).collect();
        words.join(" ")
    };
    let lines = text.lines().filter(|line| !line.contains("began: ") && !line.contains("last event: "));
    lines.map(line).collect::<Vec<_>>().join("\n")
}

fn session() -> Log {
    let answered =
        json!({"id": 1, "call": 1, "decision": {"decision": "denied", "message": "use a.txt"}, "by": "user"});
    let blocks = json!([{"type": "thinking", "thinking": "hm\nhm"}, {"type": "text", "text": "I look.\nThen I fix it."}]);
    Log::new()
        .began()
        .said("1", "fix it")
        .replied("1", blocks)
        .called("1", "shell_exec", json!({"command": "cat b.txt", "access": "write"}))
        .with("1", "approval_answered", answered)
        .finished("1", "denied", &(0..30).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n"))
        .delegated("1.1", "look around")
        .said("1.1", "look around")
        .replied("1.1", json!([{"type": "text", "text": "Nothing here."}]))
}

#[test]
fn a_session_is_shown_as_text() {
    insta::assert_snapshot!(stable(&text(&session().shown(false), None)));
}

#[test]
fn a_session_is_shown_as_markdown() {
    insta::assert_snapshot!(stable(&markdown(&session().shown(false))));
}

#[test]
fn guests_show_their_access_and_their_end() {
    let fine = json!({"type": "finished"});
    let late = json!({"type": "late"});
    let log = Log::new()
        .began()
        .guest_started(1, "mcp_server", Some("docs"), &json!({}))
        .guest_started(2, "gateway", None, &json!({"worker": 1}))
        .guest_started(3, "gateway", None, &json!({"of": 1}))
        .guest_started(4, "fetch", Some("a.example"), &json!({"call": 1}))
        .guest_started(5, "fetch", Some("b.example"), &json!({"call": 2}));
    let log =
        [1, 2, 3, 4].into_iter().fold(log, |log, guest| log.guest_ended(guest, &fine)).guest_ended(5, &late);
    let lines = |full| {
        let text = stable(&text(&log.shown(full), None));
        let is_about = |line: &&str| ["mcp docs", "gateway", "fetch"].iter().any(|name| line.contains(name));
        text.lines().filter(is_about).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(lines(false), @r"
    ⑂ 00:00:00 mcp docs started · read-only but for $TMPDIR · network off · secrets hidden
    ⑂ 00:00:00 gateway started · read-only but for $TMPDIR · network off · secrets hidden
    ⑂ 00:00:00 mcp docs finished · 2 calls
    ⑂ 00:00:00 gateway finished · 2 calls
    ⑂ 00:00:00 fetch b.example killed: not finished in time · 2 calls
    ");
    assert_eq!(lines(true).lines().count(), 10);
}

#[test]
fn everything_shows_where_that_is_wanted() {
    let text = text(&session().shown(true), None);
    assert!(text.contains("│ hm\n│ hm") && text.contains("│ line 29") && !text.contains("--full"), "{text}");
    let page = page(&session().shown(false));
    assert!(page.contains("<details><summary>thinking: 2 lines</summary><pre>hm\nhm</pre>"), "{page}");
}

#[test]
fn a_plan_is_asked_about_with_its_access_and_every_command_however_much_is_cut() {
    let command = |text: &str| json!({"type": "command", "text": text});
    let steps = json!([
        {"title": "One", "files": ["a"], "acceptance": [command("make one"), command("make all\n  quick")]},
        {"title": "Two"},
    ]);
    let log = |steps: &serde_json::Value| {
        Log::new().began().with("1", "approval_requested", plan_request("/srv", "the plan", steps.clone()))
    };
    let mut live = ShownLive::default();
    let shown = |event: &SessionEvent| live.text(event, None);
    let shown: Vec<_> = log(&steps).loaded().tree.events().filter_map(shown).collect();
    insta::assert_snapshot!(stable(shown.last().unwrap()), @r"
    ? 00:00:00 approval 3 requested for the execution of a plan
      [/srv]
    │ the plan
      [access of the execution, as Bailiwick enforces it]
    │ may       write OUTSIDE THE PROJECT /srv
    │ network   off
    │ steps     1 (1 file, 2 conditions) One
    │           2 Two
    │ failure   a failed step ends the execution
    │ lasts     until the plan ends; no further questions
      [will run without asking: the command of step 1]
    │ make one
      [will run without asking: the command of step 1]
    │ make all
    │   quick
      [the agent's reason]
    │ the plan
    ");
    let none = text(&log(&json!([{"title": "One"}])).shown(false), None);
    assert!(none.contains("[will run without asking]\n│ no acceptance command"), "{none}");
}

#[test]
fn one_agent_is_shown_alone_at_the_edge() {
    let (log, agent) = (session().loaded(), "1.1".into());
    let text = text(&Reading::new(Some(&agent), false).read(&log), None);
    assert!(text.contains("│ Nothing here.") && text.contains("sub-agent 1.1"), "{text}");
    assert!(!text.contains("fix it") && !text.contains("\n  ●"), "{text}");
    assert!(text.contains("agent 1.1: 100 in"), "{text}");
}

#[test]
fn a_torn_log_says_so_and_one_that_was_changed_says_so_first() {
    let mut bytes = session().bytes();
    bytes.extend_from_slice(b"{\"v\":7,\"id\":99");
    let shown = |bytes: &[u8]| text(&Reading::new(None, false).read(&rebuild(bytes)), None);
    let torn = shown(&bytes);
    assert!(
        torn.contains("! line 10 is incomplete") && !torn.contains("CHANGED AFTER IT WAS WRITTEN"),
        "{torn}"
    );
    assert!(torn.contains("│ Nothing here."));
    let changed = String::from_utf8(session().bytes()).unwrap().replacen("fix it", "break it", 1);
    let changed = shown(changed.as_bytes());
    let at = |text: &str| changed.find(text).unwrap_or(usize::MAX);
    assert!(at("CHANGED AFTER IT WAS WRITTEN") < at("line 3 does not continue the chain"), "{changed}");
    assert!(at("line 3 does not continue the chain") < at("│ break it"), "{changed}");
    assert!(shown(b"").contains("no event that can be read"));
}
