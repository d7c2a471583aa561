//! The supervisor: the only unconfined process.

pub mod core;
pub mod directories;
pub mod gate;
pub mod monitor;
pub mod policy;
pub mod prompt;
pub mod provider;
pub mod secrets;
pub mod session;
pub mod tools;
