//! The turn of an agent: its requests, their replies, and its end.
//!
//! [`Turn`] decides when a request is sent to the model, what follows a reply or a failure, and when the run's limits
//! are reached. It depends on neither history nor calls.

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
