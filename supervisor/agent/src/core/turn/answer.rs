//! Checks the last reply of a task against a schema. A reply that does not fit is requested again.

use std::fmt::Debug;

use serde_json::Value;

/// A schema for answers.
pub trait AnswerCheck: Debug + Send + Sync {
    /// Returns the text that tells the model the schema.
    fn demand(&self) -> &str;
    /// Parses a reply. An `Err` has one line for each fault.
    fn check(&self, reply: &str) -> Result<Value, String>;
}
