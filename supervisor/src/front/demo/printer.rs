use std::collections::HashMap;
use std::io::{self, Write};

use ipc::denial::{Denial, Grade, Layer};
use ipc::id::CallId;
use ipc::path::WirePath;
use protocol::approval::ServerRequest;
use protocol::event::{EventKind, SessionEvent, ToolCallStatus, ToolKind};
use protocol::frontend::UiEventKind;
use serde_json::Value;

use super::card::{card, relative};
use super::ink::Ink;
use super::wrap::wrapped;
use crate::process::messages::{PlainDenial, harmless};

/// Maximum number of lines of a command's output that are shown.
const LINES: usize = 8;

pub(super) struct Printer<W> {
    out: W,
    ink: Ink,
    project: WirePath,
    words: String,
    open: HashMap<CallId, (ToolKind, String)>,
    denials: HashMap<CallId, Vec<Denial>>,
}

impl<W: Write> Printer<W> {
    pub(super) fn new(out: W, ink: Ink, project: WirePath) -> Self {
        let (words, open, denials) = Default::default();
        Self { out, ink, project, words, open, denials }
    }

    pub(super) fn print(&mut self, kind: &UiEventKind) -> io::Result<()> {
        match kind {
            UiEventKind::TextDelta { text } => {
                self.words.push_str(text);
                Ok(())
            }
            UiEventKind::Logged(event) => self.event(event),
            _ => Ok(()),
        }
    }

    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    fn event(&mut self, event: &SessionEvent) -> io::Result<()> {
        match &event.kind {
            EventKind::UserMessage { text, .. } => {
                let task = self.ink.bold(&format!("> {}", harmless(text)));
                self.line(&format!("\n{task}"))
            }
            EventKind::AssistantMessage(_) => {
                let words = std::mem::take(&mut self.words);
                self.line(&format!("\n{}", wrapped(&harmless(&words))))
            }
            EventKind::ToolCallStarted { call, name, kind, input, .. } => {
                self.open.insert(*call, (*kind, self.described(name, input.get())));
                Ok(())
            }
            EventKind::Denied { call: Some(call), denial, .. } if self.open.contains_key(call) => {
                self.denials.entry(*call).or_default().push(denial.clone());
                Ok(())
            }
            EventKind::Denied { denial, .. } => self.denied(denial),
            EventKind::ApprovalRequested { request, .. } => self.request(request),
            EventKind::ToolCallFinished { call, status, content, .. } => {
                self.finished(*call, *status, content)
            }
            EventKind::ModelFailed { message, .. } => self.line(&harmless(message)),
            _ => Ok(()),
        }
    }

    fn described(&self, name: &str, input: &str) -> String {
        let input: Value = serde_json::from_str(input).unwrap_or(Value::Null);
        let text = |key: &str| harmless(input[key].as_str().unwrap_or_default());
        let path = || relative(&WirePath::from(text("path").as_str()), &self.project);
        match name {
            "read_file" => format!("read {}", path()),
            "edit_file" => format!("edit {}", path()),
            "shell_exec" => format!("run {}", text("command")),
            _ => name.to_owned(),
        }
    }

    fn request(&mut self, request: &ServerRequest) -> io::Result<()> {
        let ServerRequest::ApplyPatchApproval(request) = request else { return Ok(()) };
        let card = harmless(&card(request, &self.project));
        let card = card.lines().map(|line| self.ink.diff(line)).collect::<Vec<_>>().join("\n");
        let answer = self.ink.bold("yes, once");
        self.line(&format!("\n{card} {answer} (the script answers here; with --tui you answer)"))
    }

    fn finished(&mut self, call: CallId, status: ToolCallStatus, content: &str) -> io::Result<()> {
        let (kind, what) = self.open.remove(&call).unwrap_or_default();
        let sign = match status {
            ToolCallStatus::Completed => self.ink.good("✓"),
            _ => self.ink.bad("✗"),
        };
        self.line(&format!("  {sign} {what}"))?;
        let denials = self.denials.remove(&call).unwrap_or_default();
        if !denials.is_empty() {
            denials.iter().try_for_each(|denial| self.denied(denial))
        } else if kind == ToolKind::Execute {
            let output = content.lines().filter(|line| !line.starts_with('['));
            output.take(LINES).try_for_each(|line| self.line(&format!("      {}", harmless(line))))
        } else {
            Ok(())
        }
    }

    fn denied(&mut self, denial: &Denial) -> io::Result<()> {
        let line = self.ink.bad(&harmless(&blocked(denial)));
        self.line(&format!("      {line}"))?;
        match PlainDenial(denial).hint() {
            Some(hint) => self.line(&format!("      hint: {}", harmless(&hint))),
            None => Ok(()),
        }
    }
}

pub(super) fn blocked(denial: &Denial) -> String {
    let Denial { layer, operation, object, grade, .. } = denial;
    let by = match layer {
        Layer::Mediation => "sandbox",
        Layer::Policy => "policy",
        _ => "kernel",
    };
    let likely = if *grade == Grade::Likely { "probably " } else { "" };
    format!("{likely}blocked by the {by} ({layer}): {operation} {object}")
}
