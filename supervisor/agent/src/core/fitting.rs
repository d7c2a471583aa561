//! Results that are too long for what is left of the context: each keeps its beginning and its end, and says how to get the
//! rest. What the model is told and what is logged is the same.

use gate::tools::{how_to_get_less, whole_output};
use ipc::tool::{ToolCall, ToolOutput};

use super::Agent;
use super::call::CallResult;
use super::conversation::{Budget, bytes, ends, tokens};

impl Agent {
    /// A result that leaves room for those that are still to come, and for a summary after all of them.
    pub(super) fn fitted(&self, mut result: CallResult) -> CallResult {
        let room = self.conversation.room_for_results();
        let taken = self.calls.results().map(|result| tokens(&result.content)).sum();
        let most = Budget::share(room.saturating_sub(taken), self.calls.count_unclosed()) - AROUND;
        if tokens(&result.content) > most {
            let rest = result.rest.as_deref().unwrap_or(ELSE);
            let note = format!("\n(cut, since the context has no room for more; {rest})");
            let kept = bytes(&result.content, most.saturating_sub(tokens(&note)));
            result.content = format!("{}{note}", ends(&result.content, kept));
        }
        result
    }
}

/// What stands around a result, and where it was cut.
const AROUND: u64 = 50;

/// How to get what is left out of a result that says nothing else.
const ELSE: &str = "ask for less at once";

/// How to get what is left out of the result of a call.
pub(super) fn rest(tool: &ToolCall, output: &ToolOutput) -> Option<String> {
    match output {
        ToolOutput::Command(result) => result.saved.as_ref().map(whole_output),
        _ => how_to_get_less(tool).map(str::to_owned),
    }
}
