//! The stored checkpoints of a session, with their contents.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ipc::id::ConversationId;
use ipc::message::SnapshotKind;
use ipc::text::hexadecimal;
use sha2::{Digest, Sha256};

use super::checkpoint::{CheckpointLine, KeptContent, SeenFile};
use super::{At, Checkpoint, CheckpointDifference, Kept, MOST_OF_A_FILE, MOST_OF_A_SESSION, MOST_OF_LINES};
use crate::journal::changes::{Blob, Intake, ProjectPath, Snapshot, SnapshotLimits, batches};

/// Tolerance for inexact clocks of file systems. FAT counts in steps of two seconds.
const CLOCK_MARGIN_NS: i64 = 2_000_000_000;

pub(super) type States = BTreeMap<ProjectPath, SeenFile>;

#[derive(Debug)]
pub struct Checkpoints {
    lines: File,
    contents: File,
    pub(super) end: u64,
    pub(super) written: u64,
    by_digest: HashMap<String, u64>,
    pub(super) taken: Vec<Checkpoint>,
    pub(super) now: States,
}

#[derive(Debug)]
pub struct Wanted {
    paths: Arc<BTreeSet<ProjectPath>>,
}

impl Wanted {
    pub fn fetches(&self) -> Vec<Vec<ipc::path::WirePath>> {
        batches(self.paths.iter())
    }

    pub fn intake(&self, store: File) -> Intake {
        let limits = SnapshotLimits { content: 2 * MOST_OF_A_SESSION, ..SnapshotLimits::default() };
        Intake::of_paths(store, limits, Arc::clone(&self.paths))
    }
}

impl Checkpoints {
    /// Opens the checkpoints of a session in the state directory. A new session has none. The caller must have locked
    /// the session's log.
    pub fn open(state: &Path, session: &ConversationId) -> io::Result<Self> {
        let directory = of_session(state, session.as_str())?;
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let open = |name| {
            let mut options = OpenOptions::new();
            options.read(true).append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
            options.open(directory.join(name))
        };
        let (lines, contents) = (open("looks.jsonl")?, open("contents")?);
        let end = contents.metadata()?.len();
        let (taken, by_digest, now) = (Vec::new(), HashMap::new(), States::new());
        let mut checkpoints = Self { lines, contents, end, written: 0, by_digest, taken, now };
        checkpoints.read()?;
        Ok(checkpoints)
    }

    /// Reads the stored checkpoints. Truncates the file at the first invalid line.
    fn read(&mut self) -> io::Result<()> {
        let mut text = Vec::new();
        (&self.lines).read_to_end(&mut text)?;
        let mut whole = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let read =
                line.strip_suffix(b"\n").and_then(|line| serde_json::from_slice::<CheckpointLine>(line).ok());
            let Some(checkpoint) = read.and_then(CheckpointLine::into_checkpoint) else { break };
            whole += line.len() as u64;
            self.note(checkpoint);
        }
        self.written = whole;
        if whole < text.len() as u64 {
            self.lines.set_len(whole)?;
        }
        Ok(())
    }

    fn note(&mut self, checkpoint: Checkpoint) {
        for (path, seen) in &checkpoint.changed {
            match seen {
                Some(seen) => {
                    if let Kept::File { content: Some(content), .. } = &seen.kept {
                        self.by_digest.insert(content.digest.clone(), content.at);
                    }
                    self.now.insert(path.clone(), seen.clone());
                }
                None => drop(self.now.remove(path)),
            }
        }
        self.taken.push(checkpoint);
    }

    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Returns the contents to fetch for a checkpoint with this manifest: those that are new, as far as the session has
    /// space.
    pub fn wanted(&self, manifest: &Snapshot) -> Wanted {
        let mut room = MOST_OF_A_SESSION.saturating_sub(self.end);
        let is_new = |path: &ProjectPath, kind: &SnapshotKind, stamp| match (self.now.get(path), kind) {
            (_, SnapshotKind::Symlink(_)) => false,
            (_, SnapshotKind::File { size, .. }) if *size > MOST_OF_A_FILE => false,
            (Some(seen), SnapshotKind::File { .. }) => !seen.settled || seen.stamp != stamp,
            (None, SnapshotKind::File { .. }) => true,
        };
        let new = manifest.iter().filter(|(path, kind, stamp)| is_new(path, kind, *stamp));
        let new = new.filter(|(_, kind, _)| match kind {
            SnapshotKind::File { size, .. } => {
                let fits = *size <= room;
                room = room.saturating_sub(if fits { *size } else { 0 });
                fits
            }
            SnapshotKind::Symlink(_) => true,
        });
        // A path that the manifest lacks may exist and be ignored now. Below a new link or file no path can exist.
        let mut obstacles = manifest.obstacles();
        let gone = self.now.keys().filter(|path| !manifest.has(path) && obstacles.of(path).is_none());
        let paths = new.map(|(path, ..)| path).chain(gone).cloned().collect();
        Wanted { paths: Arc::new(paths) }
    }

    /// True if there is space for checkpoints that only serve to show changes. These may use half of the session's
    /// space.
    pub const fn has_room(&self) -> bool {
        self.end < MOST_OF_A_SESSION / 2 && self.written < MOST_OF_LINES / 2
    }

    /// True if the last checkpoint was made in a turn whose end was not recorded.
    pub fn is_within_turn(&self) -> bool {
        self.taken.last().is_some_and(Checkpoint::is_within_turn)
    }

    /// Stores a checkpoint that was requested at `asked`. Returns the differences from the previous checkpoint; none
    /// for the first one. Fails if the session's files cannot be written.
    pub fn take(
        &mut self,
        at: At,
        asked: SystemTime,
        manifest: &Snapshot,
        wanted: &Wanted,
        fetched: &Snapshot,
    ) -> io::Result<Vec<CheckpointDifference>> {
        let asked_ns = nanoseconds(asked);
        let mut states = States::new();
        for (path, kind, stamp) in manifest.iter() {
            let seen = match self.now.get(path) {
                _ if wanted.paths.contains(path) => continue,
                Some(seen) if seen.settled && seen.stamp == stamp => seen.clone(),
                _ => SeenFile {
                    kept: without_content(kind),
                    stamp,
                    settled: is_settled(stamp.changed_ns, asked_ns),
                    born_ns: None,
                },
            };
            states.insert(path.clone(), seen);
        }
        for (path, kind, stamp) in fetched.iter() {
            let kept = match (kind, fetched.content(path)) {
                (SnapshotKind::File { mode, size, .. }, Some(blob)) => {
                    Kept::File { mode: *mode, size: *size, content: self.keep(blob)? }
                }
                (kind, _) => without_content(kind),
            };
            let settled = is_settled(stamp.changed_ns, asked_ns);
            states.insert(path.clone(), SeenFile { kept, stamp, settled, born_ns: fetched.born_ns(path) });
        }
        let old = &self.now;
        let came = states.iter().filter(|(path, seen)| old.get(*path) != Some(seen));
        let changed = came.map(|(path, seen)| (path.clone(), Some(seen.clone())));
        let went = old.keys().filter(|path| !states.contains_key(*path)).map(|path| (path.clone(), None));
        let checkpoint = Checkpoint { at, asked_ns, changed: changed.chain(went).collect() };
        let differs = |(path, seen): &(ProjectPath, Option<SeenFile>)| {
            CheckpointDifference::between(path, old.get(path), seen.as_ref())
        };
        let mut differences: Vec<_> = if self.taken.is_empty() {
            Vec::new()
        } else {
            checkpoint.changed.iter().filter_map(differs).collect()
        };
        differences.sort_by(|one, other| one.path().cmp(other.path()));
        self.write(checkpoint)?;
        Ok(differences)
    }

    /// Records the end of a turn that wrote nothing, so that later changes do not count as made by agents.
    pub fn rest(&mut self) -> io::Result<()> {
        self.write(Checkpoint { at: At::End, asked_ns: nanoseconds(SystemTime::now()), changed: Vec::new() })
    }

    fn write(&mut self, checkpoint: Checkpoint) -> io::Result<()> {
        let mut line = serde_json::to_vec(&checkpoint.to_line())?;
        line.push(b'\n');
        self.written += line.len() as u64;
        if self.written > MOST_OF_LINES {
            return Err(io::Error::other(
                "too many changes in this session: no further copies of files are saved",
            ));
        }
        self.lines.write_all(&line)?;
        self.note(checkpoint);
        Ok(())
    }

    /// Stores a content, unless it is already stored. Returns `None` if the content is too large or the session's space
    /// is used up.
    fn keep(&mut self, blob: &Blob) -> io::Result<Option<KeptContent>> {
        if blob.len() > MOST_OF_A_FILE {
            return Ok(None);
        }
        let bytes = blob.bytes()?;
        let digest = digest(&bytes);
        if let Some(at) = self.by_digest.get(&digest) {
            return Ok(Some(KeptContent { digest, at: *at }));
        }
        if self.end + blob.len() > MOST_OF_A_SESSION {
            return Ok(None);
        }
        let at = self.end;
        self.contents.write_all(&bytes)?;
        self.end += blob.len();
        self.by_digest.insert(digest.clone(), at);
        Ok(Some(KeptContent { digest, at }))
    }

    /// Reads a stored content and checks its digest.
    pub(super) fn bytes(&self, content: &KeptContent, size: u64) -> io::Result<Vec<u8>> {
        let size = usize::try_from(size.min(MOST_OF_A_FILE)).map_err(io::Error::other)?;
        let mut bytes = vec![0; size];
        self.contents.read_exact_at(&mut bytes, content.at)?;
        if digest(&bytes) == content.digest {
            Ok(bytes)
        } else {
            Err(io::Error::other("the saved copy of a file is damaged: it differs from its digest"))
        }
    }

    pub(super) fn states_at(&self, at: usize) -> States {
        let mut states = States::new();
        for (path, seen) in self.taken.iter().take(at + 1).flat_map(|checkpoint| &checkpoint.changed) {
            match seen {
                Some(seen) => drop(states.insert(path.clone(), seen.clone())),
                None => drop(states.remove(path)),
            }
        }
        states
    }
}

fn directory(state: &Path) -> PathBuf {
    state.join("checkpoints")
}

/// Returns the directory of a session's checkpoints. Fails unless the session's name is a plain file name: a forged log
/// may state any name.
fn of_session(state: &Path, session: &str) -> io::Result<PathBuf> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if session.is_empty() || !session.bytes().all(plain) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{session:?} is not the name of a session"),
        ));
    }
    Ok(directory(state).join(session))
}

/// Removes the checkpoints of sessions without a log, then the oldest checkpoints until at most `most` bytes are left.
/// Keeps the checkpoints of the session `keep` and of open sessions.
pub fn remove_old(state: &Path, keep: &ConversationId, most: u64) -> io::Result<()> {
    let entries = match fs::read_dir(directory(state)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    let mut sessions = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let log = state.join("sessions").join(path.file_name().unwrap_or_default()).with_extension("jsonl");
        match File::open(&log) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::remove_dir_all(&path)?,
            Ok(log) if !is_free(&log) => {}
            _ if path.file_name().is_some_and(|name| name == keep.as_str()) => {}
            _ => {
                let contents = path.join("contents").metadata()?;
                sessions.push((contents.modified()?, contents.len(), path));
            }
        }
    }
    sessions.sort();
    let mut bytes: u64 = sessions.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, of_session, path) in sessions {
        if bytes <= most {
            break;
        }
        fs::remove_dir_all(&path)?;
        bytes -= of_session;
    }
    Ok(())
}

/// True if no process has locked the log. Releases its lock explicitly, because a forked child has the file open too.
fn is_free(log: &File) -> bool {
    log.try_lock().and_then(|()| log.unlock().map_err(TryLockError::Error)).is_ok()
}

/// Copies the checkpoints of the session `from` to the session `to`, which is a copy of `from`.
pub fn copy(state: &Path, from: &ConversationId, to: &ConversationId) -> io::Result<()> {
    let (from, to) = (of_session(state, from.as_str())?, of_session(state, to.as_str())?);
    if !from.join("looks.jsonl").exists() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(&to)?;
    // The lines refer to contents that were written before them, so they are copied first.
    for name in ["looks.jsonl", "contents"] {
        fs::copy(from.join(name), to.join(name))?;
    }
    Ok(())
}

/// Removes the checkpoints of a session without a log. Returns false if there were none.
pub fn remove(state: &Path, session: &str) -> io::Result<bool> {
    match fs::remove_dir_all(of_session(state, session)?) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

fn without_content(kind: &SnapshotKind) -> Kept {
    match kind {
        SnapshotKind::File { mode, size, .. } => Kept::File { mode: *mode, size: *size, content: None },
        SnapshotKind::Symlink(target) => Kept::Link(target.clone()),
    }
}

/// True if `time_ns` is before `asked_ns` by more than the clocks' tolerance.
const fn is_settled(time_ns: i64, asked_ns: i64) -> bool {
    time_ns < asked_ns.saturating_sub(CLOCK_MARGIN_NS)
}

pub fn nanoseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn digest(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}
