//! Converts the events of a log to entries.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ipc::id::{AgentId, CallId};
use ipc::path::WirePath;
use protocol::approval::{FilePart, ReviewDecision};
use protocol::event::{
    Account, ApprovalAnswered, AssistantMessage, EndReason, EventKind, PromptFixed, RewindScope, Rewound,
    SessionEvent, SessionStarted, SubAgentResult, SubAgentSpawned, ToolCallStatus, UPDATE_TASKS,
};
use serde::Deserialize;
use tui::ToolSummary;

use super::arguments::arguments;
use super::asked::asked;
use super::entry::{EntryKind, ShownEntry, ShownPart, ShownText, moment};
use super::guests::ShownGuests;
use super::words::{about, decided_by, decision};
use crate::journal::session::{Fault, Loaded, LogError, Tree, each_event};
use crate::process::messages::{PlainDenial, one_line};

const FORM: &str = "%Y-%m-%d %H:%M:%S UTC";

/// Maximum number of faults of a log that are listed.
const MOST_FAULTS: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Reading<'a> {
    pub agent: Option<&'a AgentId>,
    /// True if nothing is shortened or folded.
    pub full: bool,
    project: Option<WirePath>,
    /// Depth of the chosen agent in the tree of agents; 0 if all agents are shown.
    base: usize,
    /// Names of the calls so far, by agent and number. The title of a call's end contains the name.
    calls: BTreeMap<(AgentId, CallId), String>,
    guests: ShownGuests,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(agent: Option<&'a AgentId>, full: bool) -> Self {
        let base = agent.map_or(0, AgentId::level);
        Self { agent, full, project: None, base, calls: BTreeMap::new(), guests: ShownGuests::default() }
    }

    #[cfg(test)]
    pub(crate) fn read(mut self, loaded: &Loaded) -> ShownText {
        let entries = loaded.tree.events().filter_map(|event| self.entry(event)).collect();
        self.shown(loaded, entries)
    }

    /// Reads a log for the second time, one event after another. `loaded` is the result of the first reading, in which
    /// [`without_texts`] reduced the events.
    pub(crate) fn read_again(mut self, log: &Path, loaded: &Loaded) -> Result<ShownText, LogError> {
        let mut entries = BTreeMap::new();
        each_event(log, &mut |event| {
            // If two events have the same id, only the first is shown.
            if loaded.tree.get(event.id).is_some_and(|first| first.time_ms == event.time_ms)
                && let Some(entry) = self.entry(event)
            {
                entries.entry(event.id).or_insert(entry);
            }
        })?;
        Ok(self.shown(loaded, entries.into_values().collect()))
    }

    fn shown(&self, loaded: &Loaded, entries: Vec<ShownEntry>) -> ShownText {
        let tree = &loaded.tree;
        let first = tree.events().next();
        ShownText {
            session: first.map(|event| event.session.to_string()).unwrap_or_default(),
            facts: facts(tree),
            warnings: warnings(loaded),
            entries,
            totals: self.totals(tree),
        }
    }

    pub(super) fn entry(&mut self, event: &SessionEvent) -> Option<ShownEntry> {
        if let EventKind::SessionStarted(started) = &event.kind {
            self.project = Some(started.project.clone());
        }
        if self.agent.is_some_and(|agent| !is_about(event, agent)) {
            return None;
        }
        let titled = |kind, title: String| {
            let level = event.agent.level().saturating_sub(self.base);
            let by = if event.agent.is_top_level() { String::new() } else { format!("{}: ", event.agent) };
            ShownEntry::new(kind, level, event.time_ms, format!("{by}{title}"))
        };
        let entry = self.conversation(event, &titled);
        let entry = entry.or_else(|| self.acts(event, &titled)).or_else(|| self.decisions(event, &titled));
        let entry = entry.or_else(|| self.agents(event, &titled)).or_else(|| course(event, &titled));
        let entry = entry.or_else(|| Some(titled(EntryKind::Agent, self.guests.title(event, self.full)?)));
        if let EventKind::ToolCallStarted { call, name, input, .. } = &event.kind {
            let title = ToolSummary::new(name, input.get()).one_line();
            self.calls.insert((event.agent.clone(), *call), title);
        }
        entry
    }

    fn conversation(&self, event: &SessionEvent, titled: &Titled<'_>) -> Option<ShownEntry> {
        Some(match &event.kind {
            EventKind::UserMessage { text, images } => {
                let pictures = match images.len() {
                    0 => String::new(),
                    1 => " · 1 picture".to_owned(),
                    several => format!(" · {several} pictures"),
                };
                titled(EntryKind::Message, format!("user{pictures}")).with(ShownPart::whole(text.trim_end()))
            }
            EventKind::ContextAdded { source, text } => {
                let part = ShownPart::cut(text, self.full).named("message to the model");
                titled(EntryKind::Notice, format!("context from {source}")).with(self.folding(part))
            }
            EventKind::PromptFixed(prompt) if self.full => fixed(prompt, titled),
            EventKind::AssistantMessage(message) => self.reply(message, titled),
            EventKind::ModelFailed { message, discarded, .. } => {
                let cut = if *discarded { "; the partial reply is discarded" } else { "" };
                titled(EntryKind::Failure, format!("the model failed: {message}{cut}"))
            }
            EventKind::ContextCompacted(compacted) => {
                let summary = ShownPart::cut(&compacted.first_message.join("\n\n"), self.full);
                titled(EntryKind::Notice, compacted.to_string()).with(self.folding(summary.named("summary")))
            }
            _ => return None,
        })
    }

    fn reply(&self, message: &AssistantMessage, titled: &Titled<'_>) -> ShownEntry {
        let spent = Account::of(message.usage, message.cost_usd);
        let estimated = if message.estimated { " (estimated)" } else { "" };
        let mut entry = titled(EntryKind::Reply, format!("model {} · {spent}{estimated}", message.model));
        for block in &message.content {
            match ShownBlock::of(block.get()) {
                Some(ShownBlock::Text { text }) => entry.add(ShownPart::whole(text.trim_end())),
                Some(ShownBlock::Thinking { thinking }) => {
                    entry.add(self.folding(ShownPart::cut(&thinking, self.full).named("thinking")));
                }
                _ => {}
            }
        }
        entry
    }

    fn folding(&self, part: ShownPart) -> ShownPart {
        if self.full { part } else { part.folded() }
    }

    fn acts(&self, event: &SessionEvent, titled: &Titled<'_>) -> Option<ShownEntry> {
        Some(match &event.kind {
            // The task list itself is shown.
            EventKind::ToolCallStarted { name, .. } if name == UPDATE_TASKS && !self.full => return None,
            EventKind::ToolCallStarted { name, input, .. } => {
                let entry = titled(EntryKind::Call, ToolSummary::new(name, input.get()).one_line());
                let arguments = ShownPart::cut(&arguments(&entry.title, input), self.full);
                entry.with(arguments)
            }
            EventKind::ToolCallFinished {
                call,
                status,
                content,
                explanation_bytes,
                duration_ms,
                images,
                ..
            } => {
                let name = self.calls.get(&(event.agent.clone(), *call)).cloned();
                let name = name.unwrap_or_else(|| format!("call {call}"));
                if *status == ToolCallStatus::Completed && name.starts_with(UPDATE_TASKS) && !self.full {
                    return None;
                }
                let pictures = if images.is_empty() { "" } else { " · with a picture" };
                let kind = match status {
                    ToolCallStatus::Completed => EntryKind::Success,
                    _ => EntryKind::Failure,
                };
                let title = format!("{status} after {}: {name}{pictures}", took(*duration_ms));
                titled(kind, title).with(ShownPart::cut(without(content, *explanation_bytes), self.full))
            }
            EventKind::Denied { call, denial, .. } => {
                let beside = if call.is_none() { "outside of tool calls: " } else { "" };
                let text = PlainDenial(denial).to_string();
                let (title, hints) = text.split_once('\n').unwrap_or((&text, ""));
                titled(EntryKind::Denial, format!("{beside}{title}")).with(ShownPart::whole(hints.trim()))
            }
            EventKind::Restored { places, .. } => {
                let lines: Vec<_> = places
                    .iter()
                    .map(|place| one_line(&format!("{} ({})", place.path, place.phrase())))
                    .collect();
                titled(EntryKind::Denial, "changed, and restored".to_owned())
                    .with(ShownPart::cut(&lines.join("\n"), self.full))
            }
            EventKind::ProtocolViolation { violation, .. } => {
                titled(EntryKind::Denial, format!("the worker sent an invalid message: {violation}"))
            }
            EventKind::Rewound(rewound) => taken_back(rewound, titled, self.full),
            EventKind::FilesChanged(changed) if !changed.files.is_empty() => {
                let lines: Vec<_> = changed.files.iter().map(|file| one_line(&file.to_string())).collect();
                titled(EntryKind::Notice, "files that changed in the project".to_owned())
                    .with(ShownPart::cut(&lines.join("\n"), self.full))
            }
            EventKind::ChangeSet { files, patch } => {
                let lines: Vec<_> = files.iter().map(|file| file.path.to_string()).collect();
                let patch = patch.as_ref().map(|patch| format!(" · patch: {patch}")).unwrap_or_default();
                titled(EntryKind::Notice, format!("changed files: {}{patch}", files.len()))
                    .with(ShownPart::cut(&lines.join("\n"), self.full))
            }
            _ => return None,
        })
    }

    fn decisions(&self, event: &SessionEvent, titled: &Titled<'_>) -> Option<ShownEntry> {
        Some(match &event.kind {
            EventKind::ApprovalRequested { id, request } => {
                let title = format!("approval {id} requested for {}", about(request.kind()));
                asked(request, self.project.as_ref(), self.full)
                    .into_iter()
                    .fold(titled(EntryKind::Approval, title), ShownEntry::with)
            }
            EventKind::ApprovalAnswered(answered) => answer(answered, titled, self.full),
            EventKind::GrantAdded(grant) => {
                titled(EntryKind::Approval, format!("approved for the session: {}", grant.covers))
            }
            EventKind::GrantRevoked { id } => {
                titled(EntryKind::Approval, format!("approval {id} for the session is withdrawn"))
            }
            _ => return None,
        })
    }

    fn agents(&self, event: &SessionEvent, titled: &Titled<'_>) -> Option<ShownEntry> {
        Some(match &event.kind {
            EventKind::SubAgentSpawned(spawned) => started(spawned, titled, self.full),
            EventKind::SubAgentResult(result) => ended(result, titled, self.full),
            EventKind::PlanCreated(plan) => {
                titled(EntryKind::Plan, plan.to_string()).with(ShownPart::cut(&plan.markdown, self.full))
            }
            EventKind::PlanApproved(plan) => {
                titled(EntryKind::Plan, format!("{plan} by {}", decided_by(plan.by)))
            }
            EventKind::TasksUpdated(tasks) => titled(EntryKind::Plan, tasks.to_string()),
            EventKind::PlanStepStatus(step) => {
                let text = step.to_string();
                let (title, rest) = text.split_once('\n').unwrap_or((&text, ""));
                titled(EntryKind::Plan, title.to_owned()).with(ShownPart::cut(rest, self.full))
            }
            _ => return None,
        })
    }

    fn totals(&self, tree: &Tree) -> Vec<String> {
        let accounts = tree.accounts();
        let share = |agent| format!("agent {agent}: {}", accounts.get(agent).copied().unwrap_or_default());
        let Some(agent) = self.agent else {
            let mut totals = vec![format!("in all: {}", tree.account())];
            let agents = agents(tree);
            let shares = agents.iter().filter(|_| agents.len() > 1);
            totals.extend(shares.map(share));
            return totals;
        };
        vec![share(agent)]
    }
}

/// A function that makes an entry from a kind and a title.
type Titled<'a> = dyn Fn(EntryKind, String) -> ShownEntry + 'a;

/// Returns the event with only the fields that the session's totals need.
pub(crate) fn without_texts(mut event: SessionEvent) -> SessionEvent {
    match &mut event.kind {
        EventKind::SessionStarted(_) => {}
        EventKind::AssistantMessage(message) => message.content = Vec::new(),
        EventKind::ContextCompacted(compacted) => compacted.first_message = Vec::new(),
        _ => event.kind = EventKind::ModelRequested { step: 0, attempt: 0 },
    }
    event
}

/// Returns the agents of a log, each before its sub-agents.
pub(crate) fn agents(tree: &Tree) -> Vec<AgentId> {
    let mut agents: Vec<_> = tree.agents().into_iter().cloned().collect();
    agents.sort_by(|one, other| one.in_tree().cmp(&other.in_tree()));
    agents
}

/// True if an event belongs to this agent, or if it is the parent's event that starts or ends this agent.
fn is_about(event: &SessionEvent, agent: &AgentId) -> bool {
    let named = match &event.kind {
        EventKind::SubAgentSpawned(SubAgentSpawned { agent, .. })
        | EventKind::SubAgentResult(SubAgentResult { agent, .. }) => Some(agent),
        _ => None,
    };
    event.agent == *agent || named == Some(agent)
}

/// Returns the entry for the system prompt and the tools.
fn fixed(prompt: &PromptFixed, titled: &Titled<'_>) -> ShownEntry {
    let title = match prompt.same_as {
        Some(id) => format!("the same system prompt and tools as in event {id}"),
        None => format!("system prompt and {} tools", prompt.tools.len()),
    };
    let mut entry = titled(EntryKind::Notice, title);
    if let Some(system) = &prompt.system {
        entry.add(ShownPart::whole(system.trim_end()).named("system prompt"));
    }
    for tool in &prompt.tools {
        let text = format!("{}\n{}", tool.description, tool.input_schema.get());
        entry.add(ShownPart::whole(&text).named(format!("tool {}", tool.name)));
    }
    entry
}

fn answer(answered: &ApprovalAnswered, titled: &Titled<'_>, full: bool) -> ShownEntry {
    let number = answered.id.map(|id| format!(" {id}")).unwrap_or_default();
    let cause = answered.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
    let part = answered.in_part.as_ref().map(|part| format!(": {part}")).unwrap_or_default();
    let (decision, by) = (decision(&answered.decision), decided_by(answered.by));
    let entry = titled(EntryKind::Approval, format!("approval{number}: {decision} by {by}{cause}{part}"));
    match &answered.decision {
        ReviewDecision::Denied { message: Some(message) } => {
            entry.with(ShownPart::whole(message.trim_end()).named("message to the model"))
        }
        ReviewDecision::ApprovedInPart { part } => part.files.iter().fold(entry, |entry, file| match file {
            FilePart::Hunks { path, hunks } => {
                let numbers: Vec<_> = hunks.iter().map(ToString::to_string).collect();
                entry
                    .with(ShownPart::whole(format!("{path}: {}", numbers.join(", "))).named("approved hunks"))
            }
            FilePart::Text { path, text } => {
                entry.with(ShownPart::cut(text, full).named(format!("text of {path}, as the user edited it")))
            }
        }),
        _ => entry,
    }
}

fn started(spawned: &SubAgentSpawned, titled: &Titled<'_>, full: bool) -> ShownEntry {
    let first = spawned.task.lines().next().unwrap_or_default();
    let entry = titled(EntryKind::Agent, format!("{spawned} · {}", spawned.model));
    // The title already has the whole task.
    if first == spawned.task.trim_end() {
        entry
    } else {
        entry.with(ShownPart::cut(&spawned.task, full).named("task"))
    }
}

fn ended(result: &SubAgentResult, titled: &Titled<'_>, full: bool) -> ShownEntry {
    let text = result.to_string();
    let (title, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let files: Vec<_> = result.files.iter().map(ToString::to_string).collect();
    let unseen =
        result.unseen.as_ref().map(|why| format!("which files is not known: {why}")).unwrap_or_default();
    let denied: Vec<_> = result.denied.iter().map(|denial| PlainDenial(denial).to_string()).collect();
    titled(EntryKind::Agent, title.to_owned())
        .with(ShownPart::cut(rest, full))
        .with(ShownPart::cut(&files.join("\n"), full).named("files that the sub-agent changed"))
        .with(
            ShownPart::cut(&unseen, full).named("other files that the sub-agent's commands may have changed"),
        )
        .with(ShownPart::cut(&denied.join("\n"), full).named("denials"))
        .with(ShownPart::cut(&result.text, full).named("the sub-agent's last message, not verified"))
}

fn taken_back(rewound: &Rewound, titled: &Titled<'_>, full: bool) -> ShownEntry {
    let what = match rewound.target.scope {
        RewindScope::Both => "the files and the conversation",
        RewindScope::Files => "the files",
        RewindScope::Conversation => "the conversation",
    };
    let title = match rewound.target.to {
        Some(event) => format!("rewind of {what} to the message of event {event}"),
        None => format!("the rewind of {what} is undone"),
    };
    let error = rewound.error.as_ref().map(|error| format!("; incomplete: {error}")).unwrap_or_default();
    let files: Vec<_> = rewound.files.iter().map(|file| file.path.to_string()).collect();
    let left: Vec<_> = rewound.left.iter().map(|left| format!("{} ({})", left.path, left.reason)).collect();
    titled(EntryKind::Notice, format!("{title}{error}"))
        .with(ShownPart::cut(&files.join("\n"), full).named("files"))
        .with(ShownPart::cut(&left.join("\n"), full).named("files that were not restored"))
}

fn course(event: &SessionEvent, titled: &Titled<'_>) -> Option<ShownEntry> {
    let title = match &event.kind {
        EventKind::SessionStarted(SessionStarted {
            version, mode, model, provider, rights, resumed, ..
        }) => {
            let begins = if *resumed { "session resumed" } else { "session started" };
            format!("{begins} · {model} ({provider}) · mode {mode} · {rights} · version {version}")
        }
        EventKind::ModeChanged { mode } => format!("mode {mode}"),
        EventKind::TurnAllowed(allowed) => allowed.to_string(),
        EventKind::TurnAllowanceEnded { cause } => cause.to_string(),
        EventKind::ModelChanged(changed) => format!("model {} instead of {}", changed.to, changed.from),
        EventKind::RightsChanged(changed) => format!("access: {}", changed.rights),
        EventKind::CompactionStarted(started) => started.to_string(),
        EventKind::Notice { message, .. } => message.clone(),
        EventKind::TurnFinished(turn) => {
            let spent = Account::of(turn.usage, turn.cost_usd);
            over("turn", turn.reason, turn.message.as_deref(), turn.steps, spent, turn.duration_ms)
        }
        EventKind::Result(run) => {
            let spent = Account::of(run.usage, run.cost_usd);
            over("run", run.reason, run.message.as_deref(), run.steps, spent, run.duration_ms)
        }
        _ => return None,
    };
    Some(titled(EntryKind::Notice, title))
}

fn over(
    of: &str,
    reason: EndReason,
    message: Option<&str>,
    steps: u32,
    spent: Account,
    duration_ms: u64,
) -> String {
    let message = message.map(|message| format!(" ({message})")).unwrap_or_default();
    let unit = if steps == 1 { "step" } else { "steps" };
    format!("end of the {of}: {reason}{message} · {steps} {unit} · {spent} · {}", took(duration_ms))
}

fn took(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { format!("{:.1} s", Duration::from_millis(ms).as_secs_f64()) }
}

/// Returns the result of a call without the explanation of denials at its end. Denials have their own entries.
fn without(content: &str, explanation: Option<u64>) -> &str {
    let length = usize::try_from(explanation.unwrap_or_default()).unwrap_or_default();
    content.len().checked_sub(length).and_then(|end| content.get(..end)).unwrap_or(content)
}

fn facts(tree: &Tree) -> Vec<(&'static str, String)> {
    let started = tree.events().find_map(|event| match &event.kind {
        EventKind::SessionStarted(started) => Some((event.time_ms, started)),
        _ => None,
    });
    let Some((began_ms, started)) = started else { return Vec::new() };
    let last_ms = tree.events().map(|event| event.time_ms).max().unwrap_or(began_ms);
    let models = tree.events().filter_map(|event| match &event.kind {
        EventKind::AssistantMessage(message) => Some(message.model.as_str()),
        _ => None,
    });
    let mut models: Vec<_> = models.collect();
    models.dedup();
    models.truncate(8);
    vec![
        ("project", started.project.to_string()),
        ("began", moment(began_ms, FORM)),
        ("last event", moment(last_ms, FORM)),
        ("model", if models.is_empty() { started.model.clone() } else { models.join(", ") }),
        ("activity", started.activity.to_string()),
    ]
}

fn warnings(loaded: &Loaded) -> Vec<String> {
    let mut warnings = Vec::new();
    if !loaded.is_intact() {
        let changed = "THIS LOG WAS CHANGED AFTER IT WAS WRITTEN: do not rely on this log";
        warnings.push(changed.to_owned());
    }
    if loaded.tree.is_empty() {
        warnings.push("this log has no event that can be read".to_owned());
    }
    // An incomplete last line is named last, and is always listed.
    let (torn, others): (Vec<_>, Vec<_>) =
        loaded.faults.iter().partition(|fault| matches!(fault, Fault::Torn { .. }));
    let listed = others.iter().take(MOST_FAULTS).chain(&torn);
    warnings.extend(listed.map(ToString::to_string));
    if others.len() > MOST_FAULTS {
        warnings.push(format!("{} more faults: bailiwick audit lists them", others.len() - MOST_FAULTS));
    }
    warnings
}

/// A block that is shown as a part of its reply. Calls are shown by their own events.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ShownBlock {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
    },
    #[serde(other)]
    Other,
}

impl ShownBlock {
    fn of(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }
}
