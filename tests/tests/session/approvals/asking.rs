//! A session in mode `ask`, and the answers to it.

use std::time::Duration;

use gate::approval::ApprovalSettings;
use ipc::confinement::Tier;
use ipc::id::ApprovalId;
use model::provider::ReplayProvider;
use protocol::approval::{ApprovalAnswer, ApprovalMode, ReviewDecision, ServerRequest, SessionScope};
use protocol::frontend::UserActionKind;
use serde_json::{Value, json};
use tests::replies::calls;
use tests::session::{Beginning, FrontEnd};
use tests::tier::choice;

/// Mode `ask` in a tier, in a project with a file `a.txt` that says `old`.
pub(crate) fn asks(tier: Tier) -> Beginning {
    Beginning {
        tier: choice(tier),
        mode: ApprovalMode::Ask,
        files: vec![("a.txt", "old\n".to_owned())],
        ..Beginning::default()
    }
}

/// The same with a deadline.
pub(crate) fn asks_for(tier: Tier, timeout: Duration) -> Beginning {
    Beginning { approvals: ApprovalSettings { timeout, ..ApprovalSettings::default() }, ..asks(tier) }
}

/// An answer of the kind that the request is of.
pub(crate) fn fitting(request: &ServerRequest, decision: ReviewDecision) -> ApprovalAnswer {
    request.answer(decision)
}

pub(crate) fn for_session(scope: SessionScope) -> ReviewDecision {
    ReviewDecision::ApprovedForSession { scope }
}

pub(crate) async fn answer(front: &FrontEnd, id: ApprovalId, answer: ApprovalAnswer) {
    front.act(UserActionKind::Answer { id, answer }).await;
}

/// Waits for the next request and decides on it.
pub(crate) async fn decide(front: &mut FrontEnd, decision: ReviewDecision) -> ServerRequest {
    let (id, request) = front.asked().await;
    answer(front, id, fitting(&request, decision)).await;
    request
}

pub(crate) fn edit() -> String {
    calls(&[("edit_file", json!({"path": "a.txt", "old_string": "old", "new_string": "new"}))])
}

/// A reply with a command that says that it writes.
pub(crate) fn command(text: &str) -> String {
    calls(&[("shell_exec", json!({"command": text, "access": "write"}))])
}

/// The data of the events of one type in the log.
pub(crate) fn logged(front: &FrontEnd, kind: &str) -> Vec<Value> {
    let events = front.world.log().into_iter().filter(|event| event["type"] == kind);
    events.map(|mut event| event["data"].take()).collect()
}

/// Returns all texts that the model received.
pub(crate) fn told(provider: &ReplayProvider) -> String {
    format!("{:?}", provider.requests().last().unwrap().messages)
}
