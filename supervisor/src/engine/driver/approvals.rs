//! Approval requests, each awaited in a task of its own with a time limit, and decided once. Invalid data as an answer
//! denies the request; an answer to no open request is only logged.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use agent::core::{HostAsked, HostQuestionId, Input};
use boundary::monitor::{HostAnswers, HostQuestion};
use ipc::id::{AgentId, ApprovalId, CallId, Generation};
use protocol::approval::{ApprovalAnswer, ReviewDecision, ServerRequest};
use protocol::event::{DecidedBy, EventKind, NoticeCode, ObservedBy};
use protocol::frontend::{UiEvent, UiEventKind, Unread, UserActionKind};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::event_sink::EventSink;
use super::flushes::{After, Flushes};
use super::{SessionError, Shared};

/// Maximum number of characters that a logged cause quotes of a front end's text.
const MAX_CAUSE: usize = 300;

#[derive(Default)]
pub(super) struct Approvals {
    /// Requests whose event is not synced to the disk yet. The front end gets a request after the sync of its event.
    unwritten: BTreeMap<ApprovalId, Box<ServerRequest>>,
    /// Requests that the front end got, each with the sender for its outcome.
    pending: BTreeMap<ApprovalId, oneshot::Sender<Input>>,
    /// Tasks that wait for answers. The task of a withdrawn request ends with `None`.
    waiting: JoinSet<(ApprovalId, Option<Input>)>,
    host_answers: HashMap<HostQuestionId, HostAnswers>,
}

impl Approvals {
    fn wait(&mut self, id: ApprovalId, time: Duration, ui: mpsc::UnboundedSender<UiEvent>) {
        let (settle, settled) = oneshot::channel();
        self.pending.insert(id, settle);
        self.waiting.spawn(wait(id, time, settled, ui));
    }

    /// Delivers an answer; `for_us` is true if the answer names this session. The error says why the answer is ignored.
    pub(super) fn answer(
        &mut self,
        id: ApprovalId,
        answer: ApprovalAnswer,
        for_us: bool,
    ) -> Result<(), String> {
        let decision = decision(&answer);
        let settle = self.pending.remove(&id).ok_or_else(|| not_waited_for(id, decision))?;
        let input = if for_us {
            input(id, answer)
        } else {
            lapsed(id, DecidedBy::BadAnswer, "the answer belongs to another conversation".to_owned())
        };
        settle.send(input).map_err(|_| format!("request {id}: the answer ({decision}) came too late"))
    }

    /// Stops waiting for a request. True if the front end was asked.
    fn withdraw(&mut self, id: ApprovalId) -> bool {
        self.pending.remove(&id);
        self.unwritten.remove(&id).is_none()
    }

    /// Returns the outcome of the next request as an input for the core. Pends while no request is open. Cancel safe.
    pub(super) async fn next(&mut self) -> Input {
        loop {
            let Some(over) = self.waiting.join_next().await else { return std::future::pending().await };
            let over = over.map_or_else(|error| self.abandoned(&error.to_string()), Some);
            let Some((id, input)) = over else { continue };
            self.pending.remove(&id);
            if let Some(input) = input {
                return input;
            }
        }
    }

    /// Returns a denial for a request whose task ended without an outcome; `None` if each request still has a task.
    fn abandoned(&self, error: &str) -> Option<(ApprovalId, Option<Input>)> {
        let (id, _) = self.pending.iter().find(|(_, settle)| settle.is_closed())?;
        let cause = format!("the wait for an answer failed: {error}");
        Some((*id, Some(lapsed(*id, DecidedBy::BadAnswer, cause))))
    }
}

async fn wait(
    id: ApprovalId,
    time: Duration,
    settled: oneshot::Receiver<Input>,
    ui: mpsc::UnboundedSender<UiEvent>,
) -> (ApprovalId, Option<Input>) {
    let input = tokio::select! {
        biased;
        settled = settled => settled.ok(),
        () = ui.closed() => Some(lapsed(id, DecidedBy::NoFrontEnd, "the front end has disconnected".to_owned())),
        () = tokio::time::sleep(time) => {
            Some(lapsed(id, DecidedBy::Deadline, format!("nobody answered within {time:?}")))
        }
    };
    (id, input)
}

/// Converts an answer to an input for the core, which judges the answer. Invalid data becomes a denial.
fn input(id: ApprovalId, answer: ApprovalAnswer) -> Input {
    match answer.into_op(id) {
        Ok(op) => Input::Op(op),
        Err(cause) => lapsed(id, DecidedBy::BadAnswer, bounded(&cause)),
    }
}

const fn lapsed(id: ApprovalId, by: DecidedBy, cause: String) -> Input {
    Input::Lapsed { id, by, cause }
}

fn not_waited_for(id: ApprovalId, decision: &str) -> String {
    format!("request {id} is no longer open: ignored the answer ({decision})")
}

fn decision(answer: &ApprovalAnswer) -> &'static str {
    answer.decision().map_or("no decision", ReviewDecision::as_str)
}

/// Returns the notice to log about an action that arrives after the session's end; `None` if the action needs none.
pub(super) fn too_late(agent: &AgentId, kind: &UserActionKind) -> Option<(NoticeCode, String)> {
    Some(match kind.unread()? {
        Unread::Answer(id, answer) => {
            (NoticeCode::ApprovalIgnored, format!("agent {agent}: {}", not_waited_for(id, decision(answer))))
        }
        Unread::Message => (
            NoticeCode::NoAgent,
            format!("no agent {agent} is working: a message to this agent was not read"),
        ),
    })
}

fn bounded(cause: &str) -> String {
    cause.chars().take(MAX_CAUSE).collect()
}

/// Returns a denial if `error` is not `None`: a request that cannot be serialised can be neither logged nor shown.
fn unshowable(id: ApprovalId, error: Option<serde_json::Error>) -> Option<Input> {
    let cause = format!("the request cannot be serialised: {}", error?);
    Some(lapsed(id, DecidedBy::BadAnswer, cause))
}

impl Approvals {
    /// Logs an approval request. The front end is asked once the event is synced to the disk.
    pub(super) fn request(
        &mut self,
        shared: &mut Shared,
        sink: &mut EventSink,
        flushes: &mut Flushes,
        id: ApprovalId,
        request: Box<ServerRequest>,
    ) -> Result<Option<Input>, SessionError> {
        if let Some(lapsed) = unshowable(id, request.params().err()) {
            return Ok(Some(lapsed));
        }
        let event = EventKind::ApprovalRequested { id, request: request.clone() };
        sink.record(shared, event, ObservedBy::Supervisor)?;
        self.unwritten.insert(id, request);
        flushes.push(shared.flush(), After::Ask(id));
        Ok(None)
    }

    pub(super) fn ask(&mut self, shared: &Shared, sink: &mut EventSink, id: ApprovalId) {
        if let Some(request) = self.unwritten.remove(&id) {
            let time = Duration::from_millis(request.timeout_ms());
            self.wait(id, time, shared.ui.clone());
            sink.show(shared, UiEventKind::ApprovalRequested { id, request });
        }
    }

    pub(super) fn close(&mut self, shared: &Shared, sink: &mut EventSink, id: ApprovalId) {
        if self.withdraw(id) {
            sink.show(shared, UiEventKind::ApprovalClosed { id });
        }
    }

    /// Converts a host question of a worker's gateway to an input for the core. The core answers each question once.
    pub(super) fn ask_host(
        &mut self,
        generation: Generation,
        call: Option<CallId>,
        question: HostQuestion,
    ) -> Input {
        let HostQuestion { number, host, program, process, answers } = question;
        let id = HostQuestionId { generation, number };
        self.host_answers.insert(id, answers);
        Input::HostAsked(HostAsked { id, call, process, host, program })
    }

    pub(super) fn answer_host(&mut self, id: HostQuestionId, allowed: bool) {
        if let Some(answers) = self.host_answers.remove(&id) {
            answers.answer(id.number, allowed);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::ser::Error as _;

    use super::*;

    #[test]
    fn a_request_that_cannot_be_serialised_is_denied() {
        assert!(unshowable(ApprovalId(3), None).is_none());
        let error = serde_json::Error::custom("a key is no text");
        let Some(Input::Lapsed { id, by, cause }) = unshowable(ApprovalId(3), Some(error)) else { panic!() };
        assert_eq!((id, by), (ApprovalId(3), DecidedBy::BadAnswer));
        assert_eq!(cause, "the request cannot be serialised: a key is no text");
    }
}
