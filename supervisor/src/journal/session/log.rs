use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ipc::id::{AgentId, ConversationId, EventId};
use model::secrets::Redactor;
use protocol::event::{EventKind, ObservedBy, SessionEvent};
use secrecy::SecretString;

use super::chain::{GENESIS, Link, close};
use super::file::{LineFile, open_directory};
use super::flush::Flusher;
use super::needed::{self, Needed, Read, Sizes};
use super::parts::LONGEST_LINE;
use super::{Fault, LogError};

/// Maximum size in bytes of written lines that are also kept in memory until they are synced.
const MOST_UNSYNCED: u64 = 16 << 20;

/// Capacity in bytes that the line buffer keeps after an event.
const SPARE: usize = 64 << 10;

#[derive(Debug)]
pub struct SessionLog {
    file: LineFile,
    session: ConversationId,
    last: EventId,
    /// Id of each agent's last event, which is the parent of the agent's next event.
    heads: BTreeMap<AgentId, EventId>,
    prev: Link,
    line: Vec<u8>,
    redactor: Redactor,
    held: HeldLines,
}

#[derive(Debug)]
pub struct Reopened {
    pub log: SessionLog,
    pub needed: Needed,
    /// True if the last line was incomplete and was cut off.
    pub torn: bool,
}

/// Lines that are kept in memory, because the disk may not have them.
#[derive(Debug, Default)]
struct HeldLines {
    /// True if lines are kept in memory while the disk is full; false if an append then fails.
    wanted: bool,
    lines: VecDeque<(EventId, Vec<u8>)>,
    /// Written lines that may not be synced yet, each with its offset in the file.
    unsynced: VecDeque<(u64, EventId, Vec<u8>)>,
    /// For each event, the number of times that writing it must still fail with a simulated full disk.
    #[cfg(test)]
    pretended: BTreeMap<EventId, u32>,
}

impl HeldLines {
    /// Keeps a written line in memory until it is synced, up to [`MOST_UNSYNCED`]. The first `synced` bytes are synced.
    fn written(&mut self, begins: u64, id: EventId, line: &[u8], synced: u64) {
        while self.unsynced.front().is_some_and(|(begins, ..)| *begins < synced) {
            self.unsynced.pop_front();
        }
        self.unsynced.push_back((begins, id, line.to_vec()));
        while self.unsynced.front().is_some_and(|(first, ..)| begins - first > MOST_UNSYNCED) {
            self.unsynced.pop_front();
        }
    }
}

impl SessionLog {
    /// Creates the log of a new session: `STATE/sessions/ID.jsonl`, mode 0600 in a directory of mode 0700.
    pub fn create(state: &Path, session: &ConversationId) -> Result<Self, LogError> {
        let name = plain(session)?;
        let directory_path = state.join("sessions");
        let directory = open_directory(&directory_path)?;
        Ok(Self {
            file: LineFile::create(&directory, directory_path.join(format!("{name}.jsonl")))?,
            session: session.clone(),
            last: EventId(0),
            heads: BTreeMap::new(),
            prev: GENESIS,
            line: Vec::with_capacity(4096),
            redactor: Redactor::default(),
            held: HeldLines::default(),
        })
    }

    /// Opens and locks the log of a continued session. `watch` gets the number of bytes read and the file's size.
    pub fn reopen(path: &Path, watch: &mut dyn FnMut(u64, u64)) -> Result<Reopened, LogError> {
        Self::reopen_within(path, Sizes::default(), watch)
    }

    pub(crate) fn reopen_within(
        path: &Path,
        sizes: Sizes,
        watch: &mut dyn FnMut(u64, u64),
    ) -> Result<Reopened, LogError> {
        let directory = open_directory(path.parent().unwrap_or(Path::new(".")))?;
        let mut file = LineFile::reopen(&directory, path.to_owned())?;
        let unreadable = |source| LogError::Read { path: path.to_owned(), source };
        let Read { needed, faults, prev, whole, torn, last, heads } =
            needed::read(file.file(), sizes, None, watch).map_err(unreadable)?;
        let broken = |fault| LogError::Broken { path: path.to_owned(), fault };
        let is_torn = |fault: &Fault| matches!(fault, Fault::Torn { .. });
        if let Some(fault) = faults.into_iter().find(|fault| !is_torn(fault)) {
            return Err(broken(fault));
        }
        let (Some(first), Some(last)) = (needed.events.first(), last) else {
            return Err(broken(Fault::Torn { line: 1 }));
        };
        // The session's id is a part of the names of other files.
        plain(&first.session)?;
        if torn {
            file.cut(whole).map_err(unreadable)?;
        } else {
            file.append_behind(whole);
        }
        let log = Self {
            file,
            session: first.session.clone(),
            last,
            heads: heads.into_iter().collect(),
            prev,
            line: Vec::with_capacity(4096),
            redactor: Redactor::default(),
            held: HeldLines::default(),
        };
        Ok(Reopened { log, needed, torn })
    }

    pub const fn session(&self) -> &ConversationId {
        &self.session
    }

    /// Masks this secret in every line.
    #[must_use]
    pub fn without(self, secret: Option<SecretString>) -> Self {
        Self { redactor: Redactor::new(secret), ..self }
    }

    pub(crate) fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Appends an event and returns it as it was logged. The event is not lost if only this process is killed
    /// afterwards.
    pub fn append(
        &mut self,
        agent: &AgentId,
        observed_by: ObservedBy,
        kind: EventKind,
    ) -> Result<SessionEvent, LogError> {
        let event = self.event(agent, observed_by, kind);
        self.write(event)
    }

    pub(super) fn write(&mut self, event: SessionEvent) -> Result<SessionEvent, LogError> {
        let id = event.id;
        let (event, link) = self.encode(event).map_err(|source| LogError::Encode { id, source })?;
        if self.line.len() > LONGEST_LINE {
            return Err(LogError::Long { id, bytes: self.line.len() });
        }
        if self.is_full() {
            self.held.lines.push_back((id, self.line.clone()));
        } else {
            let bytes = std::mem::take(&mut self.line);
            let put = self.put(id, &bytes);
            self.line = bytes;
            if let Err(source) = put {
                if !(self.held.wanted && is_full(&source)) {
                    return Err(self.not_appended(id, self.last, source));
                }
                self.held.lines.push_back((id, self.line.clone()));
            }
        }
        if self.line.capacity() > SPARE {
            self.line = Vec::with_capacity(4096);
        }
        self.prev = link;
        self.last = event.id;
        self.heads.insert(event.agent.clone(), event.id);
        Ok(event)
    }

    /// Makes the log keep lines in memory while the disk is full. Before an event's effect is carried out, the caller
    /// must check [`SessionLog::is_full`].
    #[must_use]
    pub fn holding_lines(mut self) -> Self {
        self.held.wanted = true;
        self
    }

    /// True if events are kept in memory because the disk was full.
    pub fn is_full(&self) -> bool {
        !self.held.lines.is_empty()
    }

    pub fn last_safe(&self) -> EventId {
        self.held.lines.front().map_or(self.last, |(id, _)| EventId(id.0.saturating_sub(1)))
    }

    /// Writes the events that are kept in memory. If this fails, the unwritten events stay in memory.
    pub fn write_held(&mut self) -> Result<(), LogError> {
        while let Some((id, line)) = self.held.lines.pop_front() {
            if let Err(source) = self.put(id, &line) {
                self.held.lines.push_front((id, line));
                return Err(self.not_appended(id, EventId(id.0.saturating_sub(1)), source));
            }
        }
        Ok(())
    }

    fn put(&mut self, id: EventId, line: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        if let Some(left) = self.held.pretended.get_mut(&id).filter(|left| **left > 0) {
            *left -= 1;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let begins = self.file.whole();
        self.file.append(line)?;
        if self.held.wanted {
            self.held.written(begins, id, line, self.file.durable().synced());
        }
        Ok(())
    }

    /// Repairs the log after a sync failed because the disk was full: moves the lines that are not synced from the file
    /// to memory, to be written again. Returns false if the error has another cause, or if memory lacks one of these
    /// lines.
    pub fn take_back(&mut self, error: &LogError) -> Result<bool, LogError> {
        let durable = self.file.durable();
        let synced = durable.synced();
        let held = &mut self.held;
        held.unsynced.retain(|(begins, ..)| *begins >= synced);
        let has_all =
            held.unsynced.front().map_or(self.file.whole() == synced, |(begins, ..)| *begins == synced);
        if !(held.wanted && has_all && matches!(error, LogError::Sync { source, .. } if is_full(source))) {
            return Ok(false);
        }
        for (_, id, line) in held.unsynced.drain(..).rev() {
            held.lines.push_front((id, line));
        }
        let path = self.file.path().to_owned();
        self.file.cut(synced).map_err(|source| LogError::Sync { path, source })?;
        self.file.durable().begin_again();
        Ok(true)
    }

    /// Simulates a full disk for this number of syncs of the log.
    #[cfg(test)]
    pub(crate) fn unsynced_for(self, calls: u64) -> Self {
        self.file.durable().pretend(calls);
        self
    }

    /// Simulates a full disk for this number of attempts to write the event `id`.
    #[cfg(test)]
    pub(crate) fn full_at(mut self, id: EventId, attempts: u32) -> Self {
        self.held.pretended.insert(id, attempts);
        self
    }

    pub fn free_bytes(&self) -> Option<u64> {
        self.file.free_bytes()
    }

    fn not_appended(&self, id: EventId, last: EventId, source: io::Error) -> LogError {
        LogError::Append { id, last, path: self.file.path().to_owned(), source }
    }

    /// Starts a thread that syncs the log while it is written.
    pub fn flusher(&self) -> Flusher {
        Flusher::new(self.file.handle(), self.file.path().to_owned(), Arc::clone(self.file.durable()))
    }

    pub fn sync(&self) -> Result<(), LogError> {
        self.file.sync().map_err(|source| LogError::Sync { path: self.file.path().to_owned(), source })
    }

    fn event(&self, agent: &AgentId, observed_by: ObservedBy, kind: EventKind) -> SessionEvent {
        let parent_agent = agent.as_str().rsplit_once('.').map(|(parent, _)| AgentId::from(parent));
        // The parent of a sub-agent's first event is the last event of its parent agent.
        let head = self.heads.get(agent).or_else(|| self.heads.get(parent_agent.as_ref()?));
        SessionEvent {
            id: self.last.next(),
            parent: head.copied(),
            time_ms: now_ms(),
            session: self.session.clone(),
            agent: agent.clone(),
            parent_agent,
            observed_by,
            kind,
        }
    }

    /// Encodes an event as a line. Returns the event and the line's digest.
    fn encode(&mut self, mut event: SessionEvent) -> Result<(SessionEvent, Link), serde_json::Error> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, &event)?;
        if self.redactor.mask(&mut self.line) {
            event = SessionEvent::from_json(&self.line)?;
        }
        self.line.pop();
        let link = close(&mut self.line, self.prev);
        self.line.push(b'\n');
        Ok((event, link))
    }
}

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns the name of a session. Fails if it is unsafe as a part of file names.
fn plain(session: &ConversationId) -> Result<&str, LogError> {
    let name = session.as_str();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
        return Err(LogError::Id(name.to_owned()));
    }
    Ok(name)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
