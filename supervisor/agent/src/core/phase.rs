/// The state of the turn, as far as other parts of the agent need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Resting,
    Waiting,
    /// Waits for the model, or for the next attempt of a request.
    Asking,
    Working,
    Closed,
}
