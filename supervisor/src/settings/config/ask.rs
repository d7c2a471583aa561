//! The question whether a project's file is trusted, to a person at a terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use nix::sys::termios::{FlushArg, tcflush};

use super::{PROJECT_NAME, Sources, TrustError, TrustQuestion};

/// Asks the person at this terminal, before anything begins, if the project's file would enable something. A no is not
/// remembered: what it would enable is named in a note, and asked again the next time.
pub(crate) fn ask_for_trust(sources: &mut Sources) -> Result<(), TrustError> {
    let Some(question) = sources.question() else { return Ok(()) };
    if !can_ask() {
        return Ok(());
    }
    // A terminal that cannot be read says no.
    match asked(&question) {
        Ok(true) => sources.trust(&question),
        Ok(false) | Err(_) => Ok(()),
    }
}

/// True if a person reads the question: an answer typed before the question was read does not count.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// True if the person said yes to a question of one line; anything else is no.
pub(crate) fn yes(question: &str) -> io::Result<bool> {
    let mut out = io::stderr().lock();
    // What was typed before the question stood there is no answer to it.
    tcflush(io::stdin(), FlushArg::TCIFLUSH)?;
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    drop(out);
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// True if the person said yes; anything else is no.
pub(crate) fn asked(question: &TrustQuestion) -> io::Result<bool> {
    let mut out = io::stderr().lock();
    let project = question.project.display().to_string();
    let files = if question.has_settings() { PROJECT_NAME } else { ".bailiwick/agents" };
    writeln!(out, "{files} of {} would enable, in every session there:", project.escape_debug())?;
    for line in &question.lines {
        writeln!(out, "  {line}")?;
    }
    drop(out);
    yes("Trust it?")
}
