//! Masks the API key in text that is shown in pieces and not logged.

use std::collections::HashMap;

use ipc::id::CallId;
use model::secrets::Redactor;
use protocol::frontend::UiEventKind;

use crate::journal::session::SessionLog;

/// Text that is shown in pieces. The end of a piece is held back while it may be the beginning of the key.
#[derive(Default)]
pub(super) struct Passing {
    new: Redactor,
    text: Redactor,
    thinking: Redactor,
    outputs: HashMap<CallId, Redactor>,
}

impl Passing {
    pub(super) fn new(log: &SessionLog) -> Self {
        let new = log.redactor();
        Self { text: new.clone(), thinking: new.clone(), new, outputs: HashMap::new() }
    }

    /// Takes an event. Returns the events to show now. Logged events are masked already; approval requests are exact.
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
