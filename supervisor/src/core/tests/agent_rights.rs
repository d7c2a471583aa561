//! The spawn of a sub-agent with rights beyond its parent's: asked once, for exactly this task and these rights.

use insta::assert_snapshot;
use ipc::approval::{AgentAccess, AskKind, ReviewDecision, SessionScope};
use ipc::frontend::Op;
use ipc::id::{ApprovalId, CallId};
use ipc::rights::{Grant, Network, Rights};

use super::approvals::{asking, session};
use super::script::{Script, read};
use crate::approval::{AgentAsked, AgentSpawn, Subject};
use crate::core::approvals::Case;
use crate::gate::Ask;

fn spawn() -> AgentSpawn {
    let asked =
        AgentAsked { access: AgentAccess::Write, write: vec!["/p/src".into()], network: Network::Off };
    let grant = Grant { write: vec!["/p/src".into()], ..Grant::default() };
    let rights = Rights { write: vec!["/p/src".into()], ..Rights::default() };
    AgentSpawn::new("fix the test".to_owned(), asked, rights, grant).unwrap()
}

/// An agent whose first call is the spawn, which it asks about.
fn spawning() -> Script {
    let mut script = asking(&[read("a", "x")]);
    script.lines();
    let spawn = spawn();
    let ask = Ask { kind: AskKind::Agent, grant: spawn.grant.clone() };
    script.agent.ask(Case { call: CallId(1), ask, subject: Subject::Agent(spawn) });
    script
}

fn answered(decision: ReviewDecision, digest: Option<String>) -> String {
    let mut script = spawning();
    script.decide(Op::AgentRightsApproval { id: ApprovalId(1), decision, digest });
    script.lines()
}

#[test]
fn a_spawn_is_asked_about_with_its_task_and_all_its_rights() {
    assert_snapshot!(answered(ReviewDecision::Approved, Some(spawn().digest)), @r#"
    ask 1: agentRightsApproval {"network":"off","grant":{"write":["/p/src"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":1,"task":"fix the test","access":"write","write":["/p/src"]}
    log answered 1 of call 1: approved by User - by Supervisor
    asked 1 no more
    log finished 1 a Failed "The sub-agent was not started: this version starts no sub-agents." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn the_rights_of_a_sub_agent_are_never_approved_for_the_session() {
    assert_snapshot!(answered(session(SessionScope::Exact), None), @r#"
    ask 1: agentRightsApproval {"network":"off","grant":{"write":["/p/src"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":1,"task":"fix the test","access":"write","write":["/p/src"]}
    log answered 1 of call 1: denied by BadAnswer the rights of a sub-agent are approved once, never for the session by Supervisor
    asked 1 no more
    log finished 1 a Denied "The call was not approved, and was not carried out: the rights of a sub-agent are approved once, never for the session." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}

#[test]
fn an_answer_to_another_spawn_or_another_kind_of_request_denies_it() {
    assert_snapshot!(answered(ReviewDecision::Approved, Some("another".to_owned())), @r#"
    ask 1: agentRightsApproval {"network":"off","grant":{"write":["/p/src"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":1,"task":"fix the test","access":"write","write":["/p/src"]}
    log answered 1 of call 1: denied by BadAnswer the answer is one to another effect: its digest differs by Supervisor
    asked 1 no more
    log finished 1 a Denied "The call was not approved, and was not carried out: the answer is one to another effect: its digest differs." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    let mut script = spawning();
    script.exec(1, ReviewDecision::Approved);
    assert_snapshot!(script.lines(), @r#"
    ask 1: agentRightsApproval {"network":"off","grant":{"write":["/p/src"],"net":"off","reach":{"host":false,"lan":false,"link_local":false,"metadata":false}},"call_id":1,"task":"fix the test","access":"write","write":["/p/src"]}
    log answered 1 of call 1: denied by BadAnswer the answer is one to another kind of request by Supervisor
    asked 1 no more
    log finished 1 a Denied "The call was not approved, and was not carried out: the answer is one to another kind of request." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
}
