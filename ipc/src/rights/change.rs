use serde::{Deserialize, Serialize};

use super::hosts::Hosts;
use super::lattice::Rights;
use super::network::{Network, Reach};
use crate::path::WirePath;

/// A change of the access of a running agent. A new worker with the new access replaces the agent's worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "right", rename_all = "snake_case")]
pub enum RightsChange {
    /// Changes network access.
    Network {
        /// The new network access.
        net: Network,
        /// Local addresses that may be connected to if the network is on; if absent, those at the start of the session.
        #[serde(default)]
        reach: Option<Reach>,
    },
    /// Adds hosts to those that may be reached.
    AddHosts {
        /// The hosts to add to those that can be reached.
        hosts: Hosts,
        /// Local addresses that may be connected to. If absent: the present ones or, if the network is off, those at
        /// the start of the session.
        #[serde(default)]
        reach: Option<Reach>,
    },
    /// Adds a writable directory.
    AddWrite {
        /// Root of the writable tree.
        path: WirePath,
    },
    /// Adds a unix socket of the host.
    AddSocket {
        /// Path of the socket on the host.
        path: WirePath,
    },
    /// Removes a unix socket of the host.
    RemoveSocket {
        /// Path of the socket on the host.
        path: WirePath,
    },
    /// Removes a writable directory.
    RemoveWrite {
        /// Root of the writable tree.
        path: WirePath,
    },
}

impl RightsChange {
    /// Returns the network access to which this change limits earlier approvals; `None` if it does not limit them.
    pub const fn network_bound(&self) -> Option<&Network> {
        match self {
            Self::Network { net: net @ (Network::Off | Network::Hosts(_)), .. } => Some(net),
            Self::Network { net: Network::On, .. }
            | Self::AddHosts { .. }
            | Self::AddWrite { .. }
            | Self::AddSocket { .. }
            | Self::RemoveSocket { .. }
            | Self::RemoveWrite { .. } => None,
        }
    }
}

impl Rights {
    /// Returns this access with the change.
    #[must_use]
    pub fn with_change(&self, change: &RightsChange) -> Self {
        let mut changed = self.clone();
        match change {
            RightsChange::Network { net, reach } => {
                (changed.net, changed.reach) = (net.clone(), reach.unwrap_or_default());
            }
            RightsChange::AddHosts { hosts, reach } => {
                changed.net = changed.net.join(&Network::Hosts(hosts.clone()));
                changed.reach = reach.unwrap_or(changed.reach);
            }
            RightsChange::AddWrite { path } => changed.write.push(path.clone()),
            RightsChange::AddSocket { path } => changed.sockets.push(path.clone()),
            RightsChange::RemoveSocket { path } => changed.sockets.retain(|socket| socket != path),
            RightsChange::RemoveWrite { path } => changed.write.retain(|root| root != path),
        }
        changed.normalised()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::arbitrary::{hosts, network, path, reach, rights};
    use super::super::roots::is_under;
    use super::*;

    proptest! {
        #[test]
        fn a_change_changes_nothing_else(standing in rights(), path in path(), net in network(), hosts in hosts(), reach in reach()) {
            let changed = standing.with_change(&RightsChange::Network { net: net.clone(), reach: Some(reach) });
            let expected = Rights { net: net.clone(), reach: changed.reach, ..standing.clone() };
            prop_assert_eq!(&changed, &expected);
            prop_assert_eq!(changed.reach, if net.reaches_out() { reach } else { Reach::default() });
            let added = standing.with_change(&RightsChange::AddWrite { path: path.clone() });
            prop_assert!(added.covers(&standing) && is_under(&path, &added.write));
            let more = standing.with_change(&RightsChange::AddHosts { hosts: hosts.clone(), reach: None });
            prop_assert!(more.covers(&standing) && more.net.covers(&Network::Hosts(hosts)));
            prop_assert_eq!((more.net.clone(), more.reach), (more.net.join(&standing.net), standing.reach));
            let removed = standing.with_change(&RightsChange::RemoveWrite { path: path.clone() });
            prop_assert!(standing.covers(&removed) && !removed.write.contains(&path));
            let reached = standing.with_change(&RightsChange::AddSocket { path: path.clone() });
            prop_assert!(reached.covers(&standing) && reached.sockets.contains(&path));
            prop_assert_eq!(Rights { sockets: standing.sockets.clone(), ..reached }, standing.clone());
            let left = standing.with_change(&RightsChange::RemoveSocket { path: path.clone() });
            prop_assert!(standing.covers(&left) && !left.sockets.contains(&path));
            prop_assert_eq!(Rights { sockets: standing.sockets.clone(), ..left }, standing);
        }
    }
}
