//! The person's pager, `$PAGER` or `less -R`, which gets the text on standard input.

use std::io::{self, Write};
use std::process::{Command, Stdio};

const USUAL: &str = "less -R";

/// Options for `less` if `$LESS` is not set: leave a short text on the screen, and show colours.
const LESS: &str = "FRX";

/// Exit status of a shell that did not find the named program (`sh(1p)`).
const NOT_FOUND: i32 = 127;

/// Shows a text without terminal controls in the person's pager. If the pager is `cat` or cannot be started, the text
/// goes to standard output.
pub(crate) fn show(text: &str) -> io::Result<()> {
    let named = std::env::var("PAGER").ok();
    let pager = named.as_deref().map_or(USUAL, str::trim);
    if matches!(pager, "" | "cat") {
        return print(text.as_bytes());
    }
    if run(pager, text, Stdio::inherit())? { Ok(()) } else { print(text.as_bytes()) }
}

/// Runs the pager. Returns false if the program is missing.
fn run(pager: &str, text: &str, output: Stdio) -> io::Result<bool> {
    // As in git and man, the shell interprets the variable.
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped()).stdout(output);
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS);
    }
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A pager that ends early closes the pipe.
        let _ = input.write_all(text.as_bytes());
    }
    Ok(child.wait()?.code() != Some(NOT_FOUND))
}

/// Writes to standard output. A reader that has closed the pipe is no error.
pub(crate) fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_pager_gets_the_text_and_may_stop_reading() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("out");
        let output = || Stdio::from(fs::File::create(&file).unwrap());
        assert!(run("tr a-z A-Z", "some text\n", output()).unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), "SOME TEXT\n");
        let long = "x\n".repeat(1 << 20);
        assert!(run("head -n 1", &long, output()).unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), "x\n");
        assert!(!run("no-such-pager 2>/dev/null", &long, output()).unwrap());
    }
}
