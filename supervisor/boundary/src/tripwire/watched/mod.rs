//! A watched directory: the recorded state of its files, and what in it is the person's own.

mod cut_off;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::event::{PlaceChange, RestoredPlace};
use protocol::shell_word::shell_word;

use super::anchor::{Anchor, FoundAnchor};
use super::journal::{AtRest, Author, BaselineJournal, BaselinePart, JournalOptions, StateDelta};
use super::judge::{Own, content};
use super::led::news;
use super::look::TripwireLook;
use super::references::References;
use super::root::{GIT, Root};
use super::settle::{Around, ConfigView, settle};
use super::state::{FileKind, WatchState, WatchedPlace};
use super::watch::Given;
use super::{Approved, Report, beneath, digest, walk};

/// Time between two attempts to record the state while a tool call of another session runs.
const POLL: Duration = Duration::from_millis(50);

/// Maximum number of files that a message about changes of the person names.
const MOST_NAMED: usize = 5;

#[derive(Debug)]
pub(super) struct WatchedRoots {
    pub(super) root: Root,
    pub(super) path: PathBuf,
    held: OwnedFd,
    pub(super) references: References,
    given: Given,
    pub(super) state: WatchState,
    pub(super) nested: WatchState,
    persons: BTreeMap<PathBuf, WatchedPlace>,
    own: Own,
    anchor: Anchor,
    /// True if another session has recorded a change of the person after `own` was computed.
    own_is_old: bool,
    /// True if a turn has ended after the state of other repositories was recorded.
    nested_is_old: bool,
    /// States before the recorded ones, of listed files and of other repositories; `None` once the journal is up to
    /// date.
    unwritten: Option<[WatchState; 2]>,
    /// Journal that several sessions share. `None` if only this process uses the recorded state.
    journal: Option<BaselineJournal>,
}

impl WatchedRoots {
    pub(super) fn empty(root: Root, path: &Path, given: Given) -> io::Result<Self> {
        let held = beneath::open_root(path)?;
        Ok(Self {
            root,
            path: path.to_owned(),
            anchor: Anchor::new(&held),
            held,
            references: References::new(),
            given,
            state: WatchState::default(),
            nested: WatchState::default(),
            persons: BTreeMap::new(),
            own: Own::new(),
            own_is_old: false,
            nested_is_old: false,
            unwritten: None,
            journal: None,
        })
    }

    pub(super) fn taken(root: Root, path: &Path, kept: &[PathBuf], given: Given) -> io::Result<Self> {
        let mut watched = Self::empty(root, path, given)?;
        watched.take_listed(kept);
        Ok(watched)
    }

    pub(super) const fn held(&self) -> &OwnedFd {
        &self.held
    }

    fn take_listed(&mut self, kept: &[PathBuf]) {
        self.references = kept.iter().map(|path| (path.clone(), FileKind::Whole)).collect();
        let state = self.look();
        let recorded = [std::mem::replace(&mut self.state, state), std::mem::take(&mut self.nested)];
        self.unwritten = Some(recorded);
    }

    /// Records the current state of the watched directory, and of the repositories in it.
    pub(super) fn take(&mut self, kept: &[PathBuf]) {
        self.take_listed(kept);
        if self.root == Root::Project {
            self.nested = walk::nested(&self.held, &self.state.repositories, &self.given, None);
        }
    }

    /// True if this process has recorded the state itself, not read it from a journal.
    pub(super) const fn is_taken_anew(&self) -> bool {
        self.unwritten.is_some()
    }

    pub(super) fn look(&self) -> WatchState {
        self.root.look(&self.held, &self.references, &self.given, None)
    }

    pub(super) fn look_further(&mut self, references: References) {
        let mut look = TripwireLook::more(std::mem::take(&mut self.state), &self.given);
        look.references(&self.held, &references);
        self.state = look.state;
        self.references.extend(references);
    }

    /// Joins the directory's journal. Returns the exclusive permission to record the state, during which no tool call
    /// may write; `None` if the journal contains the state.
    pub(super) fn join(
        &mut self,
        options: Option<&JournalOptions>,
        around: &Around,
    ) -> io::Result<Option<AtRest>> {
        let Some(options) = options else { return Ok(None) };
        let mut journal = BaselineJournal::join(options, self, around)?;
        let right = loop {
            journal.exclusively(self, |_, _| Ok(()))?;
            match journal.at_rest()? {
                // Changes of a session that was killed meanwhile are restored at the next check.
                Some(right) if journal.was_cut_off() => {
                    journal.leave_rest(right)?;
                    break None;
                }
                Some(right) => break Some(right),
                None if journal.has_baseline() => break None,
                None => std::thread::sleep(POLL),
            }
        };
        self.journal = Some(journal);
        Ok(right)
    }

    /// Writes the recorded state to the journal, then drops `right`, the exclusive permission to record it.
    pub(super) fn write_baseline(&mut self, right: Option<AtRest>, around: &Around) -> io::Result<()> {
        if let Some([state, nested]) = self.unwritten.take() {
            self.exclusively(|watched, journal| {
                watched.note_persons(&state, BaselinePart::Listed);
                watched.note_persons(&nested, BaselinePart::Nested);
                journal.map_or(Ok(()), |journal| watched.write_taken(journal, [&state, &nested]))
            })?;
        }
        self.take_own(around);
        match (&self.journal, right) {
            (Some(journal), Some(right)) => journal.leave_rest(right),
            _ => Ok(()),
        }
    }

    fn write_taken(
        &self,
        journal: &mut BaselineJournal,
        [state, nested]: [&WatchState; 2],
    ) -> io::Result<()> {
        if !journal.has_baseline() {
            return journal.write_whole(self);
        }
        journal.write_references(self)?;
        journal.write(BaselinePart::Listed, Author::Person, StateDelta::between(state, &self.state))?;
        journal.write(BaselinePart::Nested, Author::Person, StateDelta::between(nested, &self.nested))
    }

    /// Runs `work` after the journal has been read, while no other session compares or records files.
    pub(super) fn exclusively<T>(
        &mut self,
        work: impl FnOnce(&mut Self, Option<&mut BaselineJournal>) -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(mut journal) = self.journal.take() else { return work(self, None) };
        let done = journal.exclusively(self, |journal, watched| work(watched, Some(journal)));
        self.journal = Some(journal);
        done
    }

    pub(super) fn begin_call(&mut self, around: &Around, report: &mut Report) -> io::Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let right = journal.at_rest()?;
        report.notes.extend(self.journal.as_mut().map(BaselineJournal::take_notes).unwrap_or_default());
        if right.is_some() {
            self.exclusively(|watched, journal| {
                let Some(journal) = journal else { return Ok(()) };
                if journal.was_cut_off() {
                    return watched.settle_cut_off(around, report, journal);
                }
                watched.renew(BaselinePart::Listed, around, report, journal)?;
                if std::mem::take(&mut watched.nested_is_old) {
                    watched.renew(BaselinePart::Nested, around, report, journal)?;
                }
                Ok(())
            })?;
        }
        if let Some(journal) = &mut self.journal {
            journal.lock_calls()?;
        }
        drop(right);
        self.exclusively(|_, journal| journal.map_or(Ok(()), BaselineJournal::write_working))
    }

    pub(super) fn end_call(&mut self, everything: bool) -> io::Result<()> {
        self.nested_is_old |= everything && self.root == Root::Project;
        self.exclusively(|_, journal| journal.map_or(Ok(()), |journal| journal.write_resting(everything)))?;
        self.journal.as_mut().map_or(Ok(()), BaselineJournal::unlock_calls)
    }

    /// Undoes the changes of watched files that a session left when it was killed during a tool call.
    fn settle_cut_off(
        &mut self,
        around: &Around,
        report: &mut Report,
        journal: &mut BaselineJournal,
    ) -> io::Result<()> {
        self.check(around, report, Some(journal))?;
        self.check_nested(around, report, Some(journal))?;
        journal.write_settled()
    }

    /// Accepts changes that were made while no tool call ran as the person's own.
    fn renew(
        &mut self,
        part: BaselinePart,
        around: &Around,
        report: &mut Report,
        journal: &mut BaselineJournal,
    ) -> io::Result<()> {
        let now = match part {
            BaselinePart::Listed => self.look(),
            BaselinePart::Nested => walk::nested(&self.held, &self.state.repositories, &self.given, None),
        };
        let before = self.part(part);
        let Some(delta) = StateDelta::between(before, &now) else { return Ok(()) };
        let is_kept = |path: &Path| !around.given.has(&self.path.join(path));
        let unread = now.unread.iter().map(|(path, error)| (path, error.desc().to_owned()));
        let met = now.met.iter().map(|(path, bound)| (path, bound.to_string()));
        if let Some((path, why)) = unread.chain(met).find(|(path, _)| is_kept(path)) {
            report.notes.push(format!(
                "{} could not be checked again, so its earlier state counts: {why}",
                path.display()
            ));
            return Ok(());
        }
        let changed = self.view(around).verdicts(before, &now);
        let names: Vec<_> = changed.keys().take(MOST_NAMED).map(|path| path.display().to_string()).collect();
        if !names.is_empty() {
            let more = if changed.len() > MOST_NAMED { " and others" } else { "" };
            report
                .notes
                .push(format!("changed while no command ran, so not undone: {}{more}", names.join(", ")));
        }
        let before = std::mem::replace(self.part_mut(part), now);
        self.note_persons(&before, part);
        self.take_own(around);
        journal.write(part, Author::Person, Some(delta))
    }

    pub(super) fn check(
        &mut self,
        around: &Around,
        report: &mut Report,
        journal: Option<&mut BaselineJournal>,
    ) -> io::Result<()> {
        self.anchored(report);
        self.refresh_own(around);
        let Self { held, root, references, given, state, nested, persons, own, path, .. } = self;
        let view = ConfigView { root: *root, path, known: &nested.repositories, persons, own, around };
        let look = |before: &WatchState| root.look(held, references, given, Some(before));
        let before = settle(held, state, view, look, &mut report.changes);
        report.notes.extend(state.notes.iter().cloned());
        report.notes.extend(before.iter().flat_map(|before| news(before, state)));
        self.write_passed(BaselinePart::Listed, before, journal)
    }

    /// Checks the other repositories in the project, and restores their changed files.
    pub(super) fn check_nested(
        &mut self,
        around: &Around,
        report: &mut Report,
        journal: Option<&mut BaselineJournal>,
    ) -> io::Result<()> {
        if self.root != Root::Project {
            return Ok(());
        }
        self.refresh_own(around);
        let Self { held, root, given, state, nested, persons, own, path, .. } = self;
        let known = &state.repositories;
        let view = ConfigView { root: *root, path, known, persons, own, around };
        let look = |before: &WatchState| walk::nested(held, known, given, Some(before));
        let before = settle(held, nested, view, look, &mut report.changes);
        report.notes.extend(nested.notes.iter().cloned());
        self.write_passed(BaselinePart::Nested, before, journal)
    }

    /// Writes an agent's changes that may stay to the journal, as the difference from the state `before`.
    fn write_passed(
        &self,
        part: BaselinePart,
        before: Option<WatchState>,
        journal: Option<&mut BaselineJournal>,
    ) -> io::Result<()> {
        match (before, journal) {
            (Some(before), Some(journal)) => {
                journal.write(part, Author::Agent, StateDelta::between(&before, self.part(part)))
            }
            _ => Ok(()),
        }
    }

    const fn part(&self, part: BaselinePart) -> &WatchState {
        match part {
            BaselinePart::Listed => &self.state,
            BaselinePart::Nested => &self.nested,
        }
    }

    const fn part_mut(&mut self, part: BaselinePart) -> &mut WatchState {
        match part {
            BaselinePart::Listed => &mut self.state,
            BaselinePart::Nested => &mut self.nested,
        }
    }

    fn view<'a>(&'a self, around: &'a Around) -> ConfigView<'a> {
        ConfigView {
            root: self.root,
            path: &self.path,
            known: &self.nested.repositories,
            persons: &self.persons,
            own: &self.own,
            around,
        }
    }

    /// Applies a change that another session recorded, made by `by`. `None` if the change is invalid.
    pub(super) fn take_in(&mut self, part: BaselinePart, by: Author, delta: StateDelta) -> Option<()> {
        self.own_is_old |= by == Author::Person;
        let persons = &mut self.persons;
        let state = match part {
            BaselinePart::Listed => &mut self.state,
            BaselinePart::Nested => &mut self.nested,
        };
        delta.apply(state, |path, place| {
            if by == Author::Person {
                note_person(persons, path, place);
            }
        })
    }

    fn note_persons(&mut self, before: &WatchState, part: BaselinePart) {
        let now = match part {
            BaselinePart::Listed => &self.state,
            BaselinePart::Nested => &self.nested,
        };
        for path in before.places.keys().chain(now.places.keys()) {
            let place = now.places.get(path);
            if place != before.places.get(path) {
                note_person(&mut self.persons, path, place);
            }
        }
    }

    fn take_own(&mut self, around: &Around) {
        let none = Own::new();
        let view = ConfigView { own: &none, ..self.view(around) };
        let configurations = self.persons.iter().filter(|(_, place)| place.kind == FileKind::Config);
        let own = configurations.map(|(path, place)| {
            let own = view.surroundings(&self.state).own(path, place);
            (path.clone(), own)
        });
        self.own = own.collect();
        self.own_is_old = false;
    }

    fn refresh_own(&mut self, around: &Around) {
        if self.own_is_old {
            self.take_own(around);
        }
    }

    pub(super) fn forget(&mut self) {
        self.references.clear();
        self.persons.clear();
        (self.state, self.nested) = Default::default();
    }

    pub(super) fn unwatched(&self, given: &Given) -> Option<io::Error> {
        let is_kept = |path: &Path| !given.has(&self.path.join(path));
        if let Some((path, error)) = self.state.unread.iter().find(|(path, _)| is_kept(path)) {
            return Some(self.not_kept("read", path, error.desc(), "make the path readable, or use"));
        }
        let mut met = self.state.met.iter().chain(&self.nested.met);
        let (path, bound) = met.find(|(path, _)| is_kept(path))?;
        Some(self.not_kept("watch", path, &bound.to_string(), "use"))
    }

    fn not_kept(&self, verb: &str, path: &Path, why: &str, hint: &str) -> io::Error {
        let path = if path == Path::new("") { self.path.clone() } else { self.path.join(path) };
        let given_away = shell_word(&path);
        io::Error::other(format!(
            "cannot {verb} {}: {why}, so that a change could not be undone\n  hint: {hint} --write {given_away} to let the agent change this path",
            path.display(),
        ))
    }

    /// Records the current state of the files that have the approved content.
    pub(super) fn accept(
        &mut self,
        approved: &[(&Path, &Approved)],
        around: &Around,
        journal: Option<&mut BaselineJournal>,
    ) -> io::Result<()> {
        // Everything is read: what was approved may be anything.
        let now = self.look();
        let before = self.state.clone();
        for (path, approved) in approved {
            let found = now.places.get(*path);
            if found.and_then(content).map(digest) != approved.digest {
                continue;
            }
            match found {
                Some(place) => self.state.places.insert((*path).to_owned(), place.clone()),
                None => self.state.places.remove(*path),
            };
        }
        self.note_persons(&before, BaselinePart::Listed);
        self.take_own(around);
        let delta = StateDelta::between(&before, &self.state);
        journal.map_or(Ok(()), |journal| journal.write(BaselinePart::Listed, Author::Person, delta))
    }

    fn anchored(&mut self, report: &mut Report) {
        if self.root != Root::Project {
            return;
        }
        let error = match self.anchor.hold(&self.held) {
            FoundAnchor::InPlace => return,
            FoundAnchor::PutBack => None,
            FoundAnchor::Lost(error) => Some(error.to_string()),
        };
        let (what, restored) = (PlaceChange::MovedAway, error.is_none());
        let path = GIT.into();
        report.changes.push(RestoredPlace { path, what, moved_to: None, error, closed: false, restored });
    }
}

fn note_person(persons: &mut BTreeMap<PathBuf, WatchedPlace>, path: &Path, place: Option<&WatchedPlace>) {
    match place {
        Some(place) => drop(persons.insert(path.to_owned(), place.clone())),
        None => drop(persons.remove(path)),
    }
}
