//! Whether Landlock's audit records can be read: they prove denials that nothing else proves. Nothing depends on it.

use ipc::confinement::{RulesetReport, Tier};

use super::{Check, State};
use crate::monitor::{Unreadable, readable};

/// The first ABI whose domains can be recorded.
const RECORDED: u32 = 7;

pub(super) fn check(ruleset: &RulesetReport) -> Check {
    Check::new("records", State::Ok, found(ruleset, readable()))
}

fn found(ruleset: &RulesetReport, readable: Result<(), Unreadable>) -> String {
    let abi = ruleset.landlock_abi;
    let why = match readable {
        _ if abi < RECORDED => format!("Landlock makes them from ABI {RECORDED} on, and here it is {abi}"),
        Ok(()) if ruleset.tier == Tier::Full => {
            return "Landlock's audit records can be read; in the full tier the mounts refuse first, and none are asked for"
                .to_owned();
        }
        Ok(()) => return "Landlock's audit records can be read, and prove what it refuses".to_owned(),
        Err(error @ Unreadable::Off) => {
            format!("{error} (auditd, or audit=1 on the kernel's command line, turns it on)")
        }
        Err(error) => error.to_string(),
    };
    format!("Landlock's audit records are not read: {why}; denials are proved without them")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn said(tier: Tier, landlock_abi: u32, readable: Result<(), Unreadable>) -> String {
        let (missing, attempts) = (vec![], vec![]);
        found(&RulesetReport { tier, landlock_abi, rules: 1, seccomp_rules: 1, missing, attempts }, readable)
    }

    #[test]
    fn it_says_why_they_cannot_be_read() {
        assert_snapshot!(said(Tier::Floor, 7, Ok(())), @"Landlock's audit records can be read, and prove what it refuses");
        assert_snapshot!(said(Tier::Full, 7, Ok(())), @"Landlock's audit records can be read; in the full tier the mounts refuse first, and none are asked for");
        assert_snapshot!(said(Tier::Floor, 6, Ok(())), @"Landlock's audit records are not read: Landlock makes them from ABI 7 on, and here it is 6; denials are proved without them");
        assert_snapshot!(said(Tier::Floor, 7, Err(Unreadable::Off)), @"Landlock's audit records are not read: the machine's auditing is off (auditd, or audit=1 on the kernel's command line, turns it on); denials are proved without them");
        assert_snapshot!(said(Tier::Floor, 7, Err(Unreadable::NotPermitted)), @"Landlock's audit records are not read: that takes CAP_AUDIT_READ; denials are proved without them");
        assert_snapshot!(said(Tier::Floor, 7, Err(Unreadable::Contained)), @"Landlock's audit records are not read: this is a container, and they are the machine's; denials are proved without them");
    }
}
