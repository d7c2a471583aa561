//! Command prefixes that a person approves for every session in a project.

use ipc::path::WirePath;
use serde::{Deserialize, Serialize};

use super::{ReviewDecision, SessionScope};
use crate::shell_word::shell_word;

/// Command prefixes that the scope `command_prefixes_in_project` keeps: such commands run without a request in every
/// session in the project, without the network, each in a separate worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ProjectPrefixes {
    /// One prefix, or one for each part of a compound command. An answer names some or all of these prefixes.
    pub prefixes: Vec<Vec<String>>,
    /// The user's settings file, which keeps the approved prefixes in the project's table.
    pub file: WirePath,
}

impl ProjectPrefixes {
    /// Returns the prefixes in one line, each as typed at a shell.
    pub fn words(&self) -> String {
        let words = |words: &Vec<String>| words.iter().map(shell_word).collect::<Vec<_>>().join(" ");
        self.prefixes.iter().map(words).collect::<Vec<_>>().join(" | ")
    }

    /// Returns the answer that keeps all prefixes.
    pub fn all(&self) -> ReviewDecision {
        let scope = SessionScope::CommandPrefixesInProject(self.prefixes.clone());
        ReviewDecision::ApprovedForSession { scope }
    }
}
