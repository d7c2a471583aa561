//! Approval modes, and the scopes of answers.

use std::fmt;

use ipc::id::GrantId;
use ipc::rights::Grant;
use serde::{Deserialize, Serialize};

use crate::event::Recorded;

/// The handling of calls that need more than the agent's access, and the access to the project that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum ApprovalMode {
    /// The user is asked to approve the call; the project is read-only.
    Ask,
    /// The call is denied; the project is writable.
    Auto,
    /// The call is denied; the project is read-only.
    Deny,
}

impl ApprovalMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Ask, Self::Auto, Self::Deny];

    /// Returns the mode with this name, `None` if there is none.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }

    /// Returns the mode's name, as on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Auto => "auto",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for ApprovalMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Scope of an approval for the session.
///
/// A matching call for [`Exact`](Self::Exact), a prefix or a pattern runs without a request in a separate worker. The
/// other scopes change the agent's access, in a new generation of its worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum SessionScope {
    /// This exact command with the same access, or any change of exactly the requested files.
    #[default]
    Exact,
    /// Commands that begin with these words: every part of a compound command has to be covered.
    CommandPrefix(Vec<String>),
    /// Prefixes of the requested compound command's parts, one for each part that is approved.
    CommandPrefixes(Vec<Vec<String>>),
    /// Some or all prefixes of the request's `in_project`, also for later sessions of the project: the settings keep
    /// them.
    CommandPrefixesInProject(Vec<Vec<String>>),
    /// Changes of files whose path, relative to the project, matches this glob.
    PathPattern(String),
    /// The directory `grant_root` of the request becomes writable, for the rest of the session.
    GrantRoot,
    /// The network, for the rest of the session.
    Network,
    /// The unix socket that the request offers, for the rest of the session.
    Socket,
    /// Any call of this tool of a confined server, while its definition and the server's access are unchanged.
    Tool,
    /// As `tool`, but also for later sessions of this project: the user's settings keep the approval.
    ToolInProject,
    /// Fetching of pages from the requested host, to which commands still may not connect.
    Host,
}

/// An approval for the session, as lists of approvals show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionGrant {
    /// Id by which the approval can be revoked.
    pub id: GrantId,
    /// The covered calls, in words: `commands that begin with: cargo test`.
    pub covers: String,
    /// Access of each matching call in addition to the permanent one; absent if each may write exactly its own files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Recorded<Grant>>,
}

impl SessionGrant {
    /// Returns, in one line, the access that each matching call gets in addition to the permanent one.
    pub fn given(&self) -> String {
        self.grant.as_ref().map_or_else(|| "write the files that match".to_owned(), ToString::to_string)
    }
}
