//! Journal of a watched directory: the recorded state of its files, shared by all sessions that may write to it.
//!
//! If each session recorded the state by itself, it could take a file for the person's own that a command of another
//! session has just created. So the first session writes a journal in the state directory, and later sessions join it.
//! Locks (`flock(2)`) show which sessions run:
//!
//! | file | shared | exclusive |
//! | --- | --- | --- |
//! | `door` | – | by a session that enters or leaves; by the first, until the changes of a killed one are settled |
//! | `alive` | by each session, for its life | by none: a session that gets it is the only one |
//! | `calls` | while a tool call that may write runs | while the recorded state is renewed, when no call runs |
//! | `lines` | – | while a session reads, compares and appends |
//!
//! Sessions of other users, containers and state directories notice a shared lock on the watched directory.

mod enter;
mod identity;
mod leftover;
mod lines;
mod neighbours;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use identity::RootIdentity;
use lines::{JournalLine, VERSION, referenced, references};
use neighbours::Neighbours;

use super::WatchedRoots;
pub use leftover::{BaselineChoice, CutOffChange, settle_leftovers, tell_others};
pub(super) use lines::{Author, BaselinePart, StateDelta};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalOptions {
    pub directory: PathBuf,
    /// True if a session may start in a directory to which a session of another user can write.
    pub allow_shared: bool,
}

#[derive(Debug)]
pub(super) struct BaselineJournal {
    place: PathBuf,
    identity: RootIdentity,
    session: String,
    alive: File,
    calls: File,
    lines: File,
    in_call: bool,
    read: u64,
    boot: String,
    /// Sessions that have begun a tool call after which the files have not been compared yet.
    working: BTreeSet<String>,
    /// Sessions after whose tool calls the whole directory has not been searched yet.
    unsearched: BTreeSet<String>,
    directory: File,
    notes: Vec<String>,
}

/// Exclusive permission to renew the recorded state. While it is held, no tool call that may write can run.
#[derive(Debug)]
pub(super) struct AtRest(#[expect(dead_code, reason = "its locks end with it")] Neighbours);

impl BaselineJournal {
    pub(super) const fn has_baseline(&self) -> bool {
        self.read > 0
    }

    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Prevents tool calls that may write to this directory, or to one above or below. `None` while such a call runs.
    pub(super) fn at_rest(&self) -> io::Result<Option<AtRest>> {
        // A lock that cannot be converted is lost (flock(2)).
        if self.in_call || !lock_now(&self.calls, File::try_lock)? {
            return Ok(None);
        }
        match Neighbours::at_rest(&self.place, &self.identity)? {
            Some(neighbours) => Ok(Some(AtRest(neighbours))),
            None => self.calls.unlock().map(|()| None),
        }
    }

    pub(super) fn leave_rest(&self, _right: AtRest) -> io::Result<()> {
        self.calls.unlock()
    }

    /// True if another session ended during a tool call. Must only be called while no tool call runs.
    pub(super) fn was_cut_off(&self) -> bool {
        self.working.iter().any(|session| *session != self.session)
    }

    /// Records that a tool call of this session runs. Waits while another session renews the recorded state.
    pub(super) fn lock_calls(&mut self) -> io::Result<()> {
        // From exclusive to shared there is a moment without a lock (flock(2)). No call of this session runs yet.
        self.calls.lock_shared()?;
        self.in_call = true;
        Ok(())
    }

    pub(super) fn unlock_calls(&mut self) -> io::Result<()> {
        self.in_call = false;
        self.calls.unlock()
    }

    pub(super) fn write_working(&mut self) -> io::Result<()> {
        if self.working.contains(&self.session) {
            return Ok(());
        }
        let is_first = !self.unsearched.contains(&self.session);
        self.append(&[JournalLine::Working { session: self.session.clone() }])?;
        // fsync(2) once in a turn suffices for the mark to be found after a crash of the machine.
        if is_first { self.lines.sync_data() } else { Ok(()) }
    }

    pub(super) fn write_resting(&mut self, everything: bool) -> io::Result<()> {
        if self.working.contains(&self.session) || (everything && !self.unsearched.is_empty()) {
            self.append(&[JournalLine::Resting { session: self.session.clone(), everything }])?;
        }
        Ok(())
    }

    pub(super) fn write_settled(&mut self) -> io::Result<()> {
        let cut_off = self.working.iter().filter(|session| **session != self.session);
        let lines: Vec<_> = cut_off
            .map(|session| JournalLine::Resting { session: session.clone(), everything: true })
            .collect();
        self.append(&lines)
    }

    /// Runs `work` while the lines are locked, after the lines of other sessions have been applied.
    pub(super) fn exclusively<T>(
        &mut self,
        watched: &mut WatchedRoots,
        work: impl FnOnce(&mut Self, &mut WatchedRoots) -> io::Result<T>,
    ) -> io::Result<T> {
        self.lines.lock()?;
        let done = self.catch_up(watched).and_then(|()| work(self, watched));
        self.lines.unlock()?;
        done
    }

    pub(super) fn write_whole(&mut self, watched: &WatchedRoots) -> io::Result<()> {
        let empty = super::WatchState::default();
        let parts = [(BaselinePart::Listed, &watched.state), (BaselinePart::Nested, &watched.nested)];
        let mut lines =
            vec![JournalLine::Began { version: VERSION, boot: boot() }, references(&watched.references)];
        for (part, state) in parts {
            let delta = StateDelta::between(&empty, state).unwrap_or_default();
            lines.push(JournalLine::Changed { part, by: Author::Person, delta });
        }
        self.append(&lines)?;
        self.lines.sync_data()
    }

    pub(super) fn write_references(&mut self, watched: &WatchedRoots) -> io::Result<()> {
        self.append(&[references(&watched.references)])
    }

    pub(super) fn write(
        &mut self,
        part: BaselinePart,
        by: Author,
        delta: Option<StateDelta>,
    ) -> io::Result<()> {
        delta.map_or(Ok(()), |delta| self.append(&[JournalLine::Changed { part, by, delta }]))
    }

    fn append(&mut self, lines: &[JournalLine]) -> io::Result<()> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
            self.note_work(line);
        }
        if text.is_empty() {
            return Ok(());
        }
        self.lines.write_all(&text)?;
        self.read += text.len() as u64;
        Ok(())
    }

    fn note_work(&mut self, line: &JournalLine) {
        match line {
            JournalLine::Working { session } => {
                self.working.insert(session.clone());
                self.unsearched.insert(session.clone());
            }
            JournalLine::Resting { session, everything } => {
                self.working.remove(session);
                if *everything {
                    // The search covers the changes of all sessions.
                    self.unsearched.retain(|other| self.working.contains(other));
                }
            }
            JournalLine::Began { boot, .. } => self.boot.clone_from(boot),
            JournalLine::References(_) | JournalLine::Changed { .. } => {}
        }
    }

    fn catch_up(&mut self, watched: &mut WatchedRoots) -> io::Result<()> {
        for line in self.unread()? {
            self.note_work(&line);
            self.take_in(watched, line)?;
        }
        Ok(())
    }

    /// Returns the lines that other sessions have appended since the last call. Removes an incomplete line at the end.
    fn unread(&mut self) -> io::Result<Vec<JournalLine>> {
        let length = self.lines.metadata()?.len();
        let mut found = Vec::new();
        if length == self.read {
            return Ok(found);
        }
        self.lines.seek(SeekFrom::Start(self.read))?;
        let mut reader = BufReader::new(&self.lines).take(length.saturating_sub(self.read));
        let (mut line, mut read) = (Vec::new(), self.read);
        while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            found.push(serde_json::from_slice(&line).map_err(|error| self.torn(&error))?);
            read += line.len() as u64;
            line.clear();
        }
        self.lines.set_len(read)?;
        self.read = read;
        Ok(found)
    }

    fn take_in(&self, watched: &mut WatchedRoots, line: JournalLine) -> io::Result<()> {
        match line {
            JournalLine::Began { version, .. } if version != VERSION => Err(io::Error::other(format!(
                "{} was written by another version of Bailiwick",
                self.place.display()
            ))),
            JournalLine::Began { .. } | JournalLine::Working { .. } | JournalLine::Resting { .. } => Ok(()),
            JournalLine::References(lines) => {
                watched.references = referenced(lines);
                Ok(())
            }
            JournalLine::Changed { part, by, delta } => watched
                .take_in(part, by, delta)
                .ok_or_else(|| self.torn(&"a path in the record is not valid")),
        }
    }

    fn torn(&self, why: &dyn std::fmt::Display) -> io::Error {
        io::Error::other(format!(
            "cannot read {}/lines: {why}\n  hint: look at `git status` and the settings of your editors, then remove \
             that file",
            self.place.display()
        ))
    }
}

impl BaselineJournal {
    fn leave(&mut self, door: &File) -> io::Result<()> {
        // A session that enters meanwhile notices that it is the first.
        if !lock_now(door, File::try_lock)? || !lock_now(&self.alive, File::try_lock)? {
            return Ok(());
        }
        for line in self.unread()? {
            self.note_work(&line);
        }
        if self.working.is_empty() && self.unsearched.is_empty() {
            fs::remove_dir_all(&self.place)
        } else {
            Ok(())
        }
    }
}

impl Drop for BaselineJournal {
    fn drop(&mut self) {
        let left = open_file(&self.place, "door").and_then(|door| {
            let left = self.leave(&door);
            // A process that was forked meanwhile has these files until it executes a program, so that closing them
            // would not unlock them.
            for lock in [&self.calls, &self.lines, &self.alive, &self.directory, &door] {
                drop(lock.unlock());
            }
            left
        });
        // A journal that stays is settled at the next start.
        if let Err(error) = left {
            tracing::debug!(place = %self.place.display(), %error, "a journal stays");
        }
    }
}

fn open_file(place: &Path, name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    options.open(place.join(name))
}

fn lock_now(file: &File, lock: impl FnOnce(&File) -> Result<(), TryLockError>) -> io::Result<bool> {
    match lock(file) {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn make_private(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Returns the id of this boot of the machine, or an empty text if it cannot be read.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
