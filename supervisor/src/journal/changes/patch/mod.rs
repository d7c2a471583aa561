//! The change set as a patch for `git apply`, in git's format (git-diff(1), "Generating patch text with -p").
//!
//! With full blob ids and binary literals, the patch needs only the files that it changes. A path whose kind changed is
//! deleted and created again, as in git.

mod binary;
mod quote;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::blob::{Blob, BlobId};
use super::path::ProjectPath;
use super::set::{ChangeSet, Content, Delta, FileDifference, State};
use gate::hunks::write_hunks;
use quote::QuotedName;

/// Maximum size in bytes of a file that is compared by lines: 64 MiB. Git's limit (`core.bigFileThreshold`) is 512 MiB.
const MAX_TEXT: u64 = 64 << 20;

/// Time limit for all comparisons by lines together. After it, all lines between the equal beginning and end of a file
/// count as replaced. The patch is then longer, and still correct.
const TIME: Duration = Duration::from_secs(10);

/// Time limit for the comparison of one file's lines.
const TIME_PER_FILE: Duration = Duration::from_secs(2);

/// Writes the patch. `base` is the project's path in its repository: empty, or with a slash at its end. Leaves out
/// changes that a patch cannot contain. [`ChangeSet::notes`] names them.
pub fn write(set: &ChangeSet, base: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let deadline = Instant::now() + TIME;
    let mut patch = Patch { out, base, deadline };
    set.changes()
        .iter()
        .filter(|change| change.obstacle().is_none())
        .try_for_each(|change| patch.change(change))
}

struct Patch<'a> {
    out: &'a mut dyn Write,
    base: &'a [u8],
    deadline: Instant,
}

/// The old or new state of a changed file, with its content unless the file is large.
struct Side<'a> {
    state: &'a State,
    id: BlobId,
    /// The content; `None` if it is too large to be compared by lines.
    bytes: Option<Vec<u8>>,
}

impl Patch<'_> {
    fn change(&mut self, change: &FileDifference) -> io::Result<()> {
        let path = &change.path;
        match &change.delta {
            Delta::Added(new) => self.pair(path, None, Some(new)),
            Delta::Deleted(old) => self.pair(path, Some(old), None),
            Delta::Modified { old, new } if is_link(old) != is_link(new) => {
                self.pair(path, Some(old), None)?;
                self.pair(path, None, Some(new))
            }
            Delta::Modified { old, new } => self.pair(path, Some(old), Some(new)),
            Delta::Renamed { from, old, new } => self.rename(from, path, old, new),
        }
    }

    fn rename(&mut self, from: &ProjectPath, to: &ProjectPath, old: &State, new: &State) -> io::Result<()> {
        self.header(from, to)?;
        self.modes(Some(old), Some(new))?;
        self.out.write_all(b"similarity index 100%\n")?;
        self.line(&[b"rename from ", &QuotedName::after("", self.base, from).text()])?;
        self.line(&[b"rename to ", &QuotedName::after("", self.base, to).text()])
    }

    fn pair(&mut self, path: &ProjectPath, old: Option<&State>, new: Option<&State>) -> io::Result<()> {
        self.header(path, path)?;
        self.modes(old, new)?;
        if let Some((old, new)) = old.zip(new)
            && old.same_content(new)?
        {
            return Ok(());
        }
        self.content(path, old.map(Side::read).transpose()?, new.map(Side::read).transpose()?)
    }

    fn content(
        &mut self,
        path: &ProjectPath,
        old: Option<Side<'_>>,
        new: Option<Side<'_>>,
    ) -> io::Result<()> {
        let id = |side: &Option<Side<'_>>| side.as_ref().map_or(BlobId::NONE, |side| side.id);
        write!(self.out, "index {}..{}", id(&old), id(&new))?;
        match (&old, &new) {
            (Some(old), Some(new)) if old.mode() == new.mode() => writeln!(self.out, " {}", new.mode())?,
            _ => writeln!(self.out)?,
        }
        match (Side::lines(old.as_ref()), Side::lines(new.as_ref())) {
            (Some(old_text), Some(new_text)) => {
                let name = |prefix, side: Option<&Side<'_>>| match side {
                    Some(_) => QuotedName::after(prefix, self.base, path).end(),
                    None => b"/dev/null".to_vec(),
                };
                let (old, new) = (name("a/", old.as_ref()), name("b/", new.as_ref()));
                self.text(&old, old_text, &new, new_text)
            }
            _ => binary::write(Side::blob(old.as_ref()), Side::blob(new.as_ref()), self.out),
        }
    }

    fn text(&mut self, old_name: &[u8], old: &[u8], new_name: &[u8], new: &[u8]) -> io::Result<()> {
        // For an empty file the header is the whole patch.
        if old.is_empty() && new.is_empty() {
            return Ok(());
        }
        self.line(&[b"--- ", old_name])?;
        self.line(&[b"+++ ", new_name])?;
        let deadline = self.deadline.min(Instant::now() + TIME_PER_FILE);
        write_hunks(old, new, deadline, self.out)
    }

    fn header(&mut self, old: &ProjectPath, new: &ProjectPath) -> io::Result<()> {
        self.line(&[
            b"diff --git ",
            &QuotedName::after("a/", self.base, old).text(),
            b" ",
            &QuotedName::after("b/", self.base, new).text(),
        ])
    }

    fn modes(&mut self, old: Option<&State>, new: Option<&State>) -> io::Result<()> {
        match (old.map(State::git_mode), new.map(State::git_mode)) {
            (None, Some(new)) => writeln!(self.out, "new file mode {new}"),
            (Some(old), None) => writeln!(self.out, "deleted file mode {old}"),
            (Some(old), Some(new)) if old != new => writeln!(self.out, "old mode {old}\nnew mode {new}"),
            _ => Ok(()),
        }
    }

    fn line(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        parts.iter().try_for_each(|part| self.out.write_all(part))?;
        self.out.write_all(b"\n")
    }
}

impl<'a> Side<'a> {
    fn read(state: &'a State) -> io::Result<Self> {
        let (id, bytes) = match state {
            State::Symlink(target) => (BlobId::of(target.as_bytes()), Some(target.as_bytes().to_vec())),
            State::File { content: Content::Blob(blob), .. } if blob.len() <= MAX_TEXT => {
                let bytes = blob.bytes()?;
                (BlobId::of(&bytes), Some(bytes))
            }
            State::File { content: Content::Blob(blob), .. } => (blob.id()?, None),
            State::File { content: Content::Omitted { .. }, .. } => {
                return Err(io::Error::other("cannot make a patch of a file whose content was not read"));
            }
        };
        Ok(Self { state, id, bytes })
    }

    const fn mode(&self) -> &'static str {
        self.state.git_mode()
    }

    /// Returns the content of a side for a comparison by lines: empty if the file does not exist on this side, and
    /// `None` if the content has a NUL byte or is too large.
    fn lines<'b>(side: Option<&'b Side<'a>>) -> Option<&'b [u8]> {
        let Some(side) = side else { return Some(b"") };
        side.bytes.as_deref().filter(|bytes| !bytes.contains(&0))
    }

    fn blob(side: Option<&Side<'a>>) -> Option<&'a Blob> {
        match side?.state {
            State::File { content: Content::Blob(blob), .. } => Some(blob),
            State::File { .. } | State::Symlink(_) => None,
        }
    }
}

const fn is_link(state: &State) -> bool {
    matches!(state, State::Symlink(_))
}
