use std::io;
use std::path::{Path, PathBuf};

use protocol::event::PlaceChange;
use protocol::rpc::BaselineWord;

use super::enter::Joining;
use super::identity::RootIdentity;
use super::{BaselineJournal, JournalOptions, boot, neighbours};
use crate::tripwire::beneath::open_root;
use crate::tripwire::settle::Around;
use crate::tripwire::{Approved, Report, Tripwire, Watch, WatchedRoots};

/// Watched file that differs from its recorded state because a tool call was interrupted.
#[derive(Clone, Debug)]
pub struct CutOffChange {
    pub path: PathBuf,
    pub what: PlaceChange,
    pub before: Option<Vec<u8>>,
    pub now: Option<Vec<u8>>,
    /// Changed paths below this one, if it is a directory. A person's choice for the directory applies to all of them.
    pub inside: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineChoice {
    Mine,
    Restore,
}

impl From<BaselineWord> for BaselineChoice {
    fn from(word: BaselineWord) -> Self {
        match word {
            BaselineWord::Mine => Self::Mine,
            BaselineWord::Restore => Self::Restore,
        }
    }
}

/// Settles the changes of killed sessions: in each directory where such a session left a tool call unfinished and no
/// session runs, compares watched files with their recorded state, calls `decide` with the differences, and applies the
/// choices that it returns. Fails if `decide` fails.
pub fn settle_leftovers(
    watch: &Watch,
    mut decide: impl FnMut(&[CutOffChange]) -> io::Result<Vec<BaselineChoice>>,
) -> io::Result<Report> {
    let mut report = Report::default();
    let Some(options) = &watch.journals else { return Ok(report) };
    for (root, path) in watch.places_by_root() {
        if !has_journal(options, path)? {
            continue;
        }
        let mut watched = WatchedRoots::empty(root, path, watch.given().beneath(path))?;
        // A journal with a running session is left to that session.
        if let Joining::First(mut journal, _door) = BaselineJournal::enter(options, path, watched.held())? {
            report.append(journal.settle_left(&mut watched, &watch.around(), &mut decide)?);
        }
    }
    Ok(report)
}

/// Reports approved changes in these directories to other sessions. Used by sessions that do not watch the directories.
pub fn tell_others(watch: &Watch, approved: &[Approved]) -> io::Result<()> {
    let Some(options) = &watch.journals else { return Ok(()) };
    let has_others = |path: &Path| has_journal(options, path).unwrap_or(false);
    if !watch
        .places()
        .any(|place| approved.iter().any(|file| file.path.starts_with(place)) && has_others(place))
    {
        return Ok(());
    }
    Tripwire::set(watch).map(|mut tripwire| tripwire.accept(approved))
}

/// True if the directory has a journal with lines, even if the directory was moved after they were written.
fn has_journal(options: &JournalOptions, path: &Path) -> io::Result<bool> {
    if !options.directory.exists() {
        return Ok(false);
    }
    let identity = RootIdentity::of(path, &open_root(path)?)?;
    let place = options.directory.join(identity.key());
    neighbours::follow_move(&options.directory, &place, &identity)?;
    Ok(place.join("lines").metadata().is_ok_and(|lines| lines.len() > 0))
}

impl BaselineJournal {
    pub(super) fn settle_left(
        &mut self,
        watched: &mut WatchedRoots,
        around: &Around,
        decide: &mut dyn FnMut(&[CutOffChange]) -> io::Result<Vec<BaselineChoice>>,
    ) -> io::Result<Report> {
        let mut report = Report::default();
        self.exclusively(watched, |_, _| Ok(()))?;
        if self.is_unsettled() {
            let differences = watched.differences(around);
            if !differences.is_empty() {
                // The journal keeps its lines if `decide` fails.
                let choices = decide(&differences)?;
                let mine =
                    differences.iter().zip(&choices).filter(|(_, choice)| **choice == BaselineChoice::Mine);
                watched.take_as_they_are(mine.map(|(difference, _)| difference.path.as_path()));
                report = watched.restore_all(around)?;
            }
        }
        self.clear()?;
        Ok(report)
    }

    fn is_unsettled(&self) -> bool {
        !self.working.is_empty() || !self.unsearched.is_empty() || self.has_baseline() && self.boot != boot()
    }
}

/// Fails with an error that names the changed paths. For sessions that cannot ask a person.
pub(super) fn refuse(differences: &[CutOffChange]) -> io::Result<Vec<BaselineChoice>> {
    let places: Vec<_> = differences.iter().map(|difference| difference.path.display().to_string()).collect();
    Err(io::Error::other(format!(
        "a session here was killed during a command, and these files differ from before the command: {}\n  hint: start Bailiwick here at a terminal, and answer whose changes they are",
        places.join(", ")
    )))
}
