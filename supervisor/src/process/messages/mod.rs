//! Words to the person at standard error: what is said, and how it is made harmless first.

mod denied;
#[cfg(test)]
mod errors_page;
pub(crate) mod notes;
mod progress;

use std::fmt::Display;
use std::io::Write;

pub(crate) use ipc::text::{harmless, one_line};

pub(crate) use self::denied::PlainDenial;
pub(crate) use self::progress::ReadingProgress;

/// Writes a message to standard error; it may contain names of others.
pub(crate) fn say(text: &str) {
    let text = harmless(text);
    if notes::hold(&text) {
        return;
    }
    // With standard error gone there is nobody to be told.
    let _ = writeln!(std::io::stderr(), "bailiwick: {text}");
}

/// Reports an error, with everything that caused it.
pub(crate) fn complain(error: &impl Display) {
    say(&error.to_string());
}

/// Prints the notices for a person before a session starts.
pub(crate) fn tell(notices: &[String]) {
    for notice in notices {
        say(&format!("note: {notice}"));
    }
}
