//! Answers that have to fit a schema: the last reply of a task is checked, and requested again if it does not fit.

use std::fmt::Debug;

use serde_json::Value;

/// The check of an answer against a schema.
pub trait AnswerCheck: Debug + Send + Sync {
    /// The requirement for the answer, for the model.
    fn demand(&self) -> &str;
    /// The error has one line for each fault.
    fn check(&self, reply: &str) -> Result<Value, String>;
}
