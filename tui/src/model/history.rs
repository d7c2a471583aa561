//! History of sent messages.

use super::editor::Editor;

#[derive(Debug, Default)]
pub(crate) struct History {
    sent: Vec<String>,
    /// Index of the message shown at the prompt, and the draft that was there before; `None` while the draft is shown.
    at: Option<(usize, Editor)>,
}

impl History {
    pub(crate) const fn of(sent: Vec<String>) -> Self {
        Self { sent, at: None }
    }

    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &str> {
        self.sent.iter().rev().map(String::as_str)
    }

    pub(crate) fn add(&mut self, text: &str) {
        self.at = None;
        if self.sent.last().is_none_or(|last| last != text) {
            self.sent.push(text.to_owned());
        }
    }

    pub(crate) fn back(&mut self, prompt: &mut Editor) {
        let before = self.at.as_ref().map_or(self.sent.len(), |(at, _)| *at);
        let Some(at) = before.checked_sub(1) else { return };
        let draft = self.at.take().map_or_else(|| prompt.clone(), |(_, draft)| draft);
        self.show(at, draft, prompt);
    }

    /// Shows the next newer message at the prompt; after the newest message, the draft.
    pub(crate) fn forward(&mut self, prompt: &mut Editor) {
        let Some((at, draft)) = self.at.take() else { return };
        if at + 1 < self.sent.len() {
            self.show(at + 1, draft, prompt);
        } else {
            *prompt = draft;
        }
    }

    fn show(&mut self, at: usize, draft: Editor, prompt: &mut Editor) {
        *prompt = Editor::with(self.sent.get(at).cloned().unwrap_or_default());
        self.at = Some((at, draft));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_being_written_is_not_lost() {
        let (mut history, mut prompt) = (History::default(), Editor::with("draft".to_owned()));
        for text in ["one", "two", "two"] {
            history.add(text);
        }
        let mut seen = Vec::new();
        for _ in 0..3 {
            history.back(&mut prompt);
            seen.push(prompt.text().to_owned());
        }
        for _ in 0..3 {
            history.forward(&mut prompt);
            seen.push(prompt.text().to_owned());
        }
        assert_eq!(seen, ["two", "one", "one", "two", "draft", "draft"]);
    }
}
