//! Part of a change of files that a person approves, and the digest that binds the answer to it.

use std::collections::BTreeMap;
use std::ops::Range;

use ipc::path::WirePath;
use ipc::text::hexadecimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{FileChange, FileChanges};

/// Maximum number of bytes of a file's old, new or edited text, if a part of its change can be approved: 1 MiB.
pub const MOST_TEXT: usize = 1 << 20;

/// The part of a change of files that a person approves, out of the change that was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ChangePart {
    /// The files that change at least in part, in the order of their paths. A file that is not named stays as it is.
    pub files: Vec<FilePart>,
    /// Hexadecimal SHA-256 of lines about the approved part, each with a line feed. The first is the digest of the
    /// request. Then come for each file the line `file H`, with the path's SHA-256, and after it either `hunk H` for
    /// each approved hunk or `text H`, with the SHA-256 of what was shown.
    pub digest: String,
}

/// The approved part of the change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub enum FilePart {
    /// Some hunks of the change.
    Hunks {
        /// Path of the changed file.
        path: WirePath,
        /// Numbers of the hunks in ascending order, from 1: a hunk of an update begins at each line with `@@`, and a
        /// new or removed file is one hunk.
        hunks: Vec<usize>,
    },
    /// Another new text instead of the requested one.
    Text {
        /// Path of the changed file.
        path: WirePath,
        /// The whole new text of the file.
        text: String,
    },
}

impl FilePart {
    /// Returns the path of the changed file.
    pub const fn path(&self) -> &WirePath {
        match self {
            Self::Hunks { path, .. } | Self::Text { path, .. } => path,
        }
    }
}

impl ChangePart {
    /// Returns an approved part of the change `shown`, whose request has the digest `whole`. `None` if `files` has a
    /// file or hunk that was not shown.
    pub fn of(whole: &str, shown: &FileChanges, files: Vec<FilePart>) -> Option<Self> {
        let mut lines = format!("{whole}\n");
        for file in &files {
            let change = shown.0.get(file.path())?;
            lines += &line("file", file.path().as_bytes());
            match file {
                FilePart::Hunks { hunks, .. } => {
                    let all = change.hunks();
                    for number in hunks {
                        lines += &line("hunk", all.get(number.checked_sub(1)?)?.as_bytes());
                    }
                }
                FilePart::Text { text, .. } => lines += &line("text", text.as_bytes()),
            }
        }
        Some(Self { files, digest: hexadecimal(&Sha256::digest(lines)) })
    }
}

fn line(word: &str, bytes: &[u8]) -> String {
    format!("{word} {}\n", hexadecimal(&Sha256::digest(bytes)))
}

impl FileChange {
    /// Returns the hunks as they are shown, each with its line of `@@`. A new or removed file is one hunk: its content.
    pub fn hunks(&self) -> Vec<&str> {
        let diff = match self {
            Self::Add { content } | Self::Delete { content } => return vec![content],
            Self::Update { unified_diff, .. } => unified_diff.as_str(),
        };
        // No line inside a hunk begins with `@`.
        let mut at = 0;
        let mut starts = Vec::new();
        for line in diff.split_inclusive('\n') {
            if line.starts_with('@') {
                starts.push(at);
            }
            at += line.len();
        }
        let ends = starts.iter().skip(1).copied().chain([diff.len()]);
        starts.iter().zip(ends).filter_map(|(start, end)| diff.get(*start..end)).collect()
    }
}

/// Range of the old text that a hunk replaces, and range of the new text that replaces it, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkRange {
    /// Range in the old text.
    pub old: Range<usize>,
    /// Range in the new text.
    pub new: Range<usize>,
}

/// Returns the old bytes, with those hunks replaced for whose index (from 0) `takes` returns true. The ranges must be
/// in ascending order; a range outside its text counts as empty.
pub fn merged(old: &[u8], new: &[u8], hunks: &[HunkRange], takes: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(old.len().max(new.len()));
    let mut at = 0;
    for (_, hunk) in hunks.iter().enumerate().filter(|(n, _)| takes(*n)) {
        bytes.extend_from_slice(old.get(at..hunk.old.start).unwrap_or_default());
        bytes.extend_from_slice(new.get(hunk.new.clone()).unwrap_or_default());
        at = hunk.old.end;
    }
    bytes.extend_from_slice(old.get(at..).unwrap_or_default());
    bytes
}

/// Old and new text of a changed file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedText {
    /// The present text; empty for a new file.
    pub old: String,
    /// The requested text; empty for a removed file.
    pub new: String,
    /// The hunks in the order in which they are shown.
    pub hunks: Vec<HunkRange>,
}

impl ChangedText {
    /// Returns the old text, with those hunks replaced for whose index (from 0) `takes` returns true.
    pub fn with(&self, takes: impl Fn(usize) -> bool) -> String {
        let bytes = merged(self.old.as_bytes(), self.new.as_bytes(), &self.hunks, takes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Texts of the changed files by path, for a front end in the same process.
pub type ChangedTexts = BTreeMap<WirePath, ChangedText>;

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "@@ -1 +1 @@\n-a\n+@@ b\n@@ -9 +9 @@\n-@@ x\n+c\n\\ No newline at end of file\n";

    fn shown() -> FileChanges {
        let update = FileChange::Update { unified_diff: DIFF.to_owned(), move_path: None };
        let add = FileChange::Add { content: "@@ no hunk\n@@ of a diff".to_owned() };
        FileChanges([("/p/a".into(), update), ("/p/b".into(), add)].into())
    }

    fn hunks(path: &str, hunks: &[usize]) -> FilePart {
        FilePart::Hunks { path: path.into(), hunks: hunks.to_vec() }
    }

    #[test]
    fn a_hunk_begins_at_a_line_of_its_own_and_nowhere_else() {
        let shown = shown();
        let all = shown.0[&"/p/a".into()].hunks();
        assert_eq!(all, [&DIFF[..DIFF.find("@@ -9").unwrap()], &DIFF[DIFF.find("@@ -9").unwrap()..]]);
        assert_eq!(shown.0[&"/p/b".into()].hunks().len(), 1);
        let empty = FileChange::Update { unified_diff: String::new(), move_path: None };
        assert!(empty.hunks().is_empty());
    }

    /// Checks the digest with a computation by the text of docs/protocol.md, as a client would do it.
    #[test]
    fn the_digest_is_that_of_the_lines_that_the_documentation_names() {
        let text = FilePart::Text { path: "/p/b".into(), text: "mine\n".to_owned() };
        let part = ChangePart::of("w", &shown(), vec![hunks("/p/a", &[2]), text]).unwrap();
        let sha = |text: &str| hexadecimal(&Sha256::digest(text));
        let hunk = &DIFF[DIFF.find("@@ -9").unwrap()..];
        let lines = [
            "w\n".to_owned(),
            format!("file {}\n", sha("/p/a")),
            format!("hunk {}\n", sha(hunk)),
            format!("file {}\n", sha("/p/b")),
            format!("text {}\n", sha("mine\n")),
        ];
        assert_eq!(part.digest, sha(&lines.concat()));
    }

    #[test]
    fn parts_that_differ_have_digests_that_differ() {
        let text = |text: &str| FilePart::Text { path: "/p/a".into(), text: text.to_owned() };
        let parts = [
            vec![],
            vec![hunks("/p/a", &[])],
            vec![hunks("/p/a", &[1])],
            vec![hunks("/p/a", &[2])],
            vec![hunks("/p/a", &[1, 2])],
            vec![hunks("/p/a", &[2, 1])],
            vec![hunks("/p/a", &[1, 1])],
            vec![hunks("/p/b", &[1])],
            vec![hunks("/p/a", &[1]), hunks("/p/b", &[1])],
            vec![text("")],
            vec![text("@@ -1 +1 @@\n-a\n+@@ b\n")],
        ];
        let digests: Vec<_> =
            parts.iter().map(|part| ChangePart::of("w", &shown(), part.clone()).unwrap().digest).collect();
        for (n, digest) in digests.iter().enumerate() {
            assert!(!digests[..n].contains(digest), "{:?}", parts[n]);
        }
        assert_ne!(ChangePart::of("v", &shown(), vec![]).unwrap().digest, digests[0]);
    }

    #[test]
    fn a_part_of_what_was_not_shown_has_no_digest() {
        for files in [hunks("/p/c", &[1]), hunks("/p/a", &[0]), hunks("/p/a", &[3]), hunks("/p/b", &[2])] {
            assert_eq!(ChangePart::of("w", &shown(), vec![files.clone()]), None, "{files:?}");
        }
    }

    #[test]
    fn a_file_has_hunks_or_a_text_and_nothing_else() {
        let read = |json: &str| serde_json::from_str::<FilePart>(json).is_ok();
        assert!(read(r#"{"path":"/p/a","hunks":[1]}"#) && read(r#"{"path":"/p/a","text":""}"#));
        for json in [
            r#"{"path":"/p/a"}"#,
            r#"{"path":"/p/a","hunks":[1],"text":"x"}"#,
            r#"{"path":"/p/a","hunks":[-1]}"#,
            r#"{"path":"/p/a","hunks":["1"]}"#,
            r#"{"path":"/p/a","text":"x","mode":493}"#,
            r#"{"hunks":[1]}"#,
        ] {
            assert!(!read(json), "{json}");
        }
    }
}
