use std::io;
use std::path::{Path, PathBuf};

use super::WatchedRoots;
use crate::tripwire::journal::CutOffChange;
use crate::tripwire::judge::{TripwireVerdict, content};
use crate::tripwire::root::Root;
use crate::tripwire::settle::{Around, ConfigView};
use crate::tripwire::state::WatchState;
use crate::tripwire::{Report, walk};

impl WatchedRoots {
    /// Returns the watched files that differ from their recorded state and that a check would restore.
    pub(in crate::tripwire) fn differences(&mut self, around: &Around) -> Vec<CutOffChange> {
        self.take_own(around);
        let listed = self.root.look(&self.held, &self.references, &self.given, Some(&self.state));
        let mut changed = self.view(around).verdicts(&self.state, &listed);
        let mut nested = WatchState::default();
        if self.root == Root::Project {
            nested = walk::nested(&self.held, &self.state.repositories, &self.given, Some(&self.nested));
            let view = ConfigView { known: &self.state.repositories, ..self.view(around) };
            changed.extend(view.verdicts(&self.nested, &nested));
        }
        let text =
            |state: &WatchState, path: &Path| state.places.get(path).and_then(content).map(<[u8]>::to_vec);
        let difference = |(path, verdict): (&PathBuf, &TripwireVerdict)| {
            // A changed directory covers everything in it.
            if path.ancestors().skip(1).any(|above| changed.contains_key(above)) {
                return None;
            }
            let [before, now] = [[&self.state, &self.nested], [&listed, &nested]]
                .map(|states| states.into_iter().find_map(|state| text(state, path)));
            let inside = changed.keys().filter(|other| *other != path && other.starts_with(path));
            let inside = inside.map(|other| self.path.join(other)).collect();
            let what = verdict.clone().change()?;
            Some(CutOffChange { path: self.path.join(path), what, before, now, inside })
        };
        changed.iter().filter_map(difference).collect()
    }

    pub(in crate::tripwire) fn take_as_they_are<'a>(&mut self, paths: impl Iterator<Item = &'a Path>) {
        let listed = self.look();
        let nested = walk::nested(&self.held, &listed.repositories, &self.given, None);
        for path in paths.filter_map(|path| path.strip_prefix(&self.path).ok()) {
            for (state, now) in [(&mut self.state, &listed), (&mut self.nested, &nested)] {
                state.places.retain(|place, _| !place.starts_with(path));
                let inside = now.places.iter().filter(|(place, _)| place.starts_with(path));
                state.places.extend(inside.map(|(path, place)| (path.clone(), place.clone())));
            }
        }
    }

    pub(in crate::tripwire) fn restore_all(&mut self, around: &Around) -> io::Result<Report> {
        let mut report = Report::default();
        self.check(around, &mut report, None)?;
        self.check_nested(around, &mut report, None)?;
        for change in &mut report.changes {
            change.path = self.path.join(&change.path).into();
        }
        Ok(report)
    }
}
