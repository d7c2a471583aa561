//! Tests calls of a tool that no worker executes: they pass the gate and the approval, and appear in log and protocol.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gate::tools::{ExternalCall, ExternalTool, ServedCall, Tool, ToolDefinition};
use protocol::approval::{ApprovalMode, ReviewDecision, ServerRequest};
use protocol::frontend::{AgentAction, UserActionKind};
use protocol::rpc::{self, RequestId, ResponseOutcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use supervisor::engine::driver::{Caller, ServedAnswer, ToolServer, Turns};
use tests::replies::{calls, done};
use tests::session::{Beginning, FrontEnd};
use tests::tier;
use tokio::sync::mpsc;

use super::asking::{answer, asks, decide, edit, logged, told};

/// Server of one tool. The tool acts as the arguments say.
struct Server {
    served: Mutex<Vec<ExternalCall>>,
    /// Channel that reports calls for which nobody waits any more.
    dropped: mpsc::UnboundedSender<()>,
}

/// Part of a running call that reports, when it is dropped, that nobody waits for the call any more.
struct Waiting(mpsc::UnboundedSender<()>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

impl ToolServer for Server {
    fn serve(&self, _: &Caller, call: ServedCall) -> BoxFuture<'static, Result<ServedAnswer, String>> {
        let ServedCall::External(call) = call else { panic!("{call:?}") };
        let arguments: Value = serde_json::from_str(&call.json).unwrap();
        self.served.lock().unwrap().push(call);
        let waiting = Waiting(self.dropped.clone());
        async move {
            match arguments["q"].as_str() {
                Some("never") => {
                    std::future::pending::<()>().await;
                    drop(waiting);
                    Err("no answer".to_owned())
                }
                Some("fail") => Err("no such index".to_owned()),
                Some("panic") => panic!("the server has a bug"),
                _ => Ok("found it\u{1b}[2J".to_owned().into()),
            }
        }
        .boxed()
    }
}

/// Starts a session with the tool. Returns its front end, the server, and the channel of calls for which nobody waits.
fn open(beginning: Beginning, replies: Vec<String>) -> (FrontEnd, Arc<Server>, mpsc::UnboundedReceiver<()>) {
    let (dropped, gone) = mpsc::unbounded_channel();
    let server = Arc::new(Server { served: Mutex::default(), dropped });
    let schema = r#"{"type":"object","properties":{"q":{"type":"string"}}}"#;
    let definition = ToolDefinition {
        name: format!("{}__{}", "docs", "search").into(),
        description: "Searches.".to_owned().into(),
        input_schema: RawValue::from_string(schema.to_owned()).unwrap(),
    };
    let tool: Box<dyn Tool> = Box::new(ExternalTool::new("docs".to_owned(), "search".to_owned(), definition));
    let front = FrontEnd::open_with_tools(beginning, (vec![tool], server.clone()), replies);
    (front, server, gone)
}

fn search(q: &str) -> String {
    calls(&[("docs__search", json!({ "q": q }))])
}

fn asks_once() -> Beginning {
    asks(tier::all()[0])
}

#[tokio::test]
async fn an_approved_call_of_an_external_tool_is_served_to_its_end() {
    let (mut front, server, _gone) = open(asks_once(), vec![search("x"), done()]);
    front.prompt("go").await;
    let (id, request) = front.asked().await;
    assert!(server.served.lock().unwrap().is_empty(), "nothing is served before the answer");
    let ServerRequest::ExternalToolApproval(params) = &request else { panic!("{request:?}") };
    assert_eq!((&*params.server, &*params.tool, &*params.json), ("docs", "search", r#"{"q":"x"}"#));
    // Sends the request and the answer as JSON-RPC, as for a front end of `serve`.
    let line = rpc::request(&RequestId::from("1"), &request).unwrap();
    let sent: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(sent["method"], "externalToolApproval");
    assert_eq!(sent["params"]["json"], r#"{"q":"x"}"#);
    let response = json!({ "decision": "approved", "digest": sent["params"]["digest"] });
    let outcome = ResponseOutcome::Result(serde_json::value::to_raw_value(&response).unwrap());
    answer(&front, id, rpc::answer(&request, &outcome)).await;
    front.until("result").await;
    assert_eq!(server.served.lock().unwrap().len(), 1);
    let asked = logged(&front, "approval_requested");
    assert_eq!(asked[0]["request"]["method"], "externalToolApproval");
    assert_eq!(asked[0]["request"]["params"]["json"], r#"{"q":"x"}"#);
    let log = front.world.log();
    let finished = log.iter().find(|event| event["type"] == "tool_call_finished").unwrap();
    assert_eq!(finished["observed_by"], "server");
    assert_eq!(finished["data"]["content"], "found it\u{1b}[2J");
    let provider = Arc::clone(&front.provider);
    insta::assert_snapshot!(front.end().await, @r#"
    1 worker 1 started
    2 context from environment
    3 user "go"
    4 request 1.1
    5 reply (tool_use)
    6 call 1: docs__search
    7 approval 1 of call 1
    asks 1: externalToolApproval
    8 call 1 approved by User
    asks 1 no more
    9 call 1 completed
    10 request 2.1
    text "Done."
    11 reply (end_turn)
    12 worker 1 ended: the run is over
    13 result 0 done
    = done
    "#);
    let definitions = provider.requests()[0].tools.clone();
    assert!(definitions.iter().any(|tool| tool.name == "docs__search" && tool.description == "Searches."));
    assert!(told(&provider).contains("found it"), "{}", told(&provider));
}

#[tokio::test]
async fn an_answer_that_is_bound_to_other_bytes_serves_nothing() {
    let (mut front, server, _gone) = open(asks_once(), vec![search("x"), done()]);
    front.prompt("go").await;
    let (id, request) = front.asked().await;
    let response = json!({ "decision": "approved", "digest": "00" });
    let outcome = ResponseOutcome::Result(serde_json::value::to_raw_value(&response).unwrap());
    answer(&front, id, rpc::answer(&request, &outcome)).await;
    front.until("its digest differs").await;
    front.until("result 4 denied").await;
    assert!(server.served.lock().unwrap().is_empty());
    front.end().await;
}

#[tokio::test]
async fn a_denied_call_is_not_served() {
    let (mut front, server, _gone) = open(asks_once(), vec![search("x"), done()]);
    front.prompt("go").await;
    decide(&mut front, ReviewDecision::Denied { message: Some("not that".to_owned()) }).await;
    front.until("result 4 denied").await;
    assert!(server.served.lock().unwrap().is_empty());
    let provider = Arc::clone(&front.provider);
    front.end().await;
    assert!(told(&provider).contains("The user denied this call. They say: not that"));
}

#[tokio::test]
async fn where_the_mode_asks_nobody_the_call_is_denied() {
    for mode in [ApprovalMode::Auto, ApprovalMode::Deny] {
        let beginning = Beginning { mode, ..asks_once() };
        let (mut front, server, _gone) = open(beginning, vec![search("x"), done()]);
        front.prompt("go").await;
        front.until("call 1 denied: call").await;
        front.until("result 4 denied").await;
        assert!(server.served.lock().unwrap().is_empty(), "{mode}");
        assert_eq!(logged(&front, "denied")[0]["object"]["tool"], "search of docs", "{mode}");
        front.end().await;
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_reach_nobody() {
    let bad = calls(&[("docs__search", json!(["x"]))]);
    let (mut front, server, _gone) = open(asks_once(), vec![bad, done()]);
    front.prompt("go").await;
    front.until("call 1 failed").await;
    front.until("result 0 done").await;
    assert!(server.served.lock().unwrap().is_empty());
    assert!(logged(&front, "approval_requested").is_empty());
    let provider = Arc::clone(&front.provider);
    front.end().await;
    assert!(
        told(&provider).contains("`docs__search` was not run: got no JSON object"),
        "{}",
        told(&provider)
    );
}

#[tokio::test]
async fn a_tool_that_fails_is_told_and_one_that_breaks_ends_its_call_alone() {
    for (q, text) in [("fail", "no such index"), ("panic", "the task of this call failed")] {
        let (mut front, _server, _gone) = open(asks_once(), vec![search(q), edit(), done()]);
        front.prompt("go").await;
        decide(&mut front, ReviewDecision::Approved).await;
        front.until("call 1 failed").await;
        decide(&mut front, ReviewDecision::Approved).await;
        front.until("result 0 done").await;
        assert_eq!(front.world.read("a.txt"), "new\n", "{q}");
        let provider = Arc::clone(&front.provider);
        front.end().await;
        assert!(told(&provider).contains(text), "{q}: {}", told(&provider));
    }
}

#[tokio::test]
async fn a_tool_that_never_answers_is_given_up_by_an_interrupt_and_by_the_end() {
    for kind in [UserActionKind::Agent(AgentAction::Interrupt), UserActionKind::Agent(AgentAction::Quit)] {
        let beginning = Beginning { turns: Turns::Many, ..asks_once() };
        let (mut front, server, mut gone) = open(beginning, vec![search("never"), done()]);
        front.prompt("go").await;
        decide(&mut front, ReviewDecision::Approved).await;
        front.until("asks 1 no more").await;
        while server.served.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        front.act(kind.clone()).await;
        front.until("call 1 interrupted").await;
        tokio::time::timeout(tests::session::PATIENCE, gone.recv()).await.expect("its future is dropped");
        let content = logged(&front, "tool_call_finished")[0]["content"].to_string();
        assert!(content.contains("may have been carried out in part"), "{content}");
        if kind == UserActionKind::Agent(AgentAction::Interrupt) {
            front.until("turn interrupted").await;
            front.prompt("and now").await;
            front.until("turn done").await;
            front.act(UserActionKind::Agent(AgentAction::Quit)).await;
        }
        front.until("result").await;
        front.end().await;
    }
}
