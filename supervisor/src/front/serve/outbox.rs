//! What is to be written, bounded: a front end that reads slowly costs it pieces of text, not the server its memory.
//!
//! Pieces of replies and outputs are repeated by the events that end them. They are joined while they wait, and left out
//! beyond [`PIECES`], with a notification that says so. Everything else is kept up to [`MOST`]; a front end that lets
//! more than that lie is gone.

use std::collections::VecDeque;

use ipc::id::{AgentId, ConversationId};
use protocol::rpc::{self, Notification, NotificationForm, Passing};

/// How many bytes may wait before pieces of text are left out.
const PIECES: usize = 1 << 20;

/// How many bytes may wait at all. What is added last may exceed it.
const MOST: usize = 64 << 20;

/// The front end reads nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overflow;

/// Lines that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: VecDeque<OutboxItem>,
    bytes: usize,
}

#[derive(Debug)]
enum OutboxItem {
    /// A line as it will be written.
    Line(String),
    /// A piece of text, which may still grow.
    Piece(ConversationId, Passing),
}

impl OutboxItem {
    /// Its cost; that of a piece but for its text is small, and not counted twice.
    fn bytes(&self) -> usize {
        match self {
            Self::Line(line) => line.len(),
            Self::Piece(conversation, piece) => 64 + conversation.as_str().len() + text(piece).len(),
        }
    }
}

impl Outbox {
    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether so much waits that nobody should be listened to: each request has an answer, which would wait too.
    pub(super) const fn is_crowded(&self) -> bool {
        self.bytes >= MOST / 2
    }

    /// Adds a line.
    pub(super) fn push(&mut self, line: String) -> Result<(), Overflow> {
        if self.bytes >= MOST {
            return Err(Overflow);
        }
        self.add(OutboxItem::Line(line));
        Ok(())
    }

    /// Adds a piece of text: to the one before, if it goes on with it.
    pub(super) fn push_piece(&mut self, conversation: ConversationId, piece: Passing) {
        let piece = if self.bytes >= PIECES { skipped(piece) } else { piece };
        if let Some(OutboxItem::Piece(last, before)) = self.queue.back_mut()
            && *last == conversation
        {
            let added = text(&piece).len();
            match joined(before, piece) {
                None => self.bytes += added,
                Some(piece) => self.add(OutboxItem::Piece(conversation, piece)),
            }
        } else {
            self.add(OutboxItem::Piece(conversation, piece));
        }
    }

    /// Takes the next line; `None` where there is none. An error is that of a notification that cannot be serialised.
    pub(super) fn pop(&mut self, form: NotificationForm) -> Option<serde_json::Result<String>> {
        let item = self.queue.pop_front()?;
        self.bytes -= item.bytes();
        Some(match item {
            OutboxItem::Line(line) => Ok(line),
            OutboxItem::Piece(conversation_id, kind) => {
                rpc::notification(&Notification::Passing { conversation_id, kind }, form)
            }
        })
    }

    fn add(&mut self, item: OutboxItem) {
        self.bytes += item.bytes();
        self.queue.push_back(item);
    }
}

fn text(piece: &Passing) -> &str {
    match piece {
        Passing::TextDelta { text, .. }
        | Passing::ThinkingDelta { text, .. }
        | Passing::OutputDelta { text, .. } => text,
        _ => "",
    }
}

/// A piece of text as one that was left out.
fn skipped(piece: Passing) -> Passing {
    let bytes = u64::try_from(text(&piece).len()).unwrap_or(u64::MAX);
    match piece {
        Passing::TextDelta { agent, .. }
        | Passing::ThinkingDelta { agent, .. }
        | Passing::OutputDelta { agent, .. } => Passing::DeltasSkipped { agent, bytes },
        other => other,
    }
}

fn agent(piece: &Passing) -> Option<&AgentId> {
    match piece {
        Passing::TextDelta { agent, .. }
        | Passing::ThinkingDelta { agent, .. }
        | Passing::OutputDelta { agent, .. }
        | Passing::DeltasSkipped { agent, .. } => Some(agent),
        Passing::ApprovalClosed { .. } | Passing::RewindPreview(_) | Passing::ConversationClosed { .. } => {
            None
        }
    }
}

/// Joins a piece to the one before it, or gives it back.
fn joined(before: &mut Passing, piece: Passing) -> Option<Passing> {
    if agent(before) != agent(&piece) {
        return Some(piece);
    }
    match (before, piece) {
        (Passing::TextDelta { text, .. }, Passing::TextDelta { text: more, .. })
        | (Passing::ThinkingDelta { text, .. }, Passing::ThinkingDelta { text: more, .. }) => {
            text.push_str(&more);
        }
        (Passing::OutputDelta { call, text, .. }, Passing::OutputDelta { call: same, text: more, .. })
            if *call == same =>
        {
            text.push_str(&more);
        }
        (Passing::DeltasSkipped { bytes, .. }, Passing::DeltasSkipped { bytes: more, .. }) => {
            *bytes = bytes.saturating_add(more);
        }
        (_, piece) => return Some(piece),
    }
    None
}

#[cfg(test)]
mod tests {
    use ipc::id::CallId;

    use super::*;

    fn all(outbox: &mut Outbox) -> Vec<String> {
        std::iter::from_fn(|| outbox.pop(NotificationForm::Typed)).map(Result::unwrap).collect()
    }

    fn output(call: u64, text: &str) -> Passing {
        Passing::OutputDelta { agent: AgentId::root(), call: CallId(call), text: text.to_owned() }
    }

    fn said(agent: &str, text: &str) -> Passing {
        Passing::TextDelta { agent: agent.into(), text: text.to_owned() }
    }

    fn thought(text: &str) -> Passing {
        Passing::ThinkingDelta { agent: AgentId::root(), text: text.to_owned() }
    }

    #[test]
    fn pieces_that_go_on_with_each_other_are_one_line() {
        let mut outbox = Outbox::default();
        for (conversation, piece) in [
            ("a", output(1, "x")),
            ("a", output(1, "y")),
            ("a", output(2, "z")),
            ("b", output(2, "z")),
            ("b", said("1", "t")),
            ("b", said("1.1", "t")),
            ("b", thought("t")),
        ] {
            outbox.push_piece(conversation.into(), piece);
        }
        outbox.push("line".to_owned()).unwrap();
        outbox.push_piece("b".into(), thought("u"));
        let lines = all(&mut outbox);
        assert_eq!(lines.len(), 8, "{lines:#?}");
        assert!(lines[0].contains(r#""text":"xy""#), "{}", lines[0]);
        assert_eq!((outbox.bytes, outbox.is_empty()), (0, true));
    }

    #[test]
    fn a_slow_reader_loses_pieces_and_is_told_and_keeps_every_line() {
        let mut outbox = Outbox::default();
        let mebibyte = "x".repeat(1 << 20);
        for _ in 0..200 {
            outbox.push_piece("a".into(), output(1, &mebibyte));
        }
        outbox.push("event".to_owned()).unwrap();
        outbox.push_piece("a".into(), output(1, "lost"));
        assert!(outbox.bytes < 2 * PIECES);
        let lines = all(&mut outbox);
        let skipped = |line: &str| line.contains("event/deltasSkipped");
        assert_eq!(lines.iter().map(|line| skipped(line)).collect::<Vec<_>>(), [false, true, false, true]);
        assert!(lines[1].contains(&format!(r#""bytes":{}"#, 199 << 20)), "{}", lines[1]);
        assert!(lines[2] == "event" && lines[3].contains(r#""bytes":4"#), "{}", lines[3]);
        outbox.push_piece("a".into(), output(1, "goes on"));
        assert!(all(&mut outbox)[0].contains("goes on"));
    }

    #[test]
    fn a_reader_that_lets_everything_lie_is_gone() {
        let mut outbox = Outbox::default();
        let large = "x".repeat(MOST);
        assert_eq!(outbox.push(large), Ok(()), "one line may be as large as it is");
        assert_eq!(outbox.push("one more".to_owned()), Err(Overflow));
    }
}
