//! Rows of sub-agents in the transcripts of their parents.

use ipc::id::AgentId;
use protocol::event::{SubAgentResult, SubAgentSpawned, SubAgentStatus};

use crate::model::agent_row;
use crate::model::{AgentRow, Block, Look, Model, Part};
use crate::text::SafeText;

/// Turns the row of the call that started the sub-agent into the sub-agent's row. If the user started it, adds a row.
pub(super) fn begin(model: &mut Model, parent: &AgentId, spawned: &SubAgentSpawned) {
    let view = model.agents.of(parent);
    let call = spawned.call.and_then(|call| view.calls.get_mut(&call));
    let block = if let Some(call) = call {
        call.is_agent = true;
        call.block
    } else {
        view.transcript.push(Block::of(vec![Part::new(SafeText::default(), Look::Tool)]))
    };
    let hint = match spawned.call {
        Some(_) => String::new(),
        None => format!(":agent {} shows it", spawned.agent),
    };
    model.agents.of(&spawned.agent).row = Some(AgentRow::new(parent.clone(), block, hint));
}

pub(super) fn renew_all(model: &mut Model) {
    let running = model.agents.each().filter(|(_, view)| view.ended.is_none() && view.row.is_some());
    let running: Vec<_> = running.map(|(agent, _)| agent.clone()).collect();
    for agent in running {
        renew(model, &agent, None);
    }
}

/// Shows the result of a sub-agent, and the steps of an executed plan, in the sub-agent's row.
pub(super) fn end(model: &mut Model, result: &SubAgentResult) {
    let view = model.agents.of(&result.agent);
    result.denied.iter().for_each(|denial| view.was_denied(denial));
    renew(model, &result.agent, Some(result));
    let Some(row) = model.agents.of(&result.agent).row.take() else { return };
    let steps = result.plan.iter().map(|step| format!("  {step}"));
    // The row already names what was denied; the message repeats it in the model's words.
    let message = result.message.as_ref().filter(|_| result.status != SubAgentStatus::Denied);
    let further = steps.chain(message.map(|message| format!("  {message}")));
    let parts: Vec<_> = further.map(|text| Part::new(SafeText::prose(&text), Look::Turn)).collect();
    let (parent, block) = row.place();
    if let Some(block) = model.agents.of(&parent).transcript.block_mut(block) {
        let at = block.parts.len().min(1);
        block.parts.splice(at..at, parts);
    }
}

fn renew(model: &mut Model, agent: &AgentId, result: Option<&SubAgentResult>) {
    let Some(text) = agent_row::text(model, agent, result) else { return };
    let Some(row) = &mut model.agents.of(agent).row else { return };
    if !row.set(&text) {
        return;
    }
    let (parent, block) = row.place();
    let block = model.agents.of(&parent).transcript.block_mut(block);
    if let Some(head) = block.and_then(|block| block.parts.first_mut()) {
        head.replace(text, Look::Tool);
    }
}
