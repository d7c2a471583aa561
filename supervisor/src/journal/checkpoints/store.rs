//! The looks of a session, and the contents that they keep.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ipc::id::ConversationId;
use ipc::message::SnapshotKind;
use sha2::{Digest, Sha256};

use super::look::{CheckpointLine, KeptContent, SeenFile};
use super::{At, Kept, Look, LookDifference, MOST_OF_A_FILE, MOST_OF_A_SESSION, MOST_OF_LOOKS};
use crate::journal::changes::{Blob, Intake, ProjectPath, Snapshot, SnapshotLimits, batches};

/// The margin of a file system's clock, which may be off, or coarse: FAT counts in steps of two seconds.
const CLOCK_MARGIN_NS: i64 = 2_000_000_000;

/// The states of the project's files and links.
pub(super) type States = BTreeMap<ProjectPath, SeenFile>;

/// The looks of one session.
#[derive(Debug)]
pub struct Checkpoints {
    lines: File,
    contents: File,
    /// Bytes of `contents`.
    pub(super) end: u64,
    /// Bytes of `lines`.
    pub(super) written: u64,
    by_digest: HashMap<String, u64>,
    pub(super) looks: Vec<Look>,
    /// The states at the last look.
    pub(super) now: States,
}

/// The contents that a look still needs.
#[derive(Debug)]
pub struct Wanted {
    paths: Arc<BTreeSet<ProjectPath>>,
}

impl Wanted {
    /// The paths of one `Fetch` call each.
    pub fn fetches(&self) -> Vec<Vec<ipc::path::WirePath>> {
        batches(self.paths.iter())
    }

    /// Takes in what these calls bring, of all of them one after the other.
    pub fn intake(&self, store: File) -> Intake {
        let limits = SnapshotLimits { content: 2 * MOST_OF_A_SESSION, ..SnapshotLimits::default() };
        Intake::of_paths(store, limits, Arc::clone(&self.paths))
    }
}

impl Checkpoints {
    /// The looks of this session, in the state directory; none in a new one. Only the process that has the session's log opens them.
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
        let (looks, by_digest, now) = (Vec::new(), HashMap::new(), States::new());
        let mut checkpoints = Self { lines, contents, end, written: 0, by_digest, looks, now };
        checkpoints.read()?;
        Ok(checkpoints)
    }

    /// Reads the lines; truncates the file at the first invalid one.
    fn read(&mut self) -> io::Result<()> {
        let mut text = Vec::new();
        (&self.lines).read_to_end(&mut text)?;
        let mut whole = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let read =
                line.strip_suffix(b"\n").and_then(|line| serde_json::from_slice::<CheckpointLine>(line).ok());
            let Some(look) = read.and_then(CheckpointLine::into_look) else { break };
            whole += line.len() as u64;
            self.note(look);
        }
        self.written = whole;
        if whole < text.len() as u64 {
            self.lines.set_len(whole)?;
        }
        Ok(())
    }

    fn note(&mut self, look: Look) {
        for (path, seen) in &look.changed {
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
        self.looks.push(look);
    }

    pub fn is_empty(&self) -> bool {
        self.looks.is_empty()
    }

    /// The contents that are to be fetched for a look with this manifest: those that are new, as far as there is room for them.
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
        // A path that the manifest lacks may only be ignored now. Beyond what became a link or a file there is none.
        let mut obstacles = manifest.obstacles();
        let gone = self.now.keys().filter(|path| !manifest.has(path) && obstacles.of(path).is_none());
        let paths = new.map(|(path, ..)| path).chain(gone).cloned().collect();
        Wanted { paths: Arc::new(paths) }
    }

    /// True if there is room for looks that no rewind needs.
    pub const fn has_room(&self) -> bool {
        self.end < MOST_OF_A_SESSION / 2 && self.written < MOST_OF_LOOKS / 2
    }

    /// True if the last look belongs to a turn whose end nobody saw.
    pub fn is_within_turn(&self) -> bool {
        self.looks.last().is_some_and(Look::is_within_turn)
    }

    /// Keeps a look that was asked for at `asked`; `fetched` are the contents that it wanted. Gives what differs from the look before: of the
    /// first one, nothing.
    pub fn take(
        &mut self,
        (at, asked): (At, SystemTime),
        manifest: &Snapshot,
        (wanted, fetched): (&Wanted, &Snapshot),
    ) -> io::Result<Vec<LookDifference>> {
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
        let look = Look { at, asked_ns, changed: changed.chain(went).collect() };
        let differs = |(path, seen): &(ProjectPath, Option<SeenFile>)| {
            LookDifference::between(path, old.get(path), seen.as_ref())
        };
        let mut differences: Vec<_> = if self.looks.is_empty() {
            Vec::new()
        } else {
            look.changed.iter().filter_map(differs).collect()
        };
        differences.sort_by(|one, other| one.path().cmp(other.path()));
        self.write(look)?;
        Ok(differences)
    }

    /// Records the end of a turn without writes: any later change is not the agents'.
    pub fn rest(&mut self) -> io::Result<()> {
        self.write(Look { at: At::End, asked_ns: nanoseconds(SystemTime::now()), changed: Vec::new() })
    }

    fn write(&mut self, look: Look) -> io::Result<()> {
        let mut line = serde_json::to_vec(&look.to_line())?;
        line.push(b'\n');
        self.written += line.len() as u64;
        if self.written > MOST_OF_LOOKS {
            return Err(io::Error::other("too much has changed in this session for more looks to be kept"));
        }
        self.lines.write_all(&line)?;
        self.note(look);
        Ok(())
    }

    /// Keeps a content, once; none if the session has too many.
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

    /// The bytes of a content, which are those that were kept.
    pub(super) fn bytes(&self, content: &KeptContent, size: u64) -> io::Result<Vec<u8>> {
        let size = usize::try_from(size.min(MOST_OF_A_FILE)).map_err(io::Error::other)?;
        let mut bytes = vec![0; size];
        self.contents.read_exact_at(&mut bytes, content.at)?;
        if digest(&bytes) == content.digest {
            Ok(bytes)
        } else {
            Err(io::Error::other("a content that was kept has changed"))
        }
    }

    pub(super) fn states_at(&self, look: usize) -> States {
        let mut states = States::new();
        for (path, seen) in self.looks.iter().take(look + 1).flat_map(|look| &look.changed) {
            match seen {
                Some(seen) => drop(states.insert(path.clone(), seen.clone())),
                None => drop(states.remove(path)),
            }
        }
        states
    }
}

/// The directory of all sessions' looks.
fn directory(state: &Path) -> PathBuf {
    state.join("checkpoints")
}

/// Returns the directory of one session's looks. Its name comes from a log, which somebody may have written
/// by hand: a name that leads elsewhere is an error.
fn of_session(state: &Path, session: &str) -> io::Result<PathBuf> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if session.is_empty() || !session.bytes().all(plain) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{session:?} is no name of a session"),
        ));
    }
    Ok(directory(state).join(session))
}

/// Removes the looks of sessions without a log, and then the oldest until at most `most` bytes are left; it
/// never removes those of `keep` and of sessions that another process has open.
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

/// True of a log that no process has open. The lock is given back by a call: a child that has been forked and has not executed yet
/// has the file open, too.
fn is_free(log: &File) -> bool {
    log.try_lock().and_then(|()| log.unlock().map_err(TryLockError::Error)).is_ok()
}

/// Gives a session the looks of another one that it is a copy of.
pub fn copy(state: &Path, from: &ConversationId, to: &ConversationId) -> io::Result<()> {
    let (from, to) = (of_session(state, from.as_str())?, of_session(state, to.as_str())?);
    if !from.join("looks.jsonl").exists() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(&to)?;
    // A line names contents that were written before it.
    for name in ["looks.jsonl", "contents"] {
        fs::copy(from.join(name), to.join(name))?;
    }
    Ok(())
}

/// Removes the looks of a session whose log is gone; false if there were none.
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

/// True of a time that is surely before another one.
const fn is_settled(time_ns: i64, asked_ns: i64) -> bool {
    time_ns < asked_ns.saturating_sub(CLOCK_MARGIN_NS)
}

pub fn nanoseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // A String takes every write.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
