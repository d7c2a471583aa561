use ipc::path::WirePath;
use ipc::rights::{Network, Reach, Rights};
use ipc::text::hexadecimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Access of programs that use a cache: network, sockets, and writable directories, except those private to one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    write: Vec<WirePath>,
    net: Network,
    reach: Reach,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sockets: Vec<WirePath>,
    approved: bool,
}

impl Level {
    /// Returns the level for `rights`, which must not include directories that are private to one agent.
    pub fn of(rights: Rights, approved: bool) -> Self {
        let Rights { write, net, reach, sockets, .. } = rights.normalised();
        Self { write, net, reach, sockets, approved }
    }

    pub fn covers(&self, other: &Self) -> bool {
        self.approved >= other.approved && self.rights().covers(&other.rights())
    }

    /// True for the level with the least access: every other level covers it.
    pub fn is_lowest(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the name of the directory for this level. It is readable, and unique to the level.
    pub fn name(&self) -> String {
        let Self { write, net, reach, sockets, approved } = self;
        let mut digest = Sha256::new();
        for root in write {
            digest.update(root.as_bytes());
            digest.update([0]);
        }
        digest.update(format!("{net:?} {reach:?} {approved}"));
        for socket in sockets {
            digest.update([0]);
            digest.update(socket.as_bytes());
        }
        let digest = hexadecimal(&digest.finalize()[..6]);
        let approved = if *approved { "approved" } else { "unasked" };
        let net = if net.reaches_out() { "online" } else { "offline" };
        format!("{approved}-{net}-{digest}")
    }

    fn rights(&self) -> Rights {
        let (write, net, sockets) = (self.write.clone(), self.net.clone(), self.sockets.clone());
        Rights { write, net, reach: self.reach, sockets, ..Rights::default() }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use super::*;

    pub(in crate::policy::levels) fn level(write: &[&str], net: Network, approved: bool) -> Level {
        let write = write.iter().map(|path| WirePath::from(*path)).collect();
        Level::of(Rights { write, net, ..Rights::default() }, approved)
    }

    pub(in crate::policy::levels) fn levels() -> Vec<Level> {
        let roots: [&[&str]; 5] = [&[], &["/p"], &["/p/src"], &["/p", "/w"], &["/w"]];
        let of_roots = |roots| {
            [(Network::Off, false), (Network::On, false), (Network::Off, true), (Network::On, true)]
                .map(|(net, approved)| level(roots, net, approved))
        };
        roots.into_iter().flat_map(of_roots).collect()
    }

    #[test]
    fn levels_are_ordered_by_every_right() {
        let covers = |above: (&[&str], Network, bool), below: (&[&str], Network, bool)| {
            level(above.0, above.1, above.2).covers(&level(below.0, below.1, below.2))
        };
        let (off, on) = (|| Network::Off, || Network::On);
        assert!(covers((&["/p"], on(), true), (&["/p"], off(), false)));
        assert!(covers((&["/p"], off(), true), (&["/p/src"], off(), true)));
        assert!(!covers((&["/p"], off(), true), (&["/p"], on(), false)), "the network");
        assert!(!covers((&["/p"], on(), false), (&["/p"], off(), true)), "nobody approved it");
        assert!(!covers((&[], on(), true), (&["/p"], off(), false)), "the project");
        assert!(!covers((&["/p"], on(), true), (&["/p", "/w"], off(), false)), "another root");
    }

    #[test]
    fn one_level_is_below_all_and_each_has_a_name_of_its_own() {
        let levels = levels();
        let lowest: Vec<_> = levels.iter().filter(|level| level.is_lowest()).collect();
        assert_eq!(lowest, [&Level::default()]);
        assert!(levels.iter().all(|level| level.covers(lowest[0])));
        assert_eq!(levels.iter().map(Level::name).collect::<BTreeSet<_>>().len(), levels.len());
        assert!(level(&["/p"], Network::On, true).name().starts_with("approved-online-"));
    }

    #[test]
    fn a_socket_is_a_right_of_its_level() {
        let with = |sockets: &[&str]| {
            let sockets = sockets.iter().map(WirePath::from).collect();
            Level::of(Rights { sockets, ..Rights::default() }, false)
        };
        let (none, one, other) = (with(&[]), with(&["/run/a"]), with(&["/run/b"]));
        assert!(none.is_lowest() && one.covers(&none) && !none.covers(&one) && !one.covers(&other));
        assert_eq!([&none, &one, &other].map(Level::name).into_iter().collect::<BTreeSet<_>>().len(), 3);
    }

    #[test]
    fn reach_without_a_network_is_no_right() {
        let reach = Reach { host: true, ..Reach::default() };
        let of = |net| Level::of(Rights { net, reach, ..Rights::default() }, false);
        assert!(of(Network::Off).is_lowest());
        assert!(!level(&[], Network::On, false).covers(&of(Network::On)));
    }
}
