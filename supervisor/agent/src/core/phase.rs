//! The state of the turn as a value.

/// The state of the turn, as far as others have to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The agent waits for the user.
    Resting,
    /// A turn waits for the start of the agent.
    Waiting,
    /// The turn waits for the model, or for the time to ask it again.
    Asking,
    /// The turn waits for the results of calls.
    Working,
    /// No turn follows.
    Closed,
}
