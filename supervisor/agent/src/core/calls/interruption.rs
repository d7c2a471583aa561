//! The words on calls that are ended before they are done: by the user, by the end of the run, or by a change of
//! rights.

use gate::tools::{ServedCall, seconds};

use super::slots::Open;
use crate::core::{CallProgress, EndReason};

/// Said of an approved call that was ended.
pub(super) const IN_PART: &str =
    "it was approved, and may have been carried out in part: look before you repeat it";

/// Said of a call that the supervisor served itself, and that was ended.
pub(super) const SERVED_IN_PART: &str = "it may have been carried out in part: look before you repeat it";

/// The reason for the end of a call before it is done, in the parts of a sentence that names the time it took in their
/// middle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interruption {
    /// The words " by the user", or empty.
    pub(super) by: &'static str,
    /// The end of the sentence.
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

    /// The sentence about a call that had begun, or about one that had not.
    pub(super) fn sentence(self, progress: Option<&CallProgress>) -> String {
        let Self { by, then } = self;
        format!("interrupted{by}{}{then}", after(progress))
    }
}

/// The time that a call took until it was ended, if that is known.
pub(super) fn after(progress: Option<&CallProgress>) -> String {
    progress.map_or_else(String::new, |it| format!(" after {}", seconds(it.duration_ms)))
}

/// A text, and below it the output of the command until it was ended.
pub(super) fn with_output(text: String, progress: Option<&CallProgress>, prints: bool) -> String {
    match progress {
        Some(progress) if prints && progress.output.is_empty() => format!("{text}\n(no output until then)"),
        Some(progress) if prints => format!("{text}\nThe output until then:\n{}", progress.output),
        _ => text,
    }
}

/// Said of a call whose rights went while a sub-agent worked for it, or that was interrupted.
const SUBTREE_ENDED: &str =
    "the sub-agent was ended with its own sub-agents; changes that were already made stay";

/// The result of a call that is ended: nobody waits for those who have it.
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

/// Told to a call that ran when the rights changed.
pub(super) const POLICY_CHANGED: Interruption =
    Interruption::because(": the access changed; the call was ended with everything that it had started");

/// Told to a call that somebody was asked about when the mode changed.
pub(super) const MODE_CHANGED: &str = "interrupted: the approval mode changed";

/// Told to a call that was approved, and ran when nothing was to be approved any more.
pub(super) const NOTHING_APPROVED: Interruption =
    Interruption::because(": the approval mode is deny now; the call was ended");

/// Told to a call that was approved with the network, when the user turned that off.
pub(super) const NETWORK_OFF: Interruption =
    Interruption::because(": the user turned the network off; the call was ended");

/// Told to a call that was approved with more of the network than the user permits now.
pub(super) const NETWORK_NARROWED: Interruption =
    Interruption::because(": the user restricted the network; the call was ended");

/// Told to a call of a server that a plan's approval allowed.
pub(super) const SERVER_TAKEN_BACK: Interruption = Interruption::because(
    ": the user withdrew access that the plan's approval had allowed; the call was ended",
);
