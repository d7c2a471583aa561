//! The events as they stand in a log, one a line.

use ipc::id::AgentId;
use serde::Deserialize;

/// The member of an event by which it is chosen.
#[derive(Deserialize)]
struct Of {
    agent: AgentId,
}

/// The lines of a log that are events, byte for byte; of one agent alone, if one is named.
pub(crate) fn lines<'a>(log: &'a [u8], agent: Option<&'a AgentId>) -> impl Iterator<Item = &'a [u8]> {
    let whole = log.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = log.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
    lines.filter(move |line| {
        serde_json::from_slice::<Of>(line).is_ok_and(|of| agent.is_none_or(|agent| of.agent == *agent))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_events_and_come_as_they_are() {
        let log = b"{\"agent\":\"1\", \"x\":1}\nno event\n{\"agent\":\"1.1\"}\n{\"agent\":\"1\"";
        let of = |agent: Option<&AgentId>| lines(log, agent).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(of(None), [&b"{\"agent\":\"1\", \"x\":1}"[..], b"{\"agent\":\"1.1\"}"]);
        assert_eq!(of(Some(&"1.1".into())), [b"{\"agent\":\"1.1\"}"]);
    }
}
