//! Selects the lines of a log that are shown unchanged.

use ipc::id::AgentId;
use serde::Deserialize;

#[derive(Deserialize)]
struct Of {
    agent: AgentId,
}

/// True if a line is an event; if `agent` is given, only if the event belongs to that agent.
pub(crate) fn is_event(line: &[u8], agent: Option<&AgentId>) -> bool {
    serde_json::from_slice::<Of>(line).is_ok_and(|of| agent.is_none_or(|agent| of.agent == *agent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_an_agent() {
        let is = |line: &str, agent: Option<&AgentId>| is_event(line.as_bytes(), agent);
        assert!(is(r#"{"agent":"1", "x":1}"#, None) && is(r#"{"agent":"1.1"}"#, Some(&"1.1".into())));
        assert!(!is("no event", None) && !is(r#"{"agent":"1""#, None));
        assert!(!is(r#"{"agent":"1"}"#, Some(&"1.1".into())));
    }
}
