//! A program that tries actions one after another, each in a separate process. For each it prints a JSON object: the
//! action, the error number (0 for success), and the data that was read.
//!
//! `probe ACT ARGUMENT… -- ACT ARGUMENT… …` tries each. `probe plainly ACT ARGUMENT…` prints errors as usual programs
//! do. `probe victim` waits to be attacked.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|act| act == "victim") {
        return tests::probe::victim::live();
    }
    tests::probe::run(&arguments)
}
