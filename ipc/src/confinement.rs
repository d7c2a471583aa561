//! What `sandbox-exec` is told by its caller, and what it reports back.
//!
//! The order travels on a descriptor of its own (`--rights-fd N`): one bincode value, then end of file. The reports come
//! back on another (`--status-fd N`) as length-delimited frames of generation 0.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::path::WirePath;
use crate::rights::Rights;

/// Everything that `sandbox-exec` needs to know to confine one program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The rights, canonical.
    pub rights: Rights,
    /// The project's root: the working directory of the program, and `.` in printed rights.
    pub project: WirePath,
    /// The private temp directory, which exists; it becomes `TMPDIR`. Also one of the write roots.
    pub temp: Option<WirePath>,
    /// What the hidden paths inside the write roots were when the session began: an agent can rename them there, and a
    /// later start must not take them for something else.
    pub hidden_files: Vec<FileIdentity>,
    /// Which variables of the environment pass.
    pub environment: Environment,
    /// Whether to start although a layer that this machine should have is missing.
    pub allow_degraded: bool,
    /// Whether the program only reads: the calls that change modes, owners, times and attributes, which no write root
    /// bounds, are denied as well.
    pub read_only: bool,
}

/// A file or directory, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The device.
    pub device: u64,
    /// The number of the inode on it.
    pub inode: u64,
}

/// Additions to the environment's built-in allowlist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Names that pass although the built-in list does not have them.
    pub pass: Vec<String>,
    /// Variables that are set, whatever the caller's environment says.
    pub set: Vec<(String, Vec<u8>)>,
}

/// What the broker tells the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BrokerReport {
    /// The program is about to be executed, confined.
    Started {
        /// The program's process id, as the supervisor sees it.
        pid: u32,
        /// What is enforced.
        ruleset: RulesetReport,
    },
    /// Nothing was executed.
    Failed {
        /// The exit code of the stage, 100–119.
        code: u8,
        /// The stage's name.
        stage: String,
        /// What was tried, and why it failed.
        detail: String,
    },
    /// The program and all its descendants are gone.
    Ended {
        /// Its exit code, or 128 + the signal that ended it.
        status: i32,
    },
}

/// The truthful account of a ruleset on this kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesetReport {
    /// What this machine can enforce.
    pub tier: Tier,
    /// The Landlock ABI that is in force; 0 is none.
    pub landlock_abi: u32,
    /// How many Landlock rules there are.
    pub rules: u32,
    /// How many seccomp rules there are.
    pub seccomp_rules: u32,
    /// What the rights promise and this kernel does not enforce, one sentence each.
    pub missing: Vec<String>,
    /// The forbidden acts that were tried inside the finished confinement, before exec.
    pub attempts: Vec<Attempt>,
}

/// A tier: what a machine can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Landlock, seccomp and no capabilities; no socket mediation, so that net off denies loopback too.
    FloorUnmediated,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FloorUnmediated => "floor (unmediated)",
        })
    }
}

/// One forbidden act, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// What was tried, as a phrase: `write outside the write roots`.
    pub act: String,
    /// Whether the kernel refused it.
    pub denied: bool,
    /// The error number, 0 if the act succeeded.
    pub errno: i32,
}
