//! Tries acts, one after the other, each in a process of its own, and prints one JSON object for each: the act, the error
//! number (0 where it succeeded), and what it read.
//!
//! `probe ACT ARGUMENT… -- ACT ARGUMENT… …` · `probe plainly ACT ARGUMENT…` fails as programs do · `probe victim` waits to be
//! attacked.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|act| act == "victim") {
        return tests::probe::victim::live();
    }
    tests::probe::run(&arguments)
}
