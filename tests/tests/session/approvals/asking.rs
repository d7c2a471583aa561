//! Starts sessions in mode `ask`, and answers their requests.

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

/// Returns settings with mode `ask`, and with a file `a.txt` that contains `old`.
pub(crate) fn asks(tier: Tier) -> Beginning {
    Beginning {
        tier: choice(tier),
        mode: ApprovalMode::Ask,
        files: vec![("a.txt", "old\n".to_owned())],
        ..Beginning::default()
    }
}

/// Returns the settings of [`asks`] with a time limit for answers.
pub(crate) fn asks_for(tier: Tier, timeout: Duration) -> Beginning {
    Beginning { approvals: ApprovalSettings { timeout, ..ApprovalSettings::default() }, ..asks(tier) }
}

/// Returns an answer of the same kind as the request.
pub(crate) fn fitting(request: &ServerRequest, decision: ReviewDecision) -> ApprovalAnswer {
    request.answer(decision)
}

pub(crate) fn for_session(scope: SessionScope) -> ReviewDecision {
    ReviewDecision::ApprovedForSession { scope }
}

pub(crate) async fn answer(front: &FrontEnd, id: ApprovalId, answer: ApprovalAnswer) {
    front.act(UserActionKind::Answer { id, answer }).await;
}

/// Waits for the next request, and answers it with this decision.
pub(crate) async fn decide(front: &mut FrontEnd, decision: ReviewDecision) -> ServerRequest {
    let (id, request) = front.asked().await;
    answer(front, id, fitting(&request, decision)).await;
    request
}

pub(crate) fn edit() -> String {
    calls(&[("edit_file", json!({"path": "a.txt", "old_string": "old", "new_string": "new"}))])
}

/// Returns a reply with a command that declares to write.
pub(crate) fn command(text: &str) -> String {
    calls(&[("shell_exec", json!({"command": text, "access": "write"}))])
}

pub(crate) fn logged(front: &FrontEnd, kind: &str) -> Vec<Value> {
    let events = front.world.log().into_iter().filter(|event| event["type"] == kind);
    events.map(|mut event| event["data"].take()).collect()
}

pub(crate) fn told(provider: &ReplayProvider) -> String {
    format!("{:?}", provider.requests().last().unwrap().messages)
}
