//! Open calls, wherever they are: waiting, at the worker, a server or a guest, or at a sub-agent to be started.

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
