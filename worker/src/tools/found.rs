//! Matches of a search: limited in size, and sorted by path, so that the result does not depend on the order in which
//! threads find them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use grep_searcher::{Searcher, Sink, SinkMatch};
use ipc::tool::Matches;

use crate::open_call::OpenCall;

/// Maximum number of matching lines of a result.
const LINES: usize = 500;
/// Maximum size of a result: 64 KiB.
const BYTES: usize = 64 << 10;
/// Maximum number of characters of a matching line that are kept.
const LINE_CHARS: usize = 500;

#[derive(Debug, Default)]
pub struct Found {
    pub lines: Vec<String>,
    pub matches: u64,
}

/// Receiver of one file's matching lines from the searcher.
#[derive(Debug)]
pub struct Lines<'a> {
    path: &'a Path,
    open: &'a OpenCall,
    found: Found,
    binary: bool,
}

impl<'a> Lines<'a> {
    /// Creates a receiver. `path` is the name to show. The search stops when the call of `open` is cancelled.
    pub fn new(path: &'a Path, open: &'a OpenCall) -> Self {
        Self { path, open, found: Found::default(), binary: false }
    }

    /// Returns the file's matches; `None` if there are none or the file is binary.
    pub fn finish(self) -> Option<Found> {
        (self.found.matches > 0 && !self.binary).then_some(self.found)
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> io::Result<bool> {
        self.found.matches += 1;
        if self.found.lines.len() < LINES {
            let text = String::from_utf8_lossy(line.bytes());
            let number = line.line_number().unwrap_or(0);
            self.found.lines.push(format!(
                "{}:{number}:{}\n",
                in_a_line(self.path),
                clipped(text.trim_end_matches(['\r', '\n']))
            ));
        }
        Ok(!self.open.is_cancelled())
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }
}

/// Escapes control characters, so that the path stays on one line.
fn in_a_line(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.chars().map(|c| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() }).collect()
}

fn clipped(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        None => line.to_owned(),
        Some((end, _)) => format!("{} … [line cut]", &line[..end]),
    }
}

#[derive(Debug, Default)]
pub struct Kept {
    files: BTreeMap<PathBuf, Vec<String>>,
    lines: usize,
    matches: u64,
    matched_files: u64,
    streamed: usize,
    streamed_lines: usize,
}

impl Kept {
    /// Returns the lines of a file to send at once, up to a result's limits; `None` if there are none.
    pub fn stream(&mut self, found: &Found) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for line in &found.lines {
            if self.streamed_lines == LINES || self.streamed + line.len() > BYTES {
                break;
            }
            self.streamed_lines += 1;
            self.streamed += line.len();
            text.extend_from_slice(line.as_bytes());
        }
        (!text.is_empty()).then_some(text)
    }

    /// Adds a file's matches. While there are too many lines, drops the file whose path sorts last.
    pub fn add(&mut self, path: PathBuf, found: Found) {
        self.matches += found.matches;
        self.matched_files += 1;
        self.lines += found.lines.len();
        self.files.insert(path, found.lines);
        while let Some(last) = self.files.last_entry() {
            if self.lines - last.get().len() < LINES {
                break;
            }
            self.lines -= last.remove().len();
        }
    }

    /// Returns the result. `ended` is the reason for an early end of the search.
    pub fn finish(self, searched: u64, ended: Option<String>) -> Matches {
        let (mut text, mut shown) = (String::new(), 0_u64);
        for line in self.files.values().flatten().take(LINES) {
            if text.len() + line.len() > BYTES {
                break;
            }
            text.push_str(line);
            shown += 1;
        }
        let cut = (shown < self.matches)
            .then(|| format!("only {shown} of {} matching lines are shown", self.matches));
        let reasons: Vec<_> = ended.into_iter().chain(cut).collect();
        let truncated = (!reasons.is_empty())
            .then(|| format!("{}; narrow the pattern, the path or the glob", reasons.join(", and ")));
        Matches { text, matches: self.matches, files: self.matched_files, searched, truncated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, count: u64) -> Found {
        Found {
            lines: (1..=count.min(500)).map(|line| format!("{path}:{line}:x\n")).collect(),
            matches: count,
        }
    }

    fn result(files: &[(&str, u64)]) -> Matches {
        let mut kept = Kept::default();
        for &(path, count) in files {
            kept.add(path.into(), found(path, count));
        }
        kept.finish(9, None)
    }

    #[test]
    fn the_result_is_the_same_in_whatever_order_files_were_searched() {
        let files = [("a", 300), ("b", 150), ("c", 100), ("d", 100)];
        let mut reversed = files;
        reversed.reverse();
        let matches = result(&files);
        assert_eq!(matches, result(&reversed));
        assert_eq!(matches.text.lines().count(), 500);
        assert!(matches.text.ends_with("c:50:x\n"));
        assert_eq!((matches.matches, matches.files, matches.searched), (650, 4, 9));
        assert!(matches.truncated.unwrap().starts_with("only 500 of 650 matching lines are shown;"));
    }

    #[test]
    fn a_whole_result_is_not_truncated() {
        assert_eq!(result(&[("b", 1), ("a", 2)]).text, "a:1:x\na:2:x\nb:1:x\n");
        assert_eq!(result(&[("b", 1), ("a", 2)]).truncated, None);
        assert!(result(&[("a", 20_000)]).truncated.unwrap().contains("500 of 20000"));
    }

    #[test]
    fn what_is_streamed_has_the_bounds_of_a_result() {
        let mut kept = Kept::default();
        let lines = |kept: &mut Kept| {
            kept.stream(&found("a", 300)).map_or(0, |text| text.split(|&byte| byte == b'\n').count() - 1)
        };
        assert_eq!([lines(&mut kept), lines(&mut kept), lines(&mut kept)], [300, 200, 0]);
    }

    #[test]
    fn long_lines_are_clipped_between_characters() {
        assert_eq!(clipped("kurz"), "kurz");
        assert_eq!(clipped(&"ä".repeat(501)), format!("{} … [line cut]", "ä".repeat(500)));
    }
}
