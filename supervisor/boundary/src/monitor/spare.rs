//! A sandbox-exec that was executed before it is needed.
//!
//! It has no rights yet, and nothing of a session: it waits for its order on a pipe, and ends when that is closed, as it is when the
//! supervisor is gone.

use std::ffi::OsString;

use super::spawn::BegunLaunch;

/// A program that waits. It is ended when it is dropped.
#[derive(Debug)]
pub(super) struct PrestartedBroker {
    begun: Option<BegunLaunch>,
    command: Vec<OsString>,
}

impl PrestartedBroker {
    pub(super) fn new(begun: BegunLaunch, command: Vec<OsString>) -> Self {
        Self { begun: Some(begun), command }
    }

    /// True if it can become this program.
    pub(super) fn fits(&self, command: &[OsString]) -> bool {
        self.begun.as_ref().is_some_and(BegunLaunch::is_alive) && self.command == command
    }

    /// Hands it over, to be ordered.
    pub(super) fn into_begun(mut self) -> Option<BegunLaunch> {
        self.begun.take()
    }
}

impl Drop for PrestartedBroker {
    fn drop(&mut self) {
        if let Some(begun) = &self.begun {
            // An error means that it is gone already.
            let _ = begun.end();
        }
    }
}
