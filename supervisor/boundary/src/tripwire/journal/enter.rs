//! Joins a session to the journal of a watched directory, either as the first session there or as a further one.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::identity::RootIdentity;
use super::leftover::refuse;
use super::neighbours::{self, write_about};
use super::{BaselineJournal, JournalOptions, lock_now, make_private, open_file};
use crate::tripwire::WatchedRoots;
use crate::tripwire::beneath::open_root;
use crate::tripwire::settle::Around;

/// Maximum wait for another session that settles the changes of a killed session, for which it may have to ask a
/// person.
const PATIENCE: Duration = Duration::from_secs(20);

const POLL: Duration = Duration::from_millis(20);

pub(super) enum Joining {
    /// No other session uses the journal. None can join until the [`Doorway`] is dropped.
    First(BaselineJournal, Doorway),
    /// Other sessions use the journal already.
    Joined(BaselineJournal),
}

/// Lock that keeps other sessions from joining until it is dropped.
pub(super) struct Doorway(File);

impl Drop for Doorway {
    fn drop(&mut self) {
        // A process that was forked meanwhile has the file until it executes a program, so closing it would not unlock
        // it.
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the way into a journal stays closed");
        }
    }
}

impl BaselineJournal {
    /// Joins the journal of the watched directory and reads its lines. Fails for the first session if a killed session
    /// left changed files, since only a person can decide about these.
    pub(in crate::tripwire) fn join(
        options: &JournalOptions,
        watched: &mut WatchedRoots,
        around: &Around,
    ) -> io::Result<Self> {
        match Self::enter(options, &watched.path, watched.held())? {
            Joining::Joined(journal) => Ok(journal),
            Joining::First(mut journal, door) => {
                journal.settle_left(watched, around, &mut |differences| refuse(differences))?;
                watched.forget();
                drop(door);
                Ok(journal)
            }
        }
    }

    /// Joins the journal, and takes a shared lock on the watched directory. If this session is the first, others cannot
    /// join until the result is dropped.
    pub(super) fn enter(options: &JournalOptions, path: &Path, held: &OwnedFd) -> io::Result<Joining> {
        let identity = RootIdentity::of(path, held)?;
        let place = options.directory.join(identity.key());
        let door = door(&place)?;
        let alive = open_file(&place, "alive")?;
        let is_first = lock_now(&alive, File::try_lock)?;
        // No other session tries this lock before the door is unlocked.
        alive.lock_shared()?;
        let mut notes = Vec::new();
        if is_first {
            write_about(&place, &identity)?;
            notes.extend(neighbours::set_replaced_aside(&options.directory, &identity)?);
        }
        let directory = File::from(open_root(path)?);
        notes.extend(lock_directory(&directory, path, is_first, options.allow_shared)?);
        let journal = Self {
            session: uuid::Uuid::new_v4().simple().to_string(),
            calls: open_file(&place, "calls")?,
            lines: open_file(&place, "lines")?,
            alive,
            place,
            identity,
            in_call: false,
            read: 0,
            boot: String::new(),
            working: BTreeSet::new(),
            unsearched: BTreeSet::new(),
            directory,
            notes,
        };
        if is_first {
            Ok(Joining::First(journal, Doorway(door)))
        } else {
            door.unlock().map(|()| Joining::Joined(journal))
        }
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.working.clear();
        self.unsearched.clear();
        self.read = 0;
        self.lines.set_len(0)
    }
}

/// Takes the lock that keeps other sessions from joining. Fails after [`PATIENCE`].
fn door(place: &Path) -> io::Result<File> {
    let begun = Instant::now();
    loop {
        make_private(place)?;
        let Some(door) = found(open_file(place, "door"))? else { continue };
        // The session that left last may have removed the file that was opened here.
        if lock_now(&door, File::try_lock)? {
            if is_in_place(&door, &place.join("door")) {
                return Ok(door);
            }
        } else if begun.elapsed() > PATIENCE {
            return Err(io::Error::other(
                "another session is starting here, and waits for your answer\n  hint: answer the question of that session, or end the session",
            ));
        } else {
            std::thread::sleep(POLL);
        }
    }
}

fn found(opened: io::Result<File>) -> io::Result<Option<File>> {
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_in_place(file: &File, path: &Path) -> bool {
    let same = |one: fs::Metadata, other: fs::Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
    file.metadata().is_ok_and(|one| fs::metadata(path).is_ok_and(|other| same(one, other)))
}

/// Takes a shared lock on the watched directory, by which other users' sessions notice this one. Returns a warning for
/// the user if such a session runs, or if directories cannot be locked on this file system.
fn lock_directory(
    directory: &File,
    path: &Path,
    is_first: bool,
    allow_shared: bool,
) -> io::Result<Option<String>> {
    let begun = Instant::now();
    let is_free = !is_first || lock_now(directory, File::try_lock).unwrap_or(true);
    if !is_free && !allow_shared {
        return Err(io::Error::other(format!(
            "a session of another user, container or state directory can write {}, and changes by its agent could be taken for yours\n  hint: end that session first, or use --allow-degraded",
            path.display()
        )));
    }
    loop {
        match lock_now(directory, File::try_lock_shared) {
            Ok(true) => break,
            // Another session is testing the lock.
            Ok(false) if begun.elapsed() < PATIENCE => std::thread::sleep(POLL),
            Ok(false) => {
                return Err(io::Error::other(format!("{} is locked by another program", path.display())));
            }
            // NFS, for one, has no locks on directories.
            Err(error) => {
                return Ok(Some(format!(
                    "sessions of other users in {} are not noticed: {error}",
                    path.display()
                )));
            }
        }
    }
    let shared = || {
        format!(
            "another session of another user, container or state directory can write {} too: changes by its agent could be taken for yours",
            path.display()
        )
    };
    Ok((!is_free).then(shared))
}
