//! Events as `session/update`: messages, tool calls, sub-agents, hosts, plans.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, Diff, ImageContent, MessageId, Plan, PlanEntry, PlanEntryPriority,
    PlanEntryStatus, SessionUpdate, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use ipc::id::{AgentId, CallId};
use ipc::image::Image;
use protocol::event::{
    EventKind, FileDiff, HostUse, Location, SubAgentResult, SubAgentSpawned, SubAgentStatus,
    ToolCallStatus as CallEnd, ToolKind as CallKind,
};
use protocol::plan::StepStatus;

use super::shown;

/// Maximum number of bytes of output that are shown while a command runs. The result has the whole output.
const OUTPUT: usize = 4 << 10;

pub(super) fn call_id(agent: &AgentId, call: CallId) -> String {
    format!("{agent}:{call}")
}

/// Returns an update with text of the model. `number` is the number of the message in the session.
pub(super) fn reply(text: String, number: u64) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(chunk(text, number))
}

pub(super) fn thought(text: String, number: u64) -> SessionUpdate {
    SessionUpdate::AgentThoughtChunk(chunk(text, number))
}

fn chunk(text: String, number: u64) -> ContentChunk {
    ContentChunk::new(ContentBlock::from(text)).message_id(MessageId::new(format!("m{number}")))
}

/// Returns the updates that show a message of the person from an earlier run.
pub(super) fn said(text: &str, images: &[Image]) -> Vec<SessionUpdate> {
    let images = images.iter().map(|image| {
        ContentBlock::Image(ImageContent::new(image.base64().to_string(), image.media_type().as_str()))
    });
    let blocks = images.chain([ContentBlock::from(text.to_owned())]);
    blocks.map(|block| SessionUpdate::UserMessageChunk(ContentChunk::new(block))).collect()
}

pub(super) fn started(agent: &AgentId, event: &EventKind) -> Option<SessionUpdate> {
    let EventKind::ToolCallStarted { call, name, kind, locations, input, .. } = event else { return None };
    let summary = tui::ToolSummary::new(name, input.get()).one_line();
    let title = if agent.is_top_level() { summary } else { format!("[{agent}] {summary}") };
    let input = serde_json::from_str(input.get()).unwrap_or(serde_json::Value::Null);
    let call = ToolCall::new(call_id(agent, *call), shown::title(&title))
        .name(name.clone())
        .kind(of_kind(*kind))
        .status(ToolCallStatus::InProgress)
        .locations(locations.iter().filter_map(location).collect())
        .raw_input(input);
    Some(SessionUpdate::ToolCall(call))
}

pub(super) fn finished(agent: &AgentId, event: &EventKind) -> Option<SessionUpdate> {
    let EventKind::ToolCallFinished { call, status, content, diffs, images, .. } = event else { return None };
    let status = match status {
        CallEnd::Completed => ToolCallStatus::Completed,
        CallEnd::Failed | CallEnd::Denied | CallEnd::Interrupted => ToolCallStatus::Failed,
    };
    let mut parts: Vec<_> = diffs.iter().filter_map(diff).map(ToolCallContent::from).collect();
    if !content.is_empty() {
        parts.push(ToolCallContent::from(shown::block(content, "")));
    }
    parts.extend(images.iter().map(|image| {
        ToolCallContent::from(ContentBlock::Image(ImageContent::new(
            image.base64().to_string(),
            image.media_type().as_str(),
        )))
    }));
    let fields = ToolCallUpdateFields::new().status(status).content(parts);
    Some(update(call_id(agent, *call), fields))
}

/// Shows the last part of the output, and removes the rest from `text`.
pub(super) fn output(agent: &AgentId, call: CallId, text: &mut String) -> SessionUpdate {
    let end = shown::tail(text, OUTPUT).to_owned();
    let content = vec![ToolCallContent::from(shown::block(&end, ""))];
    *text = end;
    update(call_id(agent, call), ToolCallUpdateFields::new().content(content))
}

fn update(id: String, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields))
}

const fn of_kind(kind: CallKind) -> ToolKind {
    match kind {
        CallKind::Read => ToolKind::Read,
        CallKind::Edit => ToolKind::Edit,
        CallKind::Delete => ToolKind::Delete,
        CallKind::Move => ToolKind::Move,
        CallKind::Search => ToolKind::Search,
        CallKind::Execute => ToolKind::Execute,
        CallKind::Think => ToolKind::Think,
        CallKind::Fetch => ToolKind::Fetch,
        CallKind::Other => ToolKind::Other,
    }
}

fn location(location: &Location) -> Option<ToolCallLocation> {
    let path = PathBuf::from(location.path.as_path().to_str()?);
    let line = location.line.and_then(|line| u32::try_from(line).ok());
    Some(ToolCallLocation::new(path).line(line))
}

fn diff(diff: &FileDiff) -> Option<Diff> {
    let path = diff.path.as_path().to_str()?;
    Some(Diff::new(path, diff.new_text.clone()).old_text(diff.old_text.clone()))
}

fn sub_agent_id(agent: &AgentId) -> String {
    format!("agent:{agent}")
}

pub(super) fn spawned(spawned: &SubAgentSpawned) -> SessionUpdate {
    let call = ToolCall::new(sub_agent_id(&spawned.agent), shown::title(&spawned.to_string()))
        .kind(ToolKind::Think)
        .status(ToolCallStatus::InProgress)
        .content(vec![ToolCallContent::from(shown::block(&spawned.task, ""))]);
    SessionUpdate::ToolCall(call)
}

pub(super) fn sub_agent_said(agent: &AgentId, text: &str) -> SessionUpdate {
    let content = vec![ToolCallContent::from(shown::visible(text))];
    update(sub_agent_id(agent), ToolCallUpdateFields::new().content(content))
}

pub(super) fn sub_agent_ended(result: &SubAgentResult) -> SessionUpdate {
    let status = match result.status {
        SubAgentStatus::Done => ToolCallStatus::Completed,
        _ => ToolCallStatus::Failed,
    };
    let mut parts = vec![shown::visible(&result.to_string())];
    if !result.files.is_empty() {
        let files: Vec<_> = result.files.iter().map(|file| shown::line(&file.to_string())).collect();
        parts.push(format!("changed: {}", files.join(", ")));
    }
    if !result.text.is_empty() {
        parts.push(shown::visible(&result.text));
    }
    let content = parts.into_iter().map(ToolCallContent::from).collect::<Vec<_>>();
    update(sub_agent_id(&result.agent), ToolCallUpdateFields::new().status(status).content(content))
}

/// Shows the hosts that an agent connected to, as a tool call of the gateway. The first update creates that call.
pub(super) fn hosts(agent: &AgentId, uses: &[HostUse], is_first: bool) -> SessionUpdate {
    let id = format!("hosts:{agent}");
    let lines: Vec<_> = uses.iter().map(|used| shown::line(&used.to_string())).collect();
    let content = vec![ToolCallContent::from(lines.join("\n\n"))];
    if is_first {
        let call = ToolCall::new(id, "Network hosts that the agent reached")
            .kind(ToolKind::Fetch)
            .status(ToolCallStatus::Completed)
            .content(content);
        return SessionUpdate::ToolCall(call);
    }
    update(id, ToolCallUpdateFields::new().content(content))
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) title: String,
    pub(super) status: StepStatus,
}

/// Shows the steps of a plan. A failed step is marked in its text, because the protocol has no status for it.
pub(super) fn plan(steps: &[Step]) -> SessionUpdate {
    let entries = steps.iter().map(|step| {
        let (mark, status) = match step.status {
            StepStatus::Pending => ("", PlanEntryStatus::Pending),
            StepStatus::InProgress => ("", PlanEntryStatus::InProgress),
            StepStatus::Completed => ("", PlanEntryStatus::Completed),
            StepStatus::Failed => ("failed: ", PlanEntryStatus::Pending),
            StepStatus::Skipped => ("skipped: ", PlanEntryStatus::Completed),
        };
        PlanEntry::new(format!("{mark}{}", shown::line(&step.title)), PlanEntryPriority::Medium, status)
    });
    SessionUpdate::Plan(Plan::new(entries.collect()))
}
