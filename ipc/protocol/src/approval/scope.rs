//! Approval modes, and the scopes of answers.

use std::fmt;

use ipc::id::GrantId;
use ipc::rights::Grant;
use serde::{Deserialize, Serialize};

use crate::event::Recorded;

/// Handling of calls beyond the agent's access.
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

    /// The mode of a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }

    /// The word for it, as on the command line.
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
    /// This exact command with the same access, or any change of exactly these files.
    #[default]
    Exact,
    /// Commands that begin with these words: every part of a compound command has to be covered.
    CommandPrefix(Vec<String>),
    /// Parts of the requested compound command: each of these is the beginning of one.
    CommandPrefixes(Vec<Vec<String>>),
    /// Some or all of the prefixes in the request's `in_project`, also for later sessions of this project: the user's
    /// settings keep them.
    CommandPrefixesInProject(Vec<Vec<String>>),
    /// Changes of files whose path, relative to the project, matches this glob.
    PathPattern(String),
    /// The request's `grant_root`, as a standing right.
    GrantRoot,
    /// The network, as a standing right.
    Network,
    /// The unix socket that the request offers, as a standing right.
    Socket,
    /// Any call of this tool of a confined server, while its definition and the server's access are unchanged.
    Tool,
    /// The same, also for later sessions of this project: the user's settings keep it.
    ToolInProject,
    /// Pages of the requested host. Commands do not reach it.
    Host,
}

/// An approval for the session, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionGrant {
    /// Id by which it is revoked.
    pub id: GrantId,
    /// The covered calls, in words: `commands that begin with: cargo test`.
    pub covers: String,
    /// The access of each match beyond the permanent one; absent if each may write exactly its own files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Recorded<Grant>>,
}

impl SessionGrant {
    /// The access of each match beyond the permanent one, in one line.
    pub fn given(&self) -> String {
        self.grant.as_ref().map_or_else(|| "write the files that match".to_owned(), ToString::to_string)
    }
}
