//! Stages of a start, each with a name and an exit code. One process may be at a later stage than another.
//!
//! | code | stage | steps |
//! | --- | --- | --- |
//! | 100 | `usage` | the command line is read |
//! | 101 | `rights` | the rights are read from their descriptor, or made of the flags |
//! | 102 | `descriptors` | inherited descriptors are closed |
//! | 103 | `identity` | the user is changed to the one that the program runs as |
//! | 104 | `rules` | the rights are compiled for this kernel, and every path of a rule is opened |
//! | 105 | `platform` | a layer that the rights need is missing, and `--allow-degraded` was not given |
//! | 106 | `namespaces` | full tier: new namespaces and file systems; where this machine refuses, the best tier is the floor |
//! | 107 | `mounts` | full tier: the read-only tree, roots, masks, devices |
//! | 108 | `start` | the program's process is forked; the broker stays behind |
//! | 109 | `session` | a session of its own, without a terminal or with the one that was made for it; no core dumps |
//! | 110 | `parent` | death with the parent is arranged, and the parent still lives |
//! | 111 | `directory` | the working directory is entered |
//! | 112 | `privileges` | `no_new_privs` |
//! | 113 | `capabilities` | every capability set is emptied, and the securebits are locked |
//! | 114 | `landlock` | the Landlock domain is entered |
//! | 115 | `seccomp` | the seccomp programs are attached |
//! | 116 | `attempt` | forbidden acts are tried; each must fail |
//! | 117 | `report` | the ruleset is reported |
//! | 118 | `execute` | the program is executed |
//! | 119 | `broker` | the broker watches over the program |

use std::fmt;

use ipc::confinement::{BrokerReport, FullTierRefusal};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the module's table says what each stage is")]
pub enum Stage {
    Usage = 100,
    Rights,
    Descriptors,
    Identity,
    Rules,
    Platform,
    Namespaces,
    Mounts,
    Start,
    Session,
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
    pub const ALL: [Self; 20] = [
        Self::Usage,
        Self::Rights,
        Self::Descriptors,
        Self::Identity,
        Self::Rules,
        Self::Platform,
        Self::Namespaces,
        Self::Mounts,
        Self::Start,
        Self::Session,
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

    pub const fn code(self) -> u8 {
        self as u8
    }

    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.code() == code)
    }

    pub fn failed(self, detail: impl fmt::Display) -> Failure {
        Failure { stage: self, detail: detail.to_string(), refusal: None }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stage}: {detail}")]
pub struct Failure {
    pub stage: Stage,
    pub detail: String,
    pub refusal: Option<FullTierRefusal>,
}

impl Failure {
    pub fn report(&self) -> BrokerReport {
        let (code, stage) = (self.stage.code(), self.stage.to_string());
        BrokerReport::Failed { code, stage, detail: self.detail.clone(), refusal: self.refusal }
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
        103 identity
        104 rules
        105 platform
        106 namespaces
        107 mounts
        108 start
        109 session
        110 parent
        111 directory
        112 privileges
        113 capabilities
        114 landlock
        115 seccomp
        116 attempt
        117 report
        118 execute
        119 broker
        ");
        assert!(Stage::ALL.iter().all(|&stage| Stage::from_code(stage.code()) == Some(stage)));
        assert_eq!(Stage::from_code(99), None);
    }
}
