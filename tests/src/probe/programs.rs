//! Actions that run programs of the machine: shells, archivers and set-uid programs.

use std::io;
use std::process::{Command, Stdio};

use super::{Act, Arguments};

pub(super) const ACTS: &[(&str, Act)] = &[("execute", execute)];

/// Runs a program, and returns its output. `%20` in an argument stands for a space.
fn execute(a: &Arguments) -> io::Result<Vec<u8>> {
    let arguments = (1..a.0.len()).map(|index| a.text(index).map(|text| text.replace("%20", " ")));
    let mut command = Command::new(a.os(0)?);
    command.args(arguments.collect::<io::Result<Vec<_>>>()?).stdin(Stdio::null());
    let output = command.output()?;
    if output.status.success() { Ok(output.stdout) } else { Err(io::Error::other(output.status.to_string())) }
}
