//! The bounded output queue. Pieces of text for a slow front end are dropped, so that memory stays limited.
//!
//! Later events repeat the text of dropped pieces. Waiting pieces are joined. Beyond [`PIECES`] bytes, pieces are
//! dropped, and a notification says so. All other lines are kept, up to [`MOST`] bytes in total. A front end that
//! leaves more unread is disconnected.

use std::collections::VecDeque;

use ipc::id::{AgentId, ConversationId};
use protocol::rpc::Passing;

/// Number of waiting bytes above which pieces of text are dropped.
const PIECES: usize = 1 << 20;

/// Maximum number of waiting bytes. The last added line may exceed this limit.
const MOST: usize = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overflow;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: VecDeque<OutboxItem>,
    bytes: usize,
}

#[derive(Debug)]
enum OutboxItem {
    Line(String),
    /// A piece of text. Later pieces may be joined to it.
    Piece(ConversationId, Passing),
}

impl OutboxItem {
    /// Returns the size in bytes that counts for the limits: of a line, or of a piece's text and id with an overhead.
    fn bytes(&self) -> usize {
        match self {
            Self::Line(line) => line.len(),
            Self::Piece(conversation, piece) => 64 + conversation.as_str().len() + text(piece).len(),
        }
    }
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// True if so many bytes wait that the server should read no further requests, because each request adds an answer.
    pub(super) const fn is_crowded(&self) -> bool {
        self.bytes >= MOST / 2
    }

    pub(super) fn push(&mut self, line: String) -> Result<(), Overflow> {
        if self.bytes >= MOST {
            return Err(Overflow);
        }
        self.add(OutboxItem::Line(line));
        Ok(())
    }

    /// Adds a piece of text, or joins it to the last item if that is a piece of the same text.
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

    /// Removes the next item and returns its line; `None` if the queue is empty. `write` makes a line from a piece, or
    /// returns `None` to leave the piece out.
    pub(super) fn pop(
        &mut self,
        mut write: impl FnMut(ConversationId, Passing) -> Option<serde_json::Result<String>>,
    ) -> Option<serde_json::Result<String>> {
        loop {
            let item = self.queue.pop_front()?;
            self.bytes -= item.bytes();
            let line = match item {
                OutboxItem::Line(line) => Some(Ok(line)),
                OutboxItem::Piece(conversation, piece) => write(conversation, piece),
            };
            if line.is_some() {
                return line;
            }
        }
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
        Passing::ApprovalClosed { .. }
        | Passing::RewindPreview(_)
        | Passing::PromptExpanded(_)
        | Passing::ConversationClosed { .. } => None,
    }
}

/// Joins a piece to the piece before it. Returns the piece if it does not continue the same text.
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
    use protocol::rpc::{self, Notification, NotificationForm};

    use super::*;

    fn all(outbox: &mut Outbox) -> Vec<String> {
        let write = |conversation_id, kind| {
            Some(rpc::notification(&Notification::Passing { conversation_id, kind }, NotificationForm::Typed))
        };
        std::iter::from_fn(|| outbox.pop(write)).map(Result::unwrap).collect()
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
