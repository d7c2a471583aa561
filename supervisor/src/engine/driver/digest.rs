//! Digests that identify an agent's access and a worker's rules in the log.

use ipc::confinement::{Confinement, RulesetReport};
use ipc::text::hexadecimal;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Digests of one worker's access and rules, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digests {
    pub(super) rights: String,
    /// Digest of the access together with the rules by which the kernel enforces it.
    pub(super) ruleset: String,
}

impl Digests {
    /// Computes the digests from paths of the host, since below a private `/tmp` a name can have two meanings. Equal
    /// starts have equal digests: start attempts, the random name of the temp directory and the number of rules (which
    /// depends on the neighbours of hidden paths) are left out.
    pub(super) fn new(confinement: &Confinement, report: &RulesetReport) -> Self {
        let report = RulesetReport { attempts: Vec::new(), rules: 0, ..report.clone() };
        let Confinement { rights, project, temp, read_only, identity, .. } = &without_temps_name(confinement);
        let ruleset = digest(&(rights, project, temp, read_only, identity, report));
        Self { rights: digest(rights), ruleset }
    }
}

/// Relative path that stands for the private temp directory in a digest. No path in a worker's access can equal it.
const TEMP: &str = "$TMPDIR";

fn without_temps_name(confinement: &Confinement) -> Confinement {
    let mut plain = confinement.clone();
    for root in plain.rights.write.iter_mut().chain(&mut plain.temp) {
        if Some(&*root) == confinement.temp.as_ref() {
            *root = TEMP.into();
        }
    }
    plain.rights.write.sort();
    plain
}

/// Returns the digest of an agent's access, as logged.
pub(crate) fn rights_digest(confinement: &Confinement) -> String {
    digest(&without_temps_name(confinement).rights)
}

/// Returns the digest of a worker's access and rules, as logged.
pub(crate) fn ruleset_digest(confinement: &Confinement, report: &RulesetReport) -> String {
    Digests::new(confinement, report).ruleset
}

/// Returns the SHA-256 of a value's encoding in hexadecimal; empty if the value cannot be encoded.
fn digest(value: &impl Serialize) -> String {
    let bytes = ipc::codec::encode(value).unwrap_or_default();
    if bytes.is_empty() { String::new() } else { hexadecimal(&Sha256::digest(bytes)) }
}

#[cfg(test)]
mod tests {
    use ipc::confinement::{Attempt, Bounds, Tier};
    use ipc::path::WirePath;
    use ipc::rights::{Execution, Limits, Network, Reach, Rights};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

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
        let (missing, attempts) = (Vec::new(), Vec::new());
        let bounds = Bounds::default();
        RulesetReport {
            tier,
            landlock_abi: 7,
            rules: 3,
            seccomp_rules: 9,
            bounds,
            no_full_tier: None,
            missing,
            attempts,
        }
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

    /// Private temp directory in generated access.
    const SYMBOL: &str = "/temp";

    /// Generates access with the private temp directory [`SYMBOL`]. Other write roots below `/tmp` are the host's.
    fn rights() -> impl Strategy<Value = Rights> {
        let path = select(vec!["/tmp", "/tmp/x", "/tmp/x/q", "/tmp/y", "/p", "/p/a", "/home", "/"]);
        let paths = || vec(path.clone().prop_map(WirePath::from), 0..3);
        let net = prop_oneof![Just(Network::Off), Just(Network::On)];
        let reach = any::<[bool; 4]>().prop_map(|[host, lan, link_local, metadata]| Reach {
            host,
            lan,
            link_local,
            metadata,
        });
        let exec = prop_oneof![Just(Execution::Denied), Just(Execution::Allowed)];
        let limits =
            (1..3u64, 1..3u64).prop_map(|(timeout_ms, output_bytes)| Limits { timeout_ms, output_bytes });
        let lists = (paths(), paths(), paths(), paths(), paths(), any::<bool>());
        (lists, net, reach, exec, limits).prop_map(|(lists, net, reach, exec, limits)| {
            let (read, hidden, mut write, protected, sockets, has_temp) = lists;
            write.extend(has_temp.then(|| WirePath::from(SYMBOL)));
            Rights { read, hidden, write, protected, net, reach, sockets, exec, limits }.normalised()
        })
    }

    fn with_one_of(rights: &Rights, other: Rights, field: usize) -> Rights {
        let mut changed = rights.clone();
        match field {
            0 => changed.read = other.read,
            1 => changed.hidden = other.hidden,
            2 => changed.write = other.write,
            3 => changed.protected = other.protected,
            4 => changed.net = other.net,
            5 => changed.reach = other.reach,
            6 => changed.exec = other.exec,
            7 => changed.sockets = other.sockets,
            _ => changed.limits = other.limits,
        }
        changed.normalised()
    }

    fn named(rights: &Rights, temp: &str) -> Rights {
        let mut rights = rights.clone();
        for root in rights.write.iter_mut().filter(|root| **root == SYMBOL.into()) {
            *root = temp.into();
        }
        rights.normalised()
    }

    fn digests(rights: &Rights, temp: &str, tier: Tier) -> Digests {
        let rights = named(rights, temp);
        let confinement = Confinement { temp: Some(temp.into()), ..Confinement::new(rights, "/p".into()) };
        Digests::new(&confinement, &report(tier))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn digests_differ_exactly_where_rights_do(
            left in rights(), other in rights(), field in 0..8usize, tier in select(vec![Tier::Full, Tier::Floor]),
        ) {
            let right = with_one_of(&left, other.clone(), field);
            for right in [&right, &other] {
                let same = named(&left, "/tmp/bw-aa") == named(right, "/tmp/bw-aa");
                let (before, after) = (digests(&left, "/tmp/bw-aa", tier), digests(right, "/tmp/zz-bw", tier));
                prop_assert_eq!(same, before.rights == after.rights);
                prop_assert_eq!(same, before.ruleset == after.ruleset);
            }
        }
    }
}
