//! What a session has from its beginning, where no flag says otherwise.

use std::path::Path;

use boundary::policy::Policy;
use gate::ApprovalMode;
use ipc::rights::{Limits, Network, Reach};

use crate::world::World;

/// The policy in a world: the network off, nothing hidden, nothing protected, no write root but what the mode has.
pub fn policy(world: &World, temp: &Path, mode: ApprovalMode) -> Policy {
    Policy {
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

/// The line of rights that are in JSON.
pub fn line_of(rights: &serde_json::Value) -> String {
    let rights: ipc::rights::RightsSummary =
        serde_json::from_value(rights.clone()).expect("rights as a value");
    rights.to_string()
}
