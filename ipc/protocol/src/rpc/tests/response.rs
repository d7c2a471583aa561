use ipc::id::{AgentId, CallId};
use ipc::rights::{Grant, RightsSummary};
use ipc::tool::Access;
use serde_json::value::RawValue;

use super::super::{ResponseOutcome, answer};
use crate::approval::{
    ApprovalAnswer, ExecCommandApprovalParams, ExecCommandApprovalResponse, ReviewDecision, ServerRequest,
};

fn request() -> ServerRequest {
    ServerRequest::ExecCommandApproval(ExecCommandApprovalParams {
        conversation_id: "c".into(),
        agent: AgentId::root(),
        call_id: CallId(1),
        command: vec![],
        cwd: "/p".into(),
        environment: vec![],
        access: Access::Write,
        network: None,
        digest: String::new(),
        grant: Grant::default(),
        rights: RightsSummary::default().into(),
        timeout_ms: 1,
        reason: None,
        prefix: None,
        parts: Vec::new(),
        grant_root: None,
        turn: None,
        in_project: None,
    })
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

#[test]
fn a_response_becomes_the_answer_of_its_request() {
    let outcome = ResponseOutcome::Result(raw(r#"{"decision":"denied","message":"no"}"#));
    let decision = ReviewDecision::Denied { message: Some("no".to_owned()) };
    let expected = ApprovalAnswer::Exec(ExecCommandApprovalResponse { decision, digest: None });
    assert_eq!(answer(&request(), &outcome), expected);
}

#[test]
fn whatever_else_came_is_no_answer() {
    for json in [
        "null",
        "true",
        "\"approved\"",
        "{}",
        "[\"approved\"]",
        "[{\"decision\":\"approved\"}]",
        r#"{"decision":"yes"}"#,
        r#"{"decision":"approved","extra":1}"#,
        r#"{"decision":"approved","decision":"denied"}"#,
    ] {
        let got = answer(&request(), &ResponseOutcome::Result(raw(json)));
        assert!(
            matches!(&got, ApprovalAnswer::Failed { cause } if cause.contains("execCommandApproval")),
            "{got:?}"
        );
    }
    let got = answer(&request(), &ResponseOutcome::Error(raw(r#"{"code":1,"message":"no"}"#)));
    let ApprovalAnswer::Failed { cause } = got else { panic!("{got:?}") };
    assert_eq!(cause, r#"the front end answered with an error: {"code":1,"message":"no"}"#);
}
