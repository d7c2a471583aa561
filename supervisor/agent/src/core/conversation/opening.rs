//! The beginning of every context: surroundings, project instructions, and the requirement for the answer.

use gate::StandingRights;
use protocol::event::EventKind;

use super::message::{ENVIRONMENT, OURS};
use crate::core::ContextItem;
use crate::prompt::{PromptEnvironment, environment_context};

#[derive(Debug)]
pub(super) struct Opening {
    surroundings: PromptEnvironment,
    instructions: Vec<ContextItem>,
    demand: Option<String>,
}

impl Opening {
    pub(super) const fn new(surroundings: PromptEnvironment, demand: Option<String>) -> Self {
        Self { surroundings, instructions: Vec::new(), demand }
    }

    /// Returns the texts with which a context begins. They describe the surroundings with the current access.
    pub(super) fn texts(&self, seen: &StandingRights) -> Vec<String> {
        let mut texts = vec![environment_context(&self.surroundings, seen)];
        texts.extend(self.instructions.iter().map(|item| item.text.clone()));
        texts.extend(self.demand.clone());
        texts
    }

    pub(super) fn demand(&self) -> Option<&str> {
        self.demand.as_deref()
    }

    pub(super) fn instructions(&self) -> &[ContextItem] {
        &self.instructions
    }

    /// Keeps an item for later contexts, except the description of the surroundings, which each context has anew.
    pub(super) fn keep(&mut self, item: &ContextItem) {
        if item.source != ENVIRONMENT {
            self.instructions.push(item.clone());
        }
    }

    /// Replaces the kept items by the items in `events`.
    pub(super) fn restore<'a>(&mut self, events: impl Iterator<Item = &'a EventKind>) {
        let instructions = events.filter_map(|kind| match kind {
            EventKind::ContextAdded { source, text } if source != ENVIRONMENT && source != OURS => {
                Some(ContextItem { source: source.clone(), text: text.clone() })
            }
            _ => None,
        });
        self.instructions = instructions.collect();
    }
}
