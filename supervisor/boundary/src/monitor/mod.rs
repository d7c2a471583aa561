//! The boundary: the only place that spawns, reads and verifies confined processes.
//!
//! A [`Spawner`] owns the one thread that forks; a [`Worker`] is one generation of an agent's worker, from its spawn to
//! the end of its last descendant. What comes from a worker is admitted by the table in [`ipc::phase`] or kills it.

mod before;
mod child;
mod orphans;
mod process;
mod refusals;
mod removal;
mod spare;
mod spawn;
mod status;
mod temp;
mod temps;
mod verify;
mod worker;

pub use before::BeforeSpawn;
pub use orphans::{end_orphans, inherit_orphans};
pub use process::{BrokerProcess, Ended};
pub use spawn::{Launch, Launched, Origin, Programs, SpawnError, Spawner, Stdio};
pub use status::StatusPipe;
pub use temp::{PrivateTemp, TempError, remove_stale};
pub use temps::Temps;
pub use verify::{VerifyError, verify_confined};
pub use worker::{CallSender, StartError, Started, Worker, WorkerEvent, WorkerSpec, sandbox_code};
