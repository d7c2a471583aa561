//! Commands that examine a machine, a session or a policy, and the demonstration.

pub(crate) mod audit;
pub mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
