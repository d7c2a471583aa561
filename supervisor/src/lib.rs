//! The supervisor: the only unconfined process.

pub mod directories;
pub mod monitor;
pub mod policy;
pub mod provider;
pub mod secrets;
