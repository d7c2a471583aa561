//! Library of the worker: the process that serves one agent's tool calls, under a sandbox that it cannot change.
//!
//! A worker reads [`ipc::message::ToWorker`] and answers with [`ipc::message::ToSupervisor`]. Nothing here checks a
//! path: the tools make the system call and report the kernel's answer.
//!
//! [`gateway`], [`fetch`] and [`mcp`] are other roles of the same program. They serve no tool calls.

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
