//! A session as people read it: its log as entries, and the entries as text, as Markdown or as one page of HTML.
//!
//! * [`entry::ShownText`]: a log, read into entries by [`reading`]. An entry has texts of models, files and commands, and no form yet.
//! * [`text`], [`markdown`], [`page`]: the forms. Each makes every text harmless in its own way: escaped characters and a rule before each
//!   line, a fence that no text closes, escaped markup.
//! * [`live`]: entries as text, while the session goes on.
//! * [`lines`]: the events as they stand in the log.
//! * [`html`]: markup of ours and escaped text of others, for this page and for that of `audit`.

mod arguments;
mod asked;
mod entry;
mod html;
mod lines;
mod live;
mod markdown;
mod page;
mod reading;
#[cfg(test)]
mod tests;
mod text;
mod words;

pub(crate) use self::html::Html;
#[cfg(test)]
pub(crate) use self::html::LOADS;
pub(crate) use self::lines::is_event;
pub(crate) use self::live::ShownLive;
pub(crate) use self::markdown::markdown;
pub(crate) use self::page::page;
pub(crate) use self::reading::{Reading, agents, without_texts};
pub(crate) use self::text::{broken, text};
pub(crate) use self::words::{about, decided_by, decision};
