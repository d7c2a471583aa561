//! Tests of a sub-agent that needs more access than its parent has: the person approves exactly its task and access.

use gate::activity::Activity;
use gate::tools::{Kit, Registry};
use insta::assert_snapshot;
use ipc::id::ApprovalId;
use protocol::approval::{AskKind, ReviewDecision, SessionScope};
use protocol::frontend::Op;

use super::approvals::{ask_config, asking_with, session};
use super::script::{Script, call};
use crate::core::{AgentConfig, Effect};

fn spawning() -> Script {
    let tools = Registry::for_kit(
        Activity::Execute,
        Kit { writes: true, fetches: false, delegates: true, plan: None },
    );
    let spawn = call("a", "spawn_agent", r#"{"task":"fix the test","write":["src"]}"#);
    asking_with(AgentConfig { tools: tools.into(), ..ask_config() }, &[spawn])
}

fn digest(script: &Script) -> String {
    let asked = script.effects.iter().find_map(|effect| match effect {
        Effect::RequestApproval { request, .. } => Some(request.digest().to_owned()),
        _ => None,
    });
    asked.unwrap()
}

fn answered(decision: ReviewDecision, digest: Option<String>) -> String {
    let mut script = spawning();
    script.lines();
    script.decide(Op::Answer { id: ApprovalId(1), kind: AskKind::Agent, decision, digest });
    script.lines()
}

#[test]
fn a_spawn_is_asked_about_with_its_task_and_all_its_rights() {
    assert_snapshot!(spawning().lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log assistant msg_1 1 blocks, tool_use by Supervisor
    log started 1 a spawn_agent {"task":"fix the test","write":["src"]} by Supervisor
    ask 1: agentRightsApproval {"network":"off","grant":{"write":["/p/src"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":1,"task":"fix the test","access":"write","write":["src"]}
    "#);
    assert_snapshot!(answered(ReviewDecision::Approved, Some(digest(&spawning()))), @r"
    log answered 1 of call 1: approved by User - by Supervisor
    asked 1 no more
    spawn 1: fix the test
    ");
}

#[test]
fn the_rights_of_a_sub_agent_are_never_approved_for_the_session() {
    assert_snapshot!(answered(session(SessionScope::Exact), None), @r#"
    log answered 1 of call 1: denied by BadAnswer a sub-agent's access is approved once, never for the session by Supervisor
    asked 1 no more
    log finished 1 a Denied "The call was not approved, and was not carried out: a sub-agent's access is approved once, never for the session." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn an_answer_to_another_spawn_or_another_kind_of_request_denies_it() {
    assert_snapshot!(answered(ReviewDecision::Approved, Some("another".to_owned())), @r#"
    log answered 1 of call 1: denied by BadAnswer the answer belongs to another action: its digest differs by Supervisor
    asked 1 no more
    log finished 1 a Denied "The call was not approved, and was not carried out: the answer belongs to another action: its digest differs." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    let mut script = spawning();
    script.lines();
    script.exec(1, ReviewDecision::Approved);
    assert_snapshot!(script.lines(), @r#"
    log answered 1 of call 1: denied by BadAnswer the answer belongs to another kind of request by Supervisor
    asked 1 no more
    log finished 1 a Denied "The call was not approved, and was not carried out: the answer belongs to another kind of request." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}
