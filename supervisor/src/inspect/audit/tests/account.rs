use serde_json::{Value, json};

use super::super::account::AuditAccount;
use super::super::by_agent::EventsByAgent;
use super::{Log, usage};

fn reply(log: Log, agent: &str, cost: &str) -> Log {
    let data = json!({
        "message_id": "m", "model": "m", "content": [], "stop_reason": "end_turn", "usage": usage(),
        "cost_usd": cost.parse::<f64>().unwrap(),
    });
    log.with(agent, "assistant_message", data)
}

fn called(log: Log, agent: &str, call: u64, status: &str) -> Log {
    let started = json!({"call": call, "tool_use": "t", "name": "shell_exec", "input": {"command": "x"}});
    let finished = json!({"call": call, "tool_use": "t", "status": status, "content": "", "duration_ms": 3});
    log.with(agent, "tool_call_started", started).with(agent, "tool_call_finished", finished)
}

fn denied(call: Value) -> Value {
    json!({
        "call": call, "layer": "landlock", "operation": "write", "object": {"path": "/etc/x\nagent 9"},
        "missing_right": "write /etc", "grade": "proved", "rights": "ro /",
    })
}

fn log() -> Log {
    let log = Log::new().worker("1", 1, "top").said("1", "repair the parser\nand nothing else");
    let log = reply(log, "1", "0.5").spawned("1.1", json!({"task": "find the bug", "write": ["/p/a b"]}));
    let log = called(log.worker("1.1", 1, "d1"), "1.1", 1, "failed");
    let log = log.with("1.1", "denied", denied(json!(1))).with("1.1", "denied", denied(json!(1)));
    let log = reply(called(log, "1.1", 2, "completed"), "1.1", "0.25");
    let ended = json!({"generation": 1, "reason": {"type": "run_over"}});
    let log = log.with("1.1", "worker_ended", ended).result("1.1", "line 3");
    let answered =
        json!({"call": 4, "decision": {"decision": "denied"}, "by": "deadline", "cause": "nobody answered"});
    let log = log.with("1", "approval_answered", answered);
    let refused = json!({
        "agent": "1.2", "call": 2, "status": "crashed", "message": "this session has no sub-agents", "denials": 0,
        "steps": 0, "duration_ms": 0, "text": "", "usage": usage(),
    });
    log.with("1", "sub_agent_result", refused).end()
}

fn account() -> AuditAccount {
    let mut account = log().account();
    account.agents[0].duration_ms = 4000;
    account
}

#[test]
fn the_agents_are_a_tree_and_each_has_its_end_access_and_cost() {
    insta::assert_snapshot!(account().to_string(), @r#"
    ok: 17 events, the log is intact, its events are consistent
    log: /state/s-1.jsonl
    agent 1: repair the parser…
      done · 4.0 s · 10 in, 0% cached, 2 out, $0.50 (with its sub-agents: 20 in, 0% cached, 4 out, $0.75)
      access: read-only · network off · secrets hidden · floor tier
      approvals: 1 denied
      agent 1.1: find the bug
        done · 2.5 s · 10 in, 0% cached, 2 out, $0.25
        access: read-only · network off · secrets hidden · floor tier
        calls: shell_exec 2 (1 failed)
        blocked by the kernel (Landlock): write /etc/x\u{a}agent 9; missing access: write /etc; it cannot be allowed here (2 times)
      agent 1.2
        crashed · 0.0 s: this session has no sub-agents · 0 in, 0% cached, 0 out
    "#);
}

#[test]
fn the_long_form_has_each_worker_and_each_approval() {
    insta::assert_snapshot!(format!("{:#}", account()), @r#"
    ok: 17 events, the log is intact, its events are consistent
    log: /state/s-1.jsonl
    agent 1: repair the parser…
      done · 4.0 s
      worker 1 (floor): read-only · network off · secrets hidden · ruleset 0123456789ab… · Landlock ABI 7, 12 rules · the log does not show when this worker ended
      approval for call 4: denied by the deadline (nobody answered)
      spent: 10 in, 0% cached, 2 out, $0.50 (with its sub-agents: 20 in, 0% cached, 4 out, $0.75)
      agent 1.1: find the bug
        done · 2.5 s
        access: write "/p/a b" · net off · digest d1…
        worker 1 (floor): read-only · network off · secrets hidden · ruleset 0123456789ab… · Landlock ABI 7, 12 rules · ended: the run is over
        shell_exec: 1 completed, 1 failed
        blocked by the kernel (Landlock): write /etc/x\u{a}agent 9; missing access: write /etc; it cannot be allowed here (2 times)
        spent: 10 in, 0% cached, 2 out, $0.25
      agent 1.2
        crashed · 0.0 s: this session has no sub-agents
        spent: 0 in, 0% cached, 0 out
    "#);
}

#[test]
fn many_faults_are_counted_and_the_long_form_has_them_all() {
    let mut account = account();
    account.intact = false;
    account.faults = (1..=5).map(|line| format!("line {line} was changed")).collect();
    let short = account.to_string();
    assert!(
        short.starts_with("FAIL: 17 events, the log is NOT intact, its events are consistent\n"),
        "{short}"
    );
    assert!(short.contains("  line 3 was changed\n  and 2 more (--verbose shows them)\nagent 1"), "{short}");
    assert!(format!("{account:#}").contains("  line 5 was changed\nagent 1"));
}

#[test]
fn the_data_has_the_same() {
    let account = serde_json::to_value(log().account()).unwrap();
    assert_eq!((&account["intact"], &account["findings"]), (&json!(true), &json!([])));
    let [top, sub, refused] = &account["agents"].as_array().unwrap()[..] else { panic!("{account:#}") };
    assert_eq!((&top["agent"], &top["parent"]), (&json!("1"), &Value::Null));
    assert_eq!((&sub["agent"], &sub["parent"], &sub["status"]), (&json!("1.1"), &json!("1"), &json!("done")));
    assert_eq!(sub["calls"], json!({"shell_exec": {"completed": 1, "failed": 1}}));
    assert_eq!((&sub["denials"][0]["count"], &sub["denials"][0]["calls"]), (&json!(2), &json!([1, 1])));
    assert_eq!((&top["usage"]["input"], &top["with_sub_agents"]["usage"]["input"]), (&json!(10), &json!(20)));
    assert_eq!(
        (&sub["spawned"]["rights_digest"], &sub["workers"][0]["rights_digest"]),
        (&json!("d1"), &json!("d1"))
    );
    assert_eq!(sub["workers"][0]["ended"], "the run is over");
    assert_eq!(
        top["approvals"],
        json!([{"call": 4, "decision": "denied", "by": "the deadline", "cause": "nobody answered"}])
    );
    assert_eq!((&refused["status"], &refused["workers"]), (&json!("crashed"), &json!([])));
}

#[test]
fn agents_stand_in_the_order_of_their_numbers() {
    let log = (1..=11).fold(Log::new(), |log, n| log.spawned(&format!("1.{n}"), json!({})));
    let account = log.spawned("1.2.1", json!({})).account();
    let agents: Vec<_> = account.agents.iter().map(|agent| agent.agent.to_string()).collect();
    assert_eq!(agents[..5], ["1", "1.1", "1.2", "1.2.1", "1.3"]);
    assert_eq!(agents.last().map(String::as_str), Some("1.11"));
}

#[test]
fn a_one_shot_worker_is_named_by_its_call_or_by_the_rewind_that_it_wrote() {
    let mut log = Log::new();
    // Earlier versions logged a rewind as call 0.
    for (generation, shot) in [(2, json!({"call": 3})), (3, json!({})), (4, json!({"call": 0}))] {
        let mut shot = shot;
        shot["grant"] = json!("write /p/a");
        shot["effect_digest"] = json!("44");
        let started = json!({
            "generation": generation, "pid": 7, "tier": "floor", "landlock_abi": 7, "rules": 12, "rights": "ro /",
            "rights_digest": "d", "ruleset_digest": "0123456789abcdef", "startup_us": 1, "one_shot": shot,
        });
        log = log.with("1", "worker_started", started);
    }
    let text = format!("{:#}", log.account());
    let shots: Vec<_> = text.lines().filter_map(|line| line.trim().split(" (floor)").next()).collect();
    let named = ["worker 2 for call 3", "worker 3 for a rewind", "worker 4 for a rewind"];
    assert!(named.iter().all(|name| shots.contains(name)), "{text}");
    let page = crate::inspect::audit::page::page(&log.account(), &EventsByAgent::of(&log.loaded().tree));
    assert!(
        page.contains("additional access write /p/a, for call 3") && page.contains("for a rewind"),
        "{page}"
    );
}
