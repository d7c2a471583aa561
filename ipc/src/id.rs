//! Identifiers. Each kind is a type of its own, so that code cannot mistake one for another.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $repr:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $name(pub $repr);

        impl $name {
            /// Returns the next identifier.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

macro_rules! text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $name(pub String);

        impl $name {
            /// Returns the identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

number! {
    /// Id of a tool call that the supervisor sent to a worker, unique within an agent. The supervisor alone chooses it.
    CallId, u64
}
number! {
    /// Number of a worker among those of its agent, from 1.
    Generation, u32
}
number! {
    /// Number of a guest among those of its agent. Each run of the session counts from 1.
    GuestId, u32
}
number! {
    /// Number of an event in a session log, from 1.
    EventId, u64
}
number! {
    /// Id of a request for an approval, unique within an agent.
    ApprovalId, u64
}
number! {
    /// Number of an approval that holds for the session, from 1.
    GrantId, u64
}
text! {
    /// Id of a session. Front-end protocols name the field `conversation_id`.
    ConversationId
}
text! {
    /// An agent's position in the tree of agents: `1` is the root, `1.2` its second sub-agent.
    AgentId
}
text! {
    /// Id that the model gave a tool call, sent back unchanged with the result.
    ToolUseId
}

impl AgentId {
    /// Returns the id of the session's first agent.
    pub fn root() -> Self {
        Self("1".to_owned())
    }

    /// True if the agent is not a sub-agent.
    pub fn is_top_level(&self) -> bool {
        self.level() == 0
    }

    /// Returns the number of agents above this one: 0 for an agent that is no sub-agent.
    pub fn level(&self) -> usize {
        self.0.matches('.').count()
    }

    /// Returns a sort key by which an agent comes before the agents below it, and `1.2` before `1.10`.
    pub fn in_tree(&self) -> (Vec<u32>, &str) {
        let numbers = self.0.split('.').map(|number| number.parse().unwrap_or(u32::MAX));
        (numbers.collect(), &self.0)
    }

    /// True if the agent is a direct or indirect sub-agent of `other`.
    pub fn is_below(&self, other: &Self) -> bool {
        self.0.strip_prefix(&other.0).is_some_and(|rest| rest.starts_with('.'))
    }
}

/// Id of a tool call with its agent, since each agent numbers its own calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentCall {
    /// The agent whose model made the call.
    pub agent: AgentId,
    /// Id of the call.
    pub call: CallId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_stand_in_the_order_of_their_numbers() {
        let mut agents = ["1.10", "1.2.1", "2", "1.2", "1", "x"].map(AgentId::from);
        agents.sort_by(|one, other| one.in_tree().cmp(&other.in_tree()));
        assert_eq!(agents.each_ref().map(AgentId::as_str), ["1", "1.2", "1.2.1", "1.10", "2", "x"]);
    }
}
