//! A small editor for messages and commands: raw text and a caret. What is drawn of it is sanitised by whoever draws.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

/// The most that is taken: a paste that is bigger is refused.
const MOST: usize = 4 << 20;

/// Text with a caret, which stands between two grapheme clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Editor {
    text: String,
    caret: usize,
}

/// There is no room for so much text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("that is too long: a message has at most {} MiB", MOST >> 20)]
pub(crate) struct TooLong;

/// Where the caret goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
}

impl Editor {
    pub(crate) fn with(text: String) -> Self {
        Self { caret: text.len(), text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) const fn caret(&self) -> usize {
        self.caret
    }

    pub(crate) fn take(&mut self) -> String {
        std::mem::take(self).text
    }

    pub(crate) fn insert(&mut self, text: &str) -> Result<(), TooLong> {
        if self.text.len() + text.len() > MOST {
            return Err(TooLong);
        }
        self.text.insert_str(self.caret, text);
        // What was inserted may have joined what follows.
        self.caret = self.boundary_from(self.caret + text.len());
        Ok(())
    }

    /// Inserts a paste: line ends are line ends, however the terminal sends them.
    pub(crate) fn paste(&mut self, text: &str) -> Result<(), TooLong> {
        self.insert(&text.replace("\r\n", "\n").replace('\r', "\n"))
    }

    pub(crate) fn go(&mut self, motion: Motion) {
        self.caret = self.target(motion);
    }

    /// Deletes up to where a motion would lead.
    pub(crate) fn delete(&mut self, motion: Motion) {
        let target = self.target(motion);
        let (start, end) = (target.min(self.caret), target.max(self.caret));
        self.text.drain(start..end);
        self.caret = self.boundary_from(start);
    }

    /// A line up or down, in about the same column; says whether there was one.
    pub(crate) fn vertical(&mut self, down: bool) -> bool {
        let (start, end) = (self.line_start(self.caret), self.line_end(self.caret));
        let column = self.text[start..self.caret].graphemes(true).count();
        let line = match (down, start.checked_sub(1)) {
            (true, _) if end < self.text.len() => end + 1,
            (false, Some(before)) => self.line_start(before),
            _ => return false,
        };
        let rest = &self.text[line..self.line_end(line)];
        self.caret = line + rest.grapheme_indices(true).nth(column).map_or(rest.len(), |(at, _)| at);
        true
    }

    fn target(&self, motion: Motion) -> usize {
        match motion {
            Motion::Left => self.cursor(self.caret).prev_boundary(&self.text, 0).ok().flatten().unwrap_or(0),
            Motion::Right => self.next(),
            Motion::WordLeft => {
                let words = self.text[..self.caret].unicode_word_indices();
                words.map(|(at, _)| at).next_back().unwrap_or(0)
            }
            Motion::WordRight => {
                let rest = &self.text[self.caret..];
                let word = rest.unicode_word_indices().next();
                word.map_or(self.text.len(), |(at, word)| self.caret + at + word.len())
            }
            Motion::LineStart => self.line_start(self.caret),
            Motion::LineEnd => self.line_end(self.caret),
        }
    }

    fn next(&self) -> usize {
        self.cursor(self.caret).next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
    }

    fn cursor(&self, at: usize) -> GraphemeCursor {
        GraphemeCursor::new(at, self.text.len(), true)
    }

    fn boundary_from(&self, at: usize) -> usize {
        match self.cursor(at).is_boundary(&self.text, 0) {
            Ok(false) => {
                self.cursor(at).next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
            }
            _ => at,
        }
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |end| end + 1)
    }

    fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |end| at + end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marked(editor: &Editor) -> String {
        format!("{}|{}", &editor.text[..editor.caret], &editor.text[editor.caret..])
    }

    #[test]
    fn the_caret_goes_by_what_a_reader_takes_for_a_character() {
        let mut editor = Editor::with("ae\u{301}漢".to_owned());
        editor.go(Motion::Left);
        editor.delete(Motion::Left);
        assert_eq!(marked(&editor), "a|漢");
        editor.delete(Motion::Right);
        assert_eq!(marked(&editor), "a|");
    }

    #[test]
    fn lines_and_words() {
        let mut editor = Editor::with("one two\nx\nthree four".to_owned());
        assert!(editor.vertical(false) && editor.vertical(false) && !editor.vertical(false));
        assert_eq!(marked(&editor), "o|ne two\nx\nthree four");
        editor.go(Motion::WordRight);
        editor.go(Motion::WordRight);
        editor.delete(Motion::WordLeft);
        assert_eq!(marked(&editor), "one |\nx\nthree four");
        editor.delete(Motion::LineStart);
        assert!(editor.vertical(true));
        editor.go(Motion::LineEnd);
        assert_eq!(marked(&editor), "\nx|\nthree four");
    }

    #[test]
    fn a_paste_has_plain_line_ends_and_a_bound() {
        let mut editor = Editor::default();
        editor.paste("a\r\nb\rc\n").unwrap();
        assert_eq!(marked(&editor), "a\nb\nc\n|");
        editor.paste(&"x".repeat(1 << 20)).unwrap();
        assert_eq!(editor.paste(&"x".repeat(MOST)), Err(TooLong));
    }

    proptest! {
        #[test]
        fn the_caret_never_stands_within_a_character(
            pieces in proptest::collection::vec("[a-c \n\u{301}漢👍\u{1f3fd}\u{200d}]{0,4}", 0..6),
            acts in proptest::collection::vec(0_u8..10, 0..30),
        ) {
            let mut editor = Editor::default();
            let mut pieces = pieces.iter();
            for act in acts {
                match act {
                    0 | 1 => { let _ = editor.insert(pieces.next().map_or("", String::as_str)); }
                    2 => editor.go(Motion::Left),
                    3 => editor.go(Motion::Right),
                    4 => editor.go(Motion::WordLeft),
                    5 => editor.go(Motion::WordRight),
                    6 => { editor.vertical(false); }
                    7 => { editor.vertical(true); }
                    8 => editor.delete(Motion::Left),
                    _ => editor.delete(Motion::WordRight),
                }
                prop_assert!(editor.cursor(editor.caret).is_boundary(&editor.text, 0).unwrap_or(false), "{:?}", editor);
            }
        }
    }
}
