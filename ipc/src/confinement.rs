//! Orders to `sandbox-exec` (`--rights-fd N`), and its reports (`--status-fd N`), both as frames of generation 0.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::path::WirePath;
use crate::refusal::Refusal;
use crate::rights::{NamedPlaces, Rights, RightsSummary};

/// Everything that `sandbox-exec` needs to know to confine one program.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state among others")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Access of the program, with canonical paths.
    pub rights: Rights,
    /// The project's root: the working directory of the program, displayed as `.` in descriptions of access.
    pub project: WirePath,
    /// Private temp directory, which becomes `TMPDIR` and must exist. Other writable directories may not be in a hidden
    /// directory. `None` for a program without one.
    pub temp: Option<WirePath>,
    /// Identities of the hidden files in writable directories since the start of the session, so that renamed files
    /// stay hidden. Filled in before each start.
    pub hidden_files: Vec<FileIdentity>,
    /// Directories of [`devices`](crate::devices) that this agent has locked, for the floor tier in a container.
    pub devices: Vec<WirePath>,
    /// Environment variables in addition to the built-in allowlist.
    pub environment: Environment,
    /// True if the program starts even if this platform lacks a layer of the tier.
    pub allow_degraded: bool,
    /// True if the program may only read. Changes of modes, owners, times and attributes are then denied, too; rules on
    /// directories do not cover these.
    pub read_only: bool,
    /// The tier in which the program runs.
    pub tier: TierChoice,
    /// Newest Landlock ABI to use, to imitate an older kernel. `None` for the newest that the kernel has.
    pub landlock_abi: Option<u32>,
    /// User and group of the program, if not the caller's: root without capabilities cannot write files of other users.
    pub identity: Option<Identity>,
    /// True if a person can be asked about unlisted hosts. Ignored if the rights have no list of hosts.
    pub asks_hosts: bool,
    /// True if the terminal on descriptors 0 to 2 (a new one, never the user's) becomes the controlling terminal.
    pub terminal: bool,
    /// Joint limits of the program and its descendants, where this machine can enforce them.
    pub bounds: Bounds,
}

/// Joint limits of a program and its descendants; an absent limit is unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Maximum number of processes and threads. Enforced by a delegated control group and, in the full tier, by
    /// `RLIMIT_NPROC`, unless the program runs as root.
    pub processes: Option<u64>,
    /// Maximum memory in bytes, without swap. Enforced by the program's control group if one is delegated.
    pub memory: Option<u64>,
}

/// An order to `sandbox-exec`: to execute the program, confined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Confinement of the program.
    pub confinement: Confinement,
    /// Arguments of the program, appended to those of the command line of `sandbox-exec`.
    pub arguments: Vec<String>,
}

/// User and group that a program runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// User id outside the sandbox.
    pub uid: u32,
    /// Group id outside the sandbox.
    pub gid: u32,
}

/// The tier that an order requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TierChoice {
    /// The best tier that this machine can enforce.
    #[default]
    Best,
    /// The full tier. The start fails where it is not available.
    Full,
    /// The floor tier, even if this machine can enforce the full one.
    Floor,
}

const TMP: &str = "/tmp";

/// The devices that every confined program may read and write.
pub const HARMLESS_DEVICES: [&str; 5] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

impl Confinement {
    /// Returns a confinement with this access in the best tier, without private temp directory and terminal, with the
    /// usual variables and the caller's identity.
    pub fn new(rights: Rights, project: WirePath) -> Self {
        Self {
            rights,
            project,
            temp: None,
            hidden_files: Vec::new(),
            devices: Vec::new(),
            environment: Environment::default(),
            allow_degraded: false,
            read_only: false,
            tier: TierChoice::default(),
            landlock_abi: None,
            identity: None,
            asks_hosts: false,
            terminal: false,
            bounds: Bounds::default(),
        }
    }

    /// True if the program has a private temp directory at `/tmp`. False if it may write the host's `/tmp`.
    pub fn has_private_tmp(&self, tier: Tier) -> bool {
        has_private_tmp(&self.rights, &self.project, self.temp.as_ref(), tier)
    }

    /// Returns a summary of the access.
    pub fn summary(&self) -> RightsSummary {
        let Self { rights, project, temp, environment, .. } = self;
        rights.summary(NamedPlaces { project, temp: temp.as_ref(), caches: environment.caches.as_ref() })
    }

    /// Returns the confinement with paths as the program sees them, where a private temp directory may be `/tmp`.
    #[must_use]
    pub fn in_tier(&self, tier: Tier) -> Self {
        let (rights, temp) = rights_in_tier(&self.rights, &self.project, self.temp.as_ref(), tier);
        let mut environment = self.environment.clone();
        if let Some((from, to)) = self.temp.as_ref().zip(temp.as_ref()) {
            let values = environment.set.iter_mut().map(|(_, value)| value);
            values.for_each(|value| follow(value, from.as_bytes(), to.as_bytes()));
            environment.caches = environment.caches.map(|caches| {
                let mut caches = caches.as_bytes().to_vec();
                follow(&mut caches, from.as_bytes(), to.as_bytes());
                caches.into()
            });
        }
        Self { rights, temp, environment, ..self.clone() }
    }
}

fn has_private_tmp(rights: &Rights, project: &WirePath, temp: Option<&WirePath>, tier: Tier) -> bool {
    let place = WirePath::from(TMP);
    let granted = rights.write.iter().any(|root| Some(root) != temp && place.is_within(root));
    tier == Tier::Full && temp.is_some() && !granted && *project != place
}

/// Returns access and private temp directory as a program in this tier sees them; see [`Confinement::in_tier`].
///
/// If `/tmp` is private, a writable directory below the host's `/tmp` stays a separate entry, which
/// [`Rights::normalised`] would drop.
pub fn rights_in_tier(
    rights: &Rights,
    project: &WirePath,
    temp: Option<&WirePath>,
    tier: Tier,
) -> (Rights, Option<WirePath>) {
    let mut seen = rights.clone();
    if !has_private_tmp(rights, project, temp, tier) {
        return (seen, temp.cloned());
    }
    // The normal form leaves out a temp directory below a write root. At its new path it needs an entry of its own.
    let holds_it = |root: &WirePath| temp.is_some_and(|temp| temp.is_within(root));
    if seen.write.iter().any(holds_it) {
        seen.write.retain(|root| Some(root) != temp);
        seen.write.push(TMP.into());
    }
    seen.write.sort_unstable();
    (seen, Some(TMP.into()))
}

/// Replaces the prefix `from` of the path `value` with `to`, if the path has that prefix.
fn follow(value: &mut Vec<u8>, from: &[u8], to: &[u8]) {
    if let Some(rest) = value.strip_prefix(from).filter(|rest| rest.first().is_none_or(|byte| *byte == b'/'))
    {
        *value = [to, rest].concat();
    }
}

/// A file or directory, independent of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Device number of the file, as stat(2) gives it.
    pub device: u64,
    /// Inode number of the file, as stat(2) gives it.
    pub inode: u64,
}

/// Environment variables that a program gets in addition to the built-in allowlist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Names of variables that are passed in addition to the built-in list.
    pub pass: Vec<String>,
    /// Variables that are set, with their values.
    pub set: Vec<(String, Vec<u8>)>,
    /// Directory of the package caches that some of these variables name. Summaries show it as `caches` if the program
    /// may write it, unless it is in the private temp directory. `None` if they get no copies from others with more
    /// access.
    pub caches: Option<WirePath>,
}

/// Reports from the broker to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BrokerReport {
    /// The confined program is about to be executed.
    Started {
        /// Process id of the program, as the supervisor sees it.
        pid: u32,
        /// The enforced parts of the confinement.
        ruleset: RulesetReport,
    },
    /// The program was not executed.
    Failed {
        /// Exit code of the stage, 100–119.
        code: u8,
        /// Name of the stage.
        stage: String,
        /// The step that failed, and its cause.
        detail: String,
        /// The step that failed, if this machine refuses the full tier.
        refusal: Option<FullTierRefusal>,
    },
    /// The program and all its descendants are gone.
    Ended {
        /// Exit code, or 128 + the number of the signal that ended the program.
        status: i32,
    },
    /// The rules denied a system call. May come before [`BrokerReport::Started`].
    Refused(Refusal),
}

/// A confinement as this kernel enforces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesetReport {
    /// The enforced tier.
    pub tier: Tier,
    /// The Landlock ABI in use; 0 without Landlock.
    pub landlock_abi: u32,
    /// Number of Landlock rules that are enforced.
    pub rules: u32,
    /// Number of seccomp rules that are enforced.
    pub seccomp_rules: u32,
    /// The joint limits that are enforced.
    pub bounds: Bounds,
    /// Reason that this machine's best tier is not the full one. Absent if it is, or if another tier was requested.
    pub no_full_tier: Option<NoFullTier>,
    /// Parts of the access that this kernel does not enforce, one sentence each.
    pub missing: Vec<String>,
    /// Forbidden actions that were tried inside the confinement, before the program was executed.
    pub attempts: Vec<Attempt>,
}

/// The reason why the best tier is not the full one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoFullTier {
    /// The failed step and its error, if they are known.
    pub refusal: Option<FullTierRefusal>,
    /// A sentence for people: the attempt, and the reason of its failure.
    pub detail: String,
}

/// The step at which this machine refuses the full tier, and its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FullTierRefusal {
    /// The step that failed.
    pub step: FullTierStep,
    /// The error number, if there was one.
    pub errno: Option<i32>,
}

/// A step in the construction of the full tier. Only steps that have a remedy of their own are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FullTierStep {
    /// Mounting a separate `/proc`.
    MountProc,
    /// Any other step.
    Other,
}

/// A level of confinement, by the features that a machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Tier {
    /// The floor tier in user, mount, pid, ipc and uts namespaces with a read-only mount tree; with the network off
    /// also in a network namespace.
    Full,
    /// Landlock, seccomp, no capabilities, and a broker for socket calls. Paths and socket names are the host's.
    Floor,
    /// The floor tier on a kernel without seccomp notifications. Only connected pairs of sockets can be created.
    #[serde(alias = "floor (unmediated)")]
    FloorUnmediated,
}

impl From<Tier> for TierChoice {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::Full => Self::Full,
            Tier::Floor | Tier::FloorUnmediated => Self::Floor,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Floor => "floor",
            Self::FloorUnmediated => "floor (unmediated)",
        })
    }
}

/// A forbidden action that was tried inside a confinement, and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The attempted action, as a phrase: `write outside the writable directories`.
    pub act: String,
    /// True if the kernel denied the action.
    pub denied: bool,
    /// The error number; 0 if the action succeeded.
    pub errno: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confinement(project: &str, write: &[&str]) -> Confinement {
        let rights = Rights {
            read: vec!["/".into()],
            write: write.iter().map(|path| WirePath::from(*path)).collect(),
            ..Rights::default()
        };
        let temp = Some("/tmp/bw-1".into());
        Confinement { temp, ..Confinement::new(rights.normalised(), project.into()) }
    }

    fn seen(confinement: &Confinement, tier: Tier) -> String {
        let seen = confinement.in_tier(tier);
        seen.summary().to_string()
    }

    #[test]
    fn the_full_tier_has_a_tmp_of_its_own() {
        let usual = confinement("/p", &["/p", "/tmp/bw-1"]);
        assert_eq!(usual.in_tier(Tier::Full).temp, Some("/tmp".into()));
        assert_eq!(seen(&usual, Tier::Full), "writes in the project, $TMPDIR · network off · nothing hidden");
        assert_eq!(usual.in_tier(Tier::Floor), usual);
    }

    #[test]
    fn variables_follow_the_temp_directory_and_nothing_else_does() {
        let mut usual = confinement("/p", &["/p", "/tmp/bw-1"]);
        let set = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
        usual.environment.set =
            vec![set("A", "/tmp/bw-1/a"), set("B", "/tmp/bw-12/b"), set("C", "/tmp/bw-1")];
        let values = |tier| usual.in_tier(tier).environment.set;
        assert_eq!(values(Tier::Full), [set("A", "/tmp/a"), set("B", "/tmp/bw-12/b"), set("C", "/tmp")]);
        assert_eq!(values(Tier::Floor), usual.environment.set);
    }

    #[test]
    fn a_project_below_tmp_is_still_named() {
        let below = confinement("/tmp/p", &["/tmp/p", "/tmp/bw-1"]);
        assert_eq!(seen(&below, Tier::Full), "writes in the project, $TMPDIR · network off · nothing hidden");
    }

    #[test]
    fn a_write_root_below_tmp_is_another_place_than_the_private_one() {
        let below = confinement("/p", &["/p", "/tmp/bw-1", "/tmp/x/q"]);
        let line = "writes in the project, $TMPDIR, /tmp/x/q · network off · nothing hidden";
        assert_eq!([Tier::Full, Tier::Floor].map(|tier| seen(&below, tier)), [line, line]);
        let seen = below.in_tier(Tier::Full).rights;
        assert_eq!(seen.write, ["/p", "/tmp", "/tmp/x/q"].map(WirePath::from));
        assert_ne!(seen, confinement("/p", &["/p", "/tmp/bw-1"]).in_tier(Tier::Full).rights);
    }

    #[test]
    fn a_write_root_around_the_temp_directory_does_not_take_it_away() {
        let mut around = confinement("/h/p", &["/h", "/h/.cache/temps/bw-1"]);
        around.temp = Some("/h/.cache/temps/bw-1".into());
        assert_eq!(around.rights.write, [WirePath::from("/h")]);
        assert_eq!(around.in_tier(Tier::Full).rights.write, ["/h", "/tmp"].map(WirePath::from));
        assert_eq!(around.in_tier(Tier::Floor), around);
        // A program without write access to the temp directory gets none at the new path.
        let reader = Confinement { temp: around.temp.clone(), ..confinement("/h/p", &[]) };
        assert!(reader.in_tier(Tier::Full).rights.write.is_empty());
    }

    #[test]
    fn who_may_write_the_hosts_tmp_sees_it() {
        let granted = confinement("/p", &["/p", "/tmp"]);
        assert!(!granted.has_private_tmp(Tier::Full));
        assert_eq!(granted.in_tier(Tier::Full), granted);
        assert!(!confinement("/tmp", &["/tmp"]).has_private_tmp(Tier::Full));
    }
}
