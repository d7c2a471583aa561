//! The state machine against recorded sequences.

mod any_input;
mod calls;
mod limits;
mod replies;
mod script;
mod stops;
