//! The tool host: the process that acts for one agent, under a ruleset that it cannot change.
//!
//! A worker reads [`ipc::message::ToWorker`] and answers [`ipc::message::ToSupervisor`]; it asks for nothing.
//! `sandbox-exec` fixed its rights before its first instruction, so nothing here judges a path: the tools
//! make the system call and report the kernel's answer.
//!
//! * [`serve`]: the message loop; [`schedule`]: the order of calls, as plain data.
//! * [`assignment`]: the content of `Hello`; [`open_call`]: a tool's side of one open call.
//! * [`fault`]: failures, worded so that the model can act on them and the supervisor can judge them.
//! * [`tools`]: the six tools, snapshots, and the commit of effects.

#![forbid(unsafe_code)]

pub mod assignment;
pub mod fault;
pub mod open_call;
pub mod schedule;
pub mod serve;
pub mod tools;
