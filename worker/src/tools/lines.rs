//! Selection of a range of lines from a text that arrives in pieces, with limits on size.

use ipc::tool::FileText;

pub const DEFAULT_LINES: u64 = 2_000;
/// Maximum number of characters of a line that are kept.
pub const LINE_CHARS: usize = 2_000;
/// Maximum number of bytes that one call returns.
pub const TEXT_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub struct FileLines {
    first: u64,
    last: u64,
    text: String,
    /// Number of lines so far, including the unfinished last one.
    line: u64,
    open: bool,
    chars: usize,
    start: usize,
    taken: u64,
    cut: Vec<u64>,
    full: bool,
}

impl FileLines {
    pub fn new(first: u64, limit: u64) -> Self {
        let last = first.saturating_add(limit).saturating_sub(1);
        let (text, cut) = (String::new(), Vec::new());
        Self { first, last, text, line: 0, open: false, chars: 0, start: 0, taken: 0, cut, full: false }
    }

    pub fn push(&mut self, piece: &str) {
        for part in piece.split_inclusive('\n') {
            if !self.open {
                self.begin();
            }
            let ended = part.ends_with('\n');
            if self.is_wanted() {
                self.keep(part);
            }
            self.open = !ended;
        }
    }

    /// True if all lines of the range are complete, or the size limit is reached.
    pub fn is_done(&self) -> bool {
        self.full || self.line > self.last || (self.line == self.last && !self.open)
    }

    pub fn seen(&self) -> u64 {
        self.line
    }

    /// Returns the selected lines. `ended` is true if the whole text has been pushed.
    pub fn finish(self, ended: bool, encoding: &str) -> FileText {
        let mut notes = Vec::new();
        if !self.cut.is_empty() {
            notes.push(cut_note(&self.cut));
        }
        if self.full {
            let next = self.first + self.taken;
            notes.push(format!("The text ends at {} KiB; continue with offset {next}.", TEXT_BYTES >> 10));
        }
        FileText {
            text: self.text,
            first_line: self.first,
            lines: self.taken,
            total_lines: ended.then_some(self.line),
            encoding: encoding.to_owned(),
            notes,
        }
    }

    fn begin(&mut self) {
        self.line += 1;
        self.chars = 0;
        self.start = self.text.len();
        if self.is_wanted() {
            self.taken += 1;
        }
    }

    fn is_wanted(&self) -> bool {
        !self.full && self.line >= self.first && self.line <= self.last
    }

    fn keep(&mut self, part: &str) {
        let (body, end) = match part.strip_suffix('\n') {
            Some(body) => (body, "\n"),
            None => (part, ""),
        };
        let room = LINE_CHARS - self.chars;
        let fits = if body.len() <= room { body.len() } else { prefix(body, room) };
        if fits < body.len() && self.cut.last() != Some(&self.line) {
            self.cut.push(self.line);
        }
        self.chars += if fits < body.len() { room } else { body.chars().count() };
        self.text.push_str(&body[..fits]);
        self.text.push_str(end);
        if self.text.len() > TEXT_BYTES {
            self.text.truncate(self.start);
            self.taken -= 1;
            self.cut.retain(|&cut| cut != self.line);
            self.full = true;
        }
    }
}

fn prefix(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(index, _)| index)
}

fn cut_note(cut: &[u64]) -> String {
    let shown: Vec<_> = cut.iter().take(5).map(u64::to_string).collect();
    let more = match cut.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let noun = if cut.len() == 1 { "Line" } else { "Lines" };
    format!("{noun} {}{more} cut after {LINE_CHARS} characters.", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, first: u64, limit: u64) -> FileText {
        let mut lines = FileLines::new(first, limit);
        lines.push(text);
        lines.finish(true, "UTF-8")
    }

    #[test]
    fn ranges_are_exactly_this() {
        let table = [
            ("", 1, 9, "", 0, 0),
            ("a", 1, 9, "a", 1, 1),
            ("a\n", 1, 9, "a\n", 1, 1),
            ("a\r\nb", 1, 9, "a\r\nb", 2, 2),
            ("a\nb\nc\n", 2, 1, "b\n", 1, 3),
            ("a\nb\nc\n", 3, 5, "c\n", 1, 3),
            ("a\nb\n", 3, 5, "", 0, 2),
            ("\n\n\n", 2, 2, "\n\n", 2, 3),
        ];
        for (text, first, limit, expected, count, total) in table {
            let got = lines(text, first, limit);
            assert_eq!(
                (got.text.as_str(), got.lines, got.total_lines),
                (expected, count, Some(total)),
                "{text:?}"
            );
        }
    }

    #[test]
    fn pieces_make_the_same_lines_as_the_whole() {
        let text = "äb\ncde\n\nlast";
        let mut collected = FileLines::new(1, 9);
        for char in text.chars() {
            collected.push(char.encode_utf8(&mut [0; 4]));
        }
        assert_eq!(collected.finish(true, "UTF-8"), lines(text, 1, 9));
    }

    #[test]
    fn a_long_line_is_cut_by_characters_and_said_so() {
        let got = lines(&format!("{}\nshort\n", "ä".repeat(5_000)), 1, 9);
        assert_eq!(got.text, format!("{}\nshort\n", "ä".repeat(LINE_CHARS)));
        assert_eq!(got.notes, ["Line 1 cut after 2000 characters."]);
    }

    #[test]
    fn the_text_ends_between_two_lines_and_says_how_to_go_on() {
        let got = lines(&"x".repeat(1_023).add_newline().repeat(300), 1, 300);
        assert_eq!((got.text.len(), got.lines, got.total_lines), (TEXT_BYTES, 256, Some(300)));
        assert_eq!(got.notes, ["The text ends at 256 KiB; continue with offset 257."]);
    }

    trait AddNewline {
        fn add_newline(self) -> String;
    }

    impl AddNewline for String {
        fn add_newline(mut self) -> String {
            self.push('\n');
            self
        }
    }

    #[test]
    fn it_is_done_when_the_last_line_has_ended() {
        let mut lines = FileLines::new(2, 1);
        lines.push("a\nb");
        assert!(!lines.is_done());
        lines.push("\n");
        assert!(lines.is_done());
    }
}
