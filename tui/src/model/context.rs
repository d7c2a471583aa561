//! Contents of an agent's context window, with an estimated number of tokens for each piece.
//!
//! Providers count only the tokens of whole prompts. Each piece is estimated from its number of bytes, and the
//! estimates are then scaled to the provider's count.

use std::collections::BTreeMap;

use ipc::id::{CallId, EventId};
use protocol::event::{CompactionCause, EventKind, SessionEvent};
use serde_json::Value;

use crate::tool_summary::ToolSummary;

/// Approximate number of tokens of a picture.
const PICTURE: u64 = 1_500;

/// Maximum number of characters of a message or a command that are kept as a name.
const LONGEST: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PieceKind {
    Fixed,
    Added,
    Summary,
    Message,
    Answer,
    Thinking,
    Calls,
    Files,
    Output,
    /// Results of all tools except commands.
    Results,
}

impl PieceKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Fixed => "system prompt and tools",
            Self::Added => "instructions and surroundings",
            Self::Summary => "summary of the conversation before",
            Self::Message => "your messages",
            Self::Answer => "answers",
            Self::Thinking => "thinking",
            Self::Calls => "arguments of calls",
            Self::Files => "files that were read or changed",
            Self::Output => "output of commands",
            Self::Results => "results of other tools",
        }
    }

    const fn is_summarised(self) -> bool {
        !matches!(self, Self::Fixed | Self::Added)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ContextPiece {
    pub kind: PieceKind,
    /// Name for display: a call, a source, or the beginning of a message.
    pub name: String,
    /// File that a call read or changed; `None` if there is none.
    pub file: Option<String>,
    /// Name of the tool; `None` if the piece is neither a call nor a result.
    pub tool: Option<String>,
    pub tokens: u64,
    /// Number of the user's messages before the piece.
    pub turn: usize,
    event: EventId,
}

#[derive(Clone, Debug)]
struct CallWords {
    tool: String,
    summary: String,
    file: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Context {
    pieces: Vec<ContextPiece>,
    calls: BTreeMap<CallId, CallWords>,
    messages: Vec<(EventId, String)>,
    taken_back: Vec<ContextPiece>,
}

impl Context {
    pub(crate) fn pieces(&self) -> &[ContextPiece] {
        &self.pieces
    }

    pub(crate) fn message(&self, turn: usize) -> Option<&str> {
        self.messages.get(turn.checked_sub(1)?).map(|(_, text)| text.as_str())
    }

    pub(crate) fn summarised(&self) -> u64 {
        self.pieces.iter().filter(|piece| piece.kind.is_summarised()).map(|piece| piece.tokens).sum()
    }

    pub(crate) fn follow(&mut self, event: &SessionEvent) {
        let id = event.id;
        match &event.kind {
            EventKind::PromptFixed(fixed) => {
                if let Some(system) = &fixed.system {
                    self.pieces.retain(|piece| piece.kind != PieceKind::Fixed);
                    let tools: u64 = fixed.tools.iter().map(of_tool).sum();
                    self.add(id, PieceKind::Fixed, "system prompt", tokens(system));
                    self.add(id, PieceKind::Fixed, &format!("{} tools", fixed.tools.len()), tools);
                }
                if fixed.new_context.is_some() {
                    self.pieces.retain(|piece| piece.kind != PieceKind::Thinking);
                }
            }
            EventKind::UserMessage { text, images } => {
                let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("(a picture)");
                let first: String = first.chars().take(LONGEST).collect();
                self.messages.push((id, first.clone()));
                self.add(id, PieceKind::Message, &first, tokens(text) + pictures(images.len()));
            }
            EventKind::ContextAdded { source, text } => {
                self.add(id, PieceKind::Added, source, tokens(text));
            }
            EventKind::AssistantMessage(message) => {
                for block in &message.content {
                    let (kind, size) = of_block(block.get());
                    self.add(id, kind, kind.as_str(), size);
                }
            }
            EventKind::ToolCallStarted { call, name, input, .. } => {
                let words = CallWords {
                    tool: name.clone(),
                    summary: ToolSummary::new(name, input.get()).one_line().chars().take(LONGEST).collect(),
                    file: file(input.get()),
                };
                self.calls.insert(*call, words);
            }
            EventKind::ToolCallFinished { call, content, images, .. } => {
                self.result(id, *call, tokens(content) + pictures(images.len()));
            }
            EventKind::ContextCompacted(compacted) => {
                self.pieces.retain(|piece| piece.kind == PieceKind::Fixed);
                self.messages.clear();
                let size = compacted.first_message.iter().map(|text| tokens(text)).sum();
                let kind = match compacted.cause {
                    CompactionCause::Clear => PieceKind::Added,
                    _ => PieceKind::Summary,
                };
                self.add(id, kind, kind.as_str(), size);
            }
            EventKind::Rewound(done) => match done.target.to {
                Some(to) if done.target.scope.has_conversation() => {
                    self.messages.retain(|(said, _)| *said < to);
                    let is_after = |piece: &mut ContextPiece| piece.event >= to && piece.kind.is_summarised();
                    self.taken_back = self.pieces.extract_if(.., is_after).collect();
                }
                Some(_) => self.taken_back.clear(),
                None => {
                    let back = std::mem::take(&mut self.taken_back);
                    let said = back.iter().filter(|piece| piece.kind == PieceKind::Message);
                    self.messages.extend(said.map(|piece| (piece.event, piece.name.clone())));
                    self.pieces.extend(back);
                }
            },
            _ => {}
        }
    }

    fn result(&mut self, event: EventId, call: CallId, size: u64) {
        let Some(CallWords { tool, summary, file }) = self.calls.remove(&call) else {
            return self.add(event, PieceKind::Results, "a call", size);
        };
        let kind = match tool.as_str() {
            "shell_exec" => PieceKind::Output,
            _ if file.is_some() => PieceKind::Files,
            _ => PieceKind::Results,
        };
        self.add(event, kind, &summary, size);
        if let Some(piece) = self.pieces.last_mut() {
            (piece.tool, piece.file) = (Some(tool), file);
        }
    }

    fn add(&mut self, event: EventId, kind: PieceKind, name: &str, tokens: u64) {
        let (name, turn) = (name.to_owned(), self.messages.len());
        self.pieces.push(ContextPiece { kind, name, file: None, tool: None, tokens, turn, event });
    }
}

/// Returns the estimated number of tokens of a text. The supervisor uses the same estimate.
fn tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let count = ascii.div_ceil(3) + (text.len() - ascii).div_ceil(2);
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn pictures(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(PICTURE)
}

fn of_tool(tool: &protocol::event::RecordedTool) -> u64 {
    serde_json::to_string(tool).map_or(0, |json| tokens(&json))
}

/// Returns the kind of a content block of a reply, and the estimated number of tokens.
fn of_block(json: &str) -> (PieceKind, u64) {
    let block: Value = serde_json::from_str(json).unwrap_or(Value::Null);
    let text = |name: &str| block.get(name).and_then(Value::as_str).map(tokens);
    match block.get("type").and_then(Value::as_str) {
        Some("text") => (PieceKind::Answer, text("text").unwrap_or_default()),
        Some("thinking") => (PieceKind::Thinking, text("thinking").unwrap_or_default()),
        Some("redacted_thinking") => (PieceKind::Thinking, tokens(json)),
        Some("tool_use") => (PieceKind::Calls, block.get("input").map_or(0, |i| tokens(&i.to_string()))),
        _ => (PieceKind::Results, tokens(json)),
    }
}

fn file(input: &str) -> Option<String> {
    let input: Value = serde_json::from_str(input).ok()?;
    input.get("path").and_then(Value::as_str).map(|path| path.chars().take(LONGEST).collect())
}
