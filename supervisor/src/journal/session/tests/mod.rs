mod chain;
mod copy;
mod file;
mod foreign;
mod guest_kinds;
mod kinds;
mod large;
mod plan_kinds;
mod tree;

use ipc::id::AgentId;
use protocol::event::{EventKind, ObservedBy, SessionEvent};
use tempfile::TempDir;

use super::SessionLog;

struct Scratch {
    state: TempDir,
    log: SessionLog,
}

impl Scratch {
    fn new() -> Self {
        let state = TempDir::new().unwrap();
        let log = SessionLog::create(state.path(), &"s-1".into()).unwrap();
        Self { state, log }
    }

    fn append(&mut self, agent: &str, kind: EventKind) -> SessionEvent {
        self.log.append(&AgentId::from(agent), ObservedBy::Supervisor, kind).unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.log.path()).unwrap()
    }
}

fn said(text: &str) -> EventKind {
    EventKind::UserMessage { text: text.to_owned(), images: vec![] }
}
