//! An agent's worker: its process in all generations, calls that wait for it, and its published state.

mod live;
mod machine;
mod patience;

pub(super) use live::LiveEntry;
pub use live::{Live, Lives};
pub use machine::SessionWorker;
pub(super) use machine::{Cancelled, WorkerUpdate};
