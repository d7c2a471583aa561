//! Calls that are ended before they are done: by the user, by the end of the run, or by a change of rights.

use ipc::event::{NoticeCode, ToolCallStatus};
use ipc::id::CallId;

use super::calls::{CallResult, Open};
use super::delegation::SUBTREE_ENDED;
use super::{Agent, Effect, EndReason};
use crate::tools::ServedCall;

/// What is true of an approved call that was ended.
pub(super) const IN_PART: &str =
    "it was approved, and may have been carried out in part: look before you repeat it";

/// What is true of a call that the supervisor served itself, and that was ended.
pub(super) const SERVED_IN_PART: &str = "it may have been carried out in part: look before you repeat it";

impl Agent {
    /// Every open call gets its result before anything else is sent (WIRE R4).
    pub(super) fn interrupt_calls(&mut self, reason: EndReason) {
        let text = match reason {
            EndReason::TimeLimit => "interrupted: the time of the run is spent; the call was ended",
            EndReason::Internal => "interrupted: the run cannot go on; the call was ended",
            EndReason::Aborted => {
                "interrupted: the user ended the turn; the call was not carried out to its end"
            }
            _ => "interrupted by the user; the call was ended",
        };
        self.close_open("the turn was ended", text);
        self.close_waiting(text);
        // The results alone: what the user has said meanwhile waits for a turn that answers it.
        let results = self.take_results();
        self.history.push_user(results);
    }

    /// Ends every call that has begun, with this for a result.
    pub(super) fn close_open(&mut self, cause: &str, text: &str) {
        self.withdraw(cause, text);
        self.end_open(text, |_| true);
    }

    /// Ends the calls that workers and servers have and that are to end, with this for a result; whether there was one.
    pub(super) fn end_open(&mut self, text: &str, ends: impl Fn(&Open) -> bool) -> bool {
        let to_end = |call: &CallId| self.calls.open(*call).is_some_and(&ends);
        let ended: Vec<_> = self.calls.all_open().into_iter().filter(to_end).collect();
        for call in &ended {
            let call = *call;
            self.effects.push(Effect::CancelCall(call));
            if matches!(self.calls.open(call), Some(Open::Committing(committing)) if committing.after.is_some())
            {
                self.notice(
                    NoticeCode::NotAdded,
                    "the call was ended: what was approved for the session was not added",
                );
            }
            let result = match self.calls.open(call) {
                Some(Open::Committing(_) | Open::Served(ServedCall::External(_))) => {
                    format!("{text}; {IN_PART}")
                }
                Some(Open::Delegated) => format!("{text}; {SUBTREE_ENDED}"),
                Some(Open::Served(ServedCall::Supervisor(_))) => format!("{text}; {SERVED_IN_PART}"),
                _ => text.to_owned(),
            };
            self.close_at_once(call, CallResult::not_done(ToolCallStatus::Interrupted, result));
        }
        !ended.is_empty()
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
