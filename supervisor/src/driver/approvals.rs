//! Requests for approvals: each is awaited in a task of its own, with its deadline, and decided once.
//!
//! Whatever comes back that is no answer to exactly what was asked denies it, and says why. An answer that nothing waits for
//! counts for nothing, and has a line in the log as well.

use std::collections::BTreeMap;
use std::time::Duration;

use ipc::approval::{ApprovalAnswer, ReviewDecision, ServerRequest};
use ipc::event::{DecidedBy, EventKind, Observer as Witness};
use ipc::frontend::{Op, UiEvent, UiEventKind};
use ipc::id::ApprovalId;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::flushes::After;
use super::{AgentRun, SessionError, Shared};
use crate::core::Input;
use crate::gate::AskKind;

/// The most of a peer's words that a cause repeats.
const MAX_CAUSE: usize = 300;

/// The requests that are waited for.
#[derive(Default)]
pub(super) struct Approvals {
    /// Requests that are shown when they are on the disk.
    unwritten: BTreeMap<ApprovalId, Box<ServerRequest>>,
    pending: BTreeMap<ApprovalId, Pending>,
    waiting: JoinSet<(ApprovalId, Settled)>,
}

/// What an answer has to fit.
struct Pending {
    kind: AskKind,
    digest: String,
    settle: oneshot::Sender<Settled>,
}

/// How a request is over.
#[derive(Debug)]
enum Settled {
    /// By an answer that fits.
    Answered(AskKind, ReviewDecision),
    /// Otherwise: a denial.
    Lapsed(DecidedBy, String),
    /// Nobody waits for it any more.
    Withdrawn,
}

impl Approvals {
    fn wait(&mut self, id: ApprovalId, request: &ServerRequest, ui: mpsc::UnboundedSender<UiEvent>) {
        let (settle, settled) = oneshot::channel();
        let pending = Pending { kind: kind(request), digest: request.digest().to_owned(), settle };
        self.pending.insert(id, pending);
        self.waiting.spawn(wait(id, Duration::from_millis(request.timeout_ms()), settled, ui));
    }

    /// Takes an answer to its request; the error says why it counts for nothing.
    fn answer(&mut self, id: ApprovalId, answer: ApprovalAnswer, for_us: bool) -> Result<(), String> {
        let not_waited_for = || format!("request {id} is not waited for: the answer counts for nothing");
        let pending = self.pending.remove(&id).ok_or_else(not_waited_for)?;
        let settled = if for_us {
            pending.judge(answer)
        } else {
            Settled::Lapsed(DecidedBy::BadAnswer, "the answer is one of another conversation".to_owned())
        };
        pending.settle.send(settled).map_err(|_| format!("request {id}: the answer came too late"))
    }

    /// Waits for one no longer; true if somebody was asked.
    fn withdraw(&mut self, id: ApprovalId) -> bool {
        self.pending.remove(&id);
        self.unwritten.remove(&id).is_none()
    }

    /// The next request that is over, as the core's input; pends while none is waited for. Cancel safe.
    pub(super) async fn next(&mut self) -> Input {
        loop {
            let Some(over) = self.waiting.join_next().await else { return std::future::pending().await };
            let over = over.map_or_else(|error| self.abandoned(&error.to_string()), Some);
            let Some((id, settled)) = over else { continue };
            self.pending.remove(&id);
            if let Some(input) = input(id, settled) {
                return input;
            }
        }
    }

    /// The request whose task is gone without a word.
    fn abandoned(&self, error: &str) -> Option<(ApprovalId, Settled)> {
        let (id, _) = self.pending.iter().find(|(_, pending)| pending.settle.is_closed())?;
        Some((*id, Settled::Lapsed(DecidedBy::BadAnswer, format!("the wait for an answer failed: {error}"))))
    }
}

async fn wait(
    id: ApprovalId,
    time: Duration,
    settled: oneshot::Receiver<Settled>,
    ui: mpsc::UnboundedSender<UiEvent>,
) -> (ApprovalId, Settled) {
    let settled = tokio::select! {
        biased;
        settled = settled => settled.unwrap_or(Settled::Withdrawn),
        () = ui.closed() => Settled::Lapsed(DecidedBy::NoFrontEnd, "the front end is gone".to_owned()),
        () = tokio::time::sleep(time) => {
            Settled::Lapsed(DecidedBy::Deadline, format!("nobody answered within {time:?}"))
        }
    };
    (id, settled)
}

fn input(id: ApprovalId, settled: Settled) -> Option<Input> {
    Some(match settled {
        Settled::Answered(AskKind::Patch, decision) => Input::Op(Op::PatchApproval { id, decision }),
        Settled::Answered(AskKind::Command, decision) => Input::Op(Op::ExecApproval { id, decision }),
        Settled::Answered(AskKind::Network, decision) => Input::Op(Op::NetworkApproval { id, decision }),
        Settled::Answered(AskKind::Tool, decision) => Input::Op(Op::ExternalToolApproval { id, decision }),
        Settled::Answered(AskKind::Agent, _) => return None,
        Settled::Lapsed(by, cause) => Input::Lapsed { id, by, cause },
        Settled::Withdrawn => return None,
    })
}

impl Pending {
    fn judge(&self, answer: ApprovalAnswer) -> Settled {
        let bad = |cause: &str| Settled::Lapsed(DecidedBy::BadAnswer, bounded(cause));
        let (kind, decision, digest) = match answer {
            ApprovalAnswer::Patch(answer) => (AskKind::Patch, answer.decision, answer.digest),
            ApprovalAnswer::Exec(answer) => (AskKind::Command, answer.decision, answer.digest),
            ApprovalAnswer::Network(answer) => (AskKind::Network, answer.decision, answer.digest),
            ApprovalAnswer::ExternalTool(answer) => (AskKind::Tool, answer.decision, answer.digest),
            ApprovalAnswer::Failed { cause } => return bad(&cause),
        };
        if kind != self.kind {
            return bad("the answer is one to another kind of request");
        }
        match digest {
            Some(digest) if digest != self.digest => {
                bad("the answer is one to another effect: its digest differs")
            }
            _ => Settled::Answered(kind, decision),
        }
    }
}

const fn kind(request: &ServerRequest) -> AskKind {
    match request {
        ServerRequest::ApplyPatchApproval(_) => AskKind::Patch,
        ServerRequest::ExecCommandApproval(_) => AskKind::Command,
        ServerRequest::NetworkApproval(_) => AskKind::Network,
        ServerRequest::ExternalToolApproval(_) => AskKind::Tool,
    }
}

fn bounded(cause: &str) -> String {
    cause.chars().take(MAX_CAUSE).collect()
}

impl AgentRun {
    /// Has the question written down; who can answer it is asked when it is on the disk. What cannot be written down is not
    /// asked.
    pub(super) fn request_approval(
        &mut self,
        shared: &mut Shared,
        id: ApprovalId,
        request: Box<ServerRequest>,
    ) -> Result<Option<Input>, SessionError> {
        if let Err(error) = request.params() {
            let cause = format!("the request has no JSON: {error}");
            return Ok(Some(Input::Lapsed { id, by: DecidedBy::BadAnswer, cause }));
        }
        let event = EventKind::ApprovalRequested { id, request: request.clone() };
        self.record(shared, event, Witness::Supervisor)?;
        self.approvals.unwritten.insert(id, request);
        self.flushes.push(shared.flush(), After::Ask(id));
        Ok(None)
    }

    /// Asks the front end, unless the question is settled already.
    pub(super) fn ask(&mut self, shared: &Shared, id: ApprovalId) {
        if let Some(request) = self.approvals.unwritten.remove(&id) {
            self.approvals.wait(id, &request, shared.ui.clone());
            self.show(shared, UiEventKind::ApprovalRequested { id, request });
        }
    }

    pub(super) fn close_approval(&mut self, shared: &Shared, id: ApprovalId) {
        if self.approvals.withdraw(id) {
            self.show(shared, UiEventKind::ApprovalClosed { id });
        }
    }

    /// Takes an answer; one `for_us` names this session.
    pub(super) fn answer(
        &mut self,
        shared: &mut Shared,
        id: ApprovalId,
        answer: ApprovalAnswer,
        for_us: bool,
    ) -> Result<(), SessionError> {
        match self.approvals.answer(id, answer, for_us) {
            Ok(()) => Ok(()),
            Err(why) => self.notice(shared, "approval_ignored", &why),
        }
    }
}
