//! Differences between old and new files for the person who approves a change, computed from the exact bytes of the change.

use std::fmt::Write;
use std::time::{Duration, Instant};

use ipc::effect::{FileEffect, FileState, Patch};
use protocol::approval::{FileChange, FileChanges};

use crate::hunks::unified_diff;

/// Time limit for comparing lines. After it, everything between the equal beginning and end is shown as replaced.
const TIME: Duration = Duration::from_secs(2);

/// Returns the change of each file for display.
pub(super) fn file_changes(patch: &Patch) -> FileChanges {
    let changed = |file: &FileEffect| Some((file.path.clone(), file_change(file)?));
    FileChanges(patch.files.iter().filter_map(changed).collect())
}

fn file_change(file: &FileEffect) -> Option<FileChange> {
    Some(match (&file.old, &file.new) {
        (None, Some(new)) => FileChange::Add { content: content(new) },
        (Some(old), None) => FileChange::Delete { content: content(old) },
        (Some(old), Some(new)) => FileChange::Update { unified_diff: diff(old, new), move_path: None },
        (None, None) => return None,
    })
}

fn content(state: &FileState) -> String {
    readable(&state.bytes)
}

fn diff(old: &FileState, new: &FileState) -> String {
    readable(&unified_diff(&old.bytes, &new.bytes, Instant::now() + TIME))
}

/// Converts bytes to text; bytes that are not UTF-8 become `\xNN`.
fn readable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(old: Option<&[u8]>, new: Option<&[u8]>) -> FileChange {
        let state = |bytes: &[u8]| FileState { bytes: bytes.to_vec(), mode: 0o644 };
        let (old, new) = (old.map(state), new.map(state));
        let file = FileEffect { path: "/p/f".into(), old, new, replacements: 0 };
        file_changes(&Patch { files: vec![file] }).0.pop_first().unwrap().1
    }

    #[test]
    fn what_is_shown_is_made_of_the_bytes() {
        let shown = change(Some(b"a\nb\xff\nc"), Some(b"a\nB\nc\n"));
        let unified_diff =
            "@@ -1,3 +1,3 @@\n a\n-b\\xff\n-c\n\\ No newline at end of file\n+B\n+c\n".to_owned();
        assert_eq!(shown, FileChange::Update { unified_diff, move_path: None });
        assert_eq!(change(None, Some(b"x\xc3")), FileChange::Add { content: "x\\xc3".to_owned() });
        assert_eq!(change(Some(b"x\n"), None), FileChange::Delete { content: "x\n".to_owned() });
    }
}
