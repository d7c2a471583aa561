//! The access of an agent, and the comparison of two accesses.

use serde::{Deserialize, Serialize};

use super::execution::{Execution, Limits};
use super::network::{Network, Reach};
use super::roots::{intersection, is_under, roots, union, within};
use super::sockets::{common_sockets, sorted_sockets};
use crate::path::WirePath;

/// Access of an agent. Values that [`Rights::normalised`] or [`Rights::meet`] has returned are equal if they permit the
/// same. The default permits nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rights {
    /// Directories that may be read and executed, with all below them.
    pub read: Vec<WirePath>,
    /// Paths in the readable directories that cannot be read.
    pub hidden: Vec<WirePath>,
    /// Directories and files that may also be changed, created and removed.
    pub write: Vec<WirePath>,
    /// Files in the writable directories that must not change, since programs outside the sandbox execute them later.
    pub protected: Vec<WirePath>,
    /// Use of the network: off, on, or only to named hosts.
    pub net: Network,
    /// Local addresses that may be connected to if the network is on.
    pub reach: Reach,
    /// Unix sockets of other programs that may be reached, each with its exact path.
    #[serde(default)]
    pub sockets: Vec<WirePath>,
    /// The right to run commands.
    pub exec: Execution,
    /// Limits of one tool call.
    pub limits: Limits,
}

impl Rights {
    /// Returns the canonical form: each list is sorted, without paths below another; without network there is no reach.
    #[must_use]
    pub fn normalised(self) -> Self {
        Self {
            read: roots(self.read),
            hidden: roots(self.hidden),
            write: roots(self.write),
            protected: roots(self.protected),
            sockets: sorted_sockets(self.sockets),
            reach: if self.net.reaches_out() { self.reach } else { Reach::default() },
            ..self
        }
    }

    /// Returns the greatest access that both values cover.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        Self {
            read: intersection(&self.read, &other.read),
            hidden: union(&self.hidden, &other.hidden),
            write: intersection(&self.write, &other.write),
            protected: union(&self.protected, &other.protected),
            net: self.net.meet(&other.net),
            reach: self.reach.meet(other.reach),
            sockets: common_sockets(&self.sockets, &other.sockets),
            exec: self.exec.min(other.exec),
            limits: self.limits.meet(other.limits),
        }
    }

    /// True if this access permits everything that `other` permits.
    pub fn covers(&self, other: &Self) -> bool {
        within(&other.read, &self.read)
            && within(&self.hidden, &other.hidden)
            && within(&other.write, &self.write)
            && within(&self.protected, &other.protected)
            && self.net.covers(&other.net)
            && other.sockets.iter().all(|socket| self.sockets.contains(socket))
            && other.reach.meet(self.reach) == other.reach
            && other.exec <= self.exec
            && other.limits.meet(self.limits) == other.limits
    }

    /// True if the contents of `path` may be read.
    pub fn allows_read(&self, path: &WirePath) -> bool {
        is_under(path, &self.read) && !is_under(path, &self.hidden)
    }

    /// True if the unix socket of another program at `path` may be reached.
    pub fn allows_socket(&self, path: &WirePath) -> bool {
        self.sockets.contains(path)
    }

    /// True if `path` may be changed.
    pub fn allows_write(&self, path: &WirePath) -> bool {
        is_under(path, &self.write) && !is_under(path, &self.hidden) && !is_under(path, &self.protected)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::arbitrary::{path, rights};
    use super::*;

    proptest! {
        #[test]
        fn meet_is_idempotent_commutative_and_associative(a in rights(), b in rights(), c in rights()) {
            prop_assert_eq!(a.meet(&a), a.clone());
            prop_assert_eq!(a.meet(&b), b.meet(&a));
            prop_assert_eq!(a.meet(&b).meet(&c), a.meet(&b.meet(&c)));
        }

        #[test]
        fn covers_is_the_order_of_meet(a in rights(), b in rights()) {
            prop_assert!(a.covers(&a.meet(&b)));
            prop_assert_eq!(a.covers(&b), a.meet(&b) == b);
        }

        #[test]
        fn attenuated_rights_allow_nothing_new(a in rights(), b in rights(), path in path()) {
            let met = a.meet(&b);
            prop_assert!(!met.allows_read(&path) || a.allows_read(&path) && b.allows_read(&path));
            prop_assert!(!met.allows_write(&path) || a.allows_write(&path) && b.allows_write(&path));
            prop_assert!(!met.allows_socket(&path) || a.allows_socket(&path) && b.allows_socket(&path));
        }

        #[test]
        fn a_socket_opens_nothing_beside_or_below_it(rights in rights(), path in path()) {
            let named = rights.sockets.contains(&path);
            prop_assert_eq!(rights.allows_socket(&path), named);
            let asked = Rights { sockets: vec![path], limits: rights.limits, ..Rights::default() };
            prop_assert_eq!(rights.meet(&asked).sockets == asked.sockets, named);
        }

        #[test]
        fn a_childs_rights_never_exceed_its_parents(
            root in rights(), asked in proptest::collection::vec(rights(), 0..8), path in path(),
        ) {
            let mut line = vec![root];
            for asked in asked {
                let parent = &line[line.len() - 1];
                let child = parent.meet(&asked);
                prop_assert!(parent.covers(&child) && asked.covers(&child));
                line.push(child);
            }
            let last = &line[line.len() - 1];
            for ancestor in &line {
                prop_assert!(ancestor.covers(last));
                prop_assert!(!last.allows_read(&path) || ancestor.allows_read(&path));
                prop_assert!(!last.allows_write(&path) || ancestor.allows_write(&path));
                prop_assert!(!last.allows_socket(&path) || ancestor.allows_socket(&path));
                prop_assert!(ancestor.net.covers(&last.net));
            }
        }
    }
}
