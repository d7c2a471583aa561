//! Text editor for messages and commands. The text may contain control characters.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

const MOST: usize = 4 << 20;

/// Maximum number of lines of a paste that is shown as text. A longer paste is shown as `[20 lines pasted]`.
const MOST_LINES: usize = 10;

/// Characters that each represent a long paste in the text. Unicode reserves them for such uses (noncharacters).
const MARKS: RangeInclusive<char> = '\u{fdd0}'..='\u{fdef}';

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Editor {
    text: String,
    caret: usize,
    pastes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text is too long: a message has at most {} MiB", MOST >> 20)]
pub(crate) struct TooLong;

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
        let text = without_marks(&text).into_owned();
        Self { caret: text.len(), text, pastes: Vec::new() }
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
        let whole = self.whole();
        *self = Self::default();
        whole
    }

    pub(crate) fn whole(&self) -> String {
        self.with_pastes(&self.text, Cow::Borrowed)
    }

    /// Returns the text in a byte range for the screen. A long paste is shown as its number of lines.
    pub(crate) fn drawn(&self, part: Range<usize>) -> String {
        let part = self.text.get(part).unwrap_or_default();
        self.with_pastes(part, |paste| Cow::Owned(format!("[{} lines pasted]", paste.lines().count())))
    }

    fn with_pastes<'a>(&'a self, text: &str, paste: impl Fn(&'a str) -> Cow<'a, str>) -> String {
        let mut whole = String::with_capacity(text.len());
        for c in text.chars() {
            match MARKS.into_iter().position(|mark| mark == c).and_then(|at| self.pastes.get(at)) {
                Some(pasted) => whole.push_str(&paste(pasted)),
                None => whole.push(c),
            }
        }
        whole
    }

    pub(crate) fn insert(&mut self, text: &str) -> Result<(), TooLong> {
        if self.size() + text.len() > MOST {
            return Err(TooLong);
        }
        self.write(&without_marks(text));
        Ok(())
    }

    /// Replaces the text from `start` to the caret. Fails if the text would be longer than [`MOST`].
    pub(crate) fn replace_before(&mut self, start: usize, text: &str) -> Result<(), TooLong> {
        if self.text.get(start..self.caret).is_none() {
            return Ok(());
        }
        if self.size() + text.len() > MOST {
            return Err(TooLong);
        }
        self.text.drain(start..self.caret);
        self.caret = start;
        self.insert(text)
    }

    /// Inserts pasted text; a long paste is represented by a character of [`MARKS`].
    pub(crate) fn paste_folded(&mut self, text: &str) -> Result<(), TooLong> {
        let free = MARKS.enumerate().find(|(_, mark)| !self.text.contains(*mark));
        let Some((at, mark)) = free.filter(|_| plain_ends(text).lines().count() > MOST_LINES) else {
            return self.paste(text);
        };
        if self.size() + text.len() > MOST {
            return Err(TooLong);
        }
        let pasted = without_marks(&plain_ends(text)).into_owned();
        // The index may be that of a deleted paste.
        match self.pastes.get_mut(at) {
            Some(place) => *place = pasted,
            None => self.pastes.push(pasted),
        }
        self.write(mark.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn size(&self) -> usize {
        self.text.len() + self.pastes.iter().map(String::len).sum::<usize>()
    }

    fn write(&mut self, text: &str) {
        self.text.insert_str(self.caret, text);
        // The inserted text may have combined with the following character.
        self.caret = self.boundary_from(self.caret + text.len());
    }

    /// Inserts pasted text, with line ends converted to LF.
    pub(crate) fn paste(&mut self, text: &str) -> Result<(), TooLong> {
        self.insert(&plain_ends(text))
    }

    pub(crate) fn go(&mut self, motion: Motion) {
        self.caret = self.target(motion);
    }

    pub(crate) fn delete(&mut self, motion: Motion) {
        let target = self.target(motion);
        let (start, end) = (target.min(self.caret), target.max(self.caret));
        self.text.drain(start..end);
        self.caret = self.boundary_from(start);
    }

    /// Moves the caret one line up or down, to about the same column. Returns false if there is no such line.
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

fn plain_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Replaces the characters of [`MARKS`] in pasted text, which could otherwise be confused with a long paste.
fn without_marks(text: &str) -> Cow<'_, str> {
    if text.contains(|c| MARKS.contains(&c)) {
        Cow::Owned(text.replace(|c| MARKS.contains(&c), "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
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

    #[test]
    fn a_long_paste_is_one_character_and_is_sent_whole() {
        let (twelve, ten) = ("one\r\n".repeat(12), "two\n".repeat(10));
        let mut editor = Editor::with("a".to_owned());
        editor.paste_folded(&twelve).unwrap();
        editor.paste_folded(&ten).unwrap();
        assert_eq!(editor.drawn(0..editor.text().len()), format!("a[12 lines pasted]{ten}"));
        assert_eq!(editor.whole(), format!("a{}{ten}", "one\n".repeat(12)));
        editor.go(Motion::LineStart);
        (0..10).for_each(|_| _ = editor.vertical(false));
        editor.go(Motion::LineStart);
        editor.go(Motion::Right);
        editor.delete(Motion::Right);
        assert_eq!(editor.whole(), format!("a{ten}"));
        editor.paste_folded(&"three\n".repeat(11)).unwrap();
        editor.paste_folded(&"four\n".repeat(11)).unwrap();
        assert_eq!(editor.take(), format!("a{}{}{ten}", "three\n".repeat(11), "four\n".repeat(11)));
    }

    #[test]
    fn no_text_passes_for_a_paste() {
        let mut editor = Editor::with("\u{fdd0}".to_owned());
        editor.paste_folded(&"\u{fdd0}\n".repeat(11)).unwrap();
        editor.insert("\u{fdd1}").unwrap();
        assert_eq!(editor.take(), format!("\u{fffd}{}\u{fffd}", "\u{fffd}\n".repeat(11)));
    }

    #[test]
    fn pastes_that_stand_as_characters_have_the_bound_of_all_text() {
        let mut editor = Editor::default();
        let paste = "x\n".repeat(MOST / 4 + 1);
        editor.paste_folded(&paste).unwrap();
        assert_eq!(editor.paste_folded(&paste), Err(TooLong));
        assert_eq!(editor.paste(&paste), Err(TooLong));
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
