//! Unix sockets of other programs, which a person may allow one by one.

use ipc::denial::{Denial, Grade, Layer, Operation};
use ipc::missing_right::{ClosedBy, MissingRight};
use ipc::path::WirePath;

use super::denial::unwritable;
use super::{StandingRights, flags};
use protocol::shell_word::shell_word;

/// Directory of sockets, keyrings and tickets. It is hidden as a whole; a person may allow single sockets in it.
const RUNTIME: &str = "/run/user";

/// Returns the hidden path that keeps a socket from being allowed; `None` if there is none.
pub fn hides_socket<'a>(hidden: &'a [WirePath], socket: &WirePath) -> Option<&'a WirePath> {
    hidden.iter().find(|root| socket.is_within(root) && **root != RUNTIME.into())
}

pub(super) fn denial(standing: &StandingRights, path: &WirePath) -> Denial {
    let missing = match closed_by(standing, path) {
        None => MissingRight::Socket { path: path.clone() },
        Some(rule) => MissingRight::Write { path: path.clone(), closed_by: Some(rule) },
    };
    Denial {
        layer: Layer::Mediation,
        operation: Operation::Share,
        missing_right: missing.into(),
        grant: flag(standing, path),
        ..unwritable(standing, path, Grade::Proved, None)
    }
}

/// Returns the flag that allows a socket; `None` if no flag does.
pub fn flag(standing: &StandingRights, path: &WirePath) -> Option<String> {
    let flag = || flags::offered(standing, &format!("--socket {}", shell_word(path.as_path())));
    closed_by(standing, path).is_none().then(flag).flatten()
}

/// Returns the rule by which nobody can allow a socket; `None` if a person can.
fn closed_by(standing: &StandingRights, path: &WirePath) -> Option<ClosedBy> {
    let is_protected = standing.rights.protected.iter().any(|root| path.is_within(root));
    if hides_socket(&standing.rights.hidden, path).is_some() {
        Some(ClosedBy::Hidden)
    } else if is_protected || standing.is_in_levels(path) {
        Some(ClosedBy::Protected)
    } else if ["/proc", "/sys"].iter().any(|tree| path.is_within(&WirePath::from(*tree))) {
        Some(ClosedBy::Kernel)
    } else {
        None
    }
}

pub(super) fn refusal(standing: &StandingRights, path: &WirePath) -> Option<String> {
    Some(match closed_by(standing, path)? {
        ClosedBy::Hidden => format!("{path} is hidden from the sandbox"),
        ClosedBy::Kernel => format!("{path} belongs to the kernel, or contains a path of the kernel"),
        _ => format!("{path} is protected by the settings or by Bailiwick"),
    })
}
