//! What names rights and rulesets in the log: digests of their encoding.

use std::fmt::Write;

use ipc::confinement::{Confinement, RulesetReport};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// The digests of one worker's confinement, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digests {
    /// Of the rights alone.
    pub(super) rights: String,
    /// Of the rights and of what the kernel holds the worker to them by.
    pub(super) ruleset: String,
}

impl Digests {
    /// `seen` is the confinement as the worker's tier shows it. What was tried at the start is no part of what is enforced, and
    /// the random name of the temp directory none of what the rights are; how many rules it takes depends on how many
    /// neighbours what is hidden has just now. Equal starts have equal digests.
    pub(super) fn new(seen: &Confinement, report: &RulesetReport) -> Self {
        let seen = &without_temps_name(seen);
        let report = RulesetReport { attempts: Vec::new(), rules: 0, ..report.clone() };
        let Confinement { rights, project, temp, read_only, identity, .. } = seen;
        let ruleset = digest(&(rights, project, temp, read_only, identity, report));
        Self { rights: digest(rights), ruleset }
    }
}

/// A name that no path has, since none is relative.
const TEMP: &str = "$TMPDIR";

fn without_temps_name(seen: &Confinement) -> Confinement {
    let mut plain = seen.clone();
    for root in plain.rights.write.iter_mut().chain(&mut plain.temp) {
        if Some(&*root) == seen.temp.as_ref() {
            *root = TEMP.into();
        }
    }
    plain.rights.write.sort();
    plain
}

/// What names a ruleset in the log.
pub(crate) fn ruleset_digest(seen: &Confinement, report: &RulesetReport) -> String {
    Digests::new(seen, report).ruleset
}

/// SHA-256 of a value's encoding. Empty where the value has no encoding: it would not have reached a worker either.
fn digest(value: &impl Serialize) -> String {
    let bytes = ipc::codec::encode(value).unwrap_or_default();
    if bytes.is_empty() { String::new() } else { hex(&Sha256::digest(bytes)) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // A String takes every write.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use ipc::confinement::{Attempt, Tier};
    use ipc::path::WirePath;
    use ipc::rights::{Network, Reach, Rights, RightsChange};
    use proptest::prelude::*;

    use super::*;

    fn confinement() -> Confinement {
        let rights = Rights {
            read: vec!["/".into()],
            hidden: vec!["/h".into()],
            write: vec!["/p".into(), "/t".into()],
            ..Rights::default()
        };
        Confinement { temp: Some("/t".into()), ..Confinement::new(rights, "/p".into()) }
    }

    fn report(tier: Tier) -> RulesetReport {
        let (missing, attempts) = (vec![], vec![]);
        RulesetReport { tier, landlock_abi: 7, rules: 3, seccomp_rules: 9, missing, attempts }
    }

    #[test]
    fn a_ruleset_is_the_rights_and_what_enforces_them() {
        let digests = |tier| Digests::new(&confinement(), &report(tier));
        let (floor, full) = (digests(Tier::Floor), digests(Tier::Full));
        assert_eq!((floor.rights.len(), floor.ruleset.len()), (64, 64));
        assert_eq!(floor.rights, full.rights);
        assert_ne!(floor.ruleset, full.ruleset);
        let attempt = Attempt { act: "x".to_owned(), denied: true, errno: 13 };
        let tried = RulesetReport { attempts: vec![attempt], ..report(Tier::Full) };
        assert_eq!(Digests::new(&confinement(), &tried), full);
    }

    #[test]
    fn the_name_of_the_temp_directory_is_no_part_of_it() {
        let other = |temp: &str, write: &[&str]| {
            let mut other = confinement();
            other.temp = Some(temp.into());
            other.rights.write = write.iter().map(|path| WirePath::from(*path)).collect();
            Digests::new(&other, &report(Tier::Floor))
        };
        assert_eq!(other("/a", &["/a", "/p"]), other("/z", &["/p", "/z"]));
        assert_ne!(other("/a", &["/a", "/p"]), other("/z", &["/a", "/p"]), "it may not be written here");
    }

    fn change() -> impl Strategy<Value = RightsChange> {
        let path = prop_oneof!["/a", "/a/b", "/p", "/p/c"].prop_map(|path| WirePath::from(&path));
        let reach = any::<bool>().prop_map(|host| Reach { host, ..Reach::default() });
        prop_oneof![
            (any::<bool>(), reach).prop_map(|(on, reach)| {
                RightsChange::Network { net: if on { Network::On } else { Network::Off }, reach }
            }),
            path.clone().prop_map(|path| RightsChange::AddWrite { path }),
            path.prop_map(|path| RightsChange::RemoveWrite { path }),
        ]
    }

    proptest! {
        #[test]
        fn digests_differ_exactly_where_rights_do(changes in proptest::collection::vec(change(), 1..8)) {
            let digests = |rights: &Rights| {
                let seen = Confinement { rights: rights.clone(), ..confinement() };
                Digests::new(&seen, &report(Tier::Floor))
            };
            let mut rights = confinement().rights;
            for change in changes {
                let changed = rights.with_change(&change);
                let (before, after) = (digests(&rights), digests(&changed));
                prop_assert_eq!(changed == rights, before.rights == after.rights);
                prop_assert_eq!(changed == rights, before.ruleset == after.ruleset);
                rights = changed;
            }
        }
    }
}
