//! Library of the worker: the process that serves one agent's tool calls, under a sandbox that it cannot change.
//!
//! A worker reads [`ipc::message::ToWorker`] and answers with [`ipc::message::ToSupervisor`]. `sandbox-exec` restricts the
//! process before it starts. Therefore nothing here checks a path: the tools make the system call and report the kernel's answer.
//!
//! * [`serve`]: the message loop; [`schedule`]: the order in which calls start.
//! * [`assignment`]: the facts that a worker gets about its agent; [`open_call`]: messages and cancellation of one call.
//! * [`fault`]: errors with a remedy for the model and the failed system call for the supervisor.
//! * [`gateway`] and [`fetch`]: the other roles of the program, which connect to hosts and carry out no call.
//! * [`tools`]: the six tools, snapshots of the project, and writing of approved changes.

#![forbid(unsafe_code)]

pub mod assignment;
pub mod fault;
pub mod fetch;
pub mod gateway;
pub mod mcp;
pub mod open_call;
pub mod schedule;
pub mod serve;
pub mod tools;
