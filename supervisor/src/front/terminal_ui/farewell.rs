//! The lines on the terminal after the UI: the last answer, a summary, and the command that continues the session.

use std::io::{Write, stderr, stdout};

use super::COLUMNS;

/// Maximum number of characters of the last answer that are printed at the end.
const LONGEST_ANSWER: usize = 4000;

/// The end of a session, for the lines that are printed after the UI has ended.
#[derive(Debug, Default)]
pub(super) struct Farewell {
    /// The last answer, which is printed again, because it is no longer on the terminal.
    pub answer: String,
    /// A line about time, changes, cost and denials; empty if these are unknown.
    pub summary: String,
    /// True if no message was sent, so that there is nothing to continue.
    pub is_empty: bool,
}

impl Farewell {
    pub(super) fn of(model: &tui::Model) -> Self {
        Self {
            answer: model.last_answer().to_owned(),
            summary: model.farewell(),
            is_empty: !model.has_messages(),
        }
    }

    pub(super) fn print(&self, resume: &str) {
        self.print_answer();
        let summary = Some(self.summary.clone()).filter(|summary| !summary.is_empty());
        let resume = Some(format!("Resume: {resume}")).filter(|_| !self.is_empty);
        for line in summary.into_iter().chain(resume) {
            // If standard error is closed, nobody can read it.
            let _ = writeln!(stderr(), "{line}");
        }
    }

    fn print_answer(&self) {
        let answer = self.answer.trim();
        let cut: String = answer.chars().take(LONGEST_ANSWER).collect();
        if !cut.is_empty() {
            let more = if cut.len() < answer.len() { "…" } else { "" };
            let columns =
                crate::process::tty::columns(&stdout()).and_then(|columns| u16::try_from(columns).ok());
            // If standard output is closed, nobody can read the answer.
            let _ = writeln!(stdout(), "{}{more}\n", tui::laid_out(&cut, columns.unwrap_or(COLUMNS)));
        }
    }
}

/// Returns the command that continues the session: by its name if `is_named` is true, or else as the last session.
pub(super) fn resume_command(name: &str, is_named: bool, is_plain: bool) -> String {
    match (is_named, is_plain) {
        (true, _) => format!("bailiwick resume {name}"),
        (false, true) => "bailiwick --plain -c".to_owned(),
        (false, false) => "bailiwick -c".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_of_the_current_directory_needs_no_name() {
        assert_eq!(resume_command("id", false, false), "bailiwick -c");
        assert_eq!(resume_command("id", false, true), "bailiwick --plain -c");
        assert_eq!(resume_command("id", true, false), "bailiwick resume id");
    }
}
