//! What the model is told before the user speaks.
//!
//! The system prompt is fixed, byte for byte, for an agent's life: the prompt cache and the provider's prefix check
//! depend on it (WIRE §0.2). Everything that varies comes as context with the first user message.

mod environment;

pub use environment::{Surroundings, environment_context, mode_context, rights_context};

/// The system prompt.
pub const SYSTEM: &str = include_str!("system.md");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Registry;
    use crate::tools::ToolDefinition as Tool;

    /// PERF.md: the fixed prefix of every request.
    const MAX_PREFIX: usize = 12 << 10;

    #[test]
    fn system_prompt_and_tools_stay_within_twelve_kilobytes() {
        let tools = Registry::builtin().definitions();
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
    fn system_prompt_names_every_tool_and_nothing_that_varies() {
        for tool in Registry::builtin().definitions().iter() {
            assert!(SYSTEM.contains(tool.name), "{}", tool.name);
        }
        for word in ["2025", "2026", "net: ", "net off", "net on", "/home/", "rw ."] {
            assert!(!SYSTEM.contains(word), "{word}");
        }
    }
}
