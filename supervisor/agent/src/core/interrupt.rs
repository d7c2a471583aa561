//! Calls that are ended before they are done: by the user, by the end of the run, or by a change of rights.

use gate::tools::{ServedCall, seconds};
use ipc::id::CallId;
use protocol::event::{NoticeCode, ToolCallStatus};

use super::call::CallResult;
use super::calls::Open;
use super::delegation::SUBTREE_ENDED;
use super::{Agent, CallProgress, Effect, EndReason};

/// What is true of an approved call that was ended.
pub(super) const IN_PART: &str =
    "it was approved, and may have been carried out in part: look before you repeat it";

/// What is true of a call that the supervisor served itself, and that was ended.
pub(super) const SERVED_IN_PART: &str = "it may have been carried out in part: look before you repeat it";

/// Why a call is ended before it is done, in the parts of a sentence that names the time it took in their middle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interruption {
    /// The person behind it, or nothing.
    pub(super) by: &'static str,
    /// The end of the sentence.
    pub(super) then: &'static str,
}

impl Interruption {
    const fn of(reason: EndReason) -> Self {
        match reason {
            EndReason::TimeLimit => Self::because(": the time of the run is spent; the call was ended"),
            EndReason::Internal => Self::because(": the run cannot go on; the call was ended"),
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

impl Agent {
    /// Every open call gets its result before anything else is sent (WIRE R4).
    pub(super) fn interrupt_calls(&mut self, reason: EndReason) {
        let why = Interruption::of(reason);
        self.close_open("the turn was ended", why);
        self.close_waiting(&why.sentence(None));
        // The results alone: what the user has said meanwhile waits for a turn that answers it.
        let results = self.take_results();
        self.conversation.answer_calls(results);
    }

    /// Ends every call that has begun, with this for a result.
    pub(super) fn close_open(&mut self, cause: &str, why: Interruption) {
        self.withdraw(cause, &why.sentence(None));
        self.end_open(why, |_| true);
    }

    /// Ends the calls that workers and servers have and that are to end, with this for a result; whether there was one.
    pub(super) fn end_open(&mut self, why: Interruption, ends: impl Fn(&Open) -> bool) -> bool {
        let open = self.calls.all_open().into_iter();
        let open = open.filter_map(|call| Some((call, self.calls.open(call)?.clone())));
        let ended: Vec<_> = open.filter(|(_, open)| ends(open)).collect();
        for (call, open) in &ended {
            self.out.push(Effect::CancelCall(*call));
            if matches!(open, Open::Committing(committing) if committing.after.is_some()) {
                self.out.notice(
                    NoticeCode::NotAdded,
                    "the call was ended: what was approved for the session was not added",
                );
            }
            self.cut_short(*call, open, why);
        }
        !ended.is_empty()
    }

    /// Gives a call that is ended its result: nobody waits for those who have it.
    fn cut_short(&mut self, call: CallId, open: &Open, why: Interruption) {
        let progress = self.calls.take_progress(call);
        let sentence = why.sentence(progress.as_ref());
        let text = match open {
            Open::Committing(_) if self.calls.is_of_user(call) => format!("{sentence}; {SERVED_IN_PART}"),
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
        let text = with_output(text, progress.as_ref(), open.prints());
        let duration_ms = progress.map_or(0, |progress| progress.duration_ms);
        self.close_after(call, CallResult::not_done(ToolCallStatus::Interrupted, text), duration_ms);
    }

    /// Every call has its start and its end in the log, as the model has its result.
    fn close_waiting(&mut self, text: &str) {
        for call in self.calls.all_waiting() {
            if let Some(tool_use) = self.calls.tool_use(call).cloned() {
                self.log_started(call, &tool_use);
            }
            self.close_at_once(call, CallResult::not_done(ToolCallStatus::Interrupted, text));
        }
    }
}
