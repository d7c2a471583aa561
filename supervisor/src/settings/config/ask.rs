//! Asks the person at a terminal if they trust the project's settings file.

use std::io::{self, BufRead, IsTerminal, Write};
use std::thread;

use nix::sys::termios::{FlushArg, tcflush};
use tokio::sync::oneshot;

use super::{PROJECT_NAME, Sources, TrustError, TrustQuestion};

/// Asks if the person trusts the project's file before the session starts, if the file would enable something. A
/// refusal is not stored: a notice names the ignored settings, and the next session asks again.
pub(crate) fn ask_for_trust(sources: &mut Sources) -> Result<(), TrustError> {
    let Some(question) = sources.question() else { return Ok(()) };
    if !can_ask() {
        return Ok(());
    }
    // If the terminal cannot be read, the file is not trusted.
    match asked(&question) {
        Ok(true) => sources.trust(&question),
        Ok(false) | Err(_) => Ok(()),
    }
}

/// True if standard input and error are terminals.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question of one line. Returns true if the person answers yes, and false for any other answer.
pub(crate) fn yes(question: &str) -> io::Result<bool> {
    let mut out = io::stderr().lock();
    // Input from before the question does not answer it.
    tcflush(io::stdin(), FlushArg::TCIFLUSH)?;
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    drop(out);
    let mut answer = String::new();
    if io::stdin().lock().read_line(&mut answer)? == 0 {
        // After Ctrl+D the cursor is still behind the question.
        writeln!(io::stderr())?;
    }
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Asks a question on a separate thread, so that a signal can end the wait. A read from a terminal cannot be cancelled.
pub(crate) async fn says_yes(question: String) -> io::Result<bool> {
    let (send, answer) = oneshot::channel();
    let ask = move || drop(send.send(yes(&question)));
    thread::Builder::new().name("question".to_owned()).spawn(ask)?;
    answer.await.map_err(io::Error::other)?
}

/// Asks if the person trusts the files. Returns true if the person answers yes, and false for any other answer.
pub(crate) fn asked(question: &TrustQuestion) -> io::Result<bool> {
    let mut out = io::stderr().lock();
    let project = question.project.display().to_string();
    let files = if question.has_settings() { PROJECT_NAME } else { ".bailiwick" };
    writeln!(out, "{files} of {} would enable, in every session there:", project.escape_debug())?;
    for line in &question.lines {
        writeln!(out, "  {line}")?;
    }
    drop(out);
    yes("Trust these settings?")
}
