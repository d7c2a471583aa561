//! What passes by a session on its way to a front end, without the key: text in pieces, which no log holds.

use std::collections::HashMap;

use ipc::id::CallId;
use model::secrets::Redactor;
use protocol::frontend::UiEventKind;

use crate::journal::session::SessionLog;

/// The pieces that are on their way. The end of one is held back as long as it may be the beginning of the key.
#[derive(Default)]
pub(super) struct Passing {
    new: Redactor,
    text: Redactor,
    thinking: Redactor,
    outputs: HashMap<CallId, Redactor>,
}

impl Passing {
    /// Without the secret that a log does not hold.
    pub(super) fn new(log: &SessionLog) -> Self {
        let new = log.redactor();
        Self { text: new.clone(), thinking: new.clone(), new, outputs: HashMap::new() }
    }

    /// Takes in what is to be shown; gives what can be shown by now, in order. Events were masked by the log, and a
    /// person who is asked sees the very bytes that the answer is about.
    pub(super) fn take(&mut self, kind: UiEventKind) -> Vec<UiEventKind> {
        let shown = match kind {
            UiEventKind::TextDelta { text } => UiEventKind::TextDelta { text: self.text.push_str(&text) },
            UiEventKind::ThinkingDelta { text } => {
                UiEventKind::ThinkingDelta { text: self.thinking.push_str(&text) }
            }
            UiEventKind::OutputDelta { call, text } => {
                let redactor = self.outputs.entry(call).or_insert_with(|| self.new.clone());
                UiEventKind::OutputDelta { call, text: redactor.push_str(&text) }
            }
            kind => return self.rest().chain([kind]).collect(),
        };
        Some(shown).filter(is_visible).into_iter().collect()
    }

    /// What was held back: an event comes after the text before it.
    fn rest(&mut self) -> impl Iterator<Item = UiEventKind> + use<> {
        let mut rest = vec![
            UiEventKind::ThinkingDelta { text: self.thinking.finish_str() },
            UiEventKind::TextDelta { text: self.text.finish_str() },
        ];
        let outputs = self.outputs.drain();
        rest.extend(
            outputs.map(|(call, mut held)| UiEventKind::OutputDelta { call, text: held.finish_str() }),
        );
        rest.into_iter().filter(is_visible)
    }
}

fn is_visible(kind: &UiEventKind) -> bool {
    match kind {
        UiEventKind::TextDelta { text }
        | UiEventKind::ThinkingDelta { text }
        | UiEventKind::OutputDelta { text, .. } => !text.is_empty(),
        _ => true,
    }
}
