//! Calls under way, wherever they are: held, at the worker, at a server, at a guest, or at a sub-agent that is not approved on the disk yet.

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
