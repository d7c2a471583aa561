//! Texts about calls that ended early: because of the person, the end of the run, or a change of access.

use gate::tools::{ServedCall, seconds};

use super::slots::Open;
use crate::core::{CallProgress, EndReason};

/// The text about an approved call that was ended early.
pub(super) const IN_PART: &str =
    "it was approved, and may have been carried out in part: look before you repeat it";

/// The text about a call of the user, or a call that the supervisor serves, that was ended early.
pub(super) const SERVED_IN_PART: &str = "it may have been carried out in part: look before you repeat it";

/// The reason for the early end of a call, as the parts of a sentence around the elapsed time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interruption {
    pub(super) by: &'static str,
    /// The end of the sentence, after the elapsed time.
    pub(super) then: &'static str,
}

impl Interruption {
    pub(super) const fn of(reason: EndReason) -> Self {
        match reason {
            EndReason::TimeLimit => {
                Self::because(": the time limit of the run is reached; the call was ended")
            }
            EndReason::Internal => Self::because(": the run cannot continue; the call was ended"),
            EndReason::Aborted => {
                Self::because(": the user ended the turn; the call was not carried out to its end")
            }
            _ => Self { by: " by the user", then: "; the call was ended" },
        }
    }

    pub(super) const fn because(then: &'static str) -> Self {
        Self { by: "", then }
    }

    /// Returns the text that a call was interrupted. `progress` is `None` for a call that had not begun.
    pub(super) fn sentence(self, progress: Option<&CallProgress>) -> String {
        let Self { by, then } = self;
        format!("interrupted{by}{}{then}", after(progress))
    }
}

/// Returns the words about the elapsed time of a call; empty if it is not known.
pub(super) fn after(progress: Option<&CallProgress>) -> String {
    progress.map_or_else(String::new, |it| format!(" after {}", seconds(it.duration_ms)))
}

/// Returns the text, followed by the command's output so far if the call `prints`.
pub(super) fn with_output(text: String, progress: Option<&CallProgress>, prints: bool) -> String {
    match progress {
        Some(progress) if prints && progress.output.is_empty() => format!("{text}\n(no output until then)"),
        Some(progress) if prints => format!("{text}\nThe output until then:\n{}", progress.output),
        _ => text,
    }
}

/// The text about a call that ended while a sub-agent worked for it.
const SUBTREE_ENDED: &str =
    "the sub-agent was ended with its own sub-agents; changes that were already made stay";

/// Returns the text of the result of a call that was ended early.
pub(super) fn cut_short(
    open: &Open,
    of_user: bool,
    why: Interruption,
    progress: Option<&CallProgress>,
) -> String {
    let sentence = why.sentence(progress);
    let text = match open {
        Open::Committing(_) if of_user => format!("{sentence}; {SERVED_IN_PART}"),
        Open::Committing(_) | Open::Served(ServedCall::External(_)) => format!("{sentence}; {IN_PART}"),
        Open::Delegated => format!("{sentence}; {SUBTREE_ENDED}"),
        Open::Served(ServedCall::Supervisor(_) | ServedCall::Fetch(_)) => {
            format!("{sentence}; {SERVED_IN_PART}")
        }
        Open::Serving(_)
        | Open::Preparing(_)
        | Open::WritingPlan(_)
        | Open::Accepting(_)
        | Open::Looking(_) => sentence,
    };
    with_output(text, progress, open.prints())
}

/// The reason for the end of a call after a change of access.
pub(super) const POLICY_CHANGED: Interruption =
    Interruption::because(": the access changed; the call was ended with everything that it had started");

/// The text about a request that a change of the approval mode ended.
pub(super) const MODE_CHANGED: &str = "interrupted: the approval mode changed";

/// The reason for the end of a call after a change to the mode without approvals.
pub(super) const NOTHING_APPROVED: Interruption =
    Interruption::because(": the approval mode is deny now; the call was ended");

/// The reason for the end of a call with the network after the person has turned the network off.
pub(super) const NETWORK_OFF: Interruption =
    Interruption::because(": the user turned the network off; the call was ended");

/// The reason for the end of a call whose network access exceeds that which the person allows now.
pub(super) const NETWORK_NARROWED: Interruption =
    Interruption::because(": the user restricted the network; the call was ended");

/// The reason for the end of an MCP server's call whose access the person has withdrawn from a plan's approval.
pub(super) const SERVER_TAKEN_BACK: Interruption = Interruption::because(
    ": the user withdrew access that the plan's approval had allowed; the call was ended",
);
