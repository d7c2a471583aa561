//! Messages to the person on standard error, without terminal controls.

mod denied;
#[cfg(test)]
mod errors_page;
pub(crate) mod notes;
mod progress;
pub(crate) mod time;

use std::fmt::Display;
use std::io::Write;

pub(crate) use ipc::text::{harmless, one_line};

pub(crate) use self::denied::PlainDenial;
pub(crate) use self::progress::ReadingProgress;

pub(crate) fn say(text: &str) {
    let text = harmless(text);
    if notes::hold(&text) {
        return;
    }
    // If standard error is closed, nobody can read the message.
    let _ = writeln!(std::io::stderr(), "bailiwick: {text}");
}

pub(crate) fn complain(error: &impl Display) {
    say(&error.to_string());
}

pub(crate) fn tell(notices: &[String]) {
    for notice in notices {
        say(&format!("note: {notice}"));
    }
}
