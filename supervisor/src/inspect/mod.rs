//! Commands that examine a machine, a session or a policy.

pub(crate) mod audit;
pub(crate) mod doctor;
pub(crate) mod explain;
