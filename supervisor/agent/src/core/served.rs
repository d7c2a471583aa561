//! Calls that no worker serves: handed to the session's server, which answers once, or is given up.

use std::time::Duration;

use gate::tools::ServedCall;
use ipc::id::CallId;
use ipc::image::Image;
use protocol::event::{ObservedBy, ToolCallStatus};

use super::call::CallResult;
use super::calls::Open;
use super::interrupt::{IN_PART, SERVED_IN_PART};
use super::results::Observation;
use super::{Agent, Effect, ServedOutcome};

/// What the model is told of an answer without a word.
const EMPTY: &str = "(the tool answered with nothing)";

impl Agent {
    pub(super) fn serve(&mut self, call: CallId, served: ServedCall) {
        let timeout = Duration::from_millis(self.seen.rights.limits.timeout_ms);
        self.out.push(Effect::Serve { call, served: served.clone(), timeout });
        self.calls.open_as(call, Open::Served(served));
    }

    pub(super) fn on_served(&mut self, call: CallId, outcome: ServedOutcome, duration_ms: u64) {
        let served = match self.calls.open(call) {
            Some(Open::Served(served)) => served,
            Some(Open::WritingPlan(draft)) => return self.on_plan_in_file(call, *draft.clone(), outcome),
            Some(Open::Looking(claim)) => return self.on_looked(*claim.clone(), outcome),
            _ => return,
        };
        let (by, in_part) = match served {
            ServedCall::Supervisor(_) | ServedCall::Fetch(_) => (ObservedBy::Supervisor, SERVED_IN_PART),
            ServedCall::External(_) => (ObservedBy::Server, IN_PART),
        };
        let (result, by) = match outcome {
            ServedOutcome::Answered(text) => (answered(text), by),
            ServedOutcome::Pictured(text, images) => (self.pictured(text, images), by),
            ServedOutcome::Failed(text) => (CallResult::not_done(ToolCallStatus::Failed, text), by),
            ServedOutcome::Unserved(why) => {
                let text = format!("the call was not carried out: {why}");
                (CallResult::not_done(ToolCallStatus::Failed, text), ObservedBy::Supervisor)
            }
            ServedOutcome::Late(after) => {
                let text = format!("interrupted: the tool did not answer within {after:?}; {in_part}");
                (CallResult::not_done(ToolCallStatus::Interrupted, text), ObservedBy::Supervisor)
            }
        };
        self.finish_call(call, result, Observation { duration_ms, by });
        self.go_on();
    }

    /// Shows as many of the pictures as the conversation has room for.
    fn pictured(&mut self, text: String, images: Vec<Image>) -> CallResult {
        let (images, left_out) = self.conversation.admit(images);
        let text = left_out.into_iter().fold(text, |text, cause| format!("{text}\n({cause})"));
        CallResult { images, ..answered(text) }
    }
}

fn answered(text: String) -> CallResult {
    CallResult::answered(if text.is_empty() { EMPTY.to_owned() } else { text })
}
