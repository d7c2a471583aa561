//! The right that a denied operation lacked, as a value.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::denial::{Object, Operation};
use crate::path::WirePath;
use crate::place::Place;
use crate::rights::HostRule;

/// The right that a denied operation lacked. As text, a phrase about the access: `write /etc/probe`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MissingRight {
    /// Changing, creating or removing a file.
    Write {
        /// The file, or the directory that would have to be writable.
        path: WirePath,
        /// The rule that forbids writing. Absent if the path is in no writable directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        closed_by: Option<ClosedBy>,
    },
    /// Writing in a directory that a sub-agent would get.
    WriteForSubAgent {
        /// The directory that would have to be writable.
        path: WirePath,
    },
    /// Moving or removing a path that the user's own programs use.
    Move {
        /// The file or directory that would be moved or removed.
        path: WirePath,
    },
    /// Reading a file or listing a directory.
    Read {
        /// The file or directory.
        path: WirePath,
    },
    /// Executing a program.
    Execute {
        /// The program that was not executed.
        path: WirePath,
    },
    /// Setting the set-user-ID or set-group-ID bit.
    SetId {
        /// The file whose mode would change.
        path: WirePath,
    },
    /// Using the network.
    Network,
    /// Connecting to a host that is not on the list of hosts.
    Host {
        /// The host and its port.
        host: HostRule,
    },
    /// Connecting or sending to a unix socket of another program.
    Socket {
        /// Path of the socket.
        path: WirePath,
    },
    /// Using the network in a sub-agent.
    NetworkForSubAgent,
    /// Using the network in a command that requested access `read`. The command has to request another access.
    NetworkInReadingCommand,
    /// Connecting to this machine or its local networks, although the network is on.
    Reach {
        /// The kind of address that the command tried to connect to.
        place: Place,
    },
    /// Using the network, and connecting to this machine or its local networks.
    NetworkAndReach {
        /// The kind of address that the command tried to connect to.
        place: Place,
    },
    /// Accepting connections from outside the sandbox.
    Accept,
    /// Signalling another program, or using one of its sockets or System V objects.
    OfAnotherProgram {
        /// The operation: `signal` or `share`.
        operation: Operation,
    },
    /// Running commands.
    RunCommands,
    /// Making a system call that no right permits.
    Call {
        /// Name of the system call.
        name: String,
    },
    /// The approval that this tool call needs.
    Approval,
}

/// A rule that forbids access to a path, even in a writable directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ClosedBy {
    /// The approval mode, which does not permit changes in the project.
    Mode,
    /// The path is hidden.
    Hidden,
    /// The user's own programs execute or read the file.
    Protected,
    /// The directory is one of the kernel's, such as `/proc`.
    Kernel,
    /// The path leads through a link.
    Link,
    /// The path is a socket of another program.
    Socket,
    /// The path is the user's home itself, which is never suggested.
    Home,
    /// The path is a directory that contains the user's home or the project, which is never suggested.
    Wide,
}

impl MissingRight {
    /// Returns the right to write a path that is in no writable directory.
    pub fn write(path: &WirePath) -> Self {
        Self::Write { path: path.clone(), closed_by: None }
    }

    /// True if the right is the network, or includes it.
    pub const fn has_network(&self) -> bool {
        matches!(
            self,
            Self::Network
                | Self::NetworkForSubAgent
                | Self::NetworkInReadingCommand
                | Self::NetworkAndReach { .. }
        )
    }

    /// True if no user should grant the right, since it includes the home, or a directory above home or project.
    pub const fn takes_too_much(&self) -> bool {
        matches!(self, Self::Write { closed_by: Some(ClosedBy::Home | ClosedBy::Wide), .. })
    }

    /// True if a denial's operation and object already tell everything about the right except the reason.
    pub fn is_said_by(&self, operation: Operation, object: &Object) -> bool {
        match (self, operation, object) {
            (
                Self::Write { path, .. } | Self::WriteForSubAgent { path },
                Operation::Write,
                Object::Path(of),
            )
            | (Self::Read { path }, Operation::Read, Object::Path(of))
            | (Self::Execute { path }, Operation::Execute, Object::Path(of))
            | (Self::Socket { path }, Operation::Share, Object::Path(of)) => path == of,
            (Self::Call { name }, Operation::Call, Object::Syscall(of)) => name == of,
            (Self::Network | Self::Host { .. }, ..) => true,
            _ => false,
        }
    }

    /// Returns the reason why the access lacks this right, as the rest of a sentence; `None` if none is needed.
    pub const fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Write { closed_by: Some(rule), .. } => rule.reason(),
            Self::WriteForSubAgent { .. } | Self::NetworkForSubAgent => Some("to pass it on to a sub-agent"),
            Self::Move { .. } => ClosedBy::Protected.reason(),
            Self::Host { .. } => Some("which is not on the list of hosts"),
            Self::Socket { .. } => ClosedBy::Socket.reason(),
            Self::Call { .. } => Some("which no agent is allowed to call"),
            _ => None,
        }
    }

    fn without_reason(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { path, .. } | Self::WriteForSubAgent { path } => write!(f, "write {path}"),
            Self::Move { path } => write!(f, "move or remove {path}"),
            Self::Read { path } => write!(f, "read {path}"),
            Self::Execute { path } => write!(f, "execute {path}"),
            Self::SetId { path } => write!(f, "set the set-id bits of {path}"),
            Self::Network | Self::NetworkForSubAgent => f.write_str("network"),
            Self::Host { host } => write!(f, "network to {host}"),
            Self::Socket { path } => write!(f, "reach {path}"),
            Self::NetworkInReadingCommand => {
                f.write_str("network, which a command with access \"read\" never has")
            }
            Self::Reach { place } => write!(f, "connections to {}", addresses_of(*place)),
            Self::NetworkAndReach { place } => {
                write!(f, "network, and connections to {}", addresses_of(*place))
            }
            Self::Accept => f.write_str("connections from outside the sandbox"),
            Self::OfAnotherProgram { operation } => {
                write!(f, "{operation} something outside the sandbox")
            }
            Self::RunCommands => f.write_str("run commands"),
            Self::Call { name } => f.write_str(name),
            Self::Approval => f.write_str("an approval of this call"),
        }
    }
}

impl ClosedBy {
    /// Returns the reason as the rest of a sentence. `None` for the approval mode, since the proposed remedy names it.
    const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Mode => None,
            Self::Hidden => Some("which is hidden"),
            Self::Protected => Some("protected by the settings or by Bailiwick"),
            Self::Kernel => Some("which belongs to the kernel"),
            Self::Link => Some("the target of a link"),
            Self::Socket => Some("a socket of another program"),
            Self::Home => Some("in the home directory itself, which cannot be allowed"),
            Self::Wide => {
                Some("in a directory above the project or the home directory, which cannot be allowed")
            }
        }
    }
}

const fn addresses_of(place: Place) -> &'static str {
    match place {
        Place::Host => "this machine",
        Place::Lan => "private networks",
        Place::LinkLocal => "link-local addresses",
        Place::Metadata => "addresses that hand out credentials",
        Place::Elsewhere => "other addresses",
    }
}

impl Display for MissingRight {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.without_reason(f)?;
        self.reason().map_or(Ok(()), |reason| write!(f, ", {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> WirePath {
        "/p/x".into()
    }

    fn write(closed_by: ClosedBy) -> MissingRight {
        MissingRight::Write { path: path(), closed_by: Some(closed_by) }
    }

    #[test]
    fn a_right_is_a_phrase() {
        let reach = |place| MissingRight::Reach { place };
        for (right, phrase) in [
            (MissingRight::write(&path()), "write /p/x"),
            (write(ClosedBy::Mode), "write /p/x"),
            (write(ClosedBy::Hidden), "write /p/x, which is hidden"),
            (write(ClosedBy::Protected), "write /p/x, protected by the settings or by Bailiwick"),
            (write(ClosedBy::Kernel), "write /p/x, which belongs to the kernel"),
            (write(ClosedBy::Link), "write /p/x, the target of a link"),
            (write(ClosedBy::Socket), "write /p/x, a socket of another program"),
            (write(ClosedBy::Home), "write /p/x, in the home directory itself, which cannot be allowed"),
            (
                write(ClosedBy::Wide),
                "write /p/x, in a directory above the project or the home directory, which cannot be allowed",
            ),
            (MissingRight::Socket { path: path() }, "reach /p/x, a socket of another program"),
            (MissingRight::WriteForSubAgent { path: path() }, "write /p/x, to pass it on to a sub-agent"),
            (
                MissingRight::Move { path: path() },
                "move or remove /p/x, protected by the settings or by Bailiwick",
            ),
            (MissingRight::Read { path: path() }, "read /p/x"),
            (MissingRight::Execute { path: path() }, "execute /p/x"),
            (MissingRight::SetId { path: path() }, "set the set-id bits of /p/x"),
            (MissingRight::Network, "network"),
            (MissingRight::NetworkForSubAgent, "network, to pass it on to a sub-agent"),
            (
                MissingRight::NetworkInReadingCommand,
                "network, which a command with access \"read\" never has",
            ),
            (reach(Place::Host), "connections to this machine"),
            (reach(Place::Lan), "connections to private networks"),
            (reach(Place::LinkLocal), "connections to link-local addresses"),
            (reach(Place::Metadata), "connections to addresses that hand out credentials"),
            (
                MissingRight::NetworkAndReach { place: Place::Host },
                "network, and connections to this machine",
            ),
            (MissingRight::Accept, "connections from outside the sandbox"),
            (
                MissingRight::OfAnotherProgram { operation: Operation::Signal },
                "signal something outside the sandbox",
            ),
            (MissingRight::RunCommands, "run commands"),
            (MissingRight::Call { name: "bpf".to_owned() }, "bpf, which no agent is allowed to call"),
            (MissingRight::Approval, "an approval of this call"),
        ] {
            assert_eq!(right.to_string(), phrase);
            let json = serde_json::to_string(&right).unwrap();
            assert_eq!(serde_json::from_str::<MissingRight>(&json).unwrap(), right, "{json}");
        }
    }

    #[test]
    fn a_right_is_an_object_on_the_wire() {
        let json = |right: MissingRight| serde_json::to_string(&right).unwrap();
        assert_eq!(json(MissingRight::Network), r#"{"type":"network"}"#);
        assert_eq!(json(MissingRight::write(&path())), r#"{"type":"write","path":"/p/x"}"#);
        assert_eq!(
            json(write(ClosedBy::Protected)),
            r#"{"type":"write","path":"/p/x","closed_by":"protected"}"#
        );
        assert_eq!(
            json(MissingRight::Reach { place: Place::LinkLocal }),
            r#"{"type":"reach","place":"link_local"}"#
        );
    }
}
