//! The activity of an agent: what it is there for.

/// What an agent is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// It makes a plan, and changes nothing.
    Plan,
    /// It carries out a task.
    Execute,
}

impl Activity {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Execute => "execute",
        }
    }
}
