use super::{Editor, History, Mode, Model};

const MOST: usize = 10;

/// Search through the sent messages, shown instead of the prompt while it is open.
#[derive(Debug)]
pub(crate) struct Recall {
    draft: Editor,
    /// Index of the selected match; 0 is the newest match.
    chosen: usize,
}

impl Recall {
    pub(crate) const fn new(draft: Editor) -> Self {
        Self { draft, chosen: 0 }
    }

    pub(crate) const fn choose(&mut self, at: usize) {
        self.chosen = at;
    }

    pub(crate) fn into_draft(self) -> Editor {
        self.draft
    }
}

/// Sent messages that contain the typed text, and the selected one.
pub(crate) struct Recalled<'a> {
    found: Vec<&'a str>,
    chosen: usize,
}

impl<'a> Recalled<'a> {
    /// Returns the messages that match the text at the prompt; `None` while no search is open.
    pub(crate) fn of(model: &'a Model) -> Option<Self> {
        let recall = model.recall.as_ref().filter(|_| is_recalling(model))?;
        let found = matching(&model.history, model.prompt.text());
        let chosen = recall.chosen.min(found.len().saturating_sub(1));
        Some(Self { found, chosen })
    }

    pub(crate) fn found(&self) -> &[&'a str] {
        &self.found
    }

    pub(crate) const fn chosen(&self) -> usize {
        self.chosen
    }

    pub(crate) fn chosen_text(&self) -> Option<&'a str> {
        self.found.get(self.chosen).copied()
    }

    /// Returns the index of the next older or newer match. After the last match comes the first one.
    pub(crate) fn beside(&self, older: bool) -> usize {
        let found = self.found.len().max(1);
        if older { (self.chosen + 1) % found } else { self.chosen.checked_sub(1).unwrap_or(found - 1) }
    }
}

pub(crate) fn is_recalling(model: &Model) -> bool {
    model.recall.is_some() && model.mode == Mode::Insert && model.cards.is_empty()
}

/// Returns the matching messages without repetitions, newest first. Case matters only if `typed` has capital letters.
fn matching<'a>(history: &'a History, typed: &str) -> Vec<&'a str> {
    let exact = typed.chars().any(char::is_uppercase);
    let has_it = |sent: &&str| if exact { sent.contains(typed) } else { sent.to_lowercase().contains(typed) };
    let mut found: Vec<&str> = Vec::new();
    for sent in history.newest_first().filter(has_it) {
        if found.len() < MOST && !found.contains(&sent) {
            found.push(sent);
        }
    }
    found
}
