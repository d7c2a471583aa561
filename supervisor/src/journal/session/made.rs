use ipc::id::AgentId;
use protocol::event::{EventKind, ObservedBy};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Loaded, SessionLog, load};

pub(crate) struct Log {
    _state: TempDir,
    pub(crate) log: SessionLog,
}

impl Log {
    pub(crate) fn new() -> Self {
        let state = TempDir::new().unwrap();
        let log = SessionLog::create(state.path(), &"s-1".into()).unwrap();
        Self { _state: state, log }
    }

    pub(crate) fn with(mut self, agent: &str, kind: &str, data: Value) -> Self {
        let kind: EventKind = serde_json::from_value(json!({"type": kind, "data": data})).unwrap();
        self.log.append(&AgentId::from(agent), ObservedBy::Supervisor, kind).unwrap();
        self
    }

    pub(crate) fn said(self, agent: &str, text: &str) -> Self {
        self.with(agent, "user_message", json!({"text": text}))
    }

    pub(crate) fn loaded(&self) -> Loaded {
        load(self.log.path()).unwrap()
    }
}
