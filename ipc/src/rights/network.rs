//! The network right, and the local addresses that it includes.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::hosts::Hosts;

/// The network right. `Off` permits the least, `On` the most; [`Hosts::covers`] compares the lists of hosts between.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Network {
    /// No socket reaches anything outside the sandbox.
    #[default]
    Off,
    /// Outbound TCP and UDP.
    On,
    /// Outbound TCP to these hosts, by name: `NAME`, `NAME:PORT`, `*.NAME` or `*.NAME:PORT`. The default port is 443.
    Hosts(Hosts),
}

impl Network {
    /// True if programs cannot reach anything outside the sandbox.
    pub const fn is_off(&self) -> bool {
        !self.reaches_out()
    }

    /// True if programs can reach something outside the sandbox.
    pub const fn reaches_out(&self) -> bool {
        match self {
            Self::Off => false,
            Self::Hosts(_) | Self::On => true,
        }
    }

    /// True if programs use the machine's own network. The kernel does not restrict the addresses there.
    pub const fn is_the_machines(&self) -> bool {
        match self {
            Self::Off | Self::Hosts(_) => false,
            Self::On => true,
        }
    }

    /// Returns the list of hosts. `None` if the network is off, or on for all hosts.
    pub const fn hosts(&self) -> Option<&Hosts> {
        match self {
            Self::Off | Self::On => None,
            Self::Hosts(hosts) => Some(hosts),
        }
    }

    /// True if this network right permits everything that `other` permits.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::On, _) | (_, Self::Off) => true,
            (Self::Hosts(own), Self::Hosts(other)) => own.covers(other),
            (Self::Off, Self::Hosts(_) | Self::On) | (Self::Hosts(_), Self::On) => false,
        }
    }

    /// Returns the greatest network right that both rights cover.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::On, net) | (net, Self::On) => net.clone(),
            (Self::Hosts(own), Self::Hosts(other)) => own.meet(other).map_or(Self::Off, Self::Hosts),
            (Self::Off, _) | (_, Self::Off) => Self::Off,
        }
    }

    /// Returns the smallest network right that covers both rights.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Off, net) | (net, Self::Off) => net.clone(),
            (Self::Hosts(own), Self::Hosts(other)) => Self::Hosts(own.join(other)),
            (Self::On, _) | (_, Self::On) => Self::On,
        }
    }

    /// Returns the value of `--net` that stands for this right.
    pub fn flag(&self) -> String {
        match self {
            Self::Off => "off".to_owned(),
            Self::On => "on".to_owned(),
            Self::Hosts(hosts) => hosts.to_string().replace(' ', ","),
        }
    }
}

/// Displays `off`, `on`, or `on for example.org`.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::On => f.write_str("on"),
            Self::Hosts(hosts) => write!(f, "on for {hosts}"),
        }
    }
}

/// Local addresses that need an additional right, because services that listen there trust their clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(clippy::struct_excessive_bools, reason = "each place has to be allowed separately")]
pub struct Reach {
    /// True if this machine's own addresses may be reached, including loopback. Its resolver always may.
    pub host: bool,
    /// True if private networks may be reached. This machine's own addresses in them are not included.
    #[serde(default)]
    pub lan: bool,
    /// True if link-local addresses may be reached.
    pub link_local: bool,
    /// True if the addresses at which clouds give out credentials may be reached.
    pub metadata: bool,
}

impl Reach {
    pub(super) fn join(self, other: Self) -> Self {
        Self {
            host: self.host || other.host,
            lan: self.lan || other.lan,
            link_local: self.link_local || other.link_local,
            metadata: self.metadata || other.metadata,
        }
    }

    pub(super) fn meet(self, other: Self) -> Self {
        Self {
            host: self.host && other.host,
            lan: self.lan && other.lan,
            link_local: self.link_local && other.link_local,
            metadata: self.metadata && other.metadata,
        }
    }
}

/// Displays each included kind of address, as in ` +host`.
impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, lan, link_local, metadata } = *self;
        let places = [(host, "host"), (lan, "lan"), (link_local, "link-local"), (metadata, "metadata")];
        for (within, name) in places {
            if within {
                write!(f, " +{name}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::arbitrary::network;
    use super::*;

    #[test]
    fn a_network_is_written_as_it_is_read() {
        for (json, text, flag) in [
            (r#""off""#, "off", "off"),
            (r#""on""#, "on", "on"),
            (r#"{"hosts":["a:80","*.b"]}"#, "on for a:80 *.b", "a:80,*.b"),
        ] {
            let net: Network = serde_json::from_str(json).unwrap();
            assert_eq!((net.to_string(), net.flag()), (text.to_owned(), flag.to_owned()));
            assert_eq!(serde_json::to_string(&net).unwrap(), json);
            let bytes = crate::codec::encode(&net).unwrap();
            assert_eq!(crate::codec::decode::<Network>(&bytes).unwrap(), net);
        }
        for (json, error) in [
            (r#"{"hosts":[]}"#, "the list of hosts is empty"),
            (r#"{"hosts":["1.2.3.4"]}"#, "an address is not a host name"),
        ] {
            let found = serde_json::from_str::<Network>(json).unwrap_err().to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }

    proptest! {
        #[test]
        fn networks_are_a_lattice(a in network(), b in network(), c in network()) {
            let (met, joined) = (a.meet(&b), a.join(&b));
            prop_assert_eq!((&met, &joined), (&b.meet(&a), &b.join(&a)));
            prop_assert!(a.covers(&met) && b.covers(&met) && joined.covers(&a) && joined.covers(&b));
            prop_assert_eq!(a.covers(&b), met == b);
            prop_assert_eq!(a.meet(&b).meet(&c), a.meet(&b.meet(&c)));
            prop_assert_eq!(a.covers(&c) && b.covers(&c), met.covers(&c));
            prop_assert_eq!(c.covers(&a) && c.covers(&b), c.covers(&joined));
            prop_assert!(Network::On.covers(&a) && a.covers(&Network::Off));
        }
    }
}
