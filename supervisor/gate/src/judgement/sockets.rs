//! Unix sockets of other programs, which a person may allow one by one.

use ipc::denial::{Denial, Grade, Layer, Operation};
use ipc::missing_right::{ClosedBy, MissingRight};
use ipc::path::WirePath;

use super::StandingRights;
use protocol::shell_word::shell_word;

/// Directory of sockets, keyrings and tickets, which is hidden as a whole. A person may allow single sockets in it.
const RUNTIME: &str = "/run/user";

/// The hidden path for which a socket cannot be allowed.
pub fn hides_socket<'a>(hidden: &'a [WirePath], socket: &WirePath) -> Option<&'a WirePath> {
    hidden.iter().find(|root| socket.is_within(root) && **root != RUNTIME.into())
}

impl StandingRights {
    pub(super) fn of_socket(&self, path: &WirePath) -> Denial {
        let missing = match self.closed_socket(path) {
            None => MissingRight::Socket { path: path.clone() },
            Some(rule) => MissingRight::Write { path: path.clone(), closed_by: Some(rule) },
        };
        Denial {
            layer: Layer::Mediation,
            operation: Operation::Share,
            missing_right: missing.into(),
            grant: self.socket_grant(path),
            ..self.unwritable(path, Grade::Proved, None)
        }
    }

    /// The flag that would allow the socket.
    pub fn socket_grant(&self, path: &WirePath) -> Option<String> {
        let flag = || self.offered(&format!("--socket {}", shell_word(path.as_path())));
        self.closed_socket(path).is_none().then(flag).flatten()
    }

    /// The rule for which no person can allow a socket.
    fn closed_socket(&self, path: &WirePath) -> Option<ClosedBy> {
        let is_protected = self.rights.protected.iter().any(|root| path.is_within(root));
        if hides_socket(&self.rights.hidden, path).is_some() {
            Some(ClosedBy::Hidden)
        } else if is_protected || self.is_in_levels(path) {
            Some(ClosedBy::Protected)
        } else if ["/proc", "/sys"].iter().any(|tree| path.is_within(&WirePath::from(*tree))) {
            Some(ClosedBy::Kernel)
        } else {
            None
        }
    }

    pub(super) fn refusal_of_socket(&self, path: &WirePath) -> Option<String> {
        Some(match self.closed_socket(path)? {
            ClosedBy::Hidden => format!("{path} is hidden from the sandbox"),
            ClosedBy::Kernel => format!("{path} belongs to the kernel, or contains a path of the kernel"),
            _ => format!("{path} is protected by the settings or by Bailiwick"),
        })
    }
}
