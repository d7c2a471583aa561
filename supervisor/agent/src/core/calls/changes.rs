//! Changes of files in a request for approval: the file of each change, and the part that the person approved.

use gate::approval::{CallPart, Subject, SubjectChange};
use gate::{Ask, plain};
use ipc::id::{ApprovalId, CallId};
use ipc::path::WirePath;
use ipc::tool::{EditFile, ToolCall, WriteFile};
use protocol::approval::ReviewDecision;
use protocol::event::{AppliedPart, ApprovalAnswered, DecidedBy};

use super::asked::Case;
use crate::core::rights::RightsState;

/// The text for the model about a change that a person did not approve with the others of the same request.
pub(super) const NOT_THIS: &str =
    "The user approved other changes of this reply, and not this one. It was not carried out.";

/// The cause in the log for the denial of a change that a person did not approve with the others.
pub(super) const LEFT_OUT: &str = "the user left it out of the changes that they approved";

/// Returns each change with its call, and with the approved part of the change; `None` if all of it is approved.
pub(super) fn in_parts(
    case: Case,
    parts: Vec<Option<CallPart>>,
) -> impl Iterator<Item = (CallId, SubjectChange, Option<CallPart>)> {
    let Case { call, ask: Ask { grant, .. }, subject } = case;
    let changes = match subject {
        Subject::Effect { tool, proposal, .. } => vec![(call, SubjectChange { tool, proposal, grant })],
        Subject::Changes(all) => all,
        Subject::External(_) | Subject::Fetch(_) | Subject::Agent(_) | Subject::Plan(_) => Vec::new(),
    };
    changes.into_iter().zip(parts).map(|((call, change), part)| (call, change, part))
}

/// Returns the log entry for the user's answer about a call.
pub(super) const fn by_user(
    id: Option<ApprovalId>,
    call: CallId,
    decision: ReviewDecision,
    in_part: Option<AppliedPart>,
) -> ApprovalAnswered {
    ApprovalAnswered { id, call, decision, by: DecidedBy::User, cause: None, in_part }
}

/// Returns the path of the file that a call changes; `None` for a call of another kind.
pub(super) fn named(tool: &ToolCall, rights: &RightsState) -> Option<WirePath> {
    match tool {
        ToolCall::WriteFile(WriteFile { path, .. }) | ToolCall::EditFile(EditFile { path, .. }) => {
            Some(plain(&rights.seen().project().as_path().join(path.as_path()))?.into())
        }
        _ => None,
    }
}
