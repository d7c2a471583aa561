//! System prompt and tools of the first agent. If the agent's context continues, they are byte for byte as logged.

use std::sync::Arc;

use ipc::id::{AgentId, EventId};
use protocol::event::{EventKind, NewContext, NoticeCode, PromptFixed, SessionEvent, SessionStarted};

use agent::core::AgentConfig;
use gate::tools::ToolDefinition;
use model::provider::is_of_this_machine;

/// Uses the logged prompt and tools if their context continues. Returns the event to log; `None` if nothing is new.
pub(super) fn fix(
    config: &mut AgentConfig,
    earlier: &[SessionEvent],
    now: &SessionStarted,
) -> Option<PromptFixed> {
    let today = config.prompt();
    let recorded = RecordedPrompt::of(earlier);
    let cause = new_context(config, earlier, recorded.as_ref(), now);
    let kept = recorded.as_ref().filter(|_| cause.is_none()).and_then(|recorded| {
        let tools = config.tools.told_as(recorded.definitions()).ok()?;
        Some((recorded.system(), tools))
    });
    if let Some((system, tools)) = kept {
        (config.system, config.tools) = (system, Arc::new(tools));
        return None;
    }
    let new_context = cause.filter(|_| has_replies(earlier));
    match recorded.filter(|recorded| recorded.is(&today)) {
        // Without a reply there is no earlier context.
        Some(_) if new_context.is_none() => None,
        Some(recorded) => {
            Some(PromptFixed { system: None, tools: Vec::new(), same_as: Some(recorded.id), new_context })
        }
        None => Some(PromptFixed { new_context, ..today }),
    }
}

/// Prompt and tools of the agent's latest context, as logged.
struct RecordedPrompt<'a> {
    id: EventId,
    prompt: &'a PromptFixed,
    /// True if the conversation was imported.
    imported: bool,
}

impl<'a> RecordedPrompt<'a> {
    fn of(events: &'a [SessionEvent]) -> Option<Self> {
        let mut last: Option<Self> = None;
        for event in events.iter().filter(|event| event.agent == AgentId::root()) {
            match &event.kind {
                EventKind::PromptFixed(PromptFixed { same_as: Some(id), .. }) => {
                    let whole = events.iter().find(|event| event.id == *id).map(|event| &event.kind);
                    let Some(EventKind::PromptFixed(prompt)) = whole else { continue };
                    last = Some(Self { id: *id, prompt, imported: false });
                }
                EventKind::PromptFixed(prompt) => {
                    last = Some(Self { id: event.id, prompt, imported: false });
                }
                EventKind::Notice { code: NoticeCode::Imported, .. } => {
                    last = last.map(|last| Self { imported: true, ..last });
                }
                _ => {}
            }
        }
        last.filter(|last| last.prompt.system.is_some())
    }

    fn system(&self) -> Arc<str> {
        self.prompt.system.as_deref().unwrap_or_default().into()
    }

    fn definitions(&self) -> Vec<ToolDefinition> {
        self.prompt.tools.iter().map(ToolDefinition::from).collect()
    }

    fn is(&self, today: &PromptFixed) -> bool {
        self.prompt.system == today.system && self.prompt.tools == today.tools
    }
}

/// Returns the reason to begin a new context; `None` if the context continues.
fn new_context(
    config: &AgentConfig,
    earlier: &[SessionEvent],
    recorded: Option<&RecordedPrompt<'_>>,
    now: &SessionStarted,
) -> Option<NewContext> {
    if is_of_another_model(earlier, now) {
        return Some(NewContext::Model);
    }
    if is_of_another_server(earlier, now) {
        return Some(NewContext::Server);
    }
    let recorded = recorded?;
    // Otherwise the author of an imported session could write the system prompt.
    if recorded.imported && !recorded.is(&config.prompt()) {
        return Some(NewContext::Imported);
    }
    config.tools.told_as(recorded.definitions()).err().map(NewContext::Tool)
}

fn has_replies(events: &[SessionEvent]) -> bool {
    let is_reply = |event: &SessionEvent| matches!(event.kind, EventKind::AssistantMessage(_));
    events.iter().any(|event| event.agent == AgentId::root() && is_reply(event))
}

/// True if the last reply came from another address, since servers reject thinking that another server signed. False
/// for older logs, which have no address. All local addresses count as one server, because ports and sockets change.
fn is_of_another_server(events: &[SessionEvent], now: &SessionStarted) -> bool {
    let address = |event: &SessionEvent| match &event.kind {
        EventKind::SessionStarted(started) => started.base_url.clone(),
        _ => None,
    };
    let last = events.iter().rev().find_map(address);
    match (last, &now.base_url) {
        (Some(last), Some(now)) => last != *now && !(is_of_this_machine(&last) && is_of_this_machine(now)),
        _ => false,
    }
}

/// True if the last reply came from another model or provider than `now`.
fn is_of_another_model(events: &[SessionEvent], now: &SessionStarted) -> bool {
    let (mut model, mut provider) = (&now.model, &now.provider);
    for event in events {
        match &event.kind {
            EventKind::SessionStarted(started) => (model, provider) = (&started.model, &started.provider),
            EventKind::ModelChanged(changed) => model = &changed.to,
            _ => {}
        }
    }
    *model != now.model || *provider != now.provider
}

#[cfg(test)]
mod tests {
    use protocol::event::ObservedBy;
    use serde_json::json;

    use super::*;

    fn started(base_url: Option<&str>) -> SessionStarted {
        let started = json!({
            "version": "1", "project": "/p", "activity": "execute", "mode": "auto", "model": "m", "provider": "p",
            "rights": {"write": [], "net": "off", "hidden": 0, "protected": 0}, "base_url": base_url,
        });
        serde_json::from_value(started).unwrap()
    }

    #[test]
    fn z2_another_base_url_is_another_server_and_older_logs_name_none() {
        for (before, now, expected) in [
            (Some("https://a.example"), Some("https://a.example"), false),
            (Some("https://a.example"), Some("https://b.example"), true),
            (Some("https://a.example/x"), Some("https://a.example/y"), true),
            (Some("https://a.example"), Some("http://127.0.0.1:9"), true),
            (Some("http://127.0.0.1:9"), Some("http://localhost:8"), false),
            (Some("unix:/run/a"), Some("unix:/run/b"), false),
            (None, Some("https://b.example"), false),
        ] {
            let event = SessionEvent {
                id: EventId(1),
                parent: None,
                time_ms: 1,
                session: "s".into(),
                agent: AgentId::root(),
                parent_agent: None,
                observed_by: ObservedBy::Supervisor,
                kind: EventKind::SessionStarted(started(before)),
            };
            assert_eq!(is_of_another_server(&[event], &started(now)), expected, "{before:?} {now:?}");
        }
    }
}
