//! What a session left that was ended in the middle of a call.

use std::io;
use std::path::{Path, PathBuf};

use protocol::event::PlaceChange;
use protocol::rpc::BaselineWord;

use super::enter::JournalEntry;
use super::identity::RootIdentity;
use super::{BaselineJournal, JournalOptions, boot, neighbours};
use crate::tripwire::beneath::open_root;
use crate::tripwire::settle::Around;
use crate::tripwire::{Approved, Report, Tripwire, Watch, WatchedRoots};

/// A place that is not as it was before a call that was cut off.
#[derive(Clone, Debug)]
pub struct CutOffChange {
    /// The place, absolute.
    pub path: PathBuf,
    /// Its change.
    pub what: PlaceChange,
    /// The content of the file before it, if it was one that is kept.
    pub before: Option<Vec<u8>>,
    /// The content of the file now.
    pub now: Option<Vec<u8>>,
    /// Places in it that are not as they were either, if it is a directory: the word on it is one on them.
    pub inside: Vec<PathBuf>,
}

/// A person's word on a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineChoice {
    /// It stays as it is.
    Mine,
    /// It becomes what it was before the call.
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

/// Compares what is watched with what sessions knew that were ended in the middle of a call, before anything may write. `decide` is
/// asked about the differences of a directory, and gives a word on each; its error ends the start. Nothing is asked where nothing
/// differs.
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
        // One with a living session is none that was left.
        if let JournalEntry::First(mut journal, _door) =
            BaselineJournal::enter(options, path, watched.held())?
        {
            report.append(journal.settle_left(&mut watched, &watch.around(), &mut decide)?);
        }
    }
    Ok(report)
}

/// Tells the sessions that live in these directories of a change that somebody approved, byte by byte, in one that watches none of them.
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

/// True if there is a journal with lines. A directory that was moved brings its own.
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
    /// Settles what a killed session left, and drops the journal's lines.
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
                // Not a line is lost where nobody decides.
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

    /// True if a call was cut off, or the machine stopped.
    fn is_unsettled(&self) -> bool {
        !self.working.is_empty() || !self.unsearched.is_empty() || self.has_baseline() && self.boot != boot()
    }
}

/// The answer of a start that cannot ask anybody.
pub(super) fn refuse(differences: &[CutOffChange]) -> io::Result<Vec<BaselineChoice>> {
    let places: Vec<_> = differences.iter().map(|difference| difference.path.display().to_string()).collect();
    Err(io::Error::other(format!(
        "a session here was ended in the middle of a command, and these are not as they were before it: {}\n  hint: start Bailiwick \
         here again, which asks whose they are",
        places.join(", ")
    )))
}
