//! The supervisor: the only unconfined process.

pub mod provider;
