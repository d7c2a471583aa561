//! Tests that an agent restored from a log has the state of the agent that wrote the log.

use std::time::Duration;

use ipc::id::AgentId;
use ipc::rights::Rights;
use protocol::event::SessionEvent;

use agent::core::{Agent, AgentConfig, Backoff, RunLimits, Window};
use agent::prompt::PromptEnvironment;
use gate::activity::Activity;
use gate::approval::ApprovalSettings;
use gate::tools::Registry;
use gate::{ApprovalMode, StandingRights};
use model::provider::{GiveUp, ProviderError, RequestOptions, Tried};

struct Never;

impl Backoff for Never {
    fn delay(&self, _: Tried, _: &ProviderError) -> Result<Duration, GiveUp> {
        Err(GiveUp::Pointless)
    }
}

fn config() -> AgentConfig {
    let rights = Rights { read: vec!["/".into()], write: vec!["/p".into()], ..Rights::default() };
    AgentConfig {
        model: "m".to_owned(),
        system: "be good".into(),
        tools: Registry::for_activity(Activity::Execute).into(),
        max_tokens: 1000,
        options: RequestOptions::default(),
        sees_images: true,
        prices: None,
        window: Window::default(),
        surroundings: PromptEnvironment {
            platform: "Linux".to_owned(),
            date: "2026-11-24".to_owned(),
            activity: Activity::Execute,
            instructions: None,
        },
        limits: RunLimits::default(),
        fails_when_denied: true,
        answer: None,
        backoff: Box::new(Never),
        standing: StandingRights::new(rights, "/p".into(), None, ApprovalMode::Auto),
        conversation: "s".into(),
        approvals: ApprovalSettings::default(),
        id: AgentId::root(),
        activity: Activity::Execute,
        planning: None,
        execution: None,
    }
}

/// Returns the whole state of the agent that is restored from these events, as text.
pub(super) fn gone_on(events: &[SessionEvent]) -> String {
    format!("{:?}", Agent::new(config()).restored(events, false))
}
