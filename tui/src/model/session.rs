//! What is true of an agent now.

use ipc::approval::{ApprovalMode, SessionGrant};
use ipc::confinement::Tier;
use ipc::event::Account;
use ipc::rights::Network;

use crate::start::Start;

/// What is true of an agent now.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub mode: ApprovalMode,
    pub net: Network,
    pub rights: String,
    /// Absent while no worker has started.
    pub tier: Option<Tier>,
    pub model: String,
    /// What was asked of the core, and has not happened.
    pub pending: Option<Pending>,
    pub grants: Vec<SessionGrant>,
    /// What all its turns came to.
    pub account: Account,
}

/// What was asked of the core, and has not happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// The old worker is drained, and replaced by one with the network so.
    Net(Network),
    /// The approval mode changes, and the rights with it.
    Mode(ApprovalMode),
}

impl Session {
    pub(crate) fn new(start: &Start) -> Self {
        Self {
            mode: start.mode,
            net: start.net,
            rights: start.rights.clone(),
            tier: start.tier,
            model: start.model.clone(),
            pending: None,
            grants: Vec::new(),
            account: Account::default(),
        }
    }

    /// Other rights are in force: a worker that was verified has them.
    pub(crate) fn set_rights(&mut self, rights: &str) {
        rights.clone_into(&mut self.rights);
        // The line is the supervisor's own; its part about the network is the last but one at most.
        let on = rights.split(" · ").any(|part| part == "net on" || part.starts_with("net on +"));
        self.net = if on { Network::On } else { Network::Off };
    }
}
