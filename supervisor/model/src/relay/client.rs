//! A client of the relay: its name, its address, its budget.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use secrecy::SecretString;

use super::ledger::Limits;

const LONGEST: usize = 40;

/// The name of a client, and of its directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientName(String);

/// A text that is no name of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a client's name has 1 to {LONGEST} letters, digits, `-`, `_` or `.`, and begins with a letter or a digit"
)]
pub struct NotAName;

impl ClientName {
    /// The name, if it is one.
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

/// A client that is let in.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Its name, in the log and in its socket's path.
    pub name: ClientName,
    /// The place where it is served.
    pub listen: Listen,
    pub limits: Limits,
}

#[derive(Clone, Debug)]
pub enum Listen {
    /// A socket, with a directory of its own. Any process that can reach it is the client.
    Socket(SocketSettings),
    /// An address on this machine. Any process that has the token is the client.
    Loopback {
        /// The address; port 0 is one that the system chooses.
        address: SocketAddr,
        /// The token, as it would be an API key.
        token: SecretString,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketSettings {
    /// Its path. The directory is made where it is missing, and is removed with the socket if it was made.
    pub path: PathBuf,
    /// Its mode; the directory can be entered by the same users.
    pub mode: u32,
    /// Its owner, with the group, if that is not the relay's own.
    pub owner: Option<(u32, Option<u32>)>,
}

/// The usual mode of a socket: its owner's alone.
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
