//! The calls of an agent: each call begins, may need an approval, is carried out, and gets exactly one result.
//!
//! [`Calls`] judges calls by the access in [`Bounds`] and does not change that access. If an approval gives more
//! access, the change is returned as a value.

mod account;
mod answered;
mod asked;
mod beside;
mod changes;
mod declined;
mod ended;
mod forms;
mod hosts;
mod interruption;
mod machine;
mod outcome;
mod planning;
mod plans;
mod slots;

pub use account::account_of;
pub(in crate::core) use ended::{CallEnd, Pictures};
pub(in crate::core) use machine::{After, Begun, Bounds, Calls, Charter};

#[cfg(test)]
mod tests;
