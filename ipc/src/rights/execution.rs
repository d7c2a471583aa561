//! The right to run commands, and the limits of a command's time and output.

use serde::{Deserialize, Serialize};

/// The right to run commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Execution {
    /// The worker executes no program.
    Denied,
    /// `shell_exec` runs commands under this access.
    #[default]
    Allowed,
}

/// Limits of one tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// Maximum duration of a command in milliseconds.
    pub timeout_ms: u64,
    /// Maximum bytes of a command's output that are kept, from its beginning and its end. The rest is only counted.
    pub output_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { timeout_ms: 600_000, output_bytes: 64 << 10 }
    }
}

impl Limits {
    pub(super) fn meet(self, other: Self) -> Self {
        Self {
            timeout_ms: self.timeout_ms.min(other.timeout_ms),
            output_bytes: self.output_bytes.min(other.output_bytes),
        }
    }
}
