//! Open calls in all their states: waiting, at the worker, at a server or a guest, or about to start a sub-agent.

mod machine;
mod pages;
mod preparations;
mod progress;
mod served;
mod server_questions;
mod write_queue;

pub(super) use machine::{CallPlace, CallUpdate, OpenCalls, take_back};
pub use served::{Caller, ServedAnswer, ToolServer};
pub(super) use write_queue::Held;
