//! A sandbox-exec that was executed before it is needed, and has looked up by then what the next start will likely need.
//!
//! It has no rights yet, and nothing of a session: it waits for its orders on a pipe, and ends when that is closed, as it is when the
//! supervisor is gone.

use std::ffi::OsString;

use ipc::confinement::{Confinement, Identity, Order, TierChoice};

use super::spawn::{Begun, SpawnError};

/// What waits. It is ended when it is dropped.
#[derive(Debug)]
pub(super) struct Spare {
    begun: Option<Begun>,
    command: Vec<OsString>,
    /// It may have become this user.
    identity: Option<Identity>,
    /// It may have become a broker of the floor.
    floor: bool,
}

impl Spare {
    /// Tells a sandbox-exec what will likely be ordered.
    pub(super) fn prepare(
        mut begun: Begun,
        likely: Confinement,
        instead: Option<String>,
        command: Vec<OsString>,
    ) -> Result<Self, SpawnError> {
        let (identity, floor) = (likely.identity, likely.tier == TierChoice::Floor);
        let told = begun.order(&Order::Prepare { likely: Box::new(likely), instead });
        let spare = Self { begun: Some(begun), command, identity, floor };
        told.map(|()| spare)
    }

    /// Whether it can become this program, confined so.
    pub(super) fn fits(&self, confinement: &Confinement, command: &[OsString]) -> bool {
        let is_alive = self.begun.as_ref().is_some_and(Begun::is_alive);
        let tier = !self.floor || confinement.tier != TierChoice::Full;
        is_alive && tier && self.identity == confinement.identity && self.command == command
    }

    /// To be ordered.
    pub(super) fn into_begun(mut self) -> Option<Begun> {
        self.begun.take()
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some(begun) = &self.begun {
            // An error means that it is gone already.
            let _ = begun.end();
        }
    }
}
