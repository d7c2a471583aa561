//! Streamed Markdown of a reply. Finished blocks are laid out once; only the last block is parsed again.

mod definitions;
mod inline;
mod notes;
mod render;
mod source;
mod table;

pub(crate) use render::render;
pub(crate) use source::{Piece, Source};
pub(crate) use table::Table;

use crate::model::{Block, BlockRow, Look, Unfolded};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Extensions of Markdown that models use.
const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

pub fn laid_out(reply: &str, columns: u16) -> String {
    let mut source = Source::default();
    source.push(reply);
    let mut pieces = source.finished();
    pieces.extend(source.open());
    let mut lines = Vec::new();
    for block in pieces.iter().map(|piece| render(piece, Look::Assistant)) {
        let rows = 0..block.height(columns, Unfolded::default());
        let rows = rows.filter_map(|n| block.row(n, columns, Unfolded::default()));
        lines.extend(rows.map(|row| line(&block, row, columns)));
    }
    lines.join("\n").trim_matches('\n').to_owned()
}

fn line(block: &Block, row: BlockRow, columns: u16) -> String {
    let BlockRow::Text { part, row } = row else { return String::new() };
    let Some(part) = block.parts.get(part) else { return String::new() };
    let mark = part.mark(row, columns).as_str().to_owned();
    let line = part.with_text(columns, |text| mark + text.text().slice(row.start..row.end).as_str());
    line.trim_end().to_owned()
}

pub(crate) fn last_code(reply: &str) -> Option<String> {
    let (mut last, mut open) = (None, None::<String>);
    for event in Parser::new_ext(reply, OPTIONS) {
        match (event, &mut open) {
            (Event::Start(Tag::CodeBlock(_)), _) => open = Some(String::new()),
            (Event::Text(text), Some(code)) => code.push_str(&text),
            (Event::End(TagEnd::CodeBlock), _) => last = open.take().or(last),
            _ => {}
        }
    }
    last.filter(|code| !code.is_empty())
}

#[cfg(test)]
mod tests;
