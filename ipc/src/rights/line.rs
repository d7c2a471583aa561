//! Rights in one line, as a person reads them.

use std::fmt;

use super::execution::Execution;
use super::lattice::Rights;
use super::network::Network;
use crate::path::WirePath;

impl Rights {
    /// The rights in one line, as the status bar, the log, `doctor` and denials show them.
    ///
    /// `project` prints as `.`, `temp` as `$TMPDIR`: `rw . $TMPDIR · ro / minus hidden · net off`.
    pub fn line<'a>(&'a self, project: &'a WirePath, temp: Option<&'a WirePath>) -> RightsLine<'a> {
        RightsLine { rights: self, project, temp, caches: None, read_only: &[] }
    }
}

/// [`Rights`] as one line of text; see [`Rights::line`].
#[derive(Clone, Copy, Debug)]
pub struct RightsLine<'a> {
    rights: &'a Rights,
    project: &'a WirePath,
    temp: Option<&'a WirePath>,
    caches: Option<&'a WirePath>,
    read_only: &'a [WirePath],
}

impl<'a> RightsLine<'a> {
    /// The line with the root that holds private caches printed as `caches`.
    #[must_use]
    pub const fn with_caches(self, caches: Option<&'a WirePath>) -> Self {
        Self { caches, ..self }
    }

    /// The line without what lies in a write root and cannot be written all the same.
    #[must_use]
    pub const fn without(self, read_only: &'a [WirePath]) -> Self {
        Self { read_only, ..self }
    }

    fn paths(&self, f: &mut fmt::Formatter<'_>, label: &str, paths: &[WirePath]) -> fmt::Result {
        f.write_str(label)?;
        // The project first and the temp directory second: they are what a reader looks for. Then what is always there.
        let rank =
            |path: &WirePath| (path != self.project, Some(path) != self.temp, Some(path) != self.caches);
        let mut ordered: Vec<_> = paths.iter().collect();
        let inside = |path: &&WirePath| {
            self.project != *path && self.project.is_within(path) && !self.read_only.contains(self.project)
        };
        // A project inside another root is named all the same; `/` says it by itself.
        ordered.extend(
            paths.iter().find(inside).filter(|path| path.as_path().parent().is_some()).map(|_| self.project),
        );
        let holds =
            |path: &WirePath| self.caches.is_some_and(|caches| caches.is_within(path) && caches != path);
        let writable = |caches: &&WirePath| label == "rw" && !self.read_only.contains(caches);
        ordered.extend(self.caches.filter(writable).filter(|_| paths.iter().any(holds)));
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let inside = "/tmp/bw-1/caches".into();
        assert_eq!(
            rights.line(&project, Some(&temp)).with_caches(Some(&inside)).to_string(),
            "rw . $TMPDIR caches /data /home/me/.cache/bailiwick/projects/p-1 · ro / minus hidden · net off"
        );
        let (below, caches) = ("/tmp/p".into(), "/tmp/caches".into());
        let private = Rights { write: vec!["/tmp".into()], ..rights.clone() };
        let line = |read_only: &[WirePath]| {
            let line = private.line(&below, private.write.first()).with_caches(Some(&caches));
            line.without(read_only).to_string()
        };
        assert_eq!(line(&[]), "rw . $TMPDIR caches · ro / minus hidden · net off");
        assert_eq!(line(&[below.clone(), caches.clone()]), "rw $TMPDIR · ro / minus hidden · net off");
        rights.write.clear();
        rights.hidden.clear();
        rights.net = Network::On;
        rights.exec = Execution::Denied;
        assert_eq!(rights.line(&project, None).to_string(), "ro / · net on · no commands");
    }
}
