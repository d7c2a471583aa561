//! A call that waits for an answer: its caller, its arguments, and the threads that perform it.

pub(super) mod address;
pub(super) mod caller;
pub(super) mod control;
pub(super) mod listener;
pub(super) mod memory;
pub(super) mod message;
pub(super) mod socket;
pub(super) mod threads;
pub(super) mod waiting;
