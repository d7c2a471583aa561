//! Layout of the rows near the caret in an edited text. The time does not depend on the length of the text.

use super::Model;
use super::editor::Editor;
use crate::text::{Clusters, Columns, Row, SafeText, Wrap, wrap};

const MOST: u16 = 40;

/// Width of the mark before the prompt, in columns.
pub(crate) const PROMPT: u16 = 2;

/// Word before the prompt's mark while the shown agent is planning.
pub(crate) const PLANNER: &str = " plan ";

#[derive(Debug)]
pub(crate) struct Written {
    pub text: SafeText,
    pub rows: Vec<Row>,
    pub caret: (u16, u16),
}

impl Written {
    pub(crate) fn new(editor: &Editor, width: u16, most: u16) -> Self {
        let (text, caret) = (editor.text(), editor.caret());
        let (start, end) = (before(text, caret, width, most), after(text, caret, width, most));
        let near = SafeText::prose(&editor.drawn(start..end));
        let caret = SafeText::prose(&editor.drawn(start..caret)).len();
        // The last column is left for the caret behind the text.
        let columns = usize::from(width.saturating_sub(1).max(1));
        let mut rows = Vec::new();
        wrap(near.as_str(), 0, Columns::all(columns), Wrap::Words, &mut rows);
        let at = rows.partition_point(|row| row.start <= caret).saturating_sub(1);
        let left = near.as_str().get(rows.get(at).map_or(0, |row| row.start)..caret).unwrap_or_default();
        let column = Clusters::new(left, 0).map(|cluster| cluster.columns).sum::<usize>().min(columns);
        let top = (at + 1).saturating_sub(usize::from(most));
        let rows: Vec<Row> = rows.into_iter().skip(top).take(usize::from(most)).collect();
        let caret = (u16::try_from(column).unwrap_or(width), u16::try_from(at - top).unwrap_or(most));
        Self { text: near, rows, caret }
    }
}

fn screenful(width: u16, most: u16) -> usize {
    usize::from(width) * usize::from(most) * 8
}

fn before(text: &str, caret: usize, width: u16, most: u16) -> usize {
    let head = text.get(..caret).unwrap_or_default();
    let line = head.rmatch_indices('\n').nth(usize::from(most)).map_or(0, |(at, _)| at + 1);
    text.floor_char_boundary(line.max(caret.saturating_sub(screenful(width, most))))
}

fn after(text: &str, caret: usize, width: u16, most: u16) -> usize {
    let rest = text.get(caret..).unwrap_or_default();
    let line = rest.match_indices('\n').nth(usize::from(most)).map_or(text.len(), |(at, _)| caret + at);
    text.floor_char_boundary(line.min(caret + screenful(width, most)))
}

/// Returns the number of rows of the prompt or of the command line.
pub(super) fn prompt_rows(model: &Model, width: u16) -> u16 {
    let editor = if model.mode == super::Mode::Command { &model.line } else { &model.prompt };
    let planner = if model.plans_now() { PLANNER.len() } else { 0 };
    let before = PROMPT.saturating_add(u16::try_from(planner).unwrap_or_default());
    let rows = Written::new(editor, width.saturating_sub(before), MOST).rows.len();
    u16::try_from(rows).unwrap_or(MOST)
}

#[cfg(test)]
mod tests {
    use super::super::editor::Motion;
    use super::*;

    fn shown(editor: &Editor, width: u16, most: u16) -> (Vec<String>, (u16, u16)) {
        let written = Written::new(editor, width, most);
        let rows = written.rows.iter().map(|row| written.text.as_str()[row.start..row.end].to_owned());
        (rows.collect(), written.caret)
    }

    #[test]
    fn the_caret_stands_where_text_goes_in() {
        let mut editor = Editor::with("one 漢\n\x1b".to_owned());
        assert_eq!(shown(&editor, 20, 5), (vec!["one 漢".to_owned(), "\\u{1b}".to_owned()], (6, 1)));
        editor.vertical(false);
        editor.go(Motion::LineEnd);
        assert_eq!(shown(&editor, 20, 5).1, (6, 0));
        assert_eq!(shown(&Editor::with("abcd".to_owned()), 5, 3).1, (4, 0));
        assert_eq!(shown(&Editor::with("abcde".to_owned()), 5, 3).1, (1, 1));
    }

    #[test]
    fn of_a_long_text_what_is_near_the_caret_shows() {
        let text: String = (0..100_000).map(|n| [&n.to_string(), "\n"].concat()).collect();
        let (rows, caret) = shown(&Editor::with(text), 30, 3);
        assert_eq!((rows.join(" "), caret), ("99998 99999 ".to_owned(), (0, 2)));
        let (rows, _) = shown(&Editor::with("x".repeat(1 << 20)), 11, 2);
        assert_eq!(rows.len(), 2);
    }
}
