//! Descriptions of calls for an editor, from the arguments or from the change that a call made.

use std::path::Path;

use ipc::effect::Patch;
use ipc::path::WirePath;
use ipc::tool::{Change, ToolCall, Written};
use protocol::event::{FileDiff, Location, ToolKind};

use super::Invocation;

/// Maximum size of the texts in the changes of one call, in bytes.
const MOST: usize = 64 << 10;

/// Error: the changes are left out, because they are too large or not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut;

impl Invocation {
    pub const fn kind(&self) -> ToolKind {
        match self {
            Self::Worker(ToolCall::ReadFile(_) | ToolCall::ListDirectory(_)) => ToolKind::Read,
            Self::Worker(ToolCall::SearchFiles(_)) => ToolKind::Search,
            Self::Worker(ToolCall::WriteFile(_) | ToolCall::EditFile(_)) => ToolKind::Edit,
            Self::Worker(ToolCall::ShellExec(_)) => ToolKind::Execute,
            Self::Supervisor(_) | Self::Agent(_) | Self::Plan(_) | Self::Tasks(_) => ToolKind::Think,
            Self::Fetch(_) => ToolKind::Fetch,
            Self::External(_) => ToolKind::Other,
        }
    }

    /// Returns the file or directory that a call is about. Relative paths are resolved against `project`.
    pub fn locations(&self, project: &WirePath) -> Vec<Location> {
        let Self::Worker(call) = self else { return Vec::new() };
        let (path, line) = match call {
            ToolCall::ReadFile(read) => (Some(&read.path), read.offset),
            ToolCall::ListDirectory(list) => (Some(&list.path), None),
            ToolCall::SearchFiles(search) => (search.path.as_ref(), None),
            ToolCall::WriteFile(write) => (Some(&write.path), None),
            ToolCall::EditFile(edit) => (Some(&edit.path), None),
            ToolCall::ShellExec(command) => (command.cwd.as_ref(), None),
        };
        path.map(|path| Location { path: absolute(project, path), line }).into_iter().collect()
    }
}

/// Returns advice to the model for a call whose result is too long. `None` if the tool has no way to limit its result.
pub const fn how_to_get_less(call: &ToolCall) -> Option<&'static str> {
    match call {
        ToolCall::ReadFile(_) => Some("read the file in pieces, with offset and limit"),
        ToolCall::SearchFiles(_) => Some("narrow the search with path, glob or a longer pattern"),
        ToolCall::ListDirectory(_) => Some("list a directory below, or with a smaller depth"),
        ToolCall::WriteFile(_) | ToolCall::EditFile(_) | ToolCall::ShellExec(_) => None,
    }
}

pub fn diffs_of(patch: &Patch) -> Result<Vec<FileDiff>, LeftOut> {
    bounded(patch.files.iter().map(|file| of_file(&file.path, file.change())).collect::<Result<_, _>>()?)
}

pub fn diffs_told(written: &Written) -> Result<Vec<FileDiff>, LeftOut> {
    let diffs = written.files.iter().map(|file| of_file(&file.path, file.change.clone()));
    bounded(diffs.collect::<Result<_, _>>()?)
}

fn absolute(project: &WirePath, path: &WirePath) -> WirePath {
    let path: &Path = path.as_path();
    project.as_path().join(path).into()
}

fn of_file(path: &WirePath, change: Option<Change>) -> Result<FileDiff, LeftOut> {
    let Change { first_line, old, new } = change.ok_or(LeftOut)?;
    Ok(FileDiff { path: path.clone(), first_line: Some(first_line), old_text: old, new_text: new })
}

fn bounded(diffs: Vec<FileDiff>) -> Result<Vec<FileDiff>, LeftOut> {
    let length = |diff: &FileDiff| diff.old_text.as_ref().map_or(0, String::len) + diff.new_text.len();
    if diffs.iter().map(length).sum::<usize>() > MOST { Err(LeftOut) } else { Ok(diffs) }
}

#[cfg(test)]
mod tests {
    use ipc::effect::{FileEffect, FileState};
    use ipc::tool::{Edit, EditFile, ReadFile, WrittenFile};

    use super::*;

    fn edit(old: &str, new: &str) -> Invocation {
        let edit = Edit { old_string: old.to_owned(), new_string: new.to_owned(), replace_all: false };
        ToolCall::EditFile(EditFile { path: "a/b".into(), edits: vec![edit] }).into()
    }

    #[test]
    fn a_call_has_a_kind_and_absolute_places() {
        let read =
            ToolCall::ReadFile(ReadFile { path: "/x".into(), offset: Some(7), limit: None, inside: false });
        let read = Invocation::from(read);
        assert_eq!(read.kind(), ToolKind::Read);
        assert_eq!(read.locations(&"/p".into()), [Location { path: "/x".into(), line: Some(7) }]);
        let edit = edit("x", "y");
        assert_eq!(edit.kind(), ToolKind::Edit);
        assert_eq!(edit.locations(&"/p".into()), [Location { path: "/p/a/b".into(), line: None }]);
    }

    #[test]
    fn a_change_is_told_up_to_a_bound() {
        let written = |new: &str| {
            let change = Some(Change { first_line: 7, old: Some("x".to_owned()), new: new.to_owned() });
            let file = WrittenFile {
                path: "/p/f".into(),
                created: false,
                bytes: 1,
                replacements: 1,
                change,
                notes: vec![],
            };
            diffs_told(&Written { files: vec![file] })
        };
        let (old_text, new_text) = (Some("x".to_owned()), "y".to_owned());
        let diff = FileDiff { path: "/p/f".into(), first_line: Some(7), old_text, new_text };
        assert_eq!(written("y"), Ok(vec![diff]));
        assert_eq!(written(&"y".repeat(MOST - 1)).unwrap().len(), 1);
        assert_eq!(written(&"y".repeat(MOST)), Err(LeftOut), "whatever a worker says");
    }

    #[test]
    fn an_approved_change_is_told_by_its_bytes() {
        let state = |bytes: &[u8]| Some(FileState { bytes: bytes.to_vec(), mode: 0o644 });
        let file = |old, new| FileEffect { path: "/f".into(), old, new, replacements: 0 };
        let told = |old, new| diffs_of(&Patch { files: vec![file(old, new)] });
        let diff = told(state(b"a"), state(b"b")).unwrap();
        assert_eq!((diff[0].old_text.as_deref(), diff[0].new_text.as_str()), (Some("a"), "b"));
        assert_eq!(diff[0].first_line, Some(1));
        assert_eq!(told(None, state(b"\xff")), Err(LeftOut));
    }
}
