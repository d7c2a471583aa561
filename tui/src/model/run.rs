//! Letters typed in quick succession in a mode in which each letter is a command. They are probably meant as text.

use std::time::Duration;

use ipc::id::AgentId;

use super::Model;
use super::transcript::ReadingPlace;
use crate::commands::Command;
use crate::moment::UiTime;

/// Maximum time between two keys of one succession. Slow typists need 300 ms per letter.
pub(crate) const GAP: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Run {
    text: String,
    last: UiTime,
    /// True if one of the letters is no movement command. If there are several letters, all then count as text.
    has_other: bool,
    /// Command with lasting effects, delayed until no further letter can belong to the succession.
    waits: Option<Command>,
    agent: AgentId,
    place: ReadingPlace,
}

impl Run {
    pub(crate) fn begin(model: &Model, at: UiTime) -> Self {
        let agent = model.agents.shown_id().clone();
        let place = model.agents.shown().transcript.place();
        Self { text: String::new(), last: at, has_other: false, waits: None, agent, place }
    }

    pub(crate) fn add(&mut self, at: UiTime, letter: char, is_other: bool) -> bool {
        self.has_other |= is_other;
        self.text.push(letter);
        self.last = at;
        self.has_other && self.text.chars().nth(1).is_some()
    }

    pub(crate) const fn is_motion(&self) -> bool {
        !self.has_other
    }

    /// Extends the time for the next letter. Called for a key that is not a letter.
    pub(crate) const fn goes_on(&mut self, at: UiTime) {
        self.last = at;
    }

    pub(crate) const fn hold(&mut self, command: Command) {
        self.waits = Some(command);
    }

    pub(crate) const fn waits(&self) -> Option<Command> {
        self.waits
    }

    pub(crate) fn is_over(&self, now: UiTime) -> bool {
        now.since(self.last) > GAP
    }

    pub(crate) fn left(&self, now: UiTime) -> Duration {
        (GAP + Duration::from_millis(1)).saturating_sub(now.since(self.last))
    }

    /// Undoes the effects of the letters on the view, and returns the letters.
    pub(crate) fn undo(self, model: &mut Model) -> String {
        model.select(&self.agent);
        model.agents.shown_mut().transcript.go_back(self.place);
        self.text
    }
}
