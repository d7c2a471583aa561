//! The timeline of one agent: its events in order, one on each line.

use protocol::event::{CompactionCause, EventKind, GuestEnded, SessionEvent};

use super::agent_account::purpose;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Kind of the event, which decides the colour of the row.
    pub kind: MomentKind,
    /// Time in milliseconds since the log's first event.
    pub at_ms: u64,
    /// Description in one line, with untrusted text of models, files and commands.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MomentKind {
    Call,
    /// A denial, or a restored file.
    Denial,
    Approval,
    Other,
}

impl Moment {
    /// Returns the row for an event; `None` if the event shows no action and no change of access.
    pub(super) fn of(event: &SessionEvent, began_ms: u64) -> Option<Self> {
        let (kind, text) = told(&event.kind)?;
        Some(Self { kind, at_ms: event.time_ms.saturating_sub(began_ms), text })
    }
}

fn told(event: &EventKind) -> Option<(MomentKind, String)> {
    acts(event).or_else(|| decisions(event)).or_else(|| course(event).map(|text| (MomentKind::Other, text)))
}

fn acts(event: &EventKind) -> Option<(MomentKind, String)> {
    Some(match event {
        EventKind::ToolCallStarted { call, name, input, .. } => {
            (MomentKind::Call, format!("call {call}: {name} {input}"))
        }
        EventKind::ToolCallFinished { call, status, duration_ms, .. } => {
            (MomentKind::Call, format!("call {call}: {status} after {duration_ms} ms"))
        }
        EventKind::Denied { call, denial, .. } => {
            let call = call.map_or_else(|| "outside of calls".to_owned(), |call| format!("call {call}"));
            (MomentKind::Denial, format!("{call}: {denial}"))
        }
        EventKind::Restored { places, .. } => {
            let places: Vec<_> =
                places.iter().map(|place| format!("{} ({})", place.path, place.phrase())).collect();
            (MomentKind::Denial, format!("restored: {}", places.join(", ")))
        }
        EventKind::ProtocolViolation { generation, violation } => {
            (MomentKind::Denial, format!("worker {generation} sent an invalid message: {violation}"))
        }
        _ => return None,
    })
}

fn decisions(event: &EventKind) -> Option<(MomentKind, String)> {
    let text = match event {
        EventKind::ApprovalRequested { id, request } => {
            let (call, method) = (request.call_id(), request.kind().method());
            let reason = request.reason().map(|reason| format!(", for this reason: {reason}"));
            format!("approval {id} requested for call {call} ({method}){}", reason.unwrap_or_default())
        }
        EventKind::ApprovalAnswered(answered) => {
            let part = answered.in_part.as_ref().map(|part| format!(", {part}")).unwrap_or_default();
            format!("approval for call {}: {}{part}", answered.call, answered.decision.as_str())
        }
        EventKind::GrantAdded(grant) => format!("approval {} is valid for the session", grant.id),
        EventKind::GrantRevoked { id } => format!("approval {id} for the session is withdrawn"),
        EventKind::TurnAllowed(allowed) => allowed.to_string(),
        EventKind::TurnAllowanceEnded { cause } => cause.to_string(),
        _ => return None,
    };
    Some((MomentKind::Approval, text))
}

fn course(event: &EventKind) -> Option<String> {
    Some(match event {
        EventKind::UserMessage { text, .. } => format!("message of the user: {text}"),
        EventKind::AssistantMessage(message) => {
            format!("reply of the model, {} tokens", message.usage.output)
        }
        EventKind::ModelFailed { message, .. } => format!("the model failed: {message}"),
        EventKind::ContextCompacted(compacted) if compacted.cause == CompactionCause::Clear => {
            "the user started an empty conversation".to_owned()
        }
        EventKind::ContextCompacted(_) => "the context was compacted".to_owned(),
        EventKind::ModeChanged { mode } => format!("mode {mode}"),
        EventKind::WorkerStarted(started) => {
            let one_shot = started.one_shot.as_ref();
            let grant = one_shot
                .map(|one_shot| format!(", additional access {}, for {}", one_shot.grant, purpose(one_shot)));
            let rights = &started.rights;
            format!("worker {} started: {rights}{}", started.generation, grant.unwrap_or_default())
        }
        EventKind::WorkerEnded { generation, reason } => format!("worker {generation} ended: {reason}"),
        EventKind::HostsUsed { uses, .. } => {
            let uses: Vec<_> = uses.iter().map(ToString::to_string).collect();
            uses.join("; ")
        }
        EventKind::GuestStarted(started) => {
            format!("guest {} started: {started}: {}", started.guest, started.access())
        }
        EventKind::GuestEnded(GuestEnded { guest, reason, totals, .. }) => {
            let totals = totals.to_string();
            let totals = if totals.is_empty() { totals } else { format!(" · {totals}") };
            format!("guest {guest} {reason}{totals}")
        }
        EventKind::ToolPinned(pinned) => pinned.to_string(),
        EventKind::RightsChanged(changed) => format!("access changed: {}", changed.rights),
        EventKind::Notice { message, .. } => format!("notice: {message}"),
        EventKind::SubAgentSpawned(spawned) => format!("started {spawned}"),
        EventKind::SubAgentResult(result) => result.to_string(),
        EventKind::WriteTurnAwaited(awaited) => awaited.to_string(),
        EventKind::WriteTurnTaken(taken) => taken.to_string(),
        EventKind::PlanCreated(plan) => plan.to_string(),
        EventKind::PlanApproved(plan) => plan.to_string(),
        EventKind::PlanStepStatus(step) => step.to_string(),
        EventKind::TasksUpdated(tasks) => tasks.to_string(),
        EventKind::TurnFinished(finished) => format!("turn ended: {}", finished.reason),
        EventKind::Result(result) => format!("session ended: {}", result.reason),
        _ => return None,
    })
}
