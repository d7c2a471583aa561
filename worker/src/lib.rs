//! The tool host: the process that acts for one agent, under a ruleset that it cannot change.
//!
//! A worker reads [`ipc::message::ToWorker`] and answers [`ipc::message::ToSupervisor`]; it asks for nothing. What it may
//! do was fixed by `sandbox-exec` before its first instruction, so nothing here judges a path: the tools make the system
//! call and report what the kernel said.
//!
//! * [`serve`]: the message loop; [`schedule`]: which call may start when, as plain data.
//! * [`assignment`]: what `Hello` said; [`open_call`]: a tool's side of one open call.
//! * [`fault`]: failures, told so that the model can act on them and the supervisor can judge them.
//! * [`tools`]: the six tools, snapshots, and the commit of effects.

#![forbid(unsafe_code)]

pub mod assignment;
pub mod fault;
pub mod open_call;
pub mod schedule;
pub mod serve;
pub mod tools;
