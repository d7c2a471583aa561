use serde_json::{Value, json};

use crate::seat::Seat;
use crate::tree::{log, spawn, user};

fn tell(seat: &mut Seat, agent: &str, kind: &str, data: Value) {
    log(seat, agent, serde_json::from_value(json!({"type": kind, "data": data})).unwrap());
}

fn started(seat: &mut Seat, agent: &str, guest: u32, more: Value) {
    let mut data = json!({
        "guest": guest, "pid": 7, "tier": "full", "landlock_abi": 7, "rules": 1, "rights_digest": "d", "ruleset_digest": "d",
        "startup_us": 1, "rights": {"read": ["system"], "net": "on", "hidden": 0, "protected": 0},
    });
    data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tell(seat, agent, "guest_started", data);
}

fn ended(seat: &mut Seat, guest: u32, reason: Value, totals: Value) {
    tell(seat, "1", "guest_ended", json!({"guest": guest, "reason": reason, "totals": totals}));
}

fn called(seat: &mut Seat, call: u32, name: &str, input: Value) {
    tell(
        seat,
        "1",
        "tool_call_started",
        json!({"call": call, "tool_use": "t", "name": name, "input": input}),
    );
    let finished =
        json!({"call": call, "tool_use": "t", "status": "completed", "content": "", "duration_ms": 1});
    tell(seat, "1", "tool_call_finished", finished);
}

/// A session with a gateway, a fetched page, and an MCP server that reads the project.
fn with_guests(width: u16) -> Seat {
    let mut seat = Seat::new(width, 20);
    let names = json!(["a.example", "b.example", "c.example"]);
    started(&mut seat, "1", 1, json!({"kind": "gateway", "worker": 1, "hosts": names}));
    user(&mut seat, "1", "Look around.");
    let used = |program: &str| json!({"host": "a.example", "port": 443, "program": program, "connections": 1, "sent": 0, "received": 0});
    tell(&mut seat, "1", "hosts_used", json!({"generation": 1, "uses": [used("curl"), used("fetch_url")]}));
    called(&mut seat, 1, "git__git_log", json!({}));
    let rights =
        json!({"write": ["temp"], "read": ["project", "system"], "net": "off", "hidden": 3, "protected": 0});
    started(&mut seat, "1", 2, json!({"kind": "mcp_server", "name": "git", "rights": rights}));
    called(&mut seat, 2, "call_tool", json!({"name": "git__git_status", "arguments": {}}));
    started(
        &mut seat,
        "1",
        3,
        json!({"kind": "fetch", "name": "b.example", "call": 3, "hosts": ["b.example"]}),
    );
    seat.wait(4_000);
    seat
}

#[test]
fn guests_have_rows_below_their_agent_and_end_there() {
    let mut seat = with_guests(80);
    seat.keys(":agents\n");
    insta::assert_snapshot!(seat.screen(), @"
      agents · 1 at work
      ▸ 1 main
          working 4 s
          read-only · ↑0 ↓0
          ◦ gateway · 3 names · 1 connection
          ◦ mcp git · read project · 2 calls
          ◦ fetch b.example









      Enter open  m message  x stop  Esc back
    ── working 4 s · Esc interrupts ────────────────────────────────────────────────
    ›
     AGENTS  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    ended(
        &mut seat,
        3,
        json!({"type": "finished"}),
        json!({"connections": 1, "sent": 9, "received": 9, "denials": 0}),
    );
    ended(
        &mut seat,
        2,
        json!({"type": "failed", "failure": "it ended with code 3"}),
        json!({"calls": 2, "denials": 1}),
    );
    ended(
        &mut seat,
        1,
        json!({"type": "rights_changed"}),
        json!({"connections": 1, "sent": 9, "received": 9, "denials": 0}),
    );
    insta::assert_snapshot!(seat.screen(), @"
      agents · 1 at work
      ▸ 1 main
          working 4 s
          read-only · ↑0 ↓0
          ◦ gateway ended because the access changed · 1 connection · 9 bytes sent,…
          ◦ mcp git failed: it ended with code 3 · 2 calls · 1 denied










      Enter open  m message  x stop  Esc back
    ── working 4 s · Esc interrupts ────────────────────────────────────────────────
    ›
     AGENTS  EXECUTE · ask · net off · ↑0 ↓0/↑0 ↓0 · read-only · claude-opus-4-5
    ");
    let usage = json!({"input": 0, "cache_creation": 0, "cache_read": 0, "output": 0});
    let finished = json!({"reason": "done", "steps": 1, "usage": usage, "duration_ms": 1});
    tell(&mut seat, "1", "turn_finished", finished);
    user(&mut seat, "1", "And now?");
    let screen = seat.screen();
    assert!(!screen.contains("gateway") && !screen.contains("fetch"), "{screen}");
}

#[test]
fn a_guest_alone_opens_no_list_beside_the_transcript() {
    let mut seat = with_guests(140);
    assert!(!seat.screen().contains("gateway"), "{}", seat.screen());
    ended(
        &mut seat,
        2,
        json!({"type": "died", "status": {"type": "signalled", "signal": 9}}),
        json!({"calls": 1, "denials": 0}),
    );
    assert!(seat.screen().contains("mcp git died: ended by signal 9"), "{}", seat.screen());
    spawn(&mut seat, "1.1", "Read the grammar", &[]);
    started(&mut seat, "1.1", 1, json!({"kind": "gateway", "worker": 1, "hosts": ["a.example"]}));
    let screen = seat.screen();
    assert!(
        screen.contains("◦ gateway · 3 names · 1 connection") && screen.contains("◦ gateway · 1 name"),
        "{screen}"
    );
}

#[test]
fn gateways_of_one_command_and_of_servers_have_no_row_and_a_new_one_takes_the_place_of_the_last() {
    let mut seat = with_guests(80);
    started(&mut seat, "1", 4, json!({"kind": "gateway", "worker": 2, "call": 4, "hosts": ["a.example"]}));
    started(&mut seat, "1", 5, json!({"kind": "gateway", "of": 2, "hosts": ["a.example"]}));
    ended(&mut seat, 1, json!({"type": "rights_changed"}), json!({"denials": 0}));
    started(&mut seat, "1", 6, json!({"kind": "gateway", "worker": 3, "hosts": ["a.example", "b.example"]}));
    seat.keys(":agents\n");
    let screen = seat.screen();
    let gateways: Vec<_> = screen.lines().filter(|line| line.contains("gateway")).map(str::trim).collect();
    assert_eq!(gateways, ["◦ gateway · 2 names"], "{screen}");
}

#[test]
fn tools_that_differ_from_the_approved_ones_are_told() {
    let mut seat = Seat::new(100, 20);
    let pinned = |change: &str| json!({"server": "docs", "digest": "ab", "tools": 2, "change": change});
    tell(&mut seat, "1", "tool_pinned", pinned("first"));
    assert!(!seat.screen().contains("docs"), "{}", seat.screen());
    tell(&mut seat, "1", "tool_pinned", pinned("withheld"));
    assert!(
        seat.screen().contains("mcp docs: 2 tools, those that differ from the approved tools are not called"),
        "{}",
        seat.screen()
    );
}
