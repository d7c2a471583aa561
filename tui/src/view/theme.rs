//! How things look: the terminal's own sixteen colours, or none.

use ratatui::style::{Color, Modifier, Style};

use crate::model::{Look, Mode};
use crate::start::Colour;

/// How things look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    colour: Colour,
}

impl Theme {
    pub(super) const fn new(colour: Colour) -> Self {
        Self { colour }
    }

    /// Of a row of text; `line` is what its line begins with.
    pub(super) fn row(self, look: Look, line: &str) -> Style {
        let plain = Style::new();
        match look {
            Look::User | Look::Heading => plain.add_modifier(Modifier::BOLD),
            Look::Assistant | Look::Tool | Look::Command | Look::Fact => plain,
            Look::Void => plain.add_modifier(Modifier::DIM | Modifier::CROSSED_OUT),
            Look::Thinking => plain.add_modifier(Modifier::DIM | Modifier::ITALIC),
            Look::Output | Look::Notice | Look::Turn => self.dim(),
            Look::Claim => plain.add_modifier(Modifier::ITALIC),
            Look::Diff => self.diff(line),
            Look::ToolFailed | Look::Denial | Look::Error => self.fg(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    fn diff(self, line: &str) -> Style {
        match line.as_bytes().first() {
            Some(b'+') => self.fg(Color::Green),
            Some(b'-') => self.fg(Color::Red),
            Some(b'@') => self.fg(Color::Cyan),
            _ => Style::new(),
        }
    }

    /// What is not the matter itself.
    #[allow(clippy::unused_self, reason = "how a thing looks is the theme's to say")]
    pub(super) const fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What stands out.
    #[allow(clippy::unused_self, reason = "how a thing looks is the theme's to say")]
    pub(super) const fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What wants to be read first.
    pub(super) fn alarm(self) -> Style {
        self.fg(Color::Yellow).add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    /// The word for the mode.
    pub(super) fn mode(self, mode: Mode) -> Style {
        let colour = match mode {
            Mode::Normal => Color::Blue,
            Mode::Insert => Color::Green,
            Mode::Command => Color::Magenta,
        };
        self.fg(colour).add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    /// That the network is on.
    pub(super) fn open(self) -> Style {
        self.fg(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn fg(self, colour: Color) -> Style {
        match self.colour {
            Colour::None => Style::new(),
            Colour::Sixteen => Style::new().fg(colour),
        }
    }
}
