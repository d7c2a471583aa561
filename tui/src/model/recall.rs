//! The search through the history: what stands at the prompt is looked up in the messages that were sent.

use super::{Editor, Mode, Model};

const MOST: usize = 10;

/// The search, while it has the prompt.
#[derive(Debug)]
pub(crate) struct Recall {
    /// The text that was being written before.
    draft: Editor,
    /// The chosen message, counted from the newest one.
    chosen: usize,
}

impl Model {
    pub(crate) fn begin_recall(&mut self) {
        self.recall = Some(Recall { draft: std::mem::take(&mut self.prompt), chosen: 0 });
    }

    /// The messages with the typed text, the newest first, each once. Capital letters count where the text has some.
    pub(crate) fn recalled(&self) -> Vec<&str> {
        let typed = self.prompt.text();
        let exact = typed.chars().any(char::is_uppercase);
        let has_it =
            |sent: &&str| if exact { sent.contains(typed) } else { sent.to_lowercase().contains(typed) };
        let mut found: Vec<&str> = Vec::new();
        if self.is_recalling() {
            for sent in self.history.newest_first().filter(has_it) {
                if found.len() < MOST && !found.contains(&sent) {
                    found.push(sent);
                }
            }
        }
        found
    }

    pub(crate) fn is_recalling(&self) -> bool {
        self.recall.is_some() && self.mode == Mode::Insert && self.cards.is_empty()
    }

    /// The place of the chosen message among those that were found.
    pub(crate) fn recall_choice(&self) -> usize {
        let last = self.recalled().len().saturating_sub(1);
        self.recall.as_ref().map_or(0, |recall| recall.chosen.min(last))
    }

    /// Chooses the message before or after; beyond either end comes the other one.
    pub(crate) fn recall_beside(&mut self, older: bool) {
        let (found, at) = (self.recalled().len().max(1), self.recall_choice());
        let chosen = if older { (at + 1) % found } else { at.checked_sub(1).unwrap_or(found - 1) };
        if let Some(recall) = &mut self.recall {
            recall.chosen = chosen;
        }
    }

    /// Another text is looked up: the newest message with it is the chosen one.
    pub(crate) fn recall_anew(&mut self) {
        if let Some(recall) = &mut self.recall {
            recall.chosen = 0;
        }
    }

    /// Ends the search: with the chosen message at the prompt, or with the draft as it was.
    pub(crate) fn end_recall(&mut self, takes: bool) {
        let chosen = self.recalled().get(self.recall_choice()).map(|sent| (*sent).to_owned());
        let Some(recall) = self.recall.take() else { return };
        self.prompt = chosen.filter(|_| takes).map_or(recall.draft, Editor::with);
        // A command that comes back has no list before it: the next key belongs to the history.
        self.palette.close();
    }
}
