//! What an agent may do: a lattice of plain data.
//!
//! [`Rights::meet`] attenuates, [`Rights::covers`] compares; `a.covers(&b)` holds exactly when `a.meet(&b)` is `b`.
//! Paths are absolute and canonical: whoever builds rights resolves them first. Nothing here touches a file system.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::path::WirePath;

/// What an agent may do. Made by [`Rights::normalised`] or [`Rights::meet`], so that equal rights are equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rights {
    /// Trees that may be read and executed.
    pub read: Vec<WirePath>,
    /// Trees inside the read roots whose contents stay unreadable.
    pub hidden: Vec<WirePath>,
    /// Trees that may also be changed.
    pub write: Vec<WirePath>,
    /// Files inside the write roots that the host runs later, and that must not change.
    pub protected: Vec<WirePath>,
    /// The network.
    pub net: Network,
    /// What of this machine and its neighbourhood the network, where it is on, leads to.
    pub reach: Reach,
    /// Whether commands may be run at all.
    pub exec: Execution,
    /// Bounds on one call.
    pub limits: Limits,
}

/// The network right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// No socket reaches anything outside the sandbox.
    #[default]
    Off,
    /// Outbound TCP and UDP.
    On,
}

/// Addresses that the network alone does not lead to: a service that listens there trusts whoever reaches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reach {
    /// This machine's own addresses, loopback among them. The resolver of the machine is always within reach.
    pub host: bool,
    /// Link-local addresses.
    pub link_local: bool,
    /// The addresses at which clouds hand out credentials.
    pub metadata: bool,
}

impl Reach {
    fn join(self, other: Self) -> Self {
        Self {
            host: self.host || other.host,
            link_local: self.link_local || other.link_local,
            metadata: self.metadata || other.metadata,
        }
    }

    fn meet(self, other: Self) -> Self {
        Self {
            host: self.host && other.host,
            link_local: self.link_local && other.link_local,
            metadata: self.metadata && other.metadata,
        }
    }
}

/// A change of the rights of an agent that lives: its worker is replaced by one with the new rights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "right", rename_all = "snake_case")]
pub enum RightsChange {
    /// The network, and how far it leads.
    Network {
        /// Whether it is on.
        net: Network,
        /// How far it leads, where it is on.
        #[serde(default)]
        reach: Reach,
    },
    /// Another tree that may be changed.
    AddWrite {
        /// Its root.
        path: WirePath,
    },
    /// A tree that may no longer be changed.
    RemoveWrite {
        /// Its root.
        path: WirePath,
    },
}

/// Rights beyond the standing ones, for exactly one effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Grant {
    /// Files and trees that may be changed.
    pub write: Vec<WirePath>,
    /// The network.
    pub net: Network,
    /// How far it leads, where the grant turns it on.
    pub reach: Reach,
}

impl Grant {
    /// What both grant: an answer never gives more than was asked for.
    #[must_use]
    pub fn meet(&self, asked: &Self) -> Self {
        Self {
            write: intersection(&self.write, &asked.write),
            net: self.net.min(asked.net),
            reach: self.reach.meet(asked.reach),
        }
    }

    /// Whether it grants nothing.
    pub fn is_empty(&self) -> bool {
        self.write.is_empty() && self.net == Network::Off
    }
}

/// What is granted, as a person reads it: `write /p/a · net on +host`.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing more");
        }
        if !self.write.is_empty() {
            f.write_str("write")?;
            self.write.iter().try_for_each(|path| write!(f, " {path}"))?;
        }
        if self.net == Network::On {
            f.write_str(if self.write.is_empty() { "net on" } else { " · net on" })?;
            self.reach.fmt(f)?;
        }
        Ok(())
    }
}

/// Each place within reach, as ` +host`.
impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, link_local, metadata } = *self;
        for (within, name) in [(host, "host"), (link_local, "link-local"), (metadata, "metadata")] {
            if within {
                write!(f, " +{name}")?;
            }
        }
        Ok(())
    }
}

/// The right to run commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Execution {
    /// The worker executes no program.
    Denied,
    /// `shell_exec` runs commands under these rights.
    #[default]
    Allowed,
}

/// Bounds on one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limits {
    /// The longest that a command may run, in milliseconds.
    pub timeout_ms: u64,
    /// The most bytes of a command's output that are kept (head and tail; the rest is counted).
    pub output_bytes: u64,
}

impl Default for Limits {
    /// Ten minutes, 64 KiB.
    fn default() -> Self {
        Self { timeout_ms: 600_000, output_bytes: 64 << 10 }
    }
}

impl Limits {
    fn meet(self, other: Self) -> Self {
        Self {
            timeout_ms: self.timeout_ms.min(other.timeout_ms),
            output_bytes: self.output_bytes.min(other.output_bytes),
        }
    }
}

impl Rights {
    /// The canonical form: paths sorted, and none beneath another of its list; no reach where the network is off, so that
    /// what turns the network on says how far.
    #[must_use]
    pub fn normalised(self) -> Self {
        Self {
            read: roots(self.read),
            hidden: roots(self.hidden),
            write: roots(self.write),
            protected: roots(self.protected),
            reach: if self.net == Network::On { self.reach } else { Reach::default() },
            ..self
        }
    }

    /// The greatest rights that both cover.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        Self {
            read: intersection(&self.read, &other.read),
            hidden: union(&self.hidden, &other.hidden),
            write: intersection(&self.write, &other.write),
            protected: union(&self.protected, &other.protected),
            net: self.net.min(other.net),
            reach: self.reach.meet(other.reach),
            exec: self.exec.min(other.exec),
            limits: self.limits.meet(other.limits),
        }
    }

    /// The rights with this change, and no other.
    #[must_use]
    pub fn with_change(&self, change: &RightsChange) -> Self {
        let mut changed = self.clone();
        match change {
            RightsChange::Network { net, reach } => (changed.net, changed.reach) = (*net, *reach),
            RightsChange::AddWrite { path } => changed.write.push(path.clone()),
            RightsChange::RemoveWrite { path } => changed.write.retain(|root| root != path),
        }
        changed.normalised()
    }

    /// The rights and exactly what is granted beside them. What is hidden or protected stays so.
    #[must_use]
    pub fn with_grant(&self, grant: &Grant) -> Self {
        let mut granted = self.clone();
        granted.write.extend(grant.write.iter().cloned());
        if grant.net == Network::On {
            granted.net = Network::On;
            granted.reach = granted.reach.join(grant.reach);
        }
        granted.normalised()
    }

    /// Whether everything that `other` allows is allowed here.
    pub fn covers(&self, other: &Self) -> bool {
        within(&other.read, &self.read)
            && within(&self.hidden, &other.hidden)
            && within(&other.write, &self.write)
            && within(&self.protected, &other.protected)
            && other.net <= self.net
            && other.reach.meet(self.reach) == other.reach
            && other.exec <= self.exec
            && other.limits.meet(self.limits) == other.limits
    }

    /// Whether the contents of `path` may be read.
    pub fn allows_read(&self, path: &WirePath) -> bool {
        is_under(path, &self.read) && !is_under(path, &self.hidden)
    }

    /// Whether `path` may be changed.
    pub fn allows_write(&self, path: &WirePath) -> bool {
        is_under(path, &self.write) && !is_under(path, &self.hidden) && !is_under(path, &self.protected)
    }

    /// The rights in one line, as the status bar, the log, `doctor` and denials show them.
    ///
    /// `project` prints as `.`, `temp` as `$TMPDIR`: `rw . $TMPDIR · ro / minus hidden · net off`.
    pub fn line<'a>(&'a self, project: &'a WirePath, temp: Option<&'a WirePath>) -> RightsLine<'a> {
        RightsLine { rights: self, project, temp, caches: None }
    }
}

/// [`Rights`] as one line of text; see [`Rights::line`].
#[derive(Clone, Copy, Debug)]
pub struct RightsLine<'a> {
    rights: &'a Rights,
    project: &'a WirePath,
    temp: Option<&'a WirePath>,
    caches: Option<&'a WirePath>,
}

impl<'a> RightsLine<'a> {
    /// The line with the root that holds private caches printed as `caches`.
    #[must_use]
    pub const fn with_caches(self, caches: Option<&'a WirePath>) -> Self {
        Self { caches, ..self }
    }

    fn paths(&self, f: &mut fmt::Formatter<'_>, label: &str, paths: &[WirePath]) -> fmt::Result {
        f.write_str(label)?;
        // The project first and the temp directory second: they are what a reader looks for. Then what is always there.
        let rank =
            |path: &WirePath| (path != self.project, Some(path) != self.temp, Some(path) != self.caches);
        let mut ordered: Vec<_> = paths.iter().collect();
        let inside = |path: &&WirePath| self.project != *path && self.project.is_within(path);
        // A project inside another root is named all the same; `/` says it by itself.
        ordered.extend(
            paths.iter().find(inside).filter(|path| path.as_path().parent().is_some()).map(|_| self.project),
        );
        let holds =
            |path: &WirePath| self.caches.is_some_and(|caches| caches.is_within(path) && caches != path);
        ordered.extend(self.caches.filter(|_| label == "rw" && paths.iter().any(holds)));
        ordered.sort_by_key(|path| rank(path));
        for path in ordered {
            if path == self.project {
                f.write_str(" .")?;
            } else if Some(path) == self.temp {
                f.write_str(" $TMPDIR")?;
            } else if Some(path) == self.caches {
                f.write_str(" caches")?;
            } else {
                write!(f, " {path}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for RightsLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.rights.write.is_empty() {
            self.paths(f, "rw", &self.rights.write)?;
            f.write_str(" · ")?;
        }
        if self.rights.read.is_empty() {
            f.write_str("ro nothing")?;
        } else {
            self.paths(f, "ro", &self.rights.read)?;
        }
        if !self.rights.hidden.is_empty() {
            f.write_str(" minus hidden")?;
        }
        f.write_str(match self.rights.net {
            Network::Off => " · net off",
            Network::On => " · net on",
        })?;
        if self.rights.net == Network::On {
            self.rights.reach.fmt(f)?;
        }
        if self.rights.exec == Execution::Denied {
            f.write_str(" · no commands")?;
        }
        Ok(())
    }
}

fn is_under(path: &WirePath, roots: &[WirePath]) -> bool {
    roots.iter().any(|root| path.is_within(root))
}

fn within(inner: &[WirePath], outer: &[WirePath]) -> bool {
    inner.iter().all(|path| is_under(path, outer))
}

/// Sorts, and drops what lies beneath another root.
fn roots(mut paths: Vec<WirePath>) -> Vec<WirePath> {
    paths.sort_unstable();
    paths.dedup();
    // Looked up by name rather than compared with each other: there are a hundred hidden paths, at every start.
    let all: HashSet<OsString> = paths.iter().map(|path| path.as_path().as_os_str().to_owned()).collect();
    let is_beneath =
        |path: &WirePath| path.as_path().ancestors().skip(1).any(|above| all.contains(above.as_os_str()));
    paths.retain(|path| !is_beneath(path));
    paths
}

fn union(left: &[WirePath], right: &[WirePath]) -> Vec<WirePath> {
    roots(left.iter().chain(right).cloned().collect())
}

fn intersection(left: &[WirePath], right: &[WirePath]) -> Vec<WirePath> {
    let inner = left.iter().filter(|path| is_under(path, right));
    roots(inner.chain(right.iter().filter(|path| is_under(path, left))).cloned().collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path() -> impl Strategy<Value = WirePath> {
        proptest::collection::vec(prop_oneof!["a", "b", "c"], 0..4)
            .prop_map(|parts| WirePath::from(&format!("/{}", parts.join("/"))))
    }

    fn paths() -> impl Strategy<Value = Vec<WirePath>> {
        proptest::collection::vec(path(), 0..4)
    }

    pub(crate) fn rights() -> impl Strategy<Value = Rights> {
        let net = prop_oneof![Just(Network::Off), Just(Network::On)];
        let exec = prop_oneof![Just(Execution::Denied), Just(Execution::Allowed)];
        let limits =
            (0..3u64, 0..3u64).prop_map(|(timeout_ms, output_bytes)| Limits { timeout_ms, output_bytes });
        let reach =
            any::<[bool; 3]>().prop_map(|[host, link_local, metadata]| Reach { host, link_local, metadata });
        (paths(), paths(), paths(), paths(), net, reach, exec, limits).prop_map(
            |(read, hidden, write, protected, net, reach, exec, limits)| {
                Rights { read, hidden, write, protected, net, reach, exec, limits }.normalised()
            },
        )
    }

    proptest! {
        #[test]
        fn meet_is_idempotent_commutative_and_associative(a in rights(), b in rights(), c in rights()) {
            prop_assert_eq!(a.meet(&a), a.clone());
            prop_assert_eq!(a.meet(&b), b.meet(&a));
            prop_assert_eq!(a.meet(&b).meet(&c), a.meet(&b.meet(&c)));
        }

        #[test]
        fn covers_is_the_order_of_meet(a in rights(), b in rights()) {
            prop_assert!(a.covers(&a.meet(&b)));
            prop_assert_eq!(a.covers(&b), a.meet(&b) == b);
        }

        #[test]
        fn attenuated_rights_allow_nothing_new(a in rights(), b in rights(), path in path()) {
            let met = a.meet(&b);
            prop_assert!(!met.allows_read(&path) || a.allows_read(&path) && b.allows_read(&path));
            prop_assert!(!met.allows_write(&path) || a.allows_write(&path) && b.allows_write(&path));
        }
    }

    fn reach() -> impl Strategy<Value = Reach> {
        any::<[bool; 3]>().prop_map(|[host, link_local, metadata]| Reach { host, link_local, metadata })
    }

    fn grant() -> impl Strategy<Value = Grant> {
        let net = prop_oneof![Just(Network::Off), Just(Network::On)];
        (paths(), net, reach()).prop_map(|(write, net, reach)| Grant { write, net, reach })
    }

    proptest! {
        #[test]
        fn a_grant_adds_exactly_what_it_says(standing in rights(), grant in grant(), path in path()) {
            let granted = standing.with_grant(&grant);
            prop_assert!(granted.covers(&standing));
            let closed = is_under(&path, &standing.hidden) || is_under(&path, &standing.protected);
            let added = is_under(&path, &grant.write) && !closed;
            prop_assert_eq!(granted.allows_write(&path), standing.allows_write(&path) || added);
            prop_assert_eq!(granted.allows_read(&path), standing.allows_read(&path));
            prop_assert_eq!(granted.net, standing.net.max(grant.net));
            let on = grant.net == Network::On;
            prop_assert_eq!(granted.reach, if on { standing.reach.join(grant.reach) } else { standing.reach });
            prop_assert_eq!((granted.exec, granted.limits), (standing.exec, standing.limits));
            prop_assert_eq!((granted.hidden, granted.protected), (standing.hidden, standing.protected));
        }

        #[test]
        fn an_answer_never_gives_more_than_was_asked_for(
            standing in rights(), asked in grant(), answer in grant(),
        ) {
            let given = standing.with_grant(&answer.meet(&asked));
            prop_assert!(standing.with_grant(&asked).covers(&given));
            prop_assert!(standing.with_grant(&answer).covers(&given));
            prop_assert_eq!(standing.with_grant(&Grant::default()), standing);
        }

        #[test]
        fn a_childs_rights_never_exceed_its_parents(
            root in rights(), asked in proptest::collection::vec(rights(), 0..8), path in path(),
        ) {
            let mut line = vec![root];
            for asked in asked {
                let parent = &line[line.len() - 1];
                let child = parent.meet(&asked);
                prop_assert!(parent.covers(&child) && asked.covers(&child));
                line.push(child);
            }
            let last = &line[line.len() - 1];
            for ancestor in &line {
                prop_assert!(ancestor.covers(last));
                prop_assert!(!last.allows_read(&path) || ancestor.allows_read(&path));
                prop_assert!(!last.allows_write(&path) || ancestor.allows_write(&path));
                prop_assert!(last.net <= ancestor.net);
            }
        }

        #[test]
        fn a_change_changes_nothing_else(standing in rights(), path in path(), net in any::<bool>(), reach in reach()) {
            let net = if net { Network::On } else { Network::Off };
            let changed = standing.with_change(&RightsChange::Network { net, reach });
            let expected = Rights { net, reach: changed.reach, ..standing.clone() };
            prop_assert_eq!(&changed, &expected);
            prop_assert_eq!(changed.reach, if net == Network::On { reach } else { Reach::default() });
            let added = standing.with_change(&RightsChange::AddWrite { path: path.clone() });
            prop_assert!(added.covers(&standing) && is_under(&path, &added.write));
            let removed = standing.with_change(&RightsChange::RemoveWrite { path: path.clone() });
            prop_assert!(standing.covers(&removed) && !removed.write.contains(&path));
        }
    }

    #[test]
    fn line_names_what_a_reader_looks_for() {
        let mut rights = Rights {
            read: vec!["/".into()],
            hidden: vec!["/home/me/.ssh".into()],
            write: vec!["/tmp/bw-1".into(), "/home/me/p".into(), "/data".into()],
            protected: vec![],
            net: Network::Off,
            reach: Reach::default(),
            exec: Execution::Allowed,
            limits: Limits::default(),
        };
        let (project, temp) = ("/home/me/p".into(), "/tmp/bw-1".into());
        assert_eq!(
            rights.line(&project, Some(&temp)).to_string(),
            "rw . $TMPDIR /data · ro / minus hidden · net off"
        );
        rights.write.push("/home/me/.cache/bailiwick/projects/p-1".into());
        assert_eq!(
            rights.line(&project, Some(&temp)).with_caches(rights.write.last()).to_string(),
            "rw . $TMPDIR caches /data · ro / minus hidden · net off"
        );
        let inside = "/tmp/bw-1/caches".into();
        assert_eq!(
            rights.line(&project, Some(&temp)).with_caches(Some(&inside)).to_string(),
            "rw . $TMPDIR caches /data /home/me/.cache/bailiwick/projects/p-1 · ro / minus hidden · net off"
        );
        rights.write.clear();
        rights.hidden.clear();
        rights.net = Network::On;
        rights.exec = Execution::Denied;
        assert_eq!(rights.line(&project, None).to_string(), "ro / · net on · no commands");
    }
}
