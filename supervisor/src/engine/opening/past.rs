//! Continues an earlier session: opens its log again, closes open calls and turns in it, and shows the conversation.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use agent::core::{Counted as _, standing};
use ipc::id::{AgentId, ConversationId, EventId};
use ipc::message::Leftovers;
use ipc::path::WirePath;
use protocol::event::{
    EndReason, EventKind, NewContext, NoticeCode, ObservedBy, PromptFixed, RewindScope, RunResult,
    SessionEvent, SessionStarted, TokenUsage, TurnFinished,
};
use protocol::frontend::{UiEvent, UiEventKind};
use secrecy::SecretString;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::cut_off;
use super::cut_off_plan::CutOffPlan;
use super::error::OpenError;
use super::options::SessionOptions;
use super::{plan_files, rights_before};
use crate::engine::driver::SnapshotTaker;
use crate::engine::place::ProjectSandbox;
use crate::journal::checkpoints;
use crate::journal::session::{LogError, Needed, Reopened, SessionLog, closing, leftovers, read_needed};
use crate::journal::sessions::{Keep, prune};
use crate::process::directories::Directories;
use crate::process::messages::{ReadingProgress, complain, say};

/// An earlier session to continue.
#[derive(Clone, Debug)]
pub(crate) struct Resume {
    pub log: PathBuf,
    /// True if the front end gets the earlier conversation to show it.
    pub shows: bool,
    /// True if a copy of the session is continued. The session itself then stays unchanged.
    pub forks: bool,
}

/// An earlier session. [`Past::close`] logs the ends of its open calls and turns.
pub(super) struct Past {
    log: SessionLog,
    needed: Needed,
    shows: bool,
    torn: bool,
    /// Path of the project in the earlier run; `None` if the project has not moved.
    moved_from: Option<WirePath>,
    /// Session that this one is a copy of; `None` if it is no copy.
    origin: Option<ConversationId>,
}

impl Past {
    pub(super) fn of(
        resume: Option<&Resume>,
        project: &WirePath,
        state: &Path,
    ) -> Result<Option<Self>, OpenError> {
        resume.map(|resume| Self::open(resume, project, state)).transpose()
    }

    /// Opens and locks the log of the session or of a copy. Fails if the session belongs to another project.
    fn open(resume: &Resume, project: &WirePath, state: &Path) -> Result<Self, OpenError> {
        let mut progress = ReadingProgress::begin();
        let watch = &mut |read, whole| progress.tell(read, whole);
        let mut past = if resume.forks {
            Self::fork(resume, state, watch)?
        } else {
            let Reopened { log, needed, torn } = SessionLog::reopen(&resume.log, watch)?;
            Self { log, needed, shows: resume.shows, torn, moved_from: None, origin: None }
        };
        match past.project().filter(|own| *own != project).cloned() {
            Some(own) if has_moved(&own, project) => past.moved_from = Some(own),
            Some(own) => return Err(OpenError::OtherProject(own)),
            None => {}
        }
        Ok(past)
    }

    /// Copies the session with its snapshots of the project. Another process may have the original open.
    fn fork(resume: &Resume, state: &Path, watch: &mut dyn FnMut(u64, u64)) -> Result<Self, OpenError> {
        let session = ConversationId(uuid::Uuid::now_v7().to_string());
        let (log, origin) = SessionLog::copy_of(&resume.log, state, &session, watch)?;
        let needed = read_needed(log.path(), None, watch)?;
        checkpoints::copy(state, &origin, &session)?;
        Ok(Self { log, needed, shows: resume.shows, torn: false, moved_from: None, origin: Some(origin) })
    }

    fn project(&self) -> Option<&WirePath> {
        self.needed.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::SessionStarted(started) => Some(&started.project),
            _ => None,
        })
    }

    pub(super) fn session(&self) -> ConversationId {
        self.log.session().clone()
    }

    /// Returns the files that cut-off writes may have left behind; `None` if no write was cut off.
    pub(super) fn leftovers(&self) -> Option<Leftovers> {
        leftovers(&self.needed.events)
    }

    /// Logs the ends of open calls and turns. Returns a notice for each cut-off execution of a plan except `goes_on`.
    pub(super) fn close(
        &mut self,
        setup: &ProjectSandbox,
        observer: &SnapshotTaker,
        goes_on: Option<&CutOffPlan>,
    ) -> Result<Vec<EventKind>, LogError> {
        let cut_off = plan_files::cut_off(setup, &self.needed.events, goes_on);
        for (agent, kind) in closing(&self.needed.events, &cut_off::found(&self.needed.events, observer)) {
            let event = self.log.append(&agent, ObservedBy::Supervisor, kind)?;
            self.needed.add(event);
        }
        Ok(cut_off)
    }

    pub(super) fn events(&self) -> &[SessionEvent] {
        &self.needed.events
    }

    fn notice(&self, new_context: Option<&NewContext>) -> EventKind {
        let torn = if self.torn { "; an incomplete last line was removed from its log" } else { "" };
        let is_foreign =
            |event: &SessionEvent| matches!(event.kind, EventKind::Notice { code: NoticeCode::Imported, .. });
        let imported = if self.needed.events.iter().any(is_foreign) {
            ", which was imported: its earlier content comes from another machine and may be false"
        } else {
            ""
        };
        let forked =
            self.origin.as_ref().map_or_else(String::new, |origin| format!(" as a copy of {origin}"));
        let moved = self
            .moved_from
            .as_ref()
            .map_or_else(String::new, |from| format!(", whose project is no longer at {from}"));
        let new_context = new_context.map_or_else(String::new, |cause| {
            format!(", in a new context, without the model's thinking so far, since {cause}")
        });
        let unshown = if self.needed.whole.is_some() && self.shows {
            format!(
                "; older messages are not shown here: `bailiwick show {}` shows them all",
                self.log.session()
            )
        } else {
            String::new()
        };
        let message = format!(
            "resumed{forked}{imported}{moved}{new_context}{torn}{unshown}; earlier approvals are no longer valid"
        );
        let code = if self.origin.is_some() { NoticeCode::Copied } else { NoticeCode::Resumed };
        EventKind::Notice { code, message }
    }

    /// Sends the earlier conversation to the front end, as if it took place now.
    fn show(&self, ui: &mpsc::UnboundedSender<UiEvent>) {
        let (mut runs, mut at_work) = (None, BTreeSet::new());
        let standing = standing(&self.needed.events);
        let files_stay_back = rewinds_of_files(&standing);
        let own = standing.into_iter().filter(|event| self.needed.is_whole(event));
        for event in own.filter(|_| self.shows) {
            let show = |kind| {
                let conversation_id = event.session.clone();
                let _ = ui.send(UiEvent { conversation_id, agent: event.agent.clone(), kind });
            };
            let logged =
                |kind: EventKind| UiEventKind::Logged(Box::new(SessionEvent { kind, ..event.clone() }));
            match &event.kind {
                EventKind::UserMessage { .. } => runs = Some(event),
                EventKind::TurnFinished(_) => runs = None,
                EventKind::SubAgentSpawned(spawned) => drop(at_work.insert(&spawned.agent)),
                EventKind::SubAgentResult(result) => drop(at_work.remove(&result.agent)),
                EventKind::AssistantMessage(message) => {
                    for text in message.content.iter().filter_map(|block| words(block.get())) {
                        show(UiEventKind::TextDelta { text });
                    }
                }
                // The result of a run without a front end ends its turn.
                EventKind::Result(result) if runs.is_some() => {
                    runs = None;
                    show(logged(EventKind::TurnFinished(turn_of(result))));
                }
                _ => {}
            }
            if is_said(&event.kind) || files_stay_back.contains(&event.id) {
                show(logged(event.kind.clone()));
            }
        }
        // An agent may have ended after the point to which the conversation was rewound. Its end is shown too.
        for event in self.needed.events.iter().filter(|_| self.shows) {
            if let EventKind::SubAgentResult(result) = &event.kind
                && at_work.remove(&result.agent)
            {
                let kind = UiEventKind::Logged(Box::new(event.clone()));
                let (conversation_id, agent) = (event.session.clone(), event.agent.clone());
                let _ = ui.send(UiEvent { conversation_id, agent, kind });
            }
        }
        if let Some(event) = runs {
            let kind = EventKind::TurnFinished(cut_off());
            let kind = UiEventKind::Logged(Box::new(SessionEvent { kind, ..event.clone() }));
            let _ =
                ui.send(UiEvent { conversation_id: event.session.clone(), agent: event.agent.clone(), kind });
        }
        if self.shows {
            let accounts =
                self.needed.spent.iter().map(|(agent, account)| (agent.clone(), *account)).collect();
            let (conversation_id, agent) = (self.session(), AgentId::root());
            let _ = ui.send(UiEvent { conversation_id, agent, kind: UiEventKind::SpentBefore { accounts } });
        }
    }
}

/// True if the project's earlier path does not exist any more, or is a link to the present path.
fn has_moved(from: &WirePath, to: &WirePath) -> bool {
    match from.as_path().canonicalize() {
        Ok(place) => to.as_path().canonicalize().is_ok_and(|now| now == place),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Returns the rewinds of files alone that were not undone, after which files lack changes that the conversation has. A
/// rewind of the conversation is not included: it also removes the calls that made the changes.
fn rewinds_of_files(standing: &[&SessionEvent]) -> BTreeSet<EventId> {
    // Sorted by id, since undoing concerns the previous rewind in the log.
    let mut rewinds: Vec<_> = standing.iter().filter_map(|event| Some((event.id, event.rewind()?))).collect();
    rewinds.sort_by_key(|(id, _)| *id);
    let mut left = Vec::new();
    for (id, target) in rewinds {
        if target.to.is_some() {
            left.push((id, target));
        } else {
            left.pop();
        }
    }
    left.into_iter().filter(|(_, target)| target.scope == RewindScope::Files).map(|(id, _)| id).collect()
}

/// True for events of the conversation, false for events about one run.
const fn is_said(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::UserMessage { .. }
            | EventKind::ModelRequested { .. }
            | EventKind::AssistantMessage(_)
            | EventKind::ToolCallStarted { .. }
            | EventKind::ToolCallFinished { .. }
            | EventKind::FilesChanged(_)
            | EventKind::SubAgentSpawned(_)
            | EventKind::SubAgentResult(_)
            | EventKind::PlanCreated(_)
            | EventKind::PlanApproved(_)
            | EventKind::TasksUpdated(_)
            | EventKind::ContextCompacted(_)
            | EventKind::TurnFinished(_)
    )
}

fn turn_of(result: &RunResult) -> TurnFinished {
    TurnFinished {
        reason: result.reason,
        message: result.message.clone(),
        steps: result.steps,
        usage: result.usage,
        cost_usd: result.cost_usd,
        duration_ms: result.duration_ms,
    }
}

/// Returns the end of a turn that the end of Bailiwick's process cut off.
fn cut_off() -> TurnFinished {
    TurnFinished {
        reason: EndReason::Interrupted,
        message: Some("the Bailiwick process ended during the turn".to_owned()),
        steps: 0,
        usage: TokenUsage::default(),
        cost_usd: None,
        duration_ms: 0,
    }
}

pub(super) struct SessionBegin<'a> {
    pub state: &'a Path,
    pub conversation: &'a ConversationId,
    /// The API key, which the log masks.
    pub secret: Option<SecretString>,
    /// The earlier session; `None` for a new one.
    pub past: Option<Past>,
}

/// Facts about the earlier runs of a session.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// Events and totals that this run still needs; empty in a new session.
    pub needed: Needed,
    /// True if the conversation continues in a new context window.
    pub in_new_context: bool,
    /// Path of the project in the earlier run; `None` if the project has not moved.
    pub moved_from: Option<WirePath>,
}

impl Earlier {
    pub(super) fn agents(&self) -> Vec<AgentId> {
        self.needed.agents.iter().cloned().collect()
    }
}

impl SessionBegin<'_> {
    /// Creates or continues the log, with the events `first` of this run. The front end gets these events after the
    /// earlier conversation. If `pauses`, events stay in memory while the disk is full.
    pub(super) fn log(
        self,
        first: &[EventKind],
        pauses: bool,
        ui: &mpsc::UnboundedSender<UiEvent>,
    ) -> Result<(SessionLog, Earlier), LogError> {
        let Self { state, conversation, secret, past } = self;
        let new_context = first.iter().find_map(|kind| match kind {
            EventKind::PromptFixed(prompt) => prompt.new_context.as_ref(),
            _ => None,
        });
        let moved_from = past.as_ref().and_then(|past| past.moved_from.clone());
        let (log, earlier, notices) = match past {
            None => (SessionLog::create(state, conversation)?, Needed::default(), vec![]),
            Some(past) => {
                past.show(ui);
                let access = rights_before::difference(&past.needed.events, first);
                let notices = std::iter::once(past.notice(new_context)).chain(access).collect();
                (past.log, past.needed, notices)
            }
        };
        let mut log = log.without(secret);
        for kind in first.iter().cloned().chain(notices) {
            let logged = log.append(&AgentId::root(), ObservedBy::Supervisor, kind)?;
            let kind = UiEventKind::Logged(Box::new(logged));
            let _ = ui.send(UiEvent { conversation_id: conversation.clone(), agent: AgentId::root(), kind });
        }
        let log = if pauses { log.holding_lines() } else { log };
        Ok((log, Earlier { needed: earlier, in_new_context: new_context.is_some(), moved_from }))
    }
}

/// Returns the text of a block of a reply; `None` for a block without text.
fn words(block: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct PastBlock {
        r#type: String,
        #[serde(default)]
        text: String,
    }
    let block: PastBlock = serde_json::from_str(block).ok()?;
    (block.r#type == "text").then_some(block.text)
}

/// Returns the first events of a run, including notices for the user.
pub(super) fn first_events(
    started: SessionStarted,
    prompt: Option<PromptFixed>,
    options: &SessionOptions,
    directories: &Directories,
    more: impl Iterator<Item = EventKind>,
) -> Vec<EventKind> {
    let notice =
        |message: &String| EventKind::Notice { code: NoticeCode::Settings, message: message.clone() };
    let notices = options.notices.iter().map(notice).chain(delete_old(directories, options.keep));
    let prompt = prompt.map(EventKind::PromptFixed);
    let notices = notices.chain(more);
    std::iter::once(EventKind::SessionStarted(started)).chain(prompt).chain(notices).collect()
}

/// Deletes sessions beyond the limits of the settings. Returns a notice if sessions were deleted.
fn delete_old(directories: &Directories, keep: Keep) -> Option<EventKind> {
    match prune(&directories.sessions(), None, keep, SystemTime::now(), false) {
        Ok(pruned) => {
            pruned.failed.iter().for_each(complain);
            pruned.line().map(|message| EventKind::Notice { code: NoticeCode::SessionsDeleted, message })
        }
        Err(error) => {
            say(&format!("note: old sessions are not deleted: {error}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn events(events: &[(&str, &str, Value)]) -> Vec<UiEventKind> {
        let state = tempfile::tempdir().unwrap();
        let mut log = SessionLog::create(state.path(), &"s-1".into()).unwrap();
        for (agent, kind, data) in events {
            let kind = serde_json::from_value(json!({ "type": kind, "data": data })).unwrap();
            log.append(&AgentId::from(*agent), ObservedBy::Supervisor, kind).unwrap();
        }
        let path = log.path().to_owned();
        drop(log);
        let resume = Resume { log: path, shows: true, forks: false };
        let past = Past::of(Some(&resume), &"/p".into(), state.path()).unwrap().unwrap();
        let (ui, mut events) = mpsc::unbounded_channel();
        past.show(&ui);
        std::iter::from_fn(|| events.try_recv().ok()).map(|event| event.kind).collect()
    }

    /// Returns the ids of rewinds, and the earlier token use of each agent, as shown.
    fn shown(logged: &[(&str, &str, Value)]) -> (Vec<u64>, Vec<(String, u64)>) {
        let (mut rewinds, mut spent) = (Vec::new(), Vec::new());
        for kind in events(logged) {
            match kind {
                UiEventKind::Logged(event) if event.rewind().is_some() => rewinds.push(event.id.0),
                UiEventKind::SpentBefore { accounts } => spent.extend(accounts),
                _ => {}
            }
        }
        (
            rewinds,
            spent.into_iter().map(|(agent, account)| (agent.to_string(), account.usage.total())).collect(),
        )
    }

    fn said(text: &str) -> (&'static str, &'static str, Value) {
        ("1", "user_message", json!({ "text": text }))
    }

    fn reply(agent: &'static str) -> (&'static str, &'static str, Value) {
        let usage = json!({"input": 5, "cache_creation": 0, "cache_read": 0, "output": 4});
        let reply = json!({
            "message_id": "m", "model": "m", "content": [], "stop_reason": "end_turn", "usage": usage,
        });
        (agent, "assistant_message", reply)
    }

    fn rewound(to: Option<u64>, scope: &str) -> (&'static str, &'static str, Value) {
        ("1", "rewound", json!({"target": {"to": to, "scope": scope}}))
    }

    #[test]
    fn a_rewind_of_files_is_shown_again_unless_it_was_undone() {
        let (rewinds, _) = shown(&[
            said("a"),
            reply("1"),
            rewound(Some(1), "files"),
            said("b"),
            rewound(Some(4), "files"),
            rewound(None, "files"),
            rewound(Some(4), "both"),
        ]);
        assert_eq!(rewinds, [3]);
        let (rewinds, _) = shown(&[
            said("a"),
            said("b"),
            rewound(Some(2), "files"),
            said("c"),
            rewound(Some(2), "both"),
            rewound(None, "both"),
        ]);
        assert_eq!(rewinds, [3], "another one was undone");
    }

    #[test]
    fn an_agent_that_ended_after_the_message_that_was_taken_back_has_ended() {
        let spawned = json!({
            "agent": "1.1", "task": "t", "model": "m", "write": [], "net": "off",
            "reach": {"host": false, "lan": false, "link_local": false, "metadata": false}, "rights_digest": "",
        });
        let ended = json!({
            "agent": "1.1", "status": "done", "denials": 0, "steps": 1, "duration_ms": 1, "text": "done",
            "usage": {"input": 5, "cache_creation": 0, "cache_read": 0, "output": 4},
        });
        let all = events(&[
            said("a"),
            ("1", "sub_agent_spawned", spawned),
            said("b"),
            ("1", "sub_agent_result", ended),
            rewound(Some(3), "both"),
        ]);
        let is_end = |kind: &UiEventKind| matches!(kind, UiEventKind::Logged(event) if matches!(event.kind, EventKind::SubAgentResult(_)));
        assert_eq!(all.iter().filter(|kind| is_end(kind)).count(), 1);
    }

    #[test]
    fn what_was_taken_back_is_still_paid_for() {
        let (rewinds, spent) =
            shown(&[said("a"), reply("1"), reply("1.1.1"), said("b"), reply("1"), rewound(Some(1), "both")]);
        assert!(rewinds.is_empty(), "{rewinds:?}");
        assert_eq!(spent, [("1".to_owned(), 18), ("1.1.1".to_owned(), 9)]);
    }
}
