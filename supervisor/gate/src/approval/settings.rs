//! How a session asks.

use std::time::Duration;

/// How a session asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// How long an answer is waited for; then the call is denied.
    pub timeout: Duration,
    /// Whether every command is asked for, but those that declare to read.
    pub confirm_shell: bool,
    /// Command prefixes that the user's configuration approves.
    pub preapproved: Vec<Vec<String>>,
    /// True if a command that was denied something is offered to be run again.
    pub offers: bool,
    /// Whether there is a front end that can ask: without one every request is denied at once.
    pub answerer: bool,
}

impl Default for ApprovalSettings {
    /// Five minutes, somebody to ask after denials too, and nothing approved beforehand.
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(5),
            confirm_shell: false,
            preapproved: Vec::new(),
            offers: true,
            answerer: true,
        }
    }
}
