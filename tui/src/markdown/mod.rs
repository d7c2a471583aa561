//! The Markdown of a reply as it streams: finished blocks are laid once, and only the last one is read again.

mod definitions;
mod inline;
mod render;
mod source;
mod table;

pub(crate) use render::render;
pub(crate) use source::{Piece, Source};
pub(crate) use table::Table;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The extensions that models write.
const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// The last code block of a reply.
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
