use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::identity::RootIdentity;
use super::{lock_now, open_file};

/// Suffix of the names of journals that are kept but not used any more.
const ASIDE: &str = ".aside";

/// Locks that prevent tool calls in all watched directories above or below a directory.
#[derive(Debug)]
pub(super) struct Neighbours(Vec<File>);

impl Drop for Neighbours {
    fn drop(&mut self) {
        // A process that was forked meanwhile has these files until it executes a program, so closing them would not
        // unlock them.
        self.0.iter().for_each(|lock| drop(lock.unlock()));
    }
}

impl Neighbours {
    /// Takes the locks. `None` while a tool call runs in one of the directories.
    pub(super) fn at_rest(place: &Path, identity: &RootIdentity) -> io::Result<Option<Self>> {
        let mut found = Self(Vec::new());
        for (other, its) in all(place.parent().unwrap_or(place))? {
            if other == place || !its.overlaps(identity) {
                continue;
            }
            match open_file(&other, "calls") {
                Ok(calls) if lock_now(&calls, File::try_lock)? => found.0.push(calls),
                Ok(_) => return Ok(None),
                // The journal was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(found))
    }
}

pub(super) fn write_about(place: &Path, identity: &RootIdentity) -> io::Result<()> {
    let new = place.join("about.new");
    fs::write(&new, serde_json::to_vec(identity)?)?;
    fs::rename(new, place.join("about"))
}

/// Renames unused journals of earlier directories at this path. Returns messages for the user.
pub(super) fn set_replaced_aside(directory: &Path, identity: &RootIdentity) -> io::Result<Vec<String>> {
    let mut notes = Vec::new();
    for (place, its) in all(directory)? {
        if !identity.replaces(&its) || !is_left(&place)? {
            continue;
        }
        let mut aside = place.clone().into_os_string();
        aside.push(ASIDE);
        let aside = PathBuf::from(aside);
        if aside.exists() {
            fs::remove_dir_all(&aside)?;
        }
        fs::rename(&place, &aside)?;
        notes.push(format!(
            "{} is another directory than before, and a session there was killed during a command: the saved state of the earlier directory is in {}",
            identity.path,
            aside.display()
        ));
    }
    Ok(notes)
}

/// Renames the journal of a directory that was moved, so that a search for the new path finds the journal.
pub(super) fn follow_move(directory: &Path, place: &Path, identity: &RootIdentity) -> io::Result<()> {
    if place.join("lines").exists() {
        return Ok(());
    }
    let moved = all(directory)?.into_iter().find(|(_, its)| identity.was_at(its));
    match moved {
        Some((old, _)) if is_left(&old)? && !place.exists() => {
            fs::rename(old, place)?;
            write_about(place, identity)
        }
        _ => Ok(()),
    }
}

fn is_left(place: &Path) -> io::Result<bool> {
    let alive = open_file(place, "alive")?;
    let is_left = lock_now(&alive, File::try_lock)?;
    alive.unlock().map(|()| is_left)
}

fn all(directory: &Path) -> io::Result<Vec<(PathBuf, RootIdentity)>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let place = entry?.path();
        if place.extension().is_some_and(|end| end == ASIDE.trim_start_matches('.')) {
            continue;
        }
        // A journal without this file is being created or removed.
        if let Ok(about) = fs::read(place.join("about"))
            && let Ok(identity) = serde_json::from_slice(&about)
        {
            found.push((place, identity));
        }
    }
    Ok(found)
}
