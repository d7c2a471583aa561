//! Answers that have to fit a schema: the last reply of a task is checked, and asked for once more where it does not
//! fit.

use std::fmt::Debug;

use serde_json::Value;

/// The check of an answer against a schema.
pub trait AnswerCheck: Debug + Send + Sync {
    /// The demand on the answer, for the model.
    fn demand(&self) -> &str;
    /// Returns the value that a reply is, or one line for each fault of it.
    fn check(&self, reply: &str) -> Result<Value, String>;
}
