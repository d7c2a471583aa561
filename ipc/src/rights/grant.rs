//! Access for one effect in addition to the permanent one.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::lattice::Rights;
use super::network::{Network, Reach};
use super::roots::intersection;
use super::sockets::{all_sockets, common_sockets};
use super::word::Word;
use crate::path::WirePath;

/// Access in addition to the permanent one, for exactly one effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Grant {
    /// Paths of files that may be changed, and of directories with all below them.
    pub write: Vec<WirePath>,
    /// Use of the network: off, on, or only to named hosts.
    pub net: Network,
    /// Local addresses that may be connected to, if the grant turns the network on.
    pub reach: Reach,
    /// Unix sockets of other programs, each with its exact path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<WirePath>,
}

impl Grant {
    /// Returns the access that both grants include. (An answer must not grant more than was requested.)
    #[must_use]
    pub fn meet(&self, asked: &Self) -> Self {
        Self {
            write: intersection(&self.write, &asked.write),
            net: self.net.meet(&asked.net),
            reach: self.reach.meet(asked.reach),
            sockets: common_sockets(&self.sockets, &asked.sockets),
        }
    }

    /// Returns the access that at least one of both grants includes.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        let mut write = [self.write.as_slice(), &other.write].concat();
        write.sort_unstable();
        write.dedup();
        Self {
            write,
            net: self.net.join(&other.net),
            reach: self.reach.join(other.reach),
            sockets: all_sockets(&self.sockets, &other.sockets),
        }
    }

    /// True if the grant adds nothing.
    pub fn is_empty(&self) -> bool {
        self.write.is_empty() && self.net.is_off() && self.sockets.is_empty()
    }
}

/// Displays `write /p/a · net on +host · connect /run/a`.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing more");
        }
        if !self.write.is_empty() {
            f.write_str("write")?;
            self.write.iter().try_for_each(|path| write!(f, " {}", Word(path)))?;
        }
        if self.net.reaches_out() {
            f.write_str(if self.write.is_empty() { "" } else { " · " })?;
            write!(f, "net {}{}", self.net, self.reach)?;
        }
        if !self.sockets.is_empty() {
            let is_first = self.write.is_empty() && self.net.is_off();
            f.write_str(if is_first { "connect" } else { " · connect" })?;
            self.sockets.iter().try_for_each(|path| write!(f, " {}", Word(path)))?;
        }
        Ok(())
    }
}

impl Rights {
    /// Returns this access with the grant. Hidden and protected paths stay hidden and protected.
    #[must_use]
    pub fn with_grant(&self, grant: &Grant) -> Self {
        let mut granted = self.clone();
        granted.write.extend(grant.write.iter().cloned());
        granted.sockets.extend(grant.sockets.iter().cloned());
        if grant.net.reaches_out() {
            granted.net = granted.net.join(&grant.net);
            granted.reach = granted.reach.join(grant.reach);
        }
        granted.normalised()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::arbitrary::{grant, path, rights};
    use super::super::roots::is_under;
    use super::*;

    proptest! {
        #[test]
        fn a_grant_adds_exactly_what_it_says(standing in rights(), grant in grant(), path in path()) {
            let granted = standing.with_grant(&grant);
            prop_assert!(granted.covers(&standing));
            let closed = is_under(&path, &standing.hidden) || is_under(&path, &standing.protected);
            let added = is_under(&path, &grant.write) && !closed;
            prop_assert_eq!(granted.allows_write(&path), standing.allows_write(&path) || added);
            prop_assert_eq!(granted.allows_read(&path), standing.allows_read(&path));
            let socket = grant.sockets.contains(&path);
            prop_assert_eq!(granted.allows_socket(&path), standing.allows_socket(&path) || socket);
            prop_assert_eq!(granted.net.clone(), standing.net.join(&grant.net));
            let on = grant.net.reaches_out();
            prop_assert_eq!(granted.reach, if on { standing.reach.join(grant.reach) } else { standing.reach });
            prop_assert_eq!((granted.exec, granted.limits), (standing.exec, standing.limits));
            prop_assert_eq!((granted.hidden, granted.protected), (standing.hidden, standing.protected));
        }

        #[test]
        fn an_answer_never_gives_more_than_was_asked_for(
            standing in rights(), asked in grant(), answer in grant(),
        ) {
            let given = standing.with_grant(&answer.meet(&asked));
            prop_assert!(standing.with_grant(&asked).covers(&given));
            prop_assert!(standing.with_grant(&answer).covers(&given));
            prop_assert_eq!(standing.with_grant(&Grant::default()), standing.clone());
            let off = |grant: &Grant| if grant.net.reaches_out() { grant.clone() } else { Grant { reach: Reach::default(), ..grant.clone() } };
            let both = off(&asked).join(&off(&answer));
            prop_assert_eq!(standing.with_grant(&both), standing.with_grant(&asked).with_grant(&answer));
        }
    }
}
