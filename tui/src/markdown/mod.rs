//! The Markdown of a reply as it streams: finished blocks are laid once, and only the last one is read again.

mod inline;
mod render;
mod source;
mod table;

pub(crate) use render::render;
pub(crate) use source::{Piece, Source};
pub(crate) use table::Table;

use pulldown_cmark::Options;

/// The extensions that models write.
const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

#[cfg(test)]
mod tests;
