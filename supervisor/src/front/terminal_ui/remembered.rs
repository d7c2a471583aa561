//! The history of the prompt: the messages that were sent in a project, across sessions.
//!
//! One file in the state directory, which no worker can read, holds the messages of all projects. Each line is a JSON
//! object. The mode is 0600.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Maximum size in bytes of the file. When it is exceeded, the older half is removed.
const MOST: u64 = 1 << 20;

/// Maximum size in bytes of a message that is stored. Longer messages are mostly pastes.
const LONGEST: usize = 16 << 10;

/// Maximum number of messages of a project that are returned.
const MOST_MESSAGES: usize = 500;

#[derive(Debug)]
pub(super) struct UiMemory {
    file: PathBuf,
    project: String,
}

/// One line of the file: a message that was sent in a project.
#[derive(Debug, Serialize, Deserialize)]
struct Sent {
    project: String,
    text: String,
}

impl UiMemory {
    pub(super) fn new(state: &Path, project: &Path) -> Self {
        Self { file: state.join("history.jsonl"), project: project.to_string_lossy().into_owned() }
    }

    /// Returns the messages of the project, the newest last. Unreadable lines are skipped.
    pub(super) fn messages(&self) -> Vec<String> {
        let Ok(bytes) = self.last_bytes() else { return Vec::new() };
        let lines = bytes.split(|byte| *byte == b'\n');
        let sent = lines.filter_map(|line| serde_json::from_slice::<Sent>(line).ok());
        let mut texts: Vec<_> =
            sent.filter(|sent| sent.project == self.project).map(|sent| sent.text).collect();
        texts.drain(..texts.len().saturating_sub(MOST_MESSAGES));
        texts
    }

    pub(super) fn add(&self, text: &str) -> io::Result<()> {
        if text.len() > LONGEST {
            return Ok(());
        }
        let sent = Sent { project: self.project.clone(), text: text.to_owned() };
        let mut line = serde_json::to_vec(&sent)?;
        line.push(b'\n');
        if fs::symlink_metadata(&self.file).is_ok_and(|file| file.len() > MOST) {
            self.leave_out_older()?;
        }
        // One write keeps the line whole if other sessions write too.
        options().append(true).create(true).open(&self.file)?.write_all(&line)
    }

    fn last_bytes(&self) -> io::Result<Vec<u8>> {
        let mut file = options().read(true).open(&self.file)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(2 * MOST)))?;
        let mut bytes = Vec::new();
        file.take(2 * MOST).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn leave_out_older(&self) -> io::Result<()> {
        let bytes = self.last_bytes()?;
        let half = bytes.get(bytes.len() / 2..).unwrap_or_default();
        let newer = half.iter().position(|byte| *byte == b'\n').and_then(|end| half.get(end + 1..));
        let copy = self.file.with_extension("new");
        let _ = fs::remove_file(&copy);
        options().write(true).create_new(true).open(&copy)?.write_all(newer.unwrap_or_default())?;
        fs::rename(&copy, &self.file)
    }
}

fn options() -> fs::OpenOptions {
    let mut options = File::options();
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn messages_come_back_in_their_project_alone() {
        let state = tempfile::tempdir().unwrap();
        let (one, other) = (
            UiMemory::new(state.path(), Path::new("/one")),
            UiMemory::new(state.path(), Path::new("/other")),
        );
        assert!(one.messages().is_empty());
        one.add("first\nof two lines").unwrap();
        other.add("elsewhere").unwrap();
        one.add(&"x".repeat(LONGEST + 1)).unwrap();
        fs::write(
            state.path().join("history.jsonl"),
            [fs::read(&one.file).unwrap(), b"{no line\n".to_vec()].concat(),
        )
        .unwrap();
        one.add("second \u{1b}[2J").unwrap();
        assert_eq!(one.messages(), ["first\nof two lines", "second \u{1b}[2J"]);
        assert_eq!(other.messages(), ["elsewhere"]);
        assert_eq!(fs::metadata(&one.file).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn the_file_has_a_bound_and_the_newest_messages_stay() {
        let state = tempfile::tempdir().unwrap();
        let remembered = UiMemory::new(state.path(), Path::new("/one"));
        for n in 0..200 {
            remembered.add(&format!("{n} {}", "x".repeat(LONGEST - 10))).unwrap();
        }
        assert!(fs::metadata(&remembered.file).unwrap().len() < MOST + 2 * LONGEST as u64);
        let messages = remembered.messages();
        assert!(messages.len() > 20 && messages.last().unwrap().starts_with("199 "));
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let state = tempfile::tempdir().unwrap();
        let remembered = UiMemory::new(state.path(), Path::new("/one"));
        let target = state.path().join("target");
        symlink(&target, &remembered.file).unwrap();
        assert!(remembered.add("text").is_err() && !target.exists());
    }
}
