use serde_json::json;

use super::super::by_agent::EventsByAgent;
use super::super::page;
use super::Log;

/// Returns a log of guests: a worker's gateway that connected, fetches, and an MCP server that died, with its gateway.
fn log() -> Log {
    let host = |name: &str| json!({"host": name, "port": 443, "program": "curl", "connections": 1, "sent": 20, "received": 300});
    let totals = json!({"connections": 1, "sent": 20, "received": 300, "denials": 0});
    let log = Log::new().guest("1", 1, json!({})).worker("1", 1, "top").said("1", "look");
    let log = log.with(
        "1",
        "tool_pinned",
        json!({"server": "docs", "digest": "ab".repeat(32), "tools": 2, "change": "first"}),
    );
    let used = json!({"generation": 1, "uses": [host("a.example")]});
    let fetch = |call: u32| json!({"kind": "fetch", "name": "b.example", "worker": null, "call": call, "hosts": ["b.example"]});
    let fetched = || json!({"totals": totals, "hosts": [host("b.example")]});
    let log = log.guest("1", 2, fetch(1)).guest_end("1", 2, "finished", fetched());
    let log = log.guest("1", 3, fetch(2)).guest_end("1", 3, "finished", fetched());
    let rights = json!({"write": ["temp"], "read": ["project", "system"], "net": {"hosts": ["c.example"]}, "hidden": 3, "protected": 0});
    let server = json!({"kind": "mcp_server", "name": "docs", "worker": null, "hosts": null, "rights": rights, "variables": ["TOKEN"]});
    let log =
        log.guest("1", 4, server).guest("1", 5, json!({"worker": null, "of": 4, "hosts": ["c.example"]}));
    let log = log.guest_end("1", 5, "owner_ended", json!({"totals": totals, "hosts": [host("c.example")]}));
    let died = json!({
        "reason": {"type": "failed", "failure": "it ended with code 3\nguest 9"}, "totals": {"calls": 2, "denials": 1},
    });
    let log = log.guest_end("1", 4, "failed", died);
    let log = log.guest_end("1", 1, "owner_ended", json!({"totals": totals, "hosts": [host("a.example")]}));
    log.with("1", "hosts_used", used)
        .with("1", "worker_ended", json!({"generation": 1, "reason": {"type": "run_over"}}))
        .end()
}

#[test]
fn the_short_form_has_a_row_for_what_each_guest_could_do_and_did() {
    let mut account = log().account();
    account.agents[0].duration_ms = 4000;
    insta::assert_snapshot!(account.to_string(), @r#"
    ok: 16 events, the log is intact, its events are consistent
    log: /state/s-1.jsonl
    agent 1: look
      done · 4.0 s · 0 in, 0% cached, 0 out
      access: read-only · network off · secrets hidden · floor tier
      curl reached a.example:443 · 1 connection · 20 bytes sent, 300 received
      mcp docs: 2 tools, as approved (abababababab…)
      guest gateway: read-only · read system files · network on · no commands · the program connects only to a.example · 1 connection · 20 bytes sent, 300 received · ended
      guest fetch b.example: read-only · read system files · network on · no commands · the program connects only to b.example · 2 connections · 40 bytes sent, 600 received · finished (2 times)
      guest mcp docs: read-only but for $TMPDIR · read the project, system files · network on for c.example · secrets hidden · given TOKEN · 2 calls · 1 denied · failed: it ended with code 3\u{a}guest 9
      guest gateway of mcp docs: read-only · read system files · network on · no commands · the program connects only to c.example · 1 connection · 20 bytes sent, 300 received · ended
        curl reached c.example:443 · 1 connection · 20 bytes sent, 300 received
    "#);
}

#[test]
fn the_long_form_and_the_page_have_each_guest_with_its_owner() {
    let mut account = log().account();
    account.agents[0].duration_ms = 4000;
    for guest in &mut account.agents[0].guests {
        (guest.started_ms, guest.duration_ms) = (1500, Some(2000));
    }
    insta::assert_snapshot!(format!("{account:#}"), @r#"
    ok: 16 events, the log is intact, its events are consistent
    log: /state/s-1.jsonl
    agent 1: look
      done · 4.0 s
      worker 1 (floor): read-only · network off · secrets hidden · ruleset 0123456789ab… · Landlock ABI 7, 12 rules · ended: the run is over
      curl reached a.example:443 · 1 connection · 20 bytes sent, 300 received
      mcp docs: 2 tools, as approved (abababababab…)
      guest 1 of worker 1 (full) gateway: read-only · read system files · network on · no commands · the program connects only to a.example · ruleset 0123456789ab… · Landlock ABI 7, 12 rules · started at 1.5 s · 1 connection · 20 bytes sent, 300 received · ended after 2.0 s
      guest 2 for call 1 (full) fetch b.example: read-only · read system files · network on · no commands · the program connects only to b.example · ruleset 0123456789ab… · Landlock ABI 7, 12 rules · started at 1.5 s · 1 connection · 20 bytes sent, 300 received · finished after 2.0 s
      guest 3 for call 2 (full) fetch b.example: read-only · read system files · network on · no commands · the program connects only to b.example · ruleset 0123456789ab… · Landlock ABI 7, 12 rules · started at 1.5 s · 1 connection · 20 bytes sent, 300 received · finished after 2.0 s
      guest 4 (full) mcp docs: read-only but for $TMPDIR · read the project, system files · network on for c.example · secrets hidden · given TOKEN · ruleset 0123456789ab… · Landlock ABI 7, 12 rules · started at 1.5 s · 2 calls · 1 denied · failed: it ended with code 3\u{a}guest 9 after 2.0 s
      guest 5 of guest 4 (full) gateway: read-only · read system files · network on · no commands · the program connects only to c.example · ruleset 0123456789ab… · Landlock ABI 7, 12 rules · started at 1.5 s · 1 connection · 20 bytes sent, 300 received · ended after 2.0 s
        curl reached c.example:443 · 1 connection · 20 bytes sent, 300 received
      spent: 0 in, 0% cached, 0 out
    "#);
    let page = page::page(&account, &EventsByAgent::of(&log().loaded().tree));
    for row in [
        "<h3>Guests</h3>",
        "guest 5 of guest 4",
        "guest 4 failed: it ended with code 3",
        "<h3>Tools of MCP servers</h3>",
    ] {
        assert!(page.contains(row), "{row}: {page}");
    }
}

#[test]
fn the_data_has_start_end_and_totals() {
    let account = serde_json::to_value(log().account()).unwrap();
    let guests = account["agents"][0]["guests"].as_array().unwrap();
    let kinds: Vec<_> = guests.iter().map(|guest| guest["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["gateway", "fetch", "fetch", "mcp_server", "gateway"]);
    assert_eq!(guests[3]["ended"]["type"], "failed");
    assert_eq!((&guests[3]["totals"]["calls"], &guests[3]["variables"]), (&json!(2), &json!(["TOKEN"])));
    assert_eq!((&guests[4]["of"], &guests[4]["hosts_used"][0]["host"]), (&json!(4), &json!("c.example")));
    assert_eq!(account["agents"][0]["pinned"][0]["change"], "first");
}

#[test]
fn a_guest_has_one_end_before_that_of_its_agent() {
    let found = |log: Log| -> Vec<String> {
        log.account().findings.into_iter().map(|finding| finding.text).collect()
    };
    assert_eq!(found(log()), [""; 0]);
    assert_eq!(found(Log::new().guest("1", 1, json!({}))), [""; 0], "the log ends before");
    let open = Log::new().guest("1", 1, json!({}));
    assert_eq!(found(open.end()), ["guest 1 of agent 1 has not ended before the session"]);
    let twice = Log::new().guest("1", 1, json!({})).guest("1", 1, json!({}));
    assert_eq!(found(twice), ["guest 1 of agent 1 started twice without an end"]);
    let unheard = Log::new().guest_end("1", 1, "finished", json!({}));
    assert_eq!(found(unheard), ["guest 1 of agent 1 has an end without a start"]);
    let child = Log::new().spawned("1.1", json!({})).guest("1.1", 1, json!({})).worker("1.1", 1, "d1");
    let late = child.result("1.1", "x");
    assert_eq!(found(late), ["guest 1 of agent 1.1 has not ended before its agent"]);
}
