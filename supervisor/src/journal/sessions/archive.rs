//! An archive: an exported session in one file, with a head line and the lines of the session's log.
//!
//! Redaction would break the digest chain of the changed lines, so an archive has a new chain, with its last digest in
//! the head. The chain shows accidental damage. It does not prevent forgery, because anybody can make a new chain.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use ipc::id::{AgentId, ConversationId, EventId};
use ipc::path::WirePath;
use model::redaction::{NotRules, RULES_OF, Redaction};
use protocol::event::{EventKind, NoticeCode, ObservedBy, SessionEvent};
use serde::{Deserialize, Serialize};

use crate::journal::session::{Chain, Fault, LogError, SessionLog, each_line, load_from};

const VERSION: u32 = 1;

/// Maximum size in bytes of an archive that is read.
pub(crate) const LARGEST: u64 = 4 << 30;

pub(super) const LONGEST_HEAD: usize = 64 << 10;

/// The highest event number that an archive may have. A continued session counts on from its last number.
const HIGHEST: u64 = 1 << 53;

/// Maximum length in bytes of an agent's name.
const LONGEST_AGENT: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    bailiwick_export: u32,
    version: String,
    pub session: String,
    /// The time of the export in milliseconds since the epoch.
    exported_ms: u64,
    /// The redaction; `None` if the lines are byte for byte those of the log.
    pub redacted: Option<Redacted>,
    /// The number of lines after the head.
    pub events: usize,
    last: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redacted {
    patterns: String,
    pub found: BTreeMap<String, u64>,
    /// True if redaction changed lines, so that the digest chain differs from that of the log.
    pub rechained: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    #[error(
        "the log was changed after it was written: {0}\n  hint: bailiwick audit lists every fault; bailiwick \
         show shows the session anyway"
    )]
    Changed(Fault),
    #[error("the log has no event")]
    Empty,
    #[error(transparent)]
    Rules(#[from] NotRules),
    #[error(
        "event {0} is not valid after the removal of secrets: {1}\n  hint: --no-redact exports the event unchanged"
    )]
    Spoilt(EventId, String),
    #[error("the file is larger than {} GiB", LARGEST >> 30)]
    Large,
    #[error("the file is not an export of Bailiwick: {0}")]
    Head(String),
    #[error("the export has version {0}, and this Bailiwick reads version {VERSION}")]
    Version(u32),
    #[error("the export was changed, or is incomplete: {0}")]
    Damaged(String),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes the archive of a log and returns its head. Reads the log three times, so that it need not be in memory.
pub(crate) fn export<R: Read + Seek>(
    log: &mut R,
    redacts: bool,
    out: &mut impl Write,
) -> Result<Head, ArchiveError> {
    let (session, whole) = verified(log)?;
    // Lines that are appended meanwhile are not exported.
    let mut lines = |each: &mut dyn FnMut(&[u8]) -> io::Result<()>| {
        log.rewind()?;
        rechained(log.by_ref().take(whole), redacts, each)
    };
    let Rechained { redaction, events, last } = lines(&mut |_| Ok(()))?;
    let redacted = redaction.map(|redaction| Redacted {
        patterns: RULES_OF.to_owned(),
        found: redaction.found().iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        rechained: !redaction.found().is_empty(),
    });
    let (version, exported_ms) = (env!("CARGO_PKG_VERSION").to_owned(), now_ms());
    let head = Head { bailiwick_export: VERSION, version, session, exported_ms, redacted, events, last };
    serde_json::to_writer(&mut *out, &head).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    lines(&mut |line| out.write_all(line).and_then(|()| out.write_all(b"\n")))?;
    out.flush()?;
    Ok(head)
}

/// Returns the session of a log and the size in bytes of its complete lines. Fails if the log was changed.
fn verified(log: &mut (impl Read + Seek)) -> Result<(String, u64), ArchiveError> {
    log.rewind()?;
    let mut whole = 0;
    let loaded = load_from(&mut *log, &mut |read| whole = read, bare)?;
    let is_harmless = |fault: &Fault| matches!(fault, Fault::Torn { .. } | Fault::UnknownType { .. });
    if let Some(fault) = loaded.faults.into_iter().find(|fault| !is_harmless(fault)) {
        return Err(ArchiveError::Changed(fault));
    }
    let session = loaded.tree.events().next().ok_or(ArchiveError::Empty)?.session.to_string();
    Ok((session, whole))
}

/// The result of copying a log's lines with a new digest chain.
struct Rechained {
    redaction: Option<Redaction>,
    events: usize,
    last: String,
}

fn rechained(
    log: impl Read,
    redacts: bool,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<Rechained, ArchiveError> {
    let mut redaction = if redacts { Some(Redaction::new()?) } else { None };
    let (mut chain, mut events) = (Chain::default(), 0);
    each_line(log, |line| {
        if line.is_empty() {
            return Ok(());
        }
        events += 1;
        let spoilt = |what: &str| ArchiveError::Spoilt(EventId(events as u64), what.to_owned());
        let line = match &mut redaction {
            None => chain.next(line),
            Some(redaction) => {
                let text = std::str::from_utf8(line).map_err(|_| spoilt("the line is not text"))?;
                let without = redaction.line(text);
                if without != text {
                    let read = SessionEvent::from_json(without.as_bytes());
                    read.map_err(|error| spoilt(&error.to_string()))?;
                }
                chain.next(without.as_bytes())
            }
        };
        each(&line.ok_or_else(|| spoilt("the line has no digest"))?).map_err(ArchiveError::Io)
    })?;
    Ok(Rechained { redaction, events, last: chain.last() })
}

/// Returns an event without its content. The session's first event is returned unchanged.
fn bare(event: SessionEvent) -> SessionEvent {
    match event.kind {
        EventKind::SessionStarted(_) => event,
        _ => SessionEvent { kind: EventKind::ModelRequested { step: 0, attempt: 0 }, ..event },
    }
}

/// A session in an archive that was checked. The import reads the session's lines again.
#[derive(Debug)]
pub(crate) struct Archived<R> {
    archive: R,
    head: Head,
    /// Offset in bytes of the first line after the head.
    begins: u64,
    project: Option<WirePath>,
}

impl<R: Read + Seek> Archived<R> {
    /// Reads and checks an archive. Fails unless [`export`] could have written it.
    pub(crate) fn read(mut archive: R) -> Result<Self, ArchiveError> {
        if archive.seek(SeekFrom::End(0))? > LARGEST {
            return Err(ArchiveError::Large);
        }
        archive.rewind()?;
        let mut first = Vec::new();
        archive.by_ref().take(LONGEST_HEAD as u64).read_to_end(&mut first)?;
        let end = first.iter().position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| {
            let why = match first.len() {
                0 => "the file is empty",
                LONGEST_HEAD.. => "the first line is too long",
                _ => "the first line has no end",
            };
            ArchiveError::Head(why.to_owned())
        })?;
        let head = read_head(first.get(..end).unwrap_or_default())?;
        let begins = end as u64 + 1;
        let damaged = |what: String| ArchiveError::Damaged(what);
        archive.seek(SeekFrom::Start(begins))?;
        let loaded = load_from(&mut archive, &mut |_| (), bare)?;
        if let Some(fault) = loaded.faults.first() {
            return Err(damaged(fault.to_string()));
        }
        archive.seek(SeekFrom::Start(begins))?;
        let (mut chain, mut count) = (Chain::default(), 0);
        each_line(&mut archive, |line| {
            count += usize::from(!line.is_empty() && chain.next(line).is_some());
            Ok::<_, io::Error>(())
        })?;
        if count != head.events || chain.last() != head.last {
            return Err(damaged(format!(
                "the file has {count} events, but its first line says {}",
                head.events
            )));
        }
        let events: Vec<_> = loaded.tree.events().collect();
        check(&head, &events).map_err(damaged)?;
        let project = events.iter().find_map(|event| match &event.kind {
            EventKind::SessionStarted(started) => Some(started.project.clone()),
            _ => None,
        });
        Ok(Self { archive, head, begins, project })
    }

    pub(crate) const fn head(&self) -> &Head {
        &self.head
    }

    pub(crate) const fn project(&self) -> Option<&WirePath> {
        self.project.as_ref()
    }

    /// Writes the session under a new unique name, in another project if one is given. If this fails, no log is left.
    pub(crate) fn import(
        self,
        state: &Path,
        project: Option<&WirePath>,
    ) -> Result<ConversationId, ArchiveError> {
        let session = ConversationId(uuid::Uuid::now_v7().to_string());
        let mut log = SessionLog::create(state, &session)?;
        let path = log.path().to_owned();
        let written = self.write(&mut log, project);
        if let Err(error) = written {
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
        Ok(session)
    }

    fn write(mut self, log: &mut SessionLog, project: Option<&WirePath>) -> Result<(), ArchiveError> {
        let notice = self.notice();
        self.archive.seek(SeekFrom::Start(self.begins))?;
        let mut last = None;
        each_line(&mut self.archive, |line| {
            let mut event = SessionEvent::from_json(line).map_err(io::Error::from)?;
            if last.is_some_and(|last| last >= event.id) {
                return Err(ArchiveError::Damaged(Fault::Order { id: event.id }.to_string()));
            }
            last = Some(event.id);
            if let (EventKind::SessionStarted(started), Some(project)) = (&mut event.kind, project) {
                started.project = project.clone();
            }
            log.copy(event).map_err(ArchiveError::Log)
        })?;
        log.append(&AgentId::root(), ObservedBy::Supervisor, notice)?;
        Ok(log.sync()?)
    }

    fn notice(&self) -> EventKind {
        let Head { version, session, redacted, .. } = &self.head;
        let redacted = match redacted {
            None => "nothing was redacted",
            Some(_) => "secrets were redacted",
        };
        let message = format!(
            "imported: everything above comes from another machine, and was not observed by this one (session {session}, exported by \
             version {version}; {redacted})"
        );
        EventKind::Notice { code: NoticeCode::Imported, message }
    }
}

fn read_head(line: &[u8]) -> Result<Head, ArchiveError> {
    #[derive(Deserialize)]
    struct Versioned {
        bailiwick_export: u32,
    }
    let not = |error: serde_json::Error| ArchiveError::Head(error.to_string());
    let Versioned { bailiwick_export } = serde_json::from_slice(line).map_err(not)?;
    if bailiwick_export != VERSION {
        return Err(ArchiveError::Version(bailiwick_export));
    }
    serde_json::from_slice(line).map_err(not)
}

/// Checks properties that every log of this program has, and that a forged archive may lack. An `Err` describes the
/// fault.
fn check(head: &Head, events: &[&SessionEvent]) -> Result<(), String> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if !is_name(&head.session) || !is_version(&head.version) {
        return Err("the first line names no session or no version".to_owned());
    }
    let Some(first) = events.first() else { return Err("the file has no event".to_owned()) };
    if first.session.as_str() != head.session {
        return Err("the events belong to another session than the first line names".to_owned());
    }
    if !matches!(first.kind, EventKind::SessionStarted(_)) {
        return Err("the first event is not the start of a session".to_owned());
    }
    for event in events {
        if event.id.0 == 0 || event.id.0 > HIGHEST {
            return Err(format!("the sequence number of event {} is invalid", event.id));
        }
        if !is_agent(event.agent.as_str()) {
            return Err(format!("event {} belongs to no agent", event.id));
        }
    }
    Ok(())
}

/// True if the name consists of numbers separated by dots.
fn is_agent(name: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    name.len() <= LONGEST_AGENT && name.split('.').all(is_number)
}

fn is_version(version: &str) -> bool {
    version.len() <= 64 && version.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+".contains(&byte))
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;
    use crate::journal::session::rebuild;

    fn event(id: u64, agent: &str, kind: &str, data: Value) -> Value {
        json!({
            "v": 6, "id": id, "time_ms": 1, "session": "s-1", "agent": agent, "observed_by": "supervisor", "type": kind,
            "data": data,
        })
    }

    fn began() -> Value {
        event(
            1,
            "1",
            "session_started",
            json!({
                "version": "0.1.0", "project": "/p", "activity": "execute", "mode": "ask", "model": "m", "provider": "anthropic",
                "rights": "ro / · net off",
            }),
        )
    }

    fn said(id: u64, agent: &str, text: &str) -> Value {
        event(id, agent, "user_message", json!({"text": text}))
    }

    /// Returns a log with these events and a valid chain.
    fn log(events: &[Value]) -> Vec<u8> {
        let (mut chain, mut log) = (Chain::default(), Vec::new());
        for event in events {
            let mut line = event.to_string();
            line.pop();
            line += &[",\"prev\":\"", &"0".repeat(64), "\"}"].concat();
            log.extend(chain.next(line.as_bytes()).unwrap());
            log.push(b'\n');
        }
        log
    }

    /// Returns a forged archive with a valid chain and a matching head. `change` may modify the head.
    fn forged(events: &[Value], change: impl Fn(&mut Value)) -> Vec<u8> {
        let log = log(events);
        let mut chain = Chain::default();
        log.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .for_each(|line| drop(chain.next(line)));
        let mut head = json!({
            "bailiwick_export": 1, "version": "0.1.0", "session": "s-1", "exported_ms": 1, "redacted": null,
            "events": events.len(), "last": chain.last(),
        });
        change(&mut head);
        [head.to_string().into_bytes(), b"\n".to_vec(), log].concat()
    }

    fn refusal(archive: &[u8]) -> String {
        Archived::read(Cursor::new(archive)).unwrap_err().to_string()
    }

    #[test]
    fn an_archive_comes_back_as_another_session() {
        let state = TempDir::new().unwrap();
        let mut archive = Vec::new();
        let head = export(
            &mut Cursor::new(log(&[began(), said(2, "1", "hi"), said(3, "1.1", "ho")])),
            true,
            &mut archive,
        )
        .unwrap();
        assert_eq!((head.session.as_str(), head.events), ("s-1", 3));
        let session =
            Archived::read(Cursor::new(&archive)).unwrap().import(state.path(), Some(&"/q".into())).unwrap();
        let log = std::fs::read(state.path().join(format!("sessions/{session}.jsonl"))).unwrap();
        let loaded = rebuild(&log);
        assert_eq!(loaded.faults, []);
        let last = loaded.tree.events().last().unwrap();
        assert!(matches!(&last.kind, EventKind::Notice { code: NoticeCode::Imported, .. }));
        assert!(loaded.tree.events().all(|event| event.session == session && session.as_str() != "s-1"));
        let again = String::from_utf8(log).unwrap();
        assert!(again.contains("\"project\":\"/q\"") && !again.contains("\"/p\""), "{again}");
    }

    #[test]
    fn an_archive_of_a_stranger_whose_chain_holds_is_judged_all_the_same() {
        let two = [began(), said(2, "1", "hi")];
        assert!(Archived::read(Cursor::new(forged(&two, |_| ()))).is_ok());
        let named = |name: &'static str| move |head: &mut Value| head["session"] = json!(name);
        let mut elsewhere = two.clone();
        for event in &mut elsewhere {
            event["session"] = json!("../../x");
        }
        assert!(refusal(&forged(&elsewhere, named("../../x"))).contains("names no session"));
        assert!(refusal(&forged(&two, named("s-2"))).contains("another session"));
        assert!(refusal(&forged(&two, |head| head["events"] = json!(3))).contains("is incomplete"));
        assert!(refusal(&forged(&two, |head| head["last"] = json!("0"))).contains("is incomplete"));
        assert!(refusal(&forged(&two, |head| head["grants"] = json!([]))).contains("unknown field"));
        assert!(refusal(&forged(&two, |head| head["version"] = json!("\u{1b}[2J"))).contains("no version"));
        assert!(refusal(&forged(&two, |head| head["bailiwick_export"] = json!(7))).contains("version 7"));
        assert!(refusal(&forged(&[said(1, "1", "hi")], |_| ())).contains("start of a session"));
        assert!(refusal(&forged(&[], |_| ())).contains("no event"));
        let with = |event: Value| refusal(&forged(&[began(), event], |_| ()));
        assert!(with(said(u64::MAX, "1", "hi")).contains("is invalid"));
        assert!(with(said(0, "1", "hi")).contains("start of a session"));
        for agent in ["../1", "", "1.", "1\n", "١", &"1.".repeat(80)] {
            assert!(with(said(2, agent, "hi")).contains("belongs to no agent"), "{agent:?}");
        }
        assert!(with(event(2, "1", "from_the_future", json!({}))).contains("does not know"));
        assert!(with(said(1, "1", "hi")).contains("two events 1"));
        let mut orphan = said(2, "1", "hi");
        orphan["parent"] = json!(7);
        assert!(with(orphan).contains("which is missing"));
    }

    #[test]
    fn a_log_that_was_changed_is_not_exported_and_a_torn_end_is_left_out() {
        let mut whole = log(&[began(), said(2, "1", "hi")]);
        let changed =
            String::from_utf8(whole.clone()).unwrap().replacen("hi", "ho", 1).replacen("/p", "/q", 1);
        assert!(matches!(
            export(&mut Cursor::new(changed), true, &mut Vec::new()),
            Err(ArchiveError::Changed(_))
        ));
        assert!(matches!(export(&mut Cursor::new(b""), true, &mut Vec::new()), Err(ArchiveError::Empty)));
        whole.extend_from_slice(b"{\"v\":7");
        let mut archive = Vec::new();
        assert_eq!(export(&mut Cursor::new(&whole), false, &mut archive).unwrap().events, 2);
        assert!(Archived::read(Cursor::new(&archive)).is_ok());
    }
}
