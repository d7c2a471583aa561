//! The command line front: parse, prepare, run, exit with a named code.

mod args;
mod diagnostics;
mod exit;
mod sandbox;
mod setup;

use std::fmt::Display;
use std::io::Write;

/// Says something to the person at standard error, as ourselves.
fn say(text: &str) {
    // With standard error gone there is nobody to be told.
    let _ = writeln!(std::io::stderr(), "bailiwick: {text}");
}

/// Reports an error, with everything that caused it.
fn complain(error: &impl Display) {
    say(&error.to_string());
}
