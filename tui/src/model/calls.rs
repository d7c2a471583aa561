//! Tool calls, as they are shown.

use ipc::event::ToolCallStatus;
use serde_json::Value;
use similar::TextDiff;

use super::block::Block;
use super::look::Look;
use super::part::{Fold, Part};
use crate::card::signed;
use crate::text::SafeText;
use crate::tool_summary::{ToolSummary, edits, text};

/// The rows of a diff or a new file that show while it is folded.
const CHANGE: usize = 12;

/// The last rows of a command's output that show while it is folded.
const OUTPUT: usize = 8;

/// The most bytes of a command's output that are kept while it runs.
const KEPT: usize = 256 << 10;

/// The line between two hunks.
const HUNK: &str = "⋮\n";

/// A call that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The block that shows it.
    pub block: usize,
    name: String,
    summary: ToolSummary,
    /// True if its approval was denied: a line tells a person why, and its result tells the model the same.
    pub refused: bool,
}

impl Call {
    /// A call, and the block that shows it; where that block is added is filled in by whoever adds it.
    pub(crate) fn started(name: &str, input: &str) -> (Self, Block) {
        let summary = ToolSummary::new(name, input);
        let input: Value = serde_json::from_str(input).unwrap_or(Value::Null);
        let call = Self { block: 0, name: name.to_owned(), summary, refused: false };
        let mut parts = vec![Part::new(call.head('→', ""), Look::Tool)];
        parts.extend(detail(name, &input));
        // What it prints goes to the last part.
        parts.push(Part::new(SafeText::exact(""), Look::Output).folded(Fold::Tail(OUTPUT)));
        (call, Block::of(parts))
    }

    /// The tool.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The call in one line.
    pub(crate) fn summary(&self) -> String {
        self.summary.one_line()
    }

    /// The command, of a call that runs one.
    pub(crate) fn command(&self) -> Option<&str> {
        let is_shown =
            |object: &&str| self.name == "shell_exec" && !object.is_empty() && !object.contains('\n');
        Some(self.summary.object()).filter(is_shown)
    }

    /// Shows what it printed.
    pub(crate) fn printed(block: &mut Block, text: &str) {
        if let Some(output) = block.parts.last_mut() {
            output.push(text);
            output.keep_last(KEPT);
        }
    }

    /// A result without its last bytes, which tell the model what the cards of its denials tell a person.
    pub(crate) fn without_explanation(content: &str, explanation_bytes: Option<u64>) -> &str {
        let bytes = usize::try_from(explanation_bytes.unwrap_or(0)).ok();
        let rest = bytes.and_then(|bytes| content.get(..content.len().checked_sub(bytes)?));
        rest.unwrap_or(content)
    }

    /// Shows how it ended, and its result; the cards of its denials are shown already.
    pub(crate) fn finished(
        &self,
        block: &mut Block,
        status: ToolCallStatus,
        content: &str,
        duration_ms: u64,
    ) {
        let done = status == ToolCallStatus::Completed;
        let ending = match status {
            ToolCallStatus::Completed => format!(" · {duration_ms} ms"),
            _ => format!(" · {status} after {duration_ms} ms"),
        };
        if let Some(head) = block.parts.first_mut() {
            let (mark, look) = if done { ('✓', Look::Tool) } else { ('✗', Look::ToolFailed) };
            head.replace(self.head(mark, &ending), look);
        }
        // A change was shown as a diff, and what was read is the model's to read; failures and commands are for people.
        let content = if self.refused || done && self.changes_files() { "" } else { content };
        // A sub-agent's end has a line of its own, and its transcript a view.
        let is_told = self.name == "spawn_agent" || done && self.name != "shell_exec";
        let fold = if is_told { Fold::Head(0) } else { Fold::Tail(OUTPUT) };
        if let Some(output) = block.parts.last_mut() {
            *output = Part::new(SafeText::exact(content), Look::Output).folded(fold);
        }
    }

    fn changes_files(&self) -> bool {
        matches!(self.name.as_str(), "write_file" | "edit_file")
    }

    fn head(&self, mark: char, ending: &str) -> SafeText {
        SafeText::line(&format!("{mark} {}{ending}", self.summary.head()))
    }
}

/// What a call does, where a line is not enough.
fn detail(name: &str, input: &Value) -> Option<Part> {
    let folded = |text: &str, look| Part::new(SafeText::exact(text), look).folded(Fold::Head(CHANGE));
    match name {
        "shell_exec" => {
            let command = text(input, "command").filter(|command| command.trim_end().contains('\n'))?;
            Some(folded(command, Look::Command))
        }
        "write_file" => Some(folded(&signed('+', text(input, "content")?), Look::Diff)),
        "edit_file" => {
            let diff: String = edits(input).iter().map(|(old, new)| difference(old, new)).collect();
            let diff = diff.strip_prefix(HUNK).unwrap_or(&diff);
            (!diff.is_empty()).then(|| folded(diff, Look::Diff))
        }
        _ => None,
    }
}

fn difference(old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let diff = diff.unified_diff().context_radius(3).missing_newline_hint(false).to_string();
    // The numbers of a hunk's header count in the strings of the edit: where these are in the file is unknown here.
    diff.split_inclusive('\n').map(|line| if line.starts_with("@@") { HUNK } else { line }).collect()
}
