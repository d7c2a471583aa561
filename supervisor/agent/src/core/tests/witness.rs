//! Checks invariants of every sequence of effects: no call without a log line, no approval decided twice, and every
//! request valid for the API, within its window and append-only within its context.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use gate::tools::ServedCall;
use ipc::id::{ApprovalId, CallId};
use ipc::rights::Grant;
use protocol::approval::{ReviewDecision, ServerRequest};
use protocol::event::{CompactionCause, EventKind, NoticeCode, TokenUsage};

use super::script::config;
use crate::conversation::{Message, ModelRequest, UserBlock};
use crate::core::conversation::{History, fixed_tokens};
use crate::core::{Effect, Window};

#[derive(Default)]
pub(super) struct Witness {
    started: BTreeSet<CallId>,
    dispatched: BTreeSet<CallId>,
    prepared: BTreeSet<CallId>,
    /// Approved calls that no worker has carried out yet.
    approved: BTreeSet<CallId>,
    asked: BTreeSet<ApprovalId>,
    /// Denied commands about which the person was asked, with the access that the request showed.
    again: BTreeMap<CallId, Grant>,
    finished: BTreeSet<CallId>,
    window: u64,
    /// Estimated tokens of the last request.
    pub(super) prompt: u64,
    /// Messages sent in the current context.
    last_history: Vec<String>,
    pub(super) contexts: u32,
    /// True while the model writes a summary: requests for a summary belong to no context.
    compacting: bool,
}

impl Witness {
    pub(super) fn new(window: Window) -> Self {
        Self { window: window.context, ..Self::default() }
    }

    pub(super) fn see(&mut self, effect: &Effect) {
        match effect {
            Effect::Log { kind: EventKind::ToolCallStarted { call, .. }, .. } => {
                assert!(self.started.insert(*call), "call {call} started twice");
            }
            Effect::Log { kind: EventKind::ToolCallFinished { call, .. }, .. } => {
                assert!(self.started.contains(call) && self.finished.insert(*call), "call {call}");
            }
            Effect::Dispatch { call, .. } => {
                assert!(self.started.contains(call) && self.dispatched.insert(*call), "call {call}");
            }
            Effect::Prepare { call, .. } => {
                assert!(self.started.contains(call));
                self.prepared.insert(*call);
            }
            Effect::Log { kind: EventKind::ApprovalAnswered(answer), .. } => {
                if let Some(id) = &answer.id {
                    assert!(self.asked.remove(id), "request {id} is decided once");
                }
                let yes = ReviewDecision::Approved;
                if answer.decision == yes
                    || matches!(
                        answer.decision,
                        ReviewDecision::ApprovedForSession { .. } | ReviewDecision::ApprovedInPart { .. }
                    )
                {
                    self.approved.insert(answer.call);
                }
            }
            Effect::RequestApproval { id, request } => {
                if let ServerRequest::DeniedCommandApproval(params) = &**request {
                    // The command has run, and may run again with the access in the request.
                    let call = params.call_id;
                    assert!(self.dispatched.remove(&call) && !self.finished.contains(&call), "call {call}");
                    self.again.insert(call, params.grant.clone());
                }
                assert!(self.asked.is_empty() && self.asked.insert(*id), "one question at a time");
            }
            Effect::CarryOut { call, grant, .. } => {
                assert!(self.again.remove(call).is_none_or(|shown| shown == *grant), "call {call}: {grant}");
                assert!(self.approved.remove(call), "call {call} was not approved");
                assert!(!self.finished.contains(call) && self.dispatched.insert(*call), "call {call}");
            }
            Effect::Serve { call, served, .. } => {
                let is_approved = self.approved.remove(call);
                assert_eq!(is_approved, matches!(served, ServedCall::External(_)), "call {call}");
                assert!(self.started.contains(call) && !self.finished.contains(call), "call {call}");
                assert!(self.dispatched.insert(*call), "call {call}");
            }
            Effect::CancelCall(call) => {
                assert!(self.dispatched.contains(call) || self.prepared.contains(call));
            }
            Effect::Log { kind: EventKind::ModelFailed { left_out: Some(_), .. }, .. } => self.takes_back(),
            Effect::Log { kind: EventKind::CompactionStarted(_), .. } => {
                assert!(!std::mem::replace(&mut self.compacting, true), "one summary at a time");
            }
            Effect::Log { kind: EventKind::ContextCompacted(compacted), .. } => {
                if compacted.cause == CompactionCause::Clear {
                    assert!(!self.compacting, "nothing is cleared while a summary is made");
                } else {
                    assert!(std::mem::take(&mut self.compacting), "announced before it is done");
                    self.contexts += 1;
                }
                let said = |text: &String| format!("user {:?}", UserBlock::Text(text.clone()));
                self.last_history = compacted.first_message.iter().map(said).collect();
            }
            Effect::Log { kind: EventKind::Notice { code, .. }, .. }
                if *code == NoticeCode::InterruptedReplyDropped =>
            {
                self.takes_back();
            }
            Effect::StartStream { model, .. } => self.see_request(model),
            Effect::Finish(_) => {
                assert_eq!(self.started, self.finished, "every call has its end");
                assert!(self.asked.is_empty() && self.approved.is_empty(), "and every question");
                self.compacting = false;
            }
            _ => {}
        }
    }

    /// Forgets the sent messages of the context, because some of them are taken back.
    pub(super) fn takes_back(&mut self) {
        self.last_history.clear();
    }

    fn see_request(&mut self, model: &ModelRequest) {
        assert_acceptable(model);
        self.prompt = size(model);
        let whole = self.prompt + u64::from(model.max_tokens);
        assert!(whole <= self.window, "{whole} tokens in a window of {}", self.window);
        assert_eq!(self.started, self.finished, "no request while a call is open");
        // Append-only: the blocks that were sent before are a prefix of the blocks that are sent now.
        let history = blocks(model);
        if self.compacting {
            assert!(history.starts_with(&self.last_history) || model.messages.len() == 1, "{history:?}");
            return;
        }
        assert!(history.starts_with(&self.last_history), "{history:?} after {:?}", self.last_history);
        self.last_history = history;
    }
}

pub(super) fn size(request: &ModelRequest) -> u64 {
    static FIXED: LazyLock<u64> = LazyLock::new(|| {
        let config = config();
        fixed_tokens(&config.system, &config.tools)
    });
    let mut history = History::new(*FIXED, true);
    for message in &request.messages {
        match &**message {
            Message::User(blocks) => history.push_user(blocks.clone()),
            Message::Assistant(blocks) => history.push_assistant(blocks.clone(), TokenUsage::default()),
        }
    }
    history.tokens()
}

fn calls(message: &Message) -> Vec<String> {
    let Message::Assistant(blocks) = message else {
        return vec![];
    };
    let values = blocks.iter().map(|block| serde_json::from_str::<serde_json::Value>(block.get()).unwrap());
    values
        .filter(|block| block["type"] == "tool_use")
        .map(|block| block["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Checks that the API accepts a request: roles alternate, results follow their calls directly, and no text is empty.
fn assert_acceptable(request: &ModelRequest) {
    let messages = &request.messages;
    assert!(matches!(*messages[0], Message::User(_)), "{messages:?}");
    for (place, message) in messages.iter().enumerate() {
        let next = messages.get(place + 1).map(|message| &**message);
        match &**message {
            Message::Assistant(blocks) => {
                assert!(!blocks.is_empty());
                assert!(!blocks.iter().any(|block| block.get().contains(r#""text":"""#)), "{messages:?}");
                assert!(!matches!(next, Some(Message::Assistant(_))), "{messages:?}");
                assert_answered(&calls(message), next);
            }
            Message::User(blocks) => {
                assert!(!blocks.is_empty() && !matches!(next, Some(Message::User(_))), "{messages:?}");
                assert!(!blocks.contains(&UserBlock::Text(String::new())));
                let before = place.checked_sub(1).map(|before| calls(&messages[before])).unwrap_or_default();
                assert_eq!(results(blocks), before, "{messages:?}");
            }
        }
    }
}

fn assert_answered(calls: &[String], next: Option<&Message>) {
    if calls.is_empty() {
        return;
    }
    let Some(Message::User(blocks)) = next else { panic!("{calls:?} without results: {next:?}") };
    // Results come first, one for each call, in the order of the calls.
    assert_eq!(results(&blocks[..calls.len()]), calls);
}

fn results(blocks: &[UserBlock]) -> Vec<String> {
    let results = blocks.iter().filter_map(|block| match block {
        UserBlock::ToolResult { tool_use, content, .. } => {
            assert!(!content.is_empty());
            Some(tool_use.as_str().to_owned())
        }
        UserBlock::Text(_) | UserBlock::Image(_) => None,
    });
    results.collect()
}

fn blocks(model: &ModelRequest) -> Vec<String> {
    let blocks = model.messages.iter().flat_map(|message| match &**message {
        Message::User(blocks) => blocks.iter().map(|block| format!("user {block:?}")).collect::<Vec<_>>(),
        Message::Assistant(blocks) => blocks.iter().map(|block| format!("assistant {block}")).collect(),
    });
    blocks.collect()
}
