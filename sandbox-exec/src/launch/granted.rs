//! A ruleset with rules that were added before the rights were known.
//!
//! A rule allows, and what was allowed cannot be taken out of a ruleset again. So one that was made ahead is used only where
//! each of its rules is among those that the rights come to, or allows less than one of them, on the inode that it was made for:
//! whoever has it says whether the directories are as they were ([`Ahead`](super::Ahead)). It would otherwise be another ruleset
//! than the one that was ordered. Only what is read is granted ahead: write roots differ from start to start.

use std::collections::HashMap;
use std::ffi::OsString;

use ipc::confinement::Tier;
use ipc::rights::Network;

use crate::compile::{Access, PathRule};
use crate::domain::Domain;
use crate::platform::Platform;

/// Such a ruleset.
#[derive(Debug)]
pub(super) struct Granted {
    net: Network,
    tier: Tier,
    platform: Platform,
    pub(super) domain: Domain,
    rules: HashMap<OsString, Access>,
}

impl Granted {
    /// A ruleset that has those of these rules which only let something be read; none where one of them cannot be added.
    pub(super) fn of(net: Network, tier: Tier, platform: Platform, rules: &[PathRule]) -> Option<Self> {
        let read: Vec<_> = rules.iter().filter(|rule| Access::TREE.has(rule.access)).cloned().collect();
        let mut domain = Domain::empty(net, tier, platform).ok()?;
        drop(domain.add_canonical(&read).ok()?);
        let rules = read.into_iter().map(|rule| (rule.path.into_os_string(), rule.access)).collect();
        Some(Self { net, tier, platform, domain, rules })
    }

    /// Whether it handles what a ruleset for these would.
    pub(super) fn is_for(&self, net: Network, tier: Tier, platform: Platform) -> bool {
        (self.net, self.tier, self.platform) == (net, tier, platform)
    }

    /// Takes from `rules` what it has already, if they allow all that it allows.
    pub(super) fn spare(&self, rules: &mut Vec<PathRule>) -> bool {
        let has = |rule: &PathRule| self.rules.get(rule.path.as_os_str()).copied();
        let allowed = |rule: &&PathRule| has(rule).is_some_and(|access| rule.access.has(access));
        // Each path is in them once.
        let covers = rules.iter().filter(allowed).count() == self.rules.len();
        if covers {
            rules.retain(|rule| has(rule) != Some(rule.access));
        }
        covers
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn rule(path: &str, access: Access) -> PathRule {
        PathRule { path: path.into(), access, named: false, file: false }
    }

    fn granted(rules: &[PathRule]) -> Granted {
        let platform = Platform { abi: 0, ..Platform::probe() };
        Granted::of(Network::Off, Tier::Floor, platform, rules).unwrap()
    }

    fn left(rules: &[PathRule]) -> Vec<&Path> {
        rules.iter().map(|rule| rule.path.as_path()).collect()
    }

    #[test]
    fn what_it_has_is_not_added_again() {
        let granted = granted(&[rule("/a", Access::TREE), rule("/b", Access::LIST), rule("/w", Access::ALL)]);
        let mut rules = vec![
            rule("/a", Access::TREE),
            rule("/b", Access::TREE),
            rule("/c", Access::TREE),
            rule("/w", Access::ALL),
        ];
        assert!(granted.spare(&mut rules));
        assert_eq!(left(&rules), ["/b", "/c", "/w"].map(Path::new), "what allows more, and what is new");
    }

    #[test]
    fn it_is_of_no_use_where_less_is_allowed() {
        let granted = granted(&[rule("/a", Access::TREE), rule("/b", Access::TREE)]);
        for fewer in [
            vec![rule("/a", Access::TREE)],
            vec![rule("/a", Access::TREE), rule("/b", Access::LIST)],
            vec![rule("/a", Access::TREE), rule("/c", Access::TREE)],
        ] {
            let mut rules = fewer.clone();
            assert!(!granted.spare(&mut rules), "{fewer:?}");
            assert_eq!(rules, fewer, "all are left to be added to another");
        }
    }

    #[test]
    fn a_ruleset_is_for_one_network_and_one_tier() {
        let platform = Platform::probe();
        let granted = Granted::of(Network::Off, Tier::Floor, platform, &[]).unwrap();
        assert!(granted.is_for(Network::Off, Tier::Floor, platform));
        assert!(!granted.is_for(Network::On, Tier::Floor, platform));
        assert!(!granted.is_for(Network::Off, Tier::Full, platform));
    }
}
