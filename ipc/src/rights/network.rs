//! The network right, and how far it leads.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::word::Word;

/// The network right. On the wire it is a [`NetworkState`], of which some hosts alone are refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "NetworkState", into = "NetworkState")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Network {
    /// No socket reaches anything outside the sandbox.
    #[default]
    Off,
    /// Outbound TCP and UDP.
    On,
}

impl Network {
    /// True if nothing outside the sandbox is reached.
    pub const fn is_off(self) -> bool {
        !self.reaches_out()
    }

    /// True if something outside the sandbox is reached.
    pub const fn reaches_out(self) -> bool {
        match self {
            Self::Off => false,
            Self::On => true,
        }
    }

    /// True if programs are given the machine's own network, and the kernel tells no addresses apart.
    pub const fn is_the_machines(self) -> bool {
        match self {
            Self::Off => false,
            Self::On => true,
        }
    }

    /// The word of the flag and of the settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
        }
    }
}

/// The network as events, logs and front ends have it. Some hosts alone are a state of the protocol that no rights have yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NetworkState {
    /// No socket reaches anything outside the sandbox.
    #[default]
    Off,
    /// Outbound TCP and UDP.
    On,
    /// These hosts alone, as `NAME` or `NAME:PORT`.
    Hosts(Vec<String>),
}

impl NetworkState {
    /// True if nothing outside the sandbox is reached.
    pub const fn is_off(&self) -> bool {
        match self {
            Self::Off => true,
            Self::On | Self::Hosts(_) => false,
        }
    }

    /// The least right that covers it.
    pub const fn covered_by(&self) -> Network {
        match self {
            Self::Off => Network::Off,
            Self::On | Self::Hosts(_) => Network::On,
        }
    }
}

impl From<Network> for NetworkState {
    fn from(net: Network) -> Self {
        match net {
            Network::Off => Self::Off,
            Network::On => Self::On,
        }
    }
}

/// A network that no rights can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a network for some hosts alone is not supported: expected \"off\" or \"on\"")]
pub struct HostsUnsupported;

impl TryFrom<NetworkState> for Network {
    type Error = HostsUnsupported;

    fn try_from(net: NetworkState) -> Result<Self, HostsUnsupported> {
        match net {
            NetworkState::Off => Ok(Self::Off),
            NetworkState::On => Ok(Self::On),
            NetworkState::Hosts(_) => Err(HostsUnsupported),
        }
    }
}

/// `off`, `on`, or `on for example.org`.
impl fmt::Display for NetworkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::On => f.write_str("on"),
            Self::Hosts(hosts) => {
                f.write_str("on for")?;
                hosts.iter().try_for_each(|host| write!(f, " {}", Word(&host.into())))
            }
        }
    }
}

/// Addresses that need a right besides the network: a service that listens there trusts its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(clippy::struct_excessive_bools, reason = "each place is a right of its own")]
pub struct Reach {
    /// This machine's own addresses, loopback among them. The resolver of the machine is always within reach.
    pub host: bool,
    /// Private networks, but for this machine's own addresses in them.
    #[serde(default)]
    pub lan: bool,
    /// Link-local addresses.
    pub link_local: bool,
    /// The addresses at which clouds hand out credentials.
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

/// Each place within reach, as ` +host`.
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
    use super::*;

    #[test]
    fn no_right_is_for_some_hosts_alone() {
        for net in [Network::Off, Network::On] {
            assert_eq!(Network::try_from(NetworkState::from(net)), Ok(net));
            assert_eq!(
                serde_json::to_value(net).unwrap(),
                serde_json::to_value(NetworkState::from(net)).unwrap()
            );
        }
        let hosts = r#"{"hosts":["example.org:443"]}"#;
        let error = serde_json::from_str::<Network>(hosts).unwrap_err().to_string();
        assert_eq!(error, r#"a network for some hosts alone is not supported: expected "off" or "on""#);
        let state: NetworkState = serde_json::from_str(hosts).unwrap();
        assert_eq!(state.to_string(), "on for example.org:443");
        let bytes = crate::codec::encode(&state).unwrap();
        assert!(crate::codec::decode::<Network>(&bytes).is_err(), "a worker says it as little");
    }
}
