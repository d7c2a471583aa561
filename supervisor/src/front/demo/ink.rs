use std::io::{IsTerminal, stdout};

const BOLD: &str = "1";
const RED: &str = "31";
const GREEN: &str = "32";

#[derive(Clone, Copy, Debug)]
pub(super) struct Ink {
    coloured: bool,
}

impl Ink {
    pub(super) fn of_stdout() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self { coloured: stdout().is_terminal() && !dumb && !set("NO_COLOR") }
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.paint(BOLD, text)
    }

    pub(super) fn good(self, text: &str) -> String {
        self.paint(GREEN, text)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.paint(RED, text)
    }

    /// Colours a line of a diff. The line may begin with the frame of a card.
    pub(super) fn diff(self, line: &str) -> String {
        match line.trim_start_matches("  ║ ").chars().next() {
            Some('+') => self.good(line),
            Some('-') => self.bad(line),
            _ => line.to_owned(),
        }
    }

    fn paint(self, colour: &str, text: &str) -> String {
        if self.coloured { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
