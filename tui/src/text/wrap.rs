//! Division of text into rows.

use super::{Cluster, Clusters};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub start: usize,
    /// Byte offset of the row's end. Trailing spaces of a row may exceed the width.
    pub end: usize,
    pub first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrap {
    /// Breaks after spaces, and between characters of scripts without spaces; inside a word only if it is too long.
    Words,
    /// Breaks after ` · ` between facts; inside a fact only if it is too long.
    Facts,
    /// Breaks after spaces and signs between words; inside a word only if it is too long. Nothing exceeds the width.
    Code,
    /// Breaks at any character. Nothing exceeds the width.
    Anywhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    pub first: usize,
    pub rest: usize,
}

impl Columns {
    pub const fn all(columns: usize) -> Self {
        Self { first: columns, rest: columns }
    }

    const fn of(self, first: bool) -> usize {
        if first { self.first } else { self.rest }
    }
}

/// Appends the rows of the text from byte `from` on, which must be the start of a row. The last row may be empty.
pub fn wrap(text: &str, from: usize, columns: Columns, how: Wrap, rows: &mut Vec<Row>) {
    let mut first = from == 0 || text.as_bytes().get(from - 1) == Some(&b'\n');
    let mut start = from;
    for line in text.get(from..).unwrap_or_default().split('\n') {
        let end = start + line.len();
        let whole = Row { start, end, first };
        // No character has more columns than bytes, so a short line needs no measuring.
        if line.len() <= columns.of(first) {
            rows.push(whole);
        } else {
            wrap_line(text, whole, columns, how, rows);
        }
        (start, first) = (end + 1, true);
    }
}

fn wrap_line(text: &str, line: Row, columns: Columns, how: Wrap, rows: &mut Vec<Row>) {
    let mut open = Open::new(line.start, line.first);
    let mut before = "";
    for cluster in Clusters::new(text.get(..line.end).unwrap_or_default(), line.start) {
        let hangs = matches!(how, Wrap::Words | Wrap::Facts) && cluster.text == " ";
        let ends_fact = hangs && before == "·";
        before = cluster.text;
        while !hangs && open.used > 0 && open.used + cluster.columns > columns.of(open.first) {
            let (end, used) = open.space.or(open.sign).unwrap_or((cluster.at, open.used));
            rows.push(open.row(end));
            let later = |(at, columns): (usize, usize)| (at > end).then(|| (at, columns - used));
            let sign = open.sign.and_then(later);
            open = Open { used: open.used - used, sign, ..Open::new(end, false) };
        }
        open.used += cluster.columns;
        let here = Some((cluster.end(), open.used));
        match (how, cluster.text) {
            // A row never consists of indentation alone.
            (Wrap::Code, " ") if open.has_text || !open.first => open.space = here,
            (Wrap::Code, "/" | "," | ";" | "|" | "&" | "=" | ":" | ")" | "]" | "}") => open.sign = here,
            // A row that is less than half full also gets words of the next fact.
            (Wrap::Facts, _) if ends_fact && open.used * 2 >= columns.of(open.first) => open.space = here,
            (Wrap::Facts, _)
                if hangs && !text.get(cluster.end()..).unwrap_or_default().starts_with('·')
                    || breaks_after(text, cluster) =>
            {
                open.sign = here;
            }
            (Wrap::Words, _) if hangs || breaks_after(text, cluster) => open.space = here,
            _ => {}
        }
        open.has_text |= cluster.text != " ";
    }
    rows.push(open.row(line.end));
}

/// True if a row may end after a cluster of a script without spaces; depends on the cluster and the next character.
fn breaks_after(text: &str, cluster: Cluster<'_>) -> bool {
    let next = text.get(cluster.end()..).and_then(|rest| rest.chars().next());
    cluster.columns == 2
        && !cluster.text.starts_with(['「', '『', '（', '《', '〈', '【'])
        && next.is_some_and(|c| {
            !matches!(
                c,
                '、' | '。'
                    | '，'
                    | '．'
                    | '！'
                    | '？'
                    | '：'
                    | '；'
                    | '」'
                    | '』'
                    | '）'
                    | '》'
                    | '〉'
                    | '】'
                    | 'ー'
                    | '…'
                    | '!'..='/' | ':' | ';' | '?' | ']' | '}'
            )
        })
}

struct Open {
    start: usize,
    used: usize,
    /// Byte offset after the last space, and the number of columns before that offset; `None` without a space.
    space: Option<(usize, usize)>,
    sign: Option<(usize, usize)>,
    has_text: bool,
    first: bool,
}

impl Open {
    const fn new(start: usize, first: bool) -> Self {
        Self { start, used: 0, space: None, sign: None, has_text: false, first }
    }

    const fn row(&self, end: usize) -> Row {
        Row { start: self.start, end, first: self.first }
    }
}
