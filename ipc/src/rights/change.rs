//! A change of the rights of an agent that lives.

use serde::{Deserialize, Serialize};

use super::lattice::Rights;
use super::network::{Network, Reach};
use crate::path::WirePath;

/// A change of the rights of an agent that lives: its worker is replaced by one with the new rights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "right", rename_all = "snake_case")]
pub enum RightsChange {
    /// The network, and how far it leads.
    Network {
        /// The network's new state.
        net: Network,
        /// Its reach, where it is on; the one that the session's start allowed, where absent.
        #[serde(default)]
        reach: Option<Reach>,
    },
    /// Another tree that may be changed.
    AddWrite {
        /// Its root.
        path: WirePath,
    },
    /// A tree that may no longer be changed.
    RemoveWrite {
        /// Its root.
        path: WirePath,
    },
}

impl Rights {
    /// The rights with this change, and no other.
    #[must_use]
    pub fn with_change(&self, change: &RightsChange) -> Self {
        let mut changed = self.clone();
        match change {
            RightsChange::Network { net, reach } => {
                (changed.net, changed.reach) = (*net, reach.unwrap_or_default());
            }
            RightsChange::AddWrite { path } => changed.write.push(path.clone()),
            RightsChange::RemoveWrite { path } => changed.write.retain(|root| root != path),
        }
        changed.normalised()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::arbitrary::{path, reach, rights};
    use super::super::roots::is_under;
    use super::*;

    proptest! {
        #[test]
        fn a_change_changes_nothing_else(standing in rights(), path in path(), net in any::<bool>(), reach in reach()) {
            let net = if net { Network::On } else { Network::Off };
            let changed = standing.with_change(&RightsChange::Network { net, reach: Some(reach) });
            let expected = Rights { net, reach: changed.reach, ..standing.clone() };
            prop_assert_eq!(&changed, &expected);
            prop_assert_eq!(changed.reach, if net.reaches_out() { reach } else { Reach::default() });
            let added = standing.with_change(&RightsChange::AddWrite { path: path.clone() });
            prop_assert!(added.covers(&standing) && is_under(&path, &added.write));
            let removed = standing.with_change(&RightsChange::RemoveWrite { path: path.clone() });
            prop_assert!(standing.covers(&removed) && !removed.write.contains(&path));
        }
    }
}
