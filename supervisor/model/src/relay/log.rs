//! The relay's log of requests in the state directory: a JSON object on each line, without prompts, replies or keys.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ipc::text::harmless;
use protocol::cost::Usd;
use protocol::event::TokenUsage;
use serde::Serialize;

use crate::redaction::Redaction;

/// Maximum bytes of the log. Without this limit, a client could fill the disk.
const MOST: u64 = 256 << 20;

/// Maximum characters of a text in the log that comes from a client or a provider.
const SHOWN: usize = 300;

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct RelayLogEntry {
    pub(super) time: String,
    pub(super) client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    pub(super) status: u16,
    pub(super) end: &'static str,
    /// Reason for an error, or for the rejection of the request; `None` after success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
    pub(super) request_bytes: u64,
    pub(super) reply_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_byte_ms: Option<u64>,
    pub(super) ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<TokenUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reserved_usd: Option<Usd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost_usd: Option<Usd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_id: Option<String>,
}

pub(super) struct RelayLog {
    path: PathBuf,
    complain: fn(&str),
    inner: Mutex<RelayLogInner>,
}

struct RelayLogInner {
    file: File,
    redaction: Redaction,
    written: u64,
    failed: bool,
}

impl RelayLog {
    /// Creates a log in the directory. The first failed write calls `complain`, later ones do not.
    pub(super) fn create(directory: &Path, complain: fn(&str)) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let path = directory.join(format!("{}.jsonl", uuid::Uuid::now_v7()));
        let file = File::options().append(true).create_new(true).mode(0o600).open(&path)?;
        let redaction = Redaction::new().map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self {
            path,
            complain,
            inner: Mutex::new(RelayLogInner { file, redaction, written: 0, failed: false }),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds an entry. A failure is reported only once, and does not affect the client.
    pub(super) fn write(&self, entry: &RelayLogEntry) {
        let entry = RelayLogEntry {
            model: entry.model.as_deref().map(bounded),
            why: entry.why.as_deref().map(bounded),
            request_id: entry.request_id.as_deref().map(bounded),
            ..entry.clone()
        };
        let Ok(line) = serde_json::to_string(&entry) else { return };
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.failed {
            return;
        }
        let line = format!("{}\n", inner.redaction.line(&line));
        inner.written += line.len() as u64;
        let done = match inner.written {
            0..=MOST => inner.file.write_all(line.as_bytes()),
            _ => Err(io::Error::other("the log is full")),
        };
        if let Err(error) = done {
            inner.failed = true;
            (self.complain)(&format!("the relay's log {} ends here: {error}", self.path.display()));
        }
    }
}

fn bounded(text: &str) -> String {
    harmless(&text.chars().take(SHOWN).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_no_secret_and_no_command_for_a_terminal() {
        let place = tempfile::tempdir().expect("a place");
        let log = RelayLog::create(place.path(), |_| ()).expect("a log");
        let key = format!("sk-ant-api03-{}", "A".repeat(93));
        let why = Some(format!("{key} \u{1b}]0;x\u{7} {}", "y".repeat(1000)));
        log.write(&RelayLogEntry { client: "a".to_owned(), end: "refused", why, ..RelayLogEntry::default() });
        let text = std::fs::read_to_string(log.path()).expect("the log");
        assert!(!text.contains("AAAAAAAA") && !text.contains('\u{1b}') && text.len() < 900, "{text}");
        let line: serde_json::Value = serde_json::from_str(text.trim_end()).expect("JSON");
        assert_eq!(line["end"], "refused");
    }
}
