//! A session in a form for people: the log becomes entries, and the entries become text, Markdown or a page of HTML.
//!
//! * [`entry::ShownText`]: a log as entries, which [`reading`] makes. An entry has unescaped texts of models, files and commands.
//! * [`text`], [`markdown`], [`page`]: the output forms. Each makes texts harmless in its own way: by escaped
//!   characters and a rule before each line, by a fence that no text can close, or by escaped markup.
//! * [`live`]: entries as text, while the session goes on.
//! * [`lines`]: the original lines of the log.
//! * [`html`]: constant markup and escaped text, for this page and that of `audit`.

mod arguments;
mod asked;
mod entry;
mod guests;
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
