//! Messages on standard error: lines that stay, and a status line that the next line replaces.

use std::io::{self, IsTerminal, Write};

use crate::process::tty;

/// Moves to the first column and erases the line (ECMA-48, CR and EL).
const ERASE: &str = "\r\u{1b}[K";

pub(crate) struct PassedLines<W> {
    out: W,
    /// Width of a status line in columns; `None` if the output cannot replace a line.
    columns: Option<usize>,
    is_passing: bool,
}

impl PassedLines<io::Stderr> {
    pub(crate) fn of_process() -> Self {
        let out = io::stderr();
        let moves = out.is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        let columns = tty::columns(&out).filter(|_| moves);
        Self { out, columns, is_passing: false }
    }
}

impl<W: Write> PassedLines<W> {
    /// True if the output is a terminal on which a line can be replaced.
    pub(crate) fn moves(&self) -> bool {
        self.columns.is_some()
    }

    /// Writes a line that stays. If standard error is closed, the line is lost.
    pub(crate) fn line(&mut self, text: &str) {
        self.clear();
        let _ = writeln!(self.out, "{text}");
    }

    /// Writes a status line that the next line replaces, if the terminal supports it.
    pub(crate) fn passing(&mut self, text: &str) {
        let Some(columns) = self.columns else { return self.line(text) };
        self.clear();
        // A line that wraps could not be erased. Some terminals wrap after the last column.
        let shown: String = text.chars().take(columns.saturating_sub(1)).collect();
        let _ = write!(self.out, "{shown}");
        let _ = self.out.flush();
        self.is_passing = true;
    }

    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_passing) {
            let _ = write!(self.out, "{ERASE}");
            let _ = self.out.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(columns: Option<usize>) -> String {
        let mut lines = PassedLines { out: Vec::new(), columns, is_passing: false };
        lines.line("begins");
        lines.passing("first attempt failed");
        lines.passing("second");
        lines.line("done");
        lines.clear();
        String::from_utf8(lines.out).unwrap()
    }

    #[test]
    fn a_passing_line_is_replaced_at_a_terminal_and_stays_elsewhere() {
        assert_eq!(
            written(Some(14)),
            format!("begins\nfirst attempt{ERASE}second{ERASE}done\n"),
            "it never fills the row"
        );
        assert_eq!(written(None), "begins\nfirst attempt failed\nsecond\ndone\n");
    }
}
