use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use secrecy::SecretString;

use super::ledger::Limits;

const LONGEST: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientName(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a client's name must have 1 to {LONGEST} letters, digits, `-`, `_` or `.`, and must begin with a letter or a digit"
)]
pub struct NotAName;

impl ClientName {
    pub fn new(name: &str) -> Result<Self, NotAName> {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let fits = (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_of_name);
        let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if fits && begins { Ok(Self(name.to_owned())) } else { Err(NotAName) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Debug)]
pub struct ClientSettings {
    pub name: ClientName,
    pub listen: Listen,
    pub limits: Limits,
}

#[derive(Clone, Debug)]
pub enum Listen {
    /// A Unix socket. Every process that can connect to it counts as this client.
    Socket(SocketSettings),
    /// A port on this machine. Every process with the token counts as this client.
    Loopback {
        /// Address of the port. With port 0, the system chooses a free port.
        address: SocketAddr,
        /// Token that the client sends as its API key.
        token: SecretString,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketSettings {
    pub path: PathBuf,
    /// File mode of the socket. Its directory gives access to the same users.
    pub mode: u32,
    /// User id, and group id unless it is the relay's; `None` if the owner is the user of the relay.
    pub owner: Option<(u32, Option<u32>)>,
}

/// The default file mode of a socket, which gives access to the owner alone.
pub const SOCKET_MODE: u32 = 0o600;

/// The name of a client's socket in its directory.
pub const SOCKET_NAME: &str = "relay.sock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path_and_no_more() {
        for (name, is_one) in [
            ("a", true),
            ("task-17_b.2", true),
            ("", false),
            ("..", false),
            (".a", false),
            ("a/b", false),
            ("ä", false),
            ("a b", false),
            (&"x".repeat(41), false),
        ] {
            assert_eq!(ClientName::new(name).is_ok(), is_one, "{name}");
        }
    }
}
