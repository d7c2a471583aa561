//! An agent's worker: its process, its generations, the calls that wait for it, and its published entry.

mod live;
mod machine;
mod patience;

pub(super) use live::LiveEntry;
pub use live::{Live, Lives};
pub use machine::SessionWorker;
pub(super) use machine::{Cancelled, WorkerUpdate};
