//! The access of a session that starts without any flags.

use std::path::Path;

use boundary::policy::Policy;
use gate::ApprovalMode;
use ipc::rights::{Limits, Network, Reach};

use crate::world::World;

/// Returns the policy for a test's directories: no network, no hidden or protected paths, and only the write roots of
/// the mode.
pub fn policy(world: &World, temp: &Path, mode: ApprovalMode) -> Policy {
    Policy {
        sockets: Vec::new(),
        project: (&world.project()).into(),
        temp: temp.into(),
        mode,
        net: Network::Off,
        reach: Reach::default(),
        write: Vec::new(),
        auto: Vec::new(),
        hidden: Vec::new(),
        protected: Vec::new(),
        limits: Limits::default(),
    }
}

/// Returns the line of text for rights that are given as JSON (a `RightsSummary`).
pub fn line_of(rights: &serde_json::Value) -> String {
    let rights: ipc::rights::RightsSummary =
        serde_json::from_value(rights.clone()).expect("rights as a value");
    rights.to_string()
}
