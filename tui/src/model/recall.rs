use super::{Editor, Mode, Model};

const MOST: usize = 10;

#[derive(Debug)]
pub(crate) struct Recall {
    draft: Editor,
    /// Index of the selected match; 0 is the newest.
    chosen: usize,
}

impl Model {
    pub(crate) fn begin_recall(&mut self) {
        self.recall = Some(Recall { draft: std::mem::take(&mut self.prompt), chosen: 0 });
    }

    /// Different messages that contain the typed text, newest first. Case matters only if the text has capital letters.
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

    pub(crate) fn recall_choice(&self) -> usize {
        let last = self.recalled().len().saturating_sub(1);
        self.recall.as_ref().map_or(0, |recall| recall.chosen.min(last))
    }

    /// Selects the previous or next match; wraps around at either end.
    pub(crate) fn recall_beside(&mut self, older: bool) {
        let (found, at) = (self.recalled().len().max(1), self.recall_choice());
        let chosen = if older { (at + 1) % found } else { at.checked_sub(1).unwrap_or(found - 1) };
        if let Some(recall) = &mut self.recall {
            recall.chosen = chosen;
        }
    }

    /// Selects the newest match after the text has changed.
    pub(crate) fn recall_anew(&mut self) {
        if let Some(recall) = &mut self.recall {
            recall.chosen = 0;
        }
    }

    /// With the selected message at the prompt if `takes`, else with the former draft.
    pub(crate) fn end_recall(&mut self, takes: bool) {
        let chosen = self.recalled().get(self.recall_choice()).map(|sent| (*sent).to_owned());
        let Some(recall) = self.recall.take() else { return };
        self.prompt = chosen.filter(|_| takes).map_or(recall.draft, Editor::with);
        // A recalled command opens no list, so that the next key still moves through the history.
        self.palette.close();
    }
}
