//! Checks the relay that holds the key, if sessions use a relay.

use model::provider::socket_of;

use super::{CheckState, DoctorCheck, checks};
use crate::engine::opening::{RelaySocketError, check_relay_socket};
use crate::engine::place::ProjectSandbox;

/// Checks from inside the sandbox if an agent can reach the relay's socket; `None` if sessions use no relay.
pub(super) async fn check(setup: &ProjectSandbox) -> Option<DoctorCheck> {
    let base_url = checks::base_url(setup);
    let socket = socket_of(&base_url)?;
    let shown = socket.display().to_string().escape_debug().to_string();
    Some(match check_relay_socket(setup, socket).await {
        Ok(_) => DoctorCheck::new(
            "relay",
            CheckState::Ok,
            format!("listens at {shown}; agents cannot reach this socket"),
        ),
        Err(error) => {
            let state = match error {
                RelaySocketError::Reached(_) | RelaySocketError::Writable { .. } => CheckState::Fail,
                RelaySocketError::Missing(_)
                | RelaySocketError::Silent(..)
                | RelaySocketError::Untried(_) => CheckState::Warn,
            };
            let text = error.to_string();
            let (found, next) = text.split_once("\n  hint: ").unwrap_or((&text, "see docs/relay.md"));
            DoctorCheck::new("relay", state, found).remedy(next)
        }
    })
}
