//! The index of sessions: one record for each log, with the state in which the log file was read.
//!
//! The index serves listings only. Other operations use the logs. If it is damaged, the whole index is built anew.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::summary::Summary;

const NAME: &str = "sessions-index.jsonl";

/// First line of the index. An index with another first line is of another version.
const HEAD: &str = "{\"sessions_index\":3}";

const LARGEST: u64 = 256 << 20;

#[derive(Debug)]
pub struct Index {
    state: PathBuf,
    records: HashMap<String, IndexRecord>,
}

#[derive(Debug)]
pub struct ListedSession {
    pub(crate) log: PathBuf,
    pub(crate) changed: SystemTime,
    pub(crate) bytes: u64,
    pub(crate) summary: Summary,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IndexRecord {
    name: String,
    stamp: Stamp,
    /// Summary of the log; `None` if the file is not a session's log.
    summary: Option<Summary>,
}

/// Properties of a log file by which a change is noticed. A changed file is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    inode: u64,
    bytes: u64,
    /// Modification time in seconds and nanoseconds.
    modified: (i64, i64),
    /// Time of the last change of any kind (ctime) in seconds and nanoseconds. Programs cannot set it.
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &Metadata) -> Self {
        Self {
            inode: file.ino(),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

impl Index {
    /// Reads the index of a state directory. If it is missing or unusable, returns an empty one.
    pub fn open(state: &Path) -> Self {
        let records = read(&state.join(NAME)).unwrap_or_default();
        Self { state: state.to_owned(), records }
    }

    /// Returns every session, the most recently written last. Reads only logs that changed since the last call.
    pub fn sessions(&mut self) -> io::Result<Vec<ListedSession>> {
        let directory = self.state.join("sessions");
        let (mut listed, mut records, mut is_new) = (Vec::new(), HashMap::new(), false);
        for (name, file) in logs(&directory)? {
            let (stamp, log) = (Stamp::of(&file), directory.join(&name));
            let known = self.records.remove(&name).filter(|record| record.stamp == stamp);
            is_new |= known.is_none();
            // A log that cannot be read is tried again the next time.
            let known = known.map_or_else(|| Summary::of(&log).ok(), |record| Some(record.summary));
            let Some(summary) = known else { continue };
            if let Some(summary) = summary.clone() {
                let changed = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                listed.push(ListedSession { log, changed, bytes: file.len(), summary });
            }
            records.insert(name.clone(), IndexRecord { name, stamp, summary });
        }
        is_new |= !self.records.is_empty();
        self.records = records;
        if is_new {
            // If the index cannot be written, only the next listing is slower.
            let _ = self.write();
        }
        listed.sort_by(|one, other| (one.changed, &one.log).cmp(&(other.changed, &other.log)));
        Ok(listed)
    }

    /// Replaces the index by a new file that only its owner can read.
    fn write(&self) -> io::Result<()> {
        let mut file = BufWriter::new(tempfile::NamedTempFile::new_in(&self.state)?);
        writeln!(file, "{HEAD}")?;
        for record in self.records.values() {
            serde_json::to_writer(&mut file, record)?;
            file.write_all(b"\n")?;
        }
        let file = file.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
        file.persist(self.state.join(NAME))?;
        Ok(())
    }
}

/// Returns the logs of a directory with their file names.
pub(super) fn logs(directory: &Path) -> io::Result<Vec<(String, Metadata)>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut logs = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // The file may have been removed in between.
        let file = entry.metadata().ok().filter(|file| file.is_file() && is_log(&name));
        logs.extend(file.map(|file| (name, file)));
    }
    Ok(logs)
}

fn is_log(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "jsonl")
}

/// Reads the records of an index. `None` if the file is unusable or any line is invalid.
fn read(path: &Path) -> Option<HashMap<String, IndexRecord>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let is_ours = metadata.uid() == nix::unistd::geteuid().as_raw();
    if !metadata.is_file() || !is_ours || metadata.mode() & 0o077 != 0 || metadata.len() > LARGEST {
        return None;
    }
    let mut lines = BufReader::new(file).lines();
    if lines.next()?.ok()? != HEAD {
        return None;
    }
    let record = |line: io::Result<String>| {
        let record: IndexRecord = serde_json::from_str(&line.ok()?).ok()?;
        Some((record.name.clone(), record))
    };
    lines.map(record).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use ipc::id::AgentId;
    use protocol::event::{Account, ObservedBy};
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;
    use crate::journal::session::SessionLog;

    fn state() -> (TempDir, SessionLog) {
        let state = TempDir::new().unwrap();
        let mut log = SessionLog::create(state.path(), &"s-1".into()).unwrap();
        add(
            &mut log,
            "session_started",
            json!({
                "version": "0.1.0", "project": "/p", "activity": "execute", "mode": "ask", "model": "m", "provider": "anthropic",
                "rights": "ro / · net off",
            }),
        );
        add(&mut log, "user_message", json!({"text": " fix it\n"}));
        (state, log)
    }

    fn add(log: &mut SessionLog, kind: &str, data: serde_json::Value) {
        let kind = serde_json::from_value(json!({"type": kind, "data": data})).unwrap();
        log.append(&AgentId::root(), ObservedBy::Supervisor, kind).unwrap();
    }

    fn reply(log: &mut SessionLog, cost: Option<f64>) {
        let usage = json!({"input": 100, "cache_creation": 0, "cache_read": 0, "output": 20});
        add(
            log,
            "assistant_message",
            json!({
                "message_id": "i", "model": "n", "content": [], "stop_reason": "end_turn", "usage": usage, "cost_usd": cost,
            }),
        );
    }

    fn listed(state: &TempDir) -> Vec<ListedSession> {
        Index::open(state.path()).sessions().unwrap()
    }

    #[test]
    fn a_copy_has_spent_what_came_after_its_copying() {
        let (state, mut log) = state();
        reply(&mut log, Some(0.5));
        add(&mut log, "notice", json!({"code": "copied", "message": "as a copy of s-0"}));
        let copied = |state| listed(state)[0].summary.account();
        assert_eq!(copied(&state), Account::default());
        reply(&mut log, Some(0.25));
        let account = copied(&state);
        assert_eq!((account.usage.output, account.cost), (20, "0.25".parse().ok()));
    }

    #[test]
    fn a_log_that_did_not_change_is_not_read_again() {
        let (state, mut log) = state();
        reply(&mut log, Some(0.5));
        assert_eq!(listed(&state)[0].summary.message, "fix it");
        // The test changes the index instead of the log, because a log with the same stamps is not read again.
        let index = state.path().join(NAME);
        assert_eq!(fs::metadata(&index).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&index).unwrap().replace("fix it", "from the index");
        fs::write(&index, text).unwrap();
        assert_eq!(listed(&state)[0].summary.message, "from the index");
        reply(&mut log, Some(0.25));
        let again = &listed(&state)[0].summary;
        assert_eq!((again.message.as_str(), again.model.as_str()), ("fix it", "n"));
        assert_eq!(again.account().to_string(), "200 in, 0% cached, 40 out, $0.75");
        reply(&mut log, None);
        let summary = &listed(&state)[0].summary;
        assert_eq!(summary.cost_usd, None, "a part is unknown");
        assert!(summary.account().money().is_some_and(|money| money.starts_with("≥ $")), "{summary:?}");
    }

    #[test]
    fn the_last_answer_and_the_changed_files_are_listed() {
        let (state, mut log) = state();
        let answer = |text: &str| {
            json!({
                "message_id": "i", "model": "n", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
                "usage": {"input": 1, "cache_creation": 0, "cache_read": 0, "output": 1},
            })
        };
        let changed = |path: &str, by: serde_json::Value| json!({"files": [{"path": path, "change": "modified", "content": "text", "by": by}]});
        let by_call = || json!([{"agent": "1", "call": 1}]);
        add(&mut log, "assistant_message", answer("I look."));
        add(&mut log, "files_changed", changed("a", by_call()));
        add(&mut log, "files_changed", changed("a", by_call()));
        add(&mut log, "files_changed", changed("b", by_call()));
        add(&mut log, "files_changed", changed("by-the-person", json!([])));
        add(&mut log, "assistant_message", answer("\nDone.\nMore."));
        let summary = &listed(&state)[0].summary;
        assert_eq!(
            (summary.last_words(), summary.changes()),
            (Some("Done."), Some("2 files changed".to_owned()))
        );
    }

    #[test]
    fn an_index_that_is_not_ours_alone_or_not_whole_is_made_again() {
        let (state, _log) = state();
        let index = state.path().join(NAME);
        let spoil = |act: &dyn Fn(&str)| {
            listed(&state);
            let text = fs::read_to_string(&index).unwrap().replace("fix it", "forged");
            act(&text);
            assert_eq!(listed(&state)[0].summary.message, "fix it");
            assert!(fs::symlink_metadata(&index).unwrap().is_file());
        };
        spoil(&|text| fs::write(&index, format!("{text}{{\"name\":")).unwrap());
        spoil(&|text| fs::write(&index, text.replacen('1', "2", 1)).unwrap());
        spoil(&|text| {
            fs::write(&index, text).unwrap();
            fs::set_permissions(&index, fs::Permissions::from_mode(0o666)).unwrap();
        });
        spoil(&|text| {
            let other = state.path().join("other");
            fs::write(&other, text).unwrap();
            fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
            fs::remove_file(&index).unwrap();
            symlink(&other, &index).unwrap();
        });
        spoil(&|_| fs::write(&index, b"\xff\n").unwrap());
    }

    #[test]
    fn what_is_no_log_is_not_listed_and_what_is_gone_leaves_the_index() {
        let (state, log) = state();
        let sessions = state.path().join("sessions");
        fs::write(sessions.join("x.jsonl"), "no event\n").unwrap();
        fs::write(sessions.join("y.jsonl"), "").unwrap();
        fs::write(sessions.join("z.txt"), "").unwrap();
        symlink(log.path(), sessions.join("link.jsonl")).unwrap();
        assert_eq!(listed(&state).len(), 1);
        fs::remove_file(log.path()).unwrap();
        assert!(listed(&state).is_empty());
        assert!(!fs::read_to_string(state.path().join(NAME)).unwrap().contains("s-1"));
        assert!(Index::open(&state.path().join("none")).sessions().unwrap().is_empty());
    }
}
