//! Keys in quick succession where each would be a command: whoever writes a message there means none of them.

use std::time::Duration;

use ipc::id::AgentId;

use super::Model;
use super::transcript::ReadingPlace;
use crate::commands::Command;
use crate::moment::UiTime;

/// The longest time between two keys of one run: slow hands need 300 ms for a letter.
pub(crate) const GAP: Duration = Duration::from_millis(500);

/// The letters that came in quick succession, and the view before the first of them.
#[derive(Debug)]
pub(crate) struct Run {
    text: String,
    last: UiTime,
    /// True if one of them is no motion: with another letter they are text.
    has_other: bool,
    /// The command that reaches beyond the view, until no letter can follow any more.
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

    /// Adds a letter; returns true if the run is text by now.
    pub(crate) fn add(&mut self, at: UiTime, letter: char, is_other: bool) -> bool {
        self.has_other |= is_other;
        self.text.push(letter);
        self.last = at;
        self.has_other && self.text.chars().nth(1).is_some()
    }

    /// True if none of its letters begins a message.
    pub(crate) const fn is_motion(&self) -> bool {
        !self.has_other
    }

    /// A key that writes nothing came, and letters may still follow.
    pub(crate) const fn goes_on(&mut self, at: UiTime) {
        self.last = at;
    }

    /// Lets a command wait for the end of the run.
    pub(crate) const fn hold(&mut self, command: Command) {
        self.waits = Some(command);
    }

    /// The command that waits.
    pub(crate) const fn waits(&self) -> Option<Command> {
        self.waits
    }

    /// True if a letter at this moment no longer belongs to it.
    pub(crate) fn is_over(&self, now: UiTime) -> bool {
        now.since(self.last) > GAP
    }

    pub(crate) fn left(&self, now: UiTime) -> Duration {
        (GAP + Duration::from_millis(1)).saturating_sub(now.since(self.last))
    }

    /// Undoes what its keys did to the view, and gives its text.
    pub(crate) fn undo(self, model: &mut Model) -> String {
        model.select(&self.agent);
        model.agents.shown_mut().transcript.go_back(self.place);
        self.text
    }
}
