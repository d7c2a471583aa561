//! The tool calls of one turn: each gets exactly one result, and all go back in the order of the calls.

use ipc::event::ToolCallStatus;
use ipc::id::{CallId, ToolUseId};
use ipc::tool::ToolCall;

use crate::provider::UserBlock;

/// The tool calls of one turn.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    call: CallId,
    tool_use: ToolUseId,
    state: State,
    /// What its result ends with.
    remark: Option<String>,
}

#[derive(Debug)]
enum State {
    /// A worker has it.
    Open(ToolCall),
    /// It has its result.
    Closed(CallResult),
}

/// What a call brought, for the model and for the run.
#[derive(Clone, Debug)]
pub(super) struct CallResult {
    pub(super) status: ToolCallStatus,
    pub(super) content: String,
    pub(super) is_error: bool,
    /// The sentence of the denial behind it.
    pub(super) denial: Option<String>,
}

impl Calls {
    pub(super) fn push_open(&mut self, call: CallId, tool_use: ToolUseId, tool: ToolCall) {
        self.slots.push(Slot { call, tool_use, state: State::Open(tool), remark: None });
    }

    pub(super) fn push_closed(&mut self, call: CallId, tool_use: ToolUseId, result: CallResult) {
        self.slots.push(Slot { call, tool_use, state: State::Closed(result), remark: None });
    }

    /// Keeps what the result of an open call has to end with.
    pub(super) fn remark(&mut self, call: CallId, text: String) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.call == call) {
            slot.remark = Some(text);
        }
    }

    /// A result, with what it has to end with.
    pub(super) fn remarked(&mut self, call: CallId, mut result: CallResult) -> CallResult {
        let slot = self.slots.iter_mut().find(|slot| slot.call == call);
        if let Some(text) = slot.and_then(|slot| slot.remark.take()) {
            result.content.push('\n');
            result.content.push_str(&text);
        }
        result
    }

    /// The open call with this id, and the model's id of it.
    pub(super) fn open(&self, call: CallId) -> Option<(&ToolUseId, &ToolCall)> {
        self.slots.iter().find_map(|slot| match &slot.state {
            State::Open(tool) if slot.call == call => Some((&slot.tool_use, tool)),
            _ => None,
        })
    }

    /// The ids of the open calls.
    pub(super) fn all_open(&self) -> Vec<CallId> {
        let open = self.slots.iter().filter(|slot| matches!(slot.state, State::Open(_)));
        open.map(|slot| slot.call).collect()
    }

    /// Gives a call its result. A call that is closed stays as it is.
    pub(super) fn close(&mut self, call: CallId, result: CallResult) {
        let open = |slot: &&mut Slot| slot.call == call && matches!(slot.state, State::Open(_));
        if let Some(slot) = self.slots.iter_mut().find(open) {
            slot.state = State::Closed(result);
        }
    }

    /// The results in the order of the calls. An open call would be left out: close them all first.
    pub(super) fn into_results(self) -> Vec<(ToolUseId, CallResult)> {
        let results = self.slots.into_iter().filter_map(|slot| match slot.state {
            State::Closed(result) => Some((slot.tool_use, result)),
            State::Open(_) => None,
        });
        results.collect()
    }
}

impl CallResult {
    /// A call that was not carried out to its end, and why.
    pub(super) fn not_done(status: ToolCallStatus, content: impl Into<String>) -> Self {
        Self { status, content: content.into(), is_error: true, denial: None }
    }

    pub(super) fn into_block(self, tool_use: ToolUseId) -> UserBlock {
        UserBlock::ToolResult { tool_use, content: self.content, is_error: self.is_error }
    }
}
