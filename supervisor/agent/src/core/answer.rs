//! Answers that have to fit a schema: the last reply of a task is checked, and asked for once more where it does not fit.

use std::fmt::Debug;

use protocol::event::NoticeCode;
use serde_json::Value;

use super::{Agent, EndReason};

/// The most replies in a row that may fail to fit.
const MAX_MISFITS: u32 = 1;

/// The check of an answer against a schema.
pub trait AnswerCheck: Debug + Send + Sync {
    /// The demand on the answer, for the model.
    fn demand(&self) -> &str;
    /// Returns the value that a reply is, or one line for each fault of it.
    fn check(&self, reply: &str) -> Result<Value, String>;
}

impl Agent {
    /// True if a reply is an answer that fits.
    pub(super) fn is_answer(&self, reply: &str) -> bool {
        self.config.answer.as_ref().is_some_and(|answer| answer.check(reply).is_ok())
    }

    /// Checks the last words of a turn. If they do not fit, the model is asked once more, or the run ends: then it returns true.
    pub(super) fn asks_for_another_answer(&mut self) -> bool {
        let Some(answer) = self.config.answer.as_ref().filter(|_| !self.run.is_own_command) else {
            return false;
        };
        let faults = match answer.check(&self.run.text) {
            Ok(value) => {
                self.run.output = Some(value);
                return false;
            }
            Err(faults) => faults,
        };
        let first = faults.lines().next().unwrap_or_default();
        if self.run.misfits >= MAX_MISFITS {
            let message = format!("the answer does not fit the schema, also on the second try: {first}");
            self.finish(EndReason::SchemaUnmet, Some(message));
            return true;
        }
        self.run.misfits = self.run.misfits.saturating_add(1);
        let message = format!("the answer does not fit the schema: {first}; the model is asked once more");
        self.out.notice(NoticeCode::AnswerMisfit, &message);
        self.conversation.note(format!(
            "Your answer does not fit the JSON Schema that it has to fit:\n{faults}\nReply with the whole JSON value \
             once more, corrected, and with nothing else."
        ));
        self.begin_step();
        true
    }
}
