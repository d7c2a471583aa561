use serde_json::{Value, json};

use super::Log;
use crate::process::exit::Exit;

fn findings(log: &Log) -> String {
    let account = log.account();
    assert!(account.intact, "{account}");
    let exit = if account.findings.is_empty() { Exit::Done } else { Exit::Finding };
    assert_eq!(account.exit(), exit);
    let lines: Vec<_> =
        account.findings.iter().map(|finding| format!("{:?}: {}", finding.rule, finding.text)).collect();
    lines.join("\n")
}

fn started() -> Log {
    Log::new().worker("1", 1, "top").spawned("1.1", json!({})).worker("1.1", 1, "d1")
}

#[test]
fn a_session_that_kept_the_rules_has_no_finding() {
    insta::assert_snapshot!(findings(&started().said("1.1", "look").result("1.1", "").end()), @"");
}

#[test]
fn the_first_worker_of_a_sub_agent_has_the_declared_rights() {
    let log = Log::new().spawned("1.1", json!({})).worker("1.1", 1, "wider").said("1.1", "look");
    insta::assert_snapshot!(findings(&log), @"DeclaredRights: agent 1.1 was started with the access d1…, but its first worker has the access wider…");
}

fn changed(generation: u32, digest: &str) -> Value {
    json!({"generation": generation, "pid": 8, "rights": "ro /", "rights_digest": digest, "ruleset_digest": "r"})
}

#[test]
fn another_worker_has_other_rights_only_after_a_change_that_is_logged() {
    let log = started().worker("1.1", 2, "d2").said("1.1", "go on");
    insta::assert_snapshot!(findings(&log), @"LoggedChange: worker 2 of agent 1.1 has other access (d2…) than the agent's worker before (d1…), and no change of access is logged");
    let log = started().worker("1.1", 2, "d2").with("1.1", "rights_changed", changed(2, "d2"));
    insta::assert_snapshot!(findings(&log.said("1.1", "go on")), @"");
    let log = started().worker("1.1", 2, "d2").with("1.1", "rights_changed", changed(2, "d3"));
    insta::assert_snapshot!(findings(&log), @"LoggedChange: worker 2 of agent 1.1 has other access (d2…) than the agent's worker before (d1…), and no change of access is logged");
    // A restart under the same access needs no event. A log that ends here may lack the event.
    insta::assert_snapshot!(findings(&started().worker("1.1", 2, "d1").said("1.1", "go on")), @"");
    insta::assert_snapshot!(findings(&started().worker("1.1", 2, "d2")), @"");
}

#[test]
fn rights_that_shrank_before_the_first_worker_are_no_finding() {
    let log = Log::new().spawned("1.1", json!({})).worker("1.1", 1, "less");
    let log = log.with("1.1", "rights_changed", changed(1, "less")).said("1.1", "look");
    insta::assert_snapshot!(findings(&log), @"");
}

const HOST: &str = r#"{"host": true, "link_local": false, "metadata": false}"#;

#[test]
fn a_sub_agent_has_no_more_than_the_one_that_started_it() {
    let parent = json!({"write": ["/p/src"], "net": "off"});
    let log = |child: Value| Log::new().spawned("1.1", parent.clone()).spawned("1.1.1", child);
    insta::assert_snapshot!(findings(&log(json!({"write": ["/p/src/deep"]}))), @"");
    insta::assert_snapshot!(findings(&log(json!({"write": ["/p"]}))), @"WithinParent: agent 1.1.1 has write /p, which exceeds the access of agent 1.1 and what was approved in addition");
    insta::assert_snapshot!(findings(&log(json!({"write": ["/p/srcs"]}))), @"WithinParent: agent 1.1.1 has write /p/srcs, which exceeds the access of agent 1.1 and what was approved in addition");
    let net = json!({"net": "on", "reach": serde_json::from_str::<Value>(HOST).unwrap()});
    insta::assert_snapshot!(findings(&log(net)), @"WithinParent: agent 1.1.1 has net on +host, which exceeds the access of agent 1.1 and what was approved in addition");
}

fn grant(write: &[&str]) -> Value {
    json!({"write": write, "net": "off", "reach": {"host": false, "link_local": false, "metadata": false}})
}

fn granted(log: Log) -> Log {
    log.spawned("1.1", json!({"write": ["/p"], "grant": grant(&["/p"])}))
}

fn asked(approved: &[&str]) -> Log {
    let params = json!({
        "conversation_id": "s-1", "agent": "1", "call_id": 1, "task": "look around", "access": "write", "write": ["."],
        "network": "off", "rights": rights(), "grant": grant(approved), "digest": "d", "timeout_ms": 1,
    });
    let request = json!({"method": "agentRightsApproval", "params": params});
    Log::new().with("1", "approval_requested", json!({"id": 1, "request": request}))
}

fn rights() -> Value {
    serde_json::to_value(ipc::rights::Rights::default()).unwrap()
}

fn answered(log: Log, decision: &str, by: &str) -> Log {
    let decision = json!({"decision": decision});
    log.with("1", "approval_answered", json!({"id": 1, "call": 1, "decision": decision, "by": by}))
}

#[test]
fn a_grant_is_one_that_the_user_approved() {
    insta::assert_snapshot!(findings(&granted(answered(asked(&["/p"]), "approved", "user"))), @"");
    insta::assert_snapshot!(findings(&granted(Log::new())), @"ApprovedGrant: agent 1.1 received write /p, which no user approved");
    insta::assert_snapshot!(findings(&granted(answered(asked(&["/p"]), "denied", "user"))), @"ApprovedGrant: agent 1.1 received write /p, which no user approved");
    insta::assert_snapshot!(findings(&granted(answered(asked(&["/p"]), "approved", "configuration"))), @"ApprovedGrant: agent 1.1 received write /p, which no user approved");
    insta::assert_snapshot!(findings(&granted(answered(asked(&["/p/src"]), "approved", "user"))), @"ApprovedGrant: agent 1.1 received write /p, but the user approved write /p/src");
}

#[test]
fn a_grant_is_within_the_rights_of_the_child_beside_its_parents() {
    let log = Log::new().spawned("1.1", json!({}));
    let log = log.spawned("1.1.1", json!({"write": ["/p"], "grant": grant(&["/p/src"])}));
    insta::assert_snapshot!(findings(&log), @"
    WithinParent: agent 1.1.1 has write /p, which exceeds the access of agent 1.1 and what was approved in addition
    ApprovedGrant: agent 1.1.1 received write /p/src, which no user approved
    ");
}

#[test]
fn each_sub_agent_has_one_result_unless_the_log_ends_before() {
    insta::assert_snapshot!(findings(&started()), @"");
    insta::assert_snapshot!(findings(&started().end()), @"OneResult: agent 1.1 was started, but its end is not logged");
    insta::assert_snapshot!(findings(&started().result("1.1", "").result("1.1", "").end()), @"OneResult: agent 1.1 has 2 results");
    // An agent ends after its sub-agents.
    let log = started().spawned("1.1.1", json!({})).result("1.1", "");
    insta::assert_snapshot!(findings(&log), @"OneResult: agent 1.1.1 was started, but its end is not logged");
    // An agent that could not be started has only a result.
    insta::assert_snapshot!(findings(&Log::new().result("1.1", "").end()), @"");
}

#[test]
fn nothing_of_a_sub_agent_follows_on_its_result_but_places_that_were_restored() {
    let log = || started().result("1.1", "");
    let restored =
        json!({"call": 1, "places": [{"path": ".git/config", "what": "changed", "restored": true}]});
    insta::assert_snapshot!(findings(&log().with("1.1", "restored", restored)), @"");
    insta::assert_snapshot!(findings(&log().said("1.1", "once more")), @"EndsWithResult: agent 1.1 has 1 event after its result");
}

#[test]
fn a_sub_agent_was_started_before_it_did_anything() {
    let log = || Log::new().said("1.1", "look");
    insta::assert_snapshot!(findings(&log()), @"Started: agent 1.1 has events before its start");
    insta::assert_snapshot!(findings(&log().spawned("1.1", json!({}))), @"Started: agent 1.1 has events before its start");
}

fn worker(log: Log, agent: &str, generation: u32, write: &Value) -> Log {
    let digest = format!("d{generation}");
    let data = json!({
        "generation": generation, "pid": 7, "tier": "floor", "landlock_abi": 7, "rules": 12,
        "rights": {"write": write, "net": "off"}, "rights_digest": digest, "ruleset_digest": "r", "startup_us": 1,
    });
    let log = log.with(agent, "worker_started", data);
    log.with(agent, "rights_changed", changed(generation, &digest))
}

fn begun(write: &Value) -> Log {
    let data = json!({
        "version": "0", "project": "/p", "activity": "execute", "mode": "auto", "model": "m", "provider": "p",
        "rights": "ro /",
    });
    worker(Log::new().with("1", "session_started", data), "1", 1, write)
}

#[test]
fn a_worker_of_a_sub_agent_has_no_more_than_its_parent_at_that_time() {
    let log =
        |parent: &Value, child: &Value| worker(begun(parent).spawned("1.1", json!({})), "1.1", 1, child);
    let (project, source) = (json!(["project", "temp"]), json!([{"path": "/p/src"}, "temp"]));
    insta::assert_snapshot!(findings(&log(&project, &source)), @"");
    insta::assert_snapshot!(findings(&log(&project, &project)), @"");
    insta::assert_snapshot!(findings(&log(&source, &project)), @"WithinParent: worker 1 of agent 1.1 has more access than its parent agent and the approval allow: writes in the project, $TMPDIR · network off · nothing hidden");
    // Contents of caches were written under the same access or more.
    insta::assert_snapshot!(findings(&log(&project, &json!(["project", "temp", "caches"]))), @"");
}

#[test]
fn the_rights_of_a_sub_agent_only_narrow() {
    let (project, source) = (json!(["project"]), json!([{"path": "/p/src"}]));
    let log = || begun(&project).spawned("1.1", json!({}));
    insta::assert_snapshot!(findings(&worker(worker(log(), "1.1", 1, &project), "1.1", 2, &source)), @"");
    insta::assert_snapshot!(findings(&worker(worker(log(), "1.1", 1, &source), "1.1", 2, &project)), @"OnlyNarrower: worker 2 of agent 1.1 has more access than the agent's worker before: writes in the project · network off · nothing hidden");
    // Access that the person adds is only for the top-level agent.
    insta::assert_snapshot!(findings(&worker(begun(&source), "1", 2, &project)), @"");
}

#[test]
fn a_plan_is_granted_what_its_approval_showed() {
    let approved = |write: &[&str], by: &str| {
        let reach = json!({"host": false, "lan": false, "link_local": false, "metadata": false});
        let data = json!({"call": 1, "path": "/s/p.md", "digest": "d", "write": write, "net": "off", "reach": reach, "by": by});
        findings(&granted(Log::new().with("1", "plan_approved", data)))
    };
    assert_eq!(approved(&["/p"], "configuration"), "");
    assert!(approved(&["/p/src"], "configuration").contains("ApprovedGrant"));
    assert!(approved(&["/p"], "user").contains("ApprovedGrant"), "no request was answered");
}
