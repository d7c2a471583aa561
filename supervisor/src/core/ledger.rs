//! What is known of a session without asking the model: what the user said, which files were touched, and what the model
//! said of it all last.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use ipc::path::WirePath;
use ipc::tool::{ToolCall, ToolOutput};

/// What the user said, and what calls that succeeded did to files.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    said: Vec<String>,
    /// What the model said last of all that was before.
    summary: Option<String>,
    files: BTreeMap<String, Deeds>,
    /// Commands that may have changed files too.
    commands: u64,
    /// How many deeds were noted: what was touched last is worth most.
    clock: u64,
}

/// What was done to a file.
#[derive(Debug, Default)]
struct Deeds {
    reads: u64,
    /// Whether it was made here.
    created: bool,
    writes: u64,
    edits: u64,
    replacements: u64,
    /// Its size after the last change.
    bytes: u64,
    last: u64,
}

impl Ledger {
    /// Keeps what the user said.
    pub(super) fn hear(&mut self, text: &str) {
        self.said.push(text.to_owned());
    }

    /// What the user said, in order.
    pub(super) fn said(&self) -> &[String] {
        &self.said
    }

    /// Keeps the model's summary of everything before.
    pub(super) fn sum_up(&mut self, summary: &str) {
        self.summary = Some(summary.to_owned());
    }

    /// The model's last summary.
    pub(super) fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    /// Keeps what a call that succeeded did.
    pub(super) fn note(&mut self, tool: &ToolCall, output: &ToolOutput, project: &Path) {
        self.clock += 1;
        match (tool, output) {
            (ToolCall::ReadFile(call), ToolOutput::File(_) | ToolOutput::Image(_)) => {
                self.file(&call.path, project).reads += 1;
            }
            (ToolCall::ShellExec(_), ToolOutput::Command(_)) if tool.may_write() => self.commands += 1,
            (_, ToolOutput::Written(written)) => {
                for file in &written.files {
                    let deeds = self.file(&file.path, project);
                    deeds.bytes = file.bytes;
                    deeds.created |= file.created;
                    match (file.created, file.replacements) {
                        (true, _) => {}
                        (false, 0) => deeds.writes += 1,
                        (false, replacements) => {
                            deeds.edits += 1;
                            deeds.replacements = deeds.replacements.saturating_add(replacements);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn file(&mut self, path: &WirePath, project: &Path) -> &mut Deeds {
        let path = project.join(path.as_path());
        let shown = path.strip_prefix(project).unwrap_or(&path).display().to_string();
        let deeds = self.files.entry(shown).or_default();
        deeds.last = self.clock;
        deeds
    }

    /// A line for each file: first those that were changed, of either kind the latest first.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by_key(|(_, deeds)| (!deeds.changed(), std::cmp::Reverse(deeds.last)));
        files.into_iter().map(|(path, deeds)| format!("- {path}: {}", deeds.line())).collect()
    }

    /// How many commands ran that may have changed files too.
    pub(super) const fn commands(&self) -> u64 {
        self.commands
    }
}

impl Deeds {
    const fn changed(&self) -> bool {
        self.created || self.writes + self.edits > 0
    }

    fn line(&self) -> String {
        let mut parts = Vec::new();
        if self.created {
            parts.push("created".to_owned());
        }
        if self.writes > 0 {
            parts.push(format!("written {}", times(self.writes)));
        }
        if self.edits > 0 {
            parts.push(format!("edited {} ({} replacements)", times(self.edits), self.replacements));
        }
        if self.reads > 0 {
            parts.push(format!("read {}", times(self.reads)));
        }
        let mut line = parts.join(", ");
        if self.changed() {
            // A String takes every write.
            let _ = write!(line, "; {} bytes after the last change", self.bytes);
        }
        line
    }
}

fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        number => format!("{number} times"),
    }
}

#[cfg(test)]
mod tests {
    use ipc::tool::{ReadFile, WriteFile, Written, WrittenFile};

    use super::*;
    use crate::core::tests::script::{command, file};

    fn read(path: &str) -> ToolCall {
        ToolCall::ReadFile(ReadFile { path: path.into(), offset: None, limit: None })
    }

    fn written(path: &str, created: bool, replacements: u64) -> (ToolCall, ToolOutput) {
        let tool = ToolCall::WriteFile(WriteFile { path: path.into(), content: String::new() });
        let file = WrittenFile { path: path.into(), created, bytes: 7, replacements, change: None };
        (tool, ToolOutput::Written(Written { files: vec![file] }))
    }

    fn output(outcome: ipc::message::CallOutcome) -> ToolOutput {
        match outcome {
            ipc::message::CallOutcome::Done(output) => output,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_file_has_a_line_and_changed_ones_come_first() {
        let (mut ledger, project) = (Ledger::default(), Path::new("/p"));
        let mut did = |(tool, output): (ToolCall, ToolOutput)| ledger.note(&tool, &output, project);
        for path in ["src/a.rs", "/p/src/a.rs", "/etc/hosts"] {
            did((read(path), output(file("x"))));
        }
        did(written("/p/new.rs", true, 0));
        did(written("/p/src/a.rs", false, 0));
        did(written("/p/new.rs", false, 3));
        did(written("/p/new.rs", false, 2));
        insta::assert_snapshot!(ledger.lines().join("\n"), @r"
        - new.rs: created, edited twice (5 replacements); 7 bytes after the last change
        - src/a.rs: written once, read twice; 7 bytes after the last change
        - /etc/hosts: read once
        ");
    }

    #[test]
    fn commands_that_only_read_are_not_counted() {
        let mut ledger = Ledger::default();
        for access in [ipc::tool::Access::Read, ipc::tool::Access::Standing, ipc::tool::Access::Write] {
            let call = ipc::tool::ShellExec {
                command: "make".to_owned(),
                access,
                network: None,
                cwd: None,
                timeout_ms: None,
            };
            ledger.note(&ToolCall::ShellExec(call), &output(command(1, "")), Path::new("/p"));
        }
        assert_eq!(ledger.commands(), 2);
    }
}
