//! The kind of work that an agent does.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Kind of work that an agent does: planning or executing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum Activity {
    /// The agent makes a plan, and changes nothing.
    Plan,
    /// The agent executes a task.
    Execute,
}

impl Activity {
    /// Returns the word that stands for the kind in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Execute => "execute",
        }
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
