//! The system prompts.
//!
//! The system prompt is fixed, byte for byte, for an agent's life: the prompt cache and the provider's prefix check
//! depend on it. Everything that varies is context of the first user message.

mod environment;

use std::sync::Arc;

use gate::roles::Role;

pub use environment::{
    PromptEnvironment, environment_context, mode_context, narrowed_context, rewound_context, rights_context,
};

pub const SYSTEM: &str = include_str!("system.md");

/// The part of the system prompt for agents that may start sub-agents.
const DELEGATING: &str = include_str!("delegating.md");

const SUB_AGENT: &str = include_str!("sub_agent.md");

const PLANNER: &str = include_str!("planner.md");

const EXECUTOR: &str = include_str!("executor.md");

/// The system prompt of an agent whose only tool is the shell.
const MINIMAL: &str = include_str!("minimal.md");

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    #[default]
    Full,
    /// The shell is the only tool, and the prompt is short.
    Minimal,
}

impl Profile {
    /// Returns the names of the profile's tools; `None` for all tools.
    pub const fn tools(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Full => None,
            Self::Minimal => Some(&["shell_exec"]),
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Minimal => "minimal",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Planner,
    Executor,
}

pub fn for_first_agent(profile: Profile, delegates: bool, part: Option<Part>) -> Arc<str> {
    if profile == Profile::Minimal {
        return MINIMAL.into();
    }
    format!("{SYSTEM}{}{}", delegating(delegates), of_part(part)).into()
}

fn delegating(delegates: bool) -> String {
    if delegates { format!("\n{DELEGATING}") } else { String::new() }
}

fn of_part(part: Option<Part>) -> String {
    part.map_or_else(String::new, |part| match part {
        Part::Planner => format!("\n{PLANNER}"),
        Part::Executor => format!("\n{EXECUTOR}"),
    })
}

/// Returns the task of an agent that executes a plan: the plan's bytes, and the number of finished steps.
pub fn task_of_plan(markdown: &str, finished: usize) -> String {
    let finished = match finished {
        0 => String::new(),
        1 => "\n\nStep 1 is finished: begin with step 2.".to_owned(),
        count => format!("\n\nSteps 1 to {count} are finished: begin with step {}.", count + 1),
    };
    format!("Execute this plan.\n\n<plan>\n{}\n</plan>{finished}", markdown.trim_end())
}

pub fn for_sub_agent(delegates: bool, role: Option<&Role>, part: Option<Part>) -> Arc<str> {
    let delegating = delegating(delegates);
    let role = role.map(|Role { name, prompt, .. }| format!("\n# Your role: {name}\n\n{prompt}\n"));
    let role = role.unwrap_or_default();
    let part = if part.is_some() { of_part(part) } else { format!("\n{SUB_AGENT}") };
    format!("{SYSTEM}{delegating}{part}{role}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gate::activity::Activity;
    use gate::tools::{Registry, ToolDefinition as Tool};

    /// Maximum bytes of system prompt and tools. Every request begins with them.
    const MAX_PREFIX: usize = 12 << 10;

    #[test]
    fn system_prompt_and_tools_stay_within_twelve_kilobytes() {
        let tools = Registry::for_activity(Activity::Execute).definitions();
        let tools = tools.iter().map(|tool| {
            let Tool { name, description, input_schema } = tool;
            serde_json::json!({ "name": name, "description": description, "input_schema": input_schema })
                .to_string()
        });
        let size = SYSTEM.len() + tools.map(|tool| tool.len() + 1).sum::<usize>();
        eprintln!("fixed prefix: {size} bytes, of which the system prompt {}", SYSTEM.len());
        assert!(size <= MAX_PREFIX, "{size} bytes");
    }

    #[test]
    fn the_minimal_prompt_names_the_tools_that_its_agent_has_and_no_other() {
        let has = Profile::Minimal.tools().unwrap();
        for tool in Registry::for_activity(Activity::Execute).definitions().iter() {
            assert_eq!(MINIMAL.contains(&*tool.name), has.contains(&&*tool.name), "{}", tool.name);
        }
        assert!(MINIMAL.len() < 1500, "{} bytes", MINIMAL.len());
    }

    #[test]
    fn system_prompt_names_every_tool_and_nothing_that_varies() {
        for tool in Registry::for_activity(Activity::Execute).definitions().iter() {
            assert!(SYSTEM.contains(&*tool.name), "{}", tool.name);
        }
        for word in ["2025", "2026", "net: ", "net off", "net on", "/home/", "rw ."] {
            assert!(!SYSTEM.contains(word), "{word}");
        }
    }
}
