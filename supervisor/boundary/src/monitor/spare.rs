//! A sandbox-exec process that is started in advance, so that the next program starts faster.
//!
//! It has no access and no session data yet. It waits for an order on a pipe, and ends when the pipe is closed.

use std::ffi::OsString;

use super::spawn::BegunLaunch;

#[derive(Debug)]
pub(super) struct PrestartedBroker {
    begun: Option<BegunLaunch>,
    command: Vec<OsString>,
}

impl PrestartedBroker {
    pub(super) fn new(begun: BegunLaunch, command: Vec<OsString>) -> Self {
        Self { begun: Some(begun), command }
    }

    pub(super) fn fits(&self, command: &[OsString]) -> bool {
        self.begun.as_ref().is_some_and(BegunLaunch::is_alive) && self.command == command
    }

    pub(super) fn into_begun(mut self) -> Option<BegunLaunch> {
        self.begun.take()
    }
}

impl Drop for PrestartedBroker {
    fn drop(&mut self) {
        if let Some(begun) = &self.begun {
            // An error means that the process has already ended.
            let _ = begun.end();
        }
    }
}
