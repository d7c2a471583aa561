//! Access without its long lists: for events and front ends, and as one line for people.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::execution::Execution;
use super::lattice::Rights;
use super::network::{Network, Reach};
use super::word::Word;
use crate::path::WirePath;

/// Separator between the items of a summary. A quoted path never contains it.
pub(super) const SEPARATOR: char = '·';

/// A summary of an agent's access. Hidden and protected paths are counted, since there are hundreds of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RightsSummary {
    /// Directories and files that may be changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<NamedRoot>,
    /// Directories that may be read and executed; `/` if absent.
    #[serde(default = "everything", skip_serializing_if = "is_everything")]
    pub read: Vec<NamedRoot>,
    /// Use of the network: off, on, or only to named hosts.
    pub net: Network,
    /// Local addresses that may be connected to if the network is on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reach: Reach,
    /// Unix sockets of other programs that may be reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<WirePath>,
    /// The right to run commands.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exec: Execution,
    /// Number of paths in the readable directories that cannot be read.
    #[serde(default)]
    pub hidden: u64,
    /// Number of paths in the writable directories that must not change.
    #[serde(default)]
    pub protected: u64,
}

/// A directory, by the name that a session has for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NamedRoot {
    /// The project.
    Project,
    /// The private temp directory.
    Temp,
    /// The private directory of package caches. Workers with different access have different ones.
    Caches,
    /// The system's programs, libraries and settings, as far as a guest needs them to run.
    System,
    /// Another directory.
    Path(WirePath),
}

fn everything() -> Vec<NamedRoot> {
    vec![NamedRoot::Path("/".into())]
}

fn is_everything(roots: &[NamedRoot]) -> bool {
    roots == everything()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The directories of a session that have a name in summaries.
#[derive(Clone, Copy, Debug)]
pub struct NamedPlaces<'a> {
    /// Root directory of the project.
    pub project: &'a WirePath,
    /// The private temp directory, if there is one.
    pub temp: Option<&'a WirePath>,
    /// The private directory of caches, if there is one.
    pub caches: Option<&'a WirePath>,
}

impl NamedPlaces<'_> {
    fn name(&self, path: &WirePath) -> NamedRoot {
        if path == self.project {
            NamedRoot::Project
        } else if Some(path) == self.temp {
            NamedRoot::Temp
        } else if Some(path) == self.caches {
            NamedRoot::Caches
        } else {
            NamedRoot::Path(path.clone())
        }
    }

    /// Returns the names of the roots: the project, the private temp directory and the caches first, then the others.
    fn names(&self, roots: &[WirePath]) -> Vec<NamedRoot> {
        let rank =
            |path: &WirePath| (path != self.project, Some(path) != self.temp, Some(path) != self.caches);
        // Project and caches are named even inside another root, but not inside `/`, which includes them, or a private
        // `/tmp`.
        let is_inside = |place: &&WirePath| {
            let holds = |root: &WirePath| {
                Some(root) != self.temp && root.as_path().parent().is_some() && place.is_within(root)
            };
            !roots.contains(place) && roots.iter().any(holds)
        };
        let inside = [Some(self.project), self.caches].into_iter().flatten().filter(is_inside);
        let mut ordered: Vec<_> = roots.iter().chain(inside).collect();
        ordered.sort_by_key(|path| rank(path));
        ordered.into_iter().map(|path| self.name(path)).collect()
    }
}

impl Rights {
    /// Returns a summary. As text it is one line of the status bar, `doctor` and denials:
    /// `writes in the project, $TMPDIR · network off · secrets hidden`.
    pub fn summary(&self, places: NamedPlaces<'_>) -> RightsSummary {
        let count = |places: &[WirePath]| u64::try_from(places.len()).unwrap_or(u64::MAX);
        RightsSummary {
            write: places.names(&self.write),
            read: NamedPlaces { caches: None, ..places }.names(&self.read),
            net: self.net.clone(),
            reach: self.reach,
            sockets: self.sockets.clone(),
            exec: self.exec,
            hidden: count(&self.hidden),
            protected: count(&self.protected),
        }
    }
}

impl RightsSummary {
    /// Replaces all readable directories below `places` by one name, [`NamedRoot::System`], at the end.
    #[must_use]
    pub fn with_system(mut self, places: &[&Path]) -> Self {
        let before = self.read.len();
        self.read.retain(|root| match root {
            NamedRoot::Path(path) => !places.iter().any(|place| path.as_path().starts_with(place)),
            NamedRoot::Project | NamedRoot::Temp | NamedRoot::Caches | NamedRoot::System => true,
        });
        if self.read.len() < before {
            self.read.push(NamedRoot::System);
        }
        self
    }
}

/// Displays a directory's name as one word. Paths are quoted, so that no path looks like another item.
impl fmt::Display for NamedRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project => f.write_str("the project"),
            Self::Temp => f.write_str("$TMPDIR"),
            Self::Caches => f.write_str("caches"),
            Self::System => f.write_str("system files"),
            Self::Path(path) => Word(path).fmt(f),
        }
    }
}

impl RightsSummary {
    /// Writes the directories that may be written and read: `writes in the project`.
    fn fmt_places(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.write[..], self.read.is_empty()) {
            ([], true) => f.write_str("nothing readable")?,
            ([], false) => f.write_str("read-only")?,
            ([NamedRoot::Temp], false) => f.write_str("read-only but for $TMPDIR")?,
            (roots, true) => write!(f, "writes in {} · nothing else readable", List(roots))?,
            (roots, false) => write!(f, "writes in {}", List(roots))?,
        }
        if !is_everything(&self.read) && !self.read.is_empty() {
            write!(f, " · read {}", List(&self.read))?;
        }
        Ok(())
    }

    /// Displays the directories that may be written and read, and if commands can be run: `read-only · no commands`.
    pub fn places(&self) -> impl fmt::Display {
        fmt::from_fn(|f| {
            self.fmt_places(f)?;
            f.write_str(if self.exec == Execution::Denied { " · no commands" } else { "" })
        })
    }
}

impl fmt::Display for RightsSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_places(f)?;
        write!(f, " · network {}", self.net)?;
        if !self.net.is_off() {
            self.reach.fmt(f)?;
        }
        if let [first, more @ ..] = &self.sockets[..] {
            write!(f, " · reaches {}", Word(first))?;
            more.iter().try_for_each(|path| write!(f, ", {}", Word(path)))?;
        }
        if self.hidden > 0 {
            f.write_str(" · secrets hidden")?;
        } else if is_everything(&self.read) {
            f.write_str(" · nothing hidden")?;
        }
        f.write_str(if self.exec == Execution::Denied { " · no commands" } else { "" })
    }
}

struct List<'a>(&'a [NamedRoot]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(at, root)| {
            let before = if at == 0 { "" } else { ", " };
            write!(f, "{before}{root}")
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::super::hosts::Hosts;
    use super::*;
    use crate::confinement::{Tier, rights_in_tier};

    fn line(rights: &Rights, project: &str, temp: Option<&str>, caches: Option<&WirePath>) -> String {
        let temp = temp.map(WirePath::from);
        let places = NamedPlaces { project: &project.into(), temp: temp.as_ref(), caches };
        rights.summary(places).to_string()
    }

    #[test]
    fn line_names_what_a_reader_looks_for() {
        let mut rights = Rights {
            read: vec!["/".into()],
            hidden: vec!["/home/me/.ssh".into()],
            write: vec!["/tmp/bw-1".into(), "/home/me/p".into(), "/data".into()],
            ..Rights::default()
        };
        let (project, temp) = ("/home/me/p", Some("/tmp/bw-1"));
        assert_eq!(
            line(&rights, project, temp, None),
            "writes in the project, $TMPDIR, /data · network off · secrets hidden"
        );
        rights.write.push("/home/me/.cache/bailiwick/projects/p-1".into());
        assert_eq!(
            line(&rights, project, temp, rights.write.last()),
            "writes in the project, $TMPDIR, caches, /data · network off · secrets hidden"
        );
        let inside = "/data/caches".into();
        assert_eq!(
            line(&rights, project, temp, Some(&inside)),
            "writes in the project, $TMPDIR, caches, /data, /home/me/.cache/bailiwick/projects/p-1 · network off · secrets hidden"
        );
        let caches = "/tmp/caches".into();
        let in_tmp = |write: &[&str]| {
            let private = Rights { write: write.iter().map(WirePath::from).collect(), ..rights.clone() };
            line(&private, "/tmp/p", Some("/tmp"), Some(&caches))
        };
        assert_eq!(in_tmp(&["/tmp"]), "read-only but for $TMPDIR · network off · secrets hidden");
        assert_eq!(
            in_tmp(&["/tmp", "/tmp/caches", "/tmp/p"]),
            "writes in the project, $TMPDIR, caches · network off · secrets hidden"
        );
        rights.write.clear();
        rights.hidden.clear();
        rights.net = Network::On;
        rights.exec = Execution::Denied;
        assert_eq!(
            line(&rights, project, None, None),
            "read-only · network on · nothing hidden · no commands"
        );
    }

    #[test]
    fn a_path_reads_as_no_other_item() {
        let rights = Rights { write: vec!["/home/me/rv · net on · b".into()], ..Rights::default() };
        assert_eq!(
            line(&rights, "/p", None, None),
            r#"writes in "/home/me/rv \u{b7} net on \u{b7} b" · nothing else readable · network off"#
        );
    }

    #[test]
    fn a_summary_is_short_in_json() {
        let rights = Rights {
            read: vec!["/".into()],
            hidden: vec!["/h".into(), "/i".into()],
            write: vec!["/p".into(), "/t".into(), b"/\xff".to_vec().into()],
            ..Rights::default()
        };
        let temp = "/t".into();
        let summary = rights.summary(NamedPlaces { project: &"/p".into(), temp: Some(&temp), caches: None });
        let json =
            r#"{"write":["project","temp",{"path":{"base64":"L/8="}}],"net":"off","hidden":2,"protected":0}"#;
        assert_eq!(serde_json::to_string(&summary).unwrap(), json);
        assert_eq!(serde_json::from_str::<RightsSummary>(json).unwrap(), summary);
        let narrow = RightsSummary { net: Network::On, ..RightsSummary::default() };
        let json = r#"{"read":[],"net":"on","hidden":0,"protected":0}"#;
        assert_eq!(serde_json::to_string(&narrow).unwrap(), json);
        assert_eq!(serde_json::from_str::<RightsSummary>(json).unwrap(), narrow);
    }

    #[test]
    fn hosts_are_named() {
        let rules = ["a.example:443", "b:80"].map(|rule| rule.parse().unwrap());
        let net = Network::Hosts(Hosts::new(rules).unwrap());
        let summary = RightsSummary { net, ..RightsSummary::default() };
        assert_eq!(summary.to_string(), "nothing readable · network on for a.example b:80");
    }

    #[test]
    fn places_of_the_system_have_one_name() {
        let path = |path: &str| NamedRoot::Path(path.into());
        let read = vec![path("/etc/hosts"), NamedRoot::Project, path("/usr/lib"), path("/usrlocal")];
        let summary = RightsSummary { read, ..RightsSummary::default() };
        let summary = summary.with_system(&["/etc", "/usr"].map(Path::new));
        assert_eq!(
            summary.to_string(),
            "read-only · read the project, /usrlocal, system files · network off"
        );
        assert_eq!(RightsSummary::default().with_system(&[Path::new("/")]), RightsSummary::default());
    }

    /// Write roots of the host, some below its `/tmp`; `/tmp/bw-1` is the private temp directory.
    fn write() -> impl Strategy<Value = Vec<WirePath>> {
        let path =
            select(vec!["/tmp", "/tmp/bw-1", "/tmp/p", "/tmp/p/c", "/tmp/x", "/p", "/p/c", "/c", "/d"]);
        vec(path.prop_map(WirePath::from), 0..5)
    }

    proptest! {
        #[test]
        fn every_tier_has_the_same_summary_of_the_same_rights(
            write in write(),
            project in select(vec!["/p", "/tmp/p", "/tmp"]),
            caches in select(vec!["/c", "/p/c", "/tmp/p/c", "/tmp/c"]),
        ) {
            let rights = Rights { read: vec!["/".into()], write, ..Rights::default() }.normalised();
            let (project, temp, caches) = (project.into(), "/tmp/bw-1".into(), caches.into());
            let summary = |tier| {
                let (seen, temp) = rights_in_tier(&rights, &project, Some(&temp), tier);
                let places = NamedPlaces { project: &project, temp: temp.as_ref(), caches: Some(&caches) };
                seen.summary(places)
            };
            prop_assert_eq!(summary(Tier::Full), summary(Tier::Floor));
        }
    }
}
