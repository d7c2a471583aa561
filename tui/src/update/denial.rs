//! Display of accesses that the sandbox denied.

use ipc::denial::{Denial, Grade, Layer};
use ipc::id::{AgentId, CallId};
use ipc::missing_right::{ClosedBy, MissingRight};
use protocol::approval::ReviewDecision;
use protocol::event::{ApprovalAnswered, DecidedBy, Recorded};
use protocol::known_sockets::gives;

use crate::card::because;
use crate::model::{AgentView, Block, Call, Look, Part};
use crate::text::SafeText;

/// Shows the denied access, the layer that denied it (`likely` if uncertain), and a command that allows it.
pub(super) fn show(view: &mut AgentView, agent: &AgentId, call: CallId, denial: &Denial) {
    let sure = match (denial.grade, denial.layer) {
        (Grade::Proved, Layer::Policy) => "blocked by the policy",
        (Grade::Proved, _) => "blocked by the kernel",
        (Grade::Likely, _) => "likely blocked",
    };
    let known = view.calls.get(&call);
    if known.is_some_and(|call| call.left_denied) {
        // The person has read the other facts in the approval request.
        let way = denial.grant.as_ref().map(|grant| here(grant, &denial.missing_right));
        let way = way.map(|way| format!(" · to allow: {way}")).unwrap_or_default();
        return view.say(Look::Error, &format!("{sure}: {} {}{way}", denial.operation, denial.object));
    }
    let who = if *agent == AgentId::root() { String::new() } else { format!("   agent {agent}") };
    let errno = denial.errno.map(|errno| format!(", {}", errno_name(errno))).unwrap_or_default();
    let by = denial.program.as_ref().map(|program| format!(" by {program}")).unwrap_or_default();
    let because = because(denial.operation, &denial.missing_right);
    let mut facts = Vec::new();
    // True if the row directly above names the command: the call has ended, or its block is the last one.
    let stands_above = known.is_none_or(|call| Some(call.block) == view.transcript.last());
    let command = known.filter(|_| !stands_above).and_then(Call::command);
    facts.extend(command.map(|command| ("command", command.to_owned())));
    let tried = format!("{} {}{by}{because}", denial.operation, denial.object);
    facts.push(("tried", format!("{tried}   ({}{errno})", denial.layer)));
    if !is_said(denial) {
        facts.push(("missing", denial.missing_right.to_string()));
    }
    if let Some(MissingRight::Socket { path }) = denial.missing_right.value() {
        facts.push(("gives", gives(path).to_owned()));
    }
    let takes_too_much = denial.missing_right.value().is_some_and(MissingRight::takes_too_much);
    facts.push(match &denial.grant {
        Some(grant) => ("to allow", here(grant, &denial.missing_right)),
        None if takes_too_much => {
            ("instead", "allow a directory below, e.g. :allow write ~/notes".to_owned())
        }
        None => ("to allow", "not possible".to_owned()),
    });
    let head = SafeText::line(&format!(" ✗ {sure}{who} "));
    let mut parts = vec![Part::new(head, Look::Denial)];
    let fact =
        |(name, value): (&str, String)| Part::new(SafeText::line(&format!("{name:<10}{value}")), Look::Fact);
    parts.extend(facts.into_iter().map(fact));
    view.transcript.push(Block::of(parts));
}

/// True if the missing right needs no words of its own, since the text about the denied access implies it.
fn is_said(denial: &Denial) -> bool {
    denial.missing_right.value().is_some_and(|missing| {
        let has_reason = missing.reason().is_some()
            && !matches!(missing, MissingRight::Host { .. } | MissingRight::Socket { .. });
        missing.is_said_by(denial.operation, &denial.object) && !has_reason
    })
}

/// Shows the person's answer to a denied access. If the person did not allow it, the first row of the call says so.
pub(super) fn answered(view: &mut AgentView, answered: &ApprovalAnswered) {
    let (answer, is_left) = match &answered.decision {
        ReviewDecision::Approved => ("allowed by you, and run again".to_owned(), false),
        ReviewDecision::ApprovedForTurn => {
            ("allowed by you with this whole turn, and run again".to_owned(), false)
        }
        ReviewDecision::ApprovedForSession { .. } => {
            ("allowed by you for the session, and run again".to_owned(), false)
        }
        ReviewDecision::Denied { message: Some(word) } => (format!("not allowed: {word}"), true),
        ReviewDecision::Denied { message: None }
        | ReviewDecision::Abort
        | ReviewDecision::ApprovedInPart { .. }
        | ReviewDecision::Filled { .. }
        | ReviewDecision::Cancelled => {
            let cause = answered.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
            (format!("not allowed{cause}"), true)
        }
    };
    let Some(call) = view.calls.get_mut(&answered.call) else { return };
    call.left_denied = is_left && answered.by == DecidedBy::User;
    let Some(block) = view.transcript.block_mut(call.block) else { return };
    if !is_left {
        call.runs_again(block);
    }
    call.answered(block, &answer);
}

/// Returns the UI command that allows the access. If there is none, returns the command-line flags that do.
fn here(grant: &str, missing_right: &Recorded<MissingRight>) -> String {
    match missing_right.value() {
        Some(MissingRight::Network) => ":net on".to_owned(),
        Some(MissingRight::Host { host }) => format!(":net +{host}"),
        Some(MissingRight::Write { closed_by: Some(ClosedBy::Mode), .. }) => ":mode auto".to_owned(),
        _ => match (grant.strip_prefix("--write "), grant.strip_prefix("--socket ")) {
            (Some(path), _) => format!(":allow write {path}"),
            (None, Some(path)) => format!(":allow socket {path}"),
            (None, None) => format!("start with {grant}"),
        },
    }
}

/// Returns the name of a common error number (errno); the digits of any other.
fn errno_name(errno: i32) -> String {
    match errno {
        1 => "EPERM".to_owned(),
        2 => "ENOENT".to_owned(),
        13 => "EACCES".to_owned(),
        18 => "EXDEV".to_owned(),
        30 => "EROFS".to_owned(),
        101 => "ENETUNREACH".to_owned(),
        104 => "ECONNRESET".to_owned(),
        111 => "ECONNREFUSED".to_owned(),
        number => format!("errno {number}"),
    }
}
