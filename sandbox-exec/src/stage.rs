//! The stages of a start, each with a name and an exit code of its own.
//!
//! | code | stage | what happens there |
//! | --- | --- | --- |
//! | 100 | `usage` | the command line is read |
//! | 101 | `rights` | the rights are read from their descriptor, or made of the flags |
//! | 102 | `descriptors` | inherited descriptors are closed |
//! | 103 | `environment` | the environment is cleared to the allowlist |
//! | 104 | `rules` | the rights are compiled for this kernel, and every path of a rule is opened |
//! | 105 | `platform` | a layer that the rights need is missing, and `--allow-degraded` was not given |
//! | 106 | `start` | the program's process is forked; the broker stays behind |
//! | 107 | `session` | a session of its own, without a terminal or with the one that was made for it |
//! | 108 | `limits` | no core dumps |
//! | 109 | `parent` | death with the parent is arranged, and the parent still lives |
//! | 110 | `directory` | the working directory is entered |
//! | 111 | `privileges` | `no_new_privs` |
//! | 112 | `capabilities` | every capability set is emptied, and the securebits are locked |
//! | 113 | `landlock` | the Landlock domain is entered |
//! | 114 | `seccomp` | the seccomp program is attached |
//! | 115 | `attempt` | forbidden acts are tried; each must fail |
//! | 116 | `report` | the ruleset is reported |
//! | 117 | `execute` | the program is executed |
//! | 118 | `broker` | the broker watches over the program |

use std::fmt;

use ipc::confinement::BrokerReport;

/// A stage of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the module's table says what each stage is")]
pub enum Stage {
    Usage = 100,
    Rights,
    Descriptors,
    Environment,
    Rules,
    Platform,
    Start,
    Session,
    Limits,
    Parent,
    Directory,
    Privileges,
    Capabilities,
    Landlock,
    Seccomp,
    Attempt,
    Report,
    Execute,
    Broker,
}

impl Stage {
    /// Every stage, in the order of their codes.
    pub const ALL: [Self; 19] = [
        Self::Usage,
        Self::Rights,
        Self::Descriptors,
        Self::Environment,
        Self::Rules,
        Self::Platform,
        Self::Start,
        Self::Session,
        Self::Limits,
        Self::Parent,
        Self::Directory,
        Self::Privileges,
        Self::Capabilities,
        Self::Landlock,
        Self::Seccomp,
        Self::Attempt,
        Self::Report,
        Self::Execute,
        Self::Broker,
    ];

    /// The exit code of a start that failed here.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The stage's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Rights => "rights",
            Self::Descriptors => "descriptors",
            Self::Environment => "environment",
            Self::Rules => "rules",
            Self::Platform => "platform",
            Self::Start => "start",
            Self::Session => "session",
            Self::Limits => "limits",
            Self::Parent => "parent",
            Self::Directory => "directory",
            Self::Privileges => "privileges",
            Self::Capabilities => "capabilities",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Attempt => "attempt",
            Self::Report => "report",
            Self::Execute => "execute",
            Self::Broker => "broker",
        }
    }

    /// The stage of an exit code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.code() == code)
    }

    /// The failure of this stage.
    pub fn failed(self, detail: impl fmt::Display) -> Failure {
        Failure { stage: self, detail: detail.to_string() }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why nothing was executed: the stage, what was tried on what, and why it failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stage}: {detail}")]
pub struct Failure {
    /// The stage.
    pub stage: Stage,
    /// What was tried, and why it failed.
    pub detail: String,
}

impl Failure {
    /// The failure, as the broker reports it.
    pub fn report(&self) -> BrokerReport {
        let (code, stage) = (self.stage.code(), self.stage.to_string());
        BrokerReport::Failed { code, stage, detail: self.detail.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_its_own_code_and_name() {
        let table: Vec<String> = Stage::ALL.iter().map(|stage| format!("{} {stage}", stage.code())).collect();
        insta::assert_snapshot!(table.join("\n"), @r"
        100 usage
        101 rights
        102 descriptors
        103 environment
        104 rules
        105 platform
        106 start
        107 session
        108 limits
        109 parent
        110 directory
        111 privileges
        112 capabilities
        113 landlock
        114 seccomp
        115 attempt
        116 report
        117 execute
        118 broker
        ");
        assert!(Stage::ALL.iter().all(|&stage| Stage::from_code(stage.code()) == Some(stage)));
        assert_eq!(Stage::from_code(99), None);
    }
}
