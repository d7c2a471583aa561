//! The turn of an agent: its requests, their replies, and its end.
//!
//! [`Turn`] decides when the model is asked, what follows a reply or a failure, and when the run has spent what it may.
//! It knows no history and no call: what it asks with and what it echoes pass as values.

mod account;
mod answer;
mod failures;
mod loops;
mod machine;
mod replies;
mod reply;
mod written_call;

pub use answer::AnswerCheck;
pub(in crate::core) use failures::{Failed, lost};
pub(in crate::core) use loops::Course;
pub(in crate::core) use machine::{Stopped, Turn, TurnSettings, fixed_prompt};
pub(in crate::core) use replies::{Replied, TurnEnd};

#[cfg(test)]
mod tests;
