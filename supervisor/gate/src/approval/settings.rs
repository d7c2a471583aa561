use std::time::Duration;

use ipc::path::WirePath;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// Time limit for an answer. Without an answer the call is denied.
    pub timeout: Duration,
    /// True if every command needs an approval, except those that declare to read only.
    pub confirm_shell: bool,
    /// Command prefixes that the user's configuration approves.
    pub preapproved: Vec<Vec<String>>,
    /// The person's settings file, which keeps approvals for later sessions of the project; `None` if none are kept.
    pub kept_in: Option<WirePath>,
    /// True if a person is asked to run a command again after the sandbox denied it access.
    pub offers: bool,
    /// True if a front end can answer requests. Otherwise every request is denied at once.
    pub answerer: bool,
}

impl Default for ApprovalSettings {
    /// Returns the defaults: five minutes, requests after denials, no configured prefixes.
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(5),
            confirm_shell: false,
            preapproved: Vec::new(),
            kept_in: None,
            offers: true,
            answerer: true,
        }
    }
}
