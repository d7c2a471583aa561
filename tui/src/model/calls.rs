//! Tool calls in the transcript.

use ipc::path::WirePath;
use protocol::event::{FileDiff, ToolCallStatus};
use ratatui::style::Modifier;
use serde_json::Value;

use super::block::Block;
use super::call_end::CommandEnd;
use super::changes::of_call;
use super::look::Look;
use super::part::{Fold, Part};
use super::reads::FinishedRead;
use crate::diff::Diff;
use crate::text::{Ink, Output, SafeText, Styled, Tone};
use crate::tool_summary::{ToolSummary, edits, text};

/// Maximum number of rows of a diff or a new file that are shown while output is folded.
const CHANGE: usize = 12;

/// Number of rows at the end of a command's output that are shown while the output is folded.
const OUTPUT: usize = 8;

/// Maximum size in bytes of a call's output that is kept; earlier output is dropped.
const KEPT: usize = 256 << 10;

/// Minimum duration of a call, in milliseconds, for the row to show it.
const TOLD_MS: u64 = 100;

#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state among others")]
pub(crate) struct Call {
    pub block: usize,
    name: String,
    summary: ToolSummary,
    /// Changes that the call is to make, taken from its arguments.
    wanted: Vec<FileDiff>,
    /// Words about the answer to the call's approval request, for its first row: `allowed by you`.
    answer: String,
    /// True if the call was refused. Its first row shows the reason, so the result is left out.
    pub refused: bool,
    pub is_agent: bool,
    /// True if the sandbox denied the call an access and the person did not allow it afterwards.
    pub left_denied: bool,
    /// True while the person is asked if this command, which was denied an access, may run again.
    pub after_denial: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending<'a> {
    pub status: ToolCallStatus,
    pub content: &'a str,
    pub duration_ms: u64,
    /// Changes that the call made; empty if unknown.
    pub diffs: &'a [FileDiff],
}

impl Call {
    pub(crate) fn is_command(&self) -> bool {
        self.name == "shell_exec"
    }

    /// Returns a call and its block. The caller sets `block`, the index of that block.
    pub(crate) fn started(name: &str, input: &str) -> (Self, Block) {
        let summary = ToolSummary::new(name, input);
        let input: Value = serde_json::from_str(input).unwrap_or(Value::Null);
        let call = Self {
            block: 0,
            name: name.to_owned(),
            summary,
            wanted: wanted(name, &input),
            answer: String::new(),
            refused: false,
            is_agent: false,
            left_denied: false,
            after_denial: false,
        };
        let mut parts = vec![Part::styled(call.head(), Look::Tool)];
        parts.extend(detail(name, &input));
        // Output goes to the last part.
        parts.push(Part::output(Output::default()).folded(Fold::Tail(OUTPUT)));
        (call, Block::of(parts))
    }

    pub(crate) fn summary(&self) -> String {
        self.summary.one_line()
    }

    pub(crate) fn command(&self) -> Option<&str> {
        let is_shown =
            |object: &&str| self.name == "shell_exec" && !object.is_empty() && !object.contains('\n');
        Some(self.summary.object()).filter(is_shown)
    }

    pub(crate) fn printed(block: &mut Block, text: &str) {
        if let Some(output) = block.parts.last_mut() {
            output.push(text);
            output.keep_last(KEPT);
        }
    }

    pub(crate) fn answered(&mut self, block: &mut Block, answer: &str) {
        self.answer = format!(" · {answer}");
        if let Some(head) = block.parts.first_mut().filter(|_| !self.is_agent) {
            head.replace(self.head(), Look::Tool);
        }
    }

    pub(crate) fn runs_again(&mut self, block: &mut Block) {
        self.after_denial = false;
        if let Some(output) = block.parts.last_mut() {
            *output = Part::new(SafeText::exact(""), Look::Output).folded(Fold::Tail(OUTPUT));
        }
    }

    /// Returns the result of a call without its last `explanation_bytes`, which explain a denial to the language model.
    pub(crate) fn without_explanation(content: &str, explanation_bytes: Option<u64>) -> &str {
        let bytes = usize::try_from(explanation_bytes.unwrap_or(0)).ok();
        let rest = bytes.and_then(|bytes| content.get(..content.len().checked_sub(bytes)?));
        rest.unwrap_or(content)
    }

    pub(crate) fn finished(&self, block: &mut Block, ending: &Ending<'_>) {
        let done = ending.status == ToolCallStatus::Completed;
        let end = if self.is_command() {
            CommandEnd::of(ending.status, ending.content)
        } else {
            CommandEnd { output: ending.content, words: None }
        };
        let lasted = duration(ending.duration_ms);
        let words = match ending.status {
            // The row with the answer reports the denial.
            _ if self.refused => String::new(),
            ToolCallStatus::Completed if ending.duration_ms < TOLD_MS => String::new(),
            ToolCallStatus::Completed => format!(" · {lasted}"),
            status => {
                let (words, after) = match &end.words {
                    Some(words) => (words.clone(), " ·"),
                    None => (status.to_string(), " after"),
                };
                if ending.duration_ms < TOLD_MS {
                    format!(" · {words}")
                } else {
                    format!(" · {words}{after} {lasted}")
                }
            }
        };
        let change = self.change(ending.diffs);
        let are_known = ending.diffs.iter().any(|file| file.first_line.is_some());
        let counts = change.as_ref().filter(|_| done && are_known).map(Diff::counts);
        if self.is_agent {
            // The sub-agent's row reports its end.
            if let Some(output) = block.parts.last_mut() {
                *output = Part::output(Output::new(ending.content)).folded(Fold::Told);
            }
            return;
        }
        if let Some(head) = block.parts.first_mut() {
            let (mark, ink) = match ending.status {
                ToolCallStatus::Completed => ("✓", Ink::Plain),
                ToolCallStatus::Denied => ("✗", Ink::Blocked),
                _ if self.refused || self.left_denied => ("✗", Ink::Blocked),
                ToolCallStatus::Failed | ToolCallStatus::Interrupted => ("✗", Ink::Failed),
            };
            let head_words = match counts {
                Some(counts) => self.summary.head_with(&counts.to_string()),
                None => self.summary.head(),
            };
            // The text of a failed command has the same style as that of a successful one.
            let mut row = self.row(mark, ink, &head_words);
            row.append(SafeText::line(&words).all(), Tone::of(ink));
            head.replace(row, Look::Tool);
        }
        // A change is shown as a diff. File content that the model read is hidden; errors and output of commands are
        // shown.
        let content = if self.refused || done && self.changes_files() { "" } else { end.output };
        let is_told = done && !self.is_command();
        let fold = match self.as_read(ending) {
            Some(_) => Fold::Told,
            None if is_told => Fold::Head(0),
            None => Fold::Tail(OUTPUT),
        };
        if let Some(output) = block.parts.last_mut() {
            *output = Part::output(Output::new(content)).folded(fold);
        }
        if let Some(change) = change.filter(|change| !change.is_empty()) {
            block.parts.insert(1, Part::diff(change).folded(Fold::Head(CHANGE)));
        }
    }

    /// Returns a summary for a row that several reads share, if the call was a successful read; else `None`.
    pub(crate) fn as_read(&self, ending: &Ending<'_>) -> Option<FinishedRead> {
        let only_reads = matches!(self.name.as_str(), "read_file" | "list_directory" | "search_files");
        (only_reads && ending.status == ToolCallStatus::Completed).then(|| FinishedRead {
            verb: self.summary.verb().to_owned(),
            object: self.summary.object().to_owned(),
            lines: ending.content.lines().count(),
        })
    }

    /// Returns a diff of the changes that the call made, else of those in its arguments; `None` without changes.
    fn change(&self, made: &[FileDiff]) -> Option<Diff> {
        let files = if made.is_empty() { self.wanted.as_slice() } else { made };
        (!files.is_empty()).then(|| of_call(files))
    }

    fn changes_files(&self) -> bool {
        matches!(self.name.as_str(), "write_file" | "edit_file")
    }

    /// Returns the first row of a running call.
    fn head(&self) -> Styled {
        self.row("→", Ink::Plain, &self.summary.head())
    }

    /// Returns the first row of a call: a mark, words about the call with a bold verb, and the person's answer.
    fn row(&self, mark: &str, ink: Ink, words: &str) -> Styled {
        let (verb, object) = words.split_at(if words.starts_with(self.summary.verb()) {
            self.summary.verb().len()
        } else {
            0
        });
        let mut row = Styled::default();
        for (text, tone) in [
            (mark, Tone::of(ink)),
            (" ", Tone::default()),
            (verb, Tone::with(Modifier::BOLD)),
            (object, Tone::default()),
            (&self.answer, Tone::default()),
        ] {
            row.append(SafeText::line(text).all(), tone);
        }
        row
    }
}

pub(super) fn duration(ms: u64) -> String {
    if ms < 10_000 { format!("{}.{} s", ms / 1000, ms % 1000 / 100) } else { format!("{} s", ms / 1000) }
}

/// Returns a part with the input of a call if one line cannot show all of it; else `None`.
fn detail(name: &str, input: &Value) -> Option<Part> {
    let folded = |text: &str, look| Part::new(SafeText::exact(text), look).folded(Fold::Head(CHANGE));
    match name {
        "shell_exec" => {
            let command = text(input, "command").filter(|command| command.trim_end().contains('\n'))?;
            Some(folded(command, Look::Command))
        }
        _ => None,
    }
}

/// Returns the changes in the arguments of a call: new content of a file, or replaced strings.
fn wanted(name: &str, input: &Value) -> Vec<FileDiff> {
    let path = WirePath::from(text(input, "path").unwrap_or_default());
    let file = |old_text, new_text| FileDiff { path: path.clone(), first_line: None, old_text, new_text };
    match name {
        "write_file" => {
            text(input, "content").map(|content| file(None, content.to_owned())).into_iter().collect()
        }
        "edit_file" => edits(input).into_iter().map(|(old, new)| file(Some(old), new)).collect(),
        _ => Vec::new(),
    }
}
