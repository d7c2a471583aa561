use gate::StandingRights;
use ipc::confinement::Tier;

use super::{approvals, script};
use crate::conversation::{AssistantBlock, StopReason, StreamEvent};
use crate::core::{AgentConfig, ReadyWorker};

pub(in crate::core) fn config() -> AgentConfig {
    script::config()
}

pub(in crate::core) fn ask_config() -> AgentConfig {
    approvals::ask_config()
}

pub(in crate::core) fn standing() -> StandingRights {
    script::standing()
}

pub(in crate::core) fn ready(generation: u32) -> ReadyWorker {
    script::ready(generation, Tier::Floor)
}

pub(in crate::core) fn text(text: &str) -> AssistantBlock {
    script::text(text)
}

pub(in crate::core) fn completed() -> StreamEvent {
    script::completed(StopReason::EndTurn)
}
