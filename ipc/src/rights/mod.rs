//! Access of an agent: a lattice of plain data.
//!
//! [`Rights::meet`] returns the access that two agents share, [`Rights::covers`] compares two accesses: `a.covers(&b)`
//! holds exactly if `a.meet(&b)` is `b`. Paths are absolute and canonical; callers resolve them first. This module does
//! not access a file system.

#[cfg(test)]
mod arbitrary;
mod change;
mod execution;
mod grant;
mod hosts;
mod lattice;
mod network;
mod roots;
mod sockets;
mod summary;
mod word;

pub use change::RightsChange;
pub use execution::{Execution, Limits};
pub use grant::Grant;
pub use hosts::{HostError, HostName, HostRule, Hosts, MAX_RULES};
pub use lattice::Rights;
pub use network::{Network, Reach};
pub use summary::{NamedPlaces, NamedRoot, RightsSummary};
pub use word::Word;
