//! Facts of a session that are known without asking the model: the user's words, the files, and the last summary. All
//! facts are derived from the agent's own events, so that a resumed session knows the same facts.

use std::collections::{BTreeMap, BTreeSet};

use gate::tools::READ_FILE;
use ipc::id::CallId;
use ipc::path::WirePath;
use ipc::tool::{Access, ShellExec};
use protocol::event::{CompactionCause, EventKind, FileDiff, Location, ToolCallStatus, ToolKind};
use serde_json::value::RawValue;

use super::summary;

#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::core) struct Ledger {
    said: Vec<String>,
    /// The model's last summary; `None` before the first one.
    summary: Option<String>,
    begun: BTreeMap<CallId, BegunCall>,
    files: BTreeMap<String, Deeds>,
    /// Number of commands that may have changed files.
    commands: u64,
    /// Number of accesses to files so far, to sort the files by their latest access.
    clock: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum BegunCall {
    Read(Vec<WirePath>),
    Edit(Vec<WirePath>),
    Command,
}

/// Accesses of the agent to one file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Deeds {
    reads: u64,
    /// True if the session created the file.
    created: bool,
    changes: u64,
    last: u64,
}

impl Ledger {
    /// Returns the facts in the events of an agent. Paths of files are relative to the project.
    pub(super) fn of<'a>(events: impl Iterator<Item = &'a EventKind>, project: &WirePath) -> Self {
        events.fold(Self::default(), |mut ledger, event| {
            ledger.see(event, project);
            ledger
        })
    }

    pub(super) fn see(&mut self, event: &EventKind, project: &WirePath) {
        match event {
            EventKind::UserMessage { text, .. } => self.said.push(text.clone()),
            EventKind::ContextCompacted(compacted) if compacted.cause == CompactionCause::Clear => {
                *self = Self::default();
            }
            EventKind::ContextCompacted(compacted) => {
                let words = compacted.first_message.last().and_then(|message| summary::words_of(message));
                self.summary = words.map(str::to_owned).or_else(|| self.summary.take());
            }
            EventKind::ToolCallStarted { call, name, kind, locations, input, .. } => {
                if let Some(begun) = BegunCall::of(name, *kind, locations, input) {
                    self.begun.insert(*call, begun);
                }
            }
            EventKind::ToolCallFinished { call, status, diffs, .. } => {
                if let Some(begun) = self.begun.remove(call) {
                    self.end(begun, *status, diffs, project);
                }
            }
            _ => {}
        }
    }

    pub(super) fn said(&self) -> &[String] {
        &self.said
    }

    pub(super) fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    fn end(&mut self, begun: BegunCall, status: ToolCallStatus, diffs: &[FileDiff], project: &WirePath) {
        self.clock += 1;
        match (begun, status) {
            // A command that failed or was ended may have changed files before.
            (BegunCall::Command, status) if status != ToolCallStatus::Denied => {
                self.commands += 1;
            }
            (BegunCall::Read(files), ToolCallStatus::Completed) => {
                for path in &files {
                    self.file(path, project).reads += 1;
                }
            }
            (BegunCall::Edit(named), ToolCallStatus::Completed) => {
                let made = diffs.iter().filter(|diff| diff.old_text.is_none()).map(|diff| &diff.path);
                for path in made.collect::<BTreeSet<_>>() {
                    self.file(path, project).created = true;
                }
                let changed = diffs.iter().filter(|diff| diff.old_text.is_some()).map(|diff| &diff.path);
                // If a change is too large for the event, the files that the call names count as changed.
                let untold = named.iter().filter(|_| diffs.is_empty());
                for path in changed.chain(untold).collect::<BTreeSet<_>>() {
                    self.file(path, project).changes += 1;
                }
            }
            _ => {}
        }
    }

    fn file(&mut self, path: &WirePath, project: &WirePath) -> &mut Deeds {
        let shown = path.as_path().strip_prefix(project.as_path()).unwrap_or(path.as_path());
        let deeds = self.files.entry(shown.display().to_string()).or_default();
        deeds.last = self.clock;
        deeds
    }

    /// Returns a line for each file: first the changed files, then the others, each with the latest access first.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by_key(|(_, deeds)| (!deeds.changed(), std::cmp::Reverse(deeds.last)));
        files.into_iter().map(|(path, deeds)| format!("- {path}: {}", deeds.line())).collect()
    }

    pub(super) const fn commands(&self) -> u64 {
        self.commands
    }
}

impl BegunCall {
    /// Returns the effect that a call may have on files; `None` if it has none.
    fn of(name: &str, kind: ToolKind, locations: &[Location], input: &RawValue) -> Option<Self> {
        let files = || locations.iter().map(|place| place.path.clone()).collect();
        match kind {
            ToolKind::Read if name == READ_FILE => Some(Self::Read(files())),
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move => Some(Self::Edit(files())),
            ToolKind::Execute => {
                let call = serde_json::from_str::<ShellExec>(input.get());
                let only_reads = call.is_ok_and(|call| call.access == Access::Read);
                (!only_reads).then_some(Self::Command)
            }
            _ => None,
        }
    }
}

impl Deeds {
    const fn changed(&self) -> bool {
        self.created || self.changes > 0
    }

    fn line(&self) -> String {
        let mut parts = Vec::new();
        if self.created {
            parts.push("created".to_owned());
        }
        if self.changes > 0 {
            parts.push(format!("changed {}", times(self.changes)));
        }
        if self.reads > 0 {
            parts.push(format!("read {}", times(self.reads)));
        }
        parts.join(", ")
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
    use super::*;

    fn began(call: u64, name: &str, kind: ToolKind, path: Option<&str>, input: &str) -> EventKind {
        EventKind::ToolCallStarted {
            call: CallId(call),
            tool_use: "t".into(),
            name: name.to_owned(),
            kind,
            locations: path.map(|path| Location { path: path.into(), line: None }).into_iter().collect(),
            input: RawValue::from_string(input.to_owned()).unwrap(),
        }
    }

    fn ended(call: u64, status: ToolCallStatus, diffs: Vec<FileDiff>) -> EventKind {
        EventKind::ToolCallFinished {
            call: CallId(call),
            tool_use: "t".into(),
            status,
            content: String::new(),
            explanation_bytes: None,
            duration_ms: 1,
            diffs,
            diffs_left_out: false,
            images: Vec::new(),
        }
    }

    fn diff(path: &str, old_text: Option<&str>) -> FileDiff {
        let old_text = old_text.map(str::to_owned);
        FileDiff { path: path.into(), first_line: None, old_text, new_text: "x".to_owned() }
    }

    #[test]
    fn each_file_has_a_line_and_changed_ones_come_first() {
        let mut events = Vec::new();
        let mut did = |call, kind, path, diffs| {
            let name = if kind == ToolKind::Read { READ_FILE } else { "edit_file" };
            events.extend([
                began(call, name, kind, Some(path), "{}"),
                ended(call, ToolCallStatus::Completed, diffs),
            ]);
        };
        for (call, path) in [(1, "/p/src/a.rs"), (2, "/p/src/a.rs"), (3, "/etc/hosts")] {
            did(call, ToolKind::Read, path, vec![]);
        }
        did(4, ToolKind::Edit, "/p/new.rs", vec![diff("/p/new.rs", None)]);
        did(5, ToolKind::Edit, "/p/src/a.rs", vec![diff("/p/src/a.rs", Some("y")); 2]);
        did(6, ToolKind::Edit, "/p/new.rs", vec![diff("/p/new.rs", Some("y"))]);
        // A change that is too large for the event.
        did(7, ToolKind::Edit, "/p/new.rs", vec![]);
        events.push(began(8, "edit_file", ToolKind::Edit, Some("/p/never"), "{}"));
        events.push(ended(8, ToolCallStatus::Failed, vec![]));
        insta::assert_snapshot!(Ledger::of(events.iter(), &"/p".into()).lines().join("\n"), @r"
        - new.rs: created, changed twice
        - src/a.rs: changed once, read twice
        - /etc/hosts: read once
        ");
    }

    #[test]
    fn commands_that_only_read_or_never_ran_are_not_counted() {
        let calls = [
            (r#"{"command":"ls","access":"read"}"#, ToolCallStatus::Completed),
            (r#"{"command":"make"}"#, ToolCallStatus::Completed),
            (r#"{"command":"make","access":"write"}"#, ToolCallStatus::Interrupted),
            (r#"{"command":"make","access":"write"}"#, ToolCallStatus::Denied),
        ];
        let calls = (1..).zip(calls);
        let events = calls.flat_map(|(call, (input, status))| {
            [began(call, "shell_exec", ToolKind::Execute, None, input), ended(call, status, vec![])]
        });
        let events: Vec<_> = events.collect();
        assert_eq!(Ledger::of(events.iter(), &"/p".into()).commands(), 2);
    }
}
