//! Everything that the terminal UI knows.

use crate::start::Start;

/// Everything that the terminal UI knows.
#[derive(Debug)]
pub struct Model {
    start: Start,
}

impl Model {
    /// The model before the first event: Insert mode, an empty prompt, and the line of what is allowed here.
    pub fn new(start: Start) -> Self {
        Self { start }
    }
}
