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
