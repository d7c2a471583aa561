//! Differences between old and new files for the person who approves a change, computed from its exact bytes.

use std::fmt::Write;
use std::time::{Duration, Instant};

use ipc::effect::{FileEffect, FileState, Patch};
use protocol::approval::{FileChange, FileChanges, HunkRange};

use crate::hunks::hunks;
use crate::part::PatchHunks;

/// Time limit for the comparison of two texts. If it is exceeded, everything between their equal beginning and equal
/// end counts as replaced.
const TIME: Duration = Duration::from_secs(2);

/// Returns the change of each file and the hunks of all files; no hunks if only the whole change can be approved.
pub(super) fn file_changes(patch: &Patch) -> (FileChanges, Option<PatchHunks>) {
    let mut changes = FileChanges::default();
    let mut hunks = Vec::new();
    for file in &patch.files {
        let Some((change, ranges)) = file_change(file) else { continue };
        changes.0.insert(file.path.clone(), change);
        hunks.push(ranges);
    }
    (changes, PatchHunks::new(patch, hunks))
}

fn file_change(file: &FileEffect) -> Option<(FileChange, Vec<HunkRange>)> {
    let whole = |old: usize, new: usize| vec![HunkRange { old: 0..old, new: 0..new }];
    Some(match (&file.old, &file.new) {
        (None, Some(new)) => (FileChange::Add { content: content(new) }, whole(0, new.bytes.len())),
        (Some(old), None) => (FileChange::Delete { content: content(old) }, whole(old.bytes.len(), 0)),
        (Some(old), Some(new)) => {
            let hunks = hunks(&old.bytes, &new.bytes, Instant::now() + TIME);
            let unified_diff = hunks.iter().map(|hunk| readable(&hunk.text)).collect();
            let ranges = hunks.into_iter().map(|hunk| hunk.range).collect();
            (FileChange::Update { unified_diff, move_path: None }, ranges)
        }
        (None, None) => return None,
    })
}

fn content(state: &FileState) -> String {
    readable(&state.bytes)
}

/// Converts bytes to text. Each byte that is not UTF-8 becomes `\xNN`.
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
        file_changes(&Patch { files: vec![file] }).0.0.pop_first().unwrap().1
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
