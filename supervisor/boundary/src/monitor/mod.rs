//! Starts, reads and verifies confined processes.
//!
//! A [`Worker`] executes tool calls of an agent; its generation is its number among the agent's workers. The table in
//! [`ipc::phase`] lists the messages that a worker may send; any other message ends the worker. A [`Guest`]
//! executes no tool calls.

mod before;
mod child;
mod fetch;
mod gateway;
mod guest;
mod guest_log;
mod host_questions;
mod host_uses;
mod mcp;
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
pub use fetch::{FetchEnd, FetchKind, FetchSpec, fetch};
pub use gateway::{Gateway, GatewayError, LaunchedGateway, gateway_confinement};
pub use guest::{Guest, GuestError, GuestEvent, GuestKind, GuestSpec};
pub use guest_log::{GuestLog, GuestNews, GuestOwner, LoggedGuest, StartedGuest};
pub use host_questions::{HostAnswers, HostQuestion, HostQuestions};
pub use host_uses::HostUses;
pub use mcp::{
    McpEnd, McpEnded, McpEvent, McpKind, McpOrderError, McpServerProcess, McpServerSpec, McpViolation,
};
pub use orphans::{end_orphans, inherit_orphans};
pub use process::{BrokerProcess, Ended};
pub use spawn::{Launch, Launched, Origin, Programs, SpawnError, Spawner, Stdio};
pub use status::StatusPipe;
pub use temp::{PrivateTemp, TempError, remove_stale};
pub use temps::Temps;
pub use verify::{VerifyError, verify_confined};
pub use worker::{CallSender, StartError, Started, Worker, WorkerEvent, WorkerSpec, sandbox_code};
