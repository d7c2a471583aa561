//! Display of tool calls and of their changes.

use ipc::id::{AgentCall, CallId};
use protocol::event::{EventKind, SessionEvent, ToolCallStatus};

use crate::model::{AgentView, Call, Ending, Look, Model, TurnActivity};

pub(super) fn started(model: &mut Model, of: AgentCall, name: &str, input: &str) {
    let view = model.agents.of(&of.agent);
    view.turn.doing = TurnActivity::Working;
    let (mut call, block) = Call::started(name, input);
    call.block = view.transcript.push_call(block);
    if matches!(name, "shell_exec" | "write_file" | "edit_file") {
        model.changes.begins(of.clone(), call.is_command(), &call.summary());
    }
    view.calls.insert(of.call, call);
}

/// Shows the answer to an approval request in the row of the tool call that needed the approval.
pub(super) fn answered(view: &mut AgentView, id: CallId, answer: &str, is_denied: bool) {
    let Some(call) = view.calls.get_mut(&id) else {
        return view.say(Look::Notice, &format!("call {id}: {answer}"));
    };
    call.refused |= is_denied;
    if let Some(block) = view.transcript.block_mut(call.block) {
        call.answered(block, answer);
    }
}

pub(super) fn finished(model: &mut Model, event: SessionEvent) {
    let EventKind::ToolCallFinished {
        call: id,
        status,
        content,
        explanation_bytes,
        duration_ms,
        diffs,
        diffs_left_out,
        ..
    } = event.kind
    else {
        return;
    };
    let view = model.agents.of(&event.agent);
    let Some(call) = view.calls.remove(&id) else { return };
    let Some(block) = view.transcript.block_mut(call.block) else { return };
    let content = Call::without_explanation(&content, explanation_bytes);
    let ending = Ending { status, content, duration_ms, diffs: &diffs };
    call.finished(block, &ending);
    if let Some(read) = call.as_read(&ending) {
        view.reads.finished(&mut view.transcript, call.block, read);
    }
    view.transcript.part_below(call.block);
    let call = AgentCall { agent: event.agent, call: id };
    match status {
        ToolCallStatus::Completed if diffs_left_out => model.changes.left_out(call),
        ToolCallStatus::Completed if !diffs.is_empty() => model.changes.made(&call, diffs),
        _ => {}
    }
}
