//! Rights in one line, as a person reads them.

use std::fmt;

use super::execution::Execution;
use super::lattice::Rights;
use super::network::Network;
use super::word::Word;
use crate::path::WirePath;

/// The character that stands between the items of a line; no path in it has this character.
pub(super) const SEPARATOR: char = '·';

impl Rights {
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
        // A project inside another root is named all the same; `/` says it by itself, and in a private `/tmp` it does not lie.
        let is_inside = |place: &&WirePath| {
            let holds = |root: &WirePath| {
                Some(root) != self.temp && root.as_path().parent().is_some() && place.is_within(root)
            };
            !paths.contains(place) && paths.iter().any(holds)
        };
        let caches = self.caches.filter(|_| label == "rw");
        let inside = [Some(self.project), caches].into_iter().flatten().filter(is_inside);
        let mut ordered: Vec<_> = paths.iter().chain(inside).collect();
        ordered.sort_by_key(|path| rank(path));
        for path in ordered {
            if path == self.project {
                f.write_str(" .")?;
            } else if Some(path) == self.temp {
                f.write_str(" $TMPDIR")?;
            } else if Some(path) == self.caches {
                f.write_str(" caches")?;
            } else {
                write!(f, " {}", Word(path))?;
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

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::confinement::{Tier, rights_in_tier};

    #[test]
    fn line_names_what_a_reader_looks_for() {
        let mut rights = Rights {
            read: vec!["/".into()],
            hidden: vec!["/home/me/.ssh".into()],
            write: vec!["/tmp/bw-1".into(), "/home/me/p".into(), "/data".into()],
            ..Rights::default()
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
        let inside = "/data/caches".into();
        assert_eq!(
            rights.line(&project, Some(&temp)).with_caches(Some(&inside)).to_string(),
            "rw . $TMPDIR caches /data /home/me/.cache/bailiwick/projects/p-1 · ro / minus hidden · net off"
        );
        let (below, caches) = ("/tmp/p".into(), "/tmp/caches".into());
        let line = |write: &[&str]| {
            let private = Rights { write: write.iter().map(WirePath::from).collect(), ..rights.clone() };
            private.line(&below, Some(&"/tmp".into())).with_caches(Some(&caches)).to_string()
        };
        assert_eq!(line(&["/tmp"]), "rw $TMPDIR · ro / minus hidden · net off");
        assert_eq!(
            line(&["/tmp", "/tmp/caches", "/tmp/p"]),
            "rw . $TMPDIR caches · ro / minus hidden · net off"
        );
        rights.write.clear();
        rights.hidden.clear();
        rights.net = Network::On;
        rights.exec = Execution::Denied;
        assert_eq!(rights.line(&project, None).to_string(), "ro / · net on · no commands");
    }

    #[test]
    fn a_path_reads_as_no_other_item() {
        let rights = Rights { write: vec!["/home/me/rv · net on · b".into()], ..Rights::default() };
        assert_eq!(
            rights.line(&"/p".into(), None).to_string(),
            r#"rw "/home/me/rv \u{b7} net on \u{b7} b" · ro nothing · net off"#
        );
    }

    /// Roots of the host, some below its `/tmp`; `/tmp/bw-1` is the private temp directory.
    fn write() -> impl Strategy<Value = Vec<WirePath>> {
        let path =
            select(vec!["/tmp", "/tmp/bw-1", "/tmp/p", "/tmp/p/c", "/tmp/x", "/p", "/p/c", "/c", "/d"]);
        vec(path.prop_map(WirePath::from), 0..5)
    }

    proptest! {
        #[test]
        fn every_tier_has_the_same_line_of_the_same_rights(
            write in write(),
            project in select(vec!["/p", "/tmp/p", "/tmp"]),
            caches in select(vec!["/c", "/p/c", "/tmp/p/c", "/tmp/c"]),
        ) {
            let rights = Rights { read: vec!["/".into()], write, ..Rights::default() }.normalised();
            let (project, temp, caches) = (project.into(), "/tmp/bw-1".into(), caches.into());
            let line = |tier| {
                let (seen, temp) = rights_in_tier(&rights, &project, Some(&temp), tier);
                seen.line(&project, temp.as_ref()).with_caches(Some(&caches)).to_string()
            };
            prop_assert_eq!(line(Tier::Full), line(Tier::Floor));
        }
    }
}
