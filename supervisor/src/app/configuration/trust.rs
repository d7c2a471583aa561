//! `bailiwick config trust`: lists what a project's file would enable, and asks a person at a terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use nix::sys::termios::{FlushArg, tcflush};

use super::Sources;
use crate::config::{PROJECT_NAME, TrustError, TrustQuestion};
use crate::exit::Exit;
use crate::messages::{complain, say};
use crate::shell_word::shell_word;

/// Asks, or forgets.
pub(super) fn run(mut sources: Sources, forget: bool) -> Exit {
    let Some(file) = &sources.project else { return Exit::Usage };
    super::tell(&sources.void().collect::<Vec<_>>());
    if forget {
        return match sources.trust.forget(&file.project) {
            Ok(true) => done("it is no longer trusted"),
            Ok(false) => done("it was not trusted"),
            Err(error) => internal(&error),
        };
    }
    let Some(question) = sources.question() else {
        return done(if sources.trusted {
            "it is trusted already"
        } else {
            "there is nothing in it that takes trust"
        });
    };
    if !can_ask() {
        complain(&format!(
            "cannot ask about {PROJECT_NAME}: standard input or standard error is no terminal\n  hint: type this command at a \
             terminal: bailiwick config trust -C {}",
            shell_word(&file.project)
        ));
        return Exit::Usage;
    }
    match asked(&question) {
        Ok(true) => match sources.trust(&question) {
            Ok(()) => done("trusted, as it is now; a change of it asks again"),
            Err(error) => internal(&error),
        },
        Ok(false) => done("not trusted"),
        Err(error) => internal(&error),
    }
}

/// Asks the person at this terminal, before anything begins, if the project's file would enable something. A no is not
/// remembered: what it would enable is named in a note, and asked again the next time.
pub(in crate::app) fn ask_for_trust(sources: &mut Sources) -> Result<(), TrustError> {
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

/// Whether there is a person who reads the question: an answer that was not typed after it was read is none.
fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether the person said yes; anything else is no.
fn asked(question: &TrustQuestion) -> io::Result<bool> {
    let mut out = io::stderr().lock();
    let project = question.project.display().to_string();
    writeln!(out, "{PROJECT_NAME} of {} would enable, in every session there:", project.escape_debug())?;
    for line in &question.lines {
        writeln!(out, "  {line}")?;
    }
    // What was typed before the question stood there is no answer to it.
    tcflush(io::stdin(), FlushArg::TCIFLUSH)?;
    write!(out, "Trust it? [y/N] ")?;
    out.flush()?;
    drop(out);
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn done(text: &str) -> Exit {
    say(&format!("{PROJECT_NAME}: {text}"));
    Exit::Done
}

fn internal(error: &impl std::fmt::Display) -> Exit {
    complain(error);
    Exit::Internal
}
