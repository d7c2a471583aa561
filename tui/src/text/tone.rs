//! Styles of parts of a text; the theme converts them to colours.

use ratatui::style::Modifier;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tone {
    pub ink: Ink,
    pub ground: Ground,
    /// Bold, underlined and similar attributes.
    pub emphasis: Modifier,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    #[default]
    Plain,
    /// Marks of Bailiwick: line numbers, borders of tables.
    Mark,
    Heading,
    /// Mark and status of a command that failed.
    Failed,
    /// Mark and status of a call that was blocked.
    Blocked,
    Comment,
    Literal,
    /// Number or other constant in code.
    Constant,
    Keyword,
    /// Name of a function, a type or a tag in code.
    Name,
    /// Colours chosen by a program.
    Chosen {
        /// Colour of the text.
        text: Option<Hue>,
        background: Option<Hue>,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ground {
    /// Background of the terminal.
    #[default]
    None,
    Code,
    /// Unchanged line near a change.
    Same,
    Added,
    Removed,
    /// Sign of an added line.
    AddedSign,
    /// Sign of a removed line.
    RemovedSign,
    /// Added words in a changed line.
    AddedWords,
    /// Removed words in a changed line.
    RemovedWords,
}

impl Ground {
    pub(crate) const fn is_words(self) -> bool {
        matches!(self, Self::AddedWords | Self::RemovedWords)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hue {
    /// Colour of the terminal's palette of 256.
    Numbered(u8),
    /// Red, green and blue values.
    Exact(u8, u8, u8),
}

impl Tone {
    /// Returns a plain style with an emphasis.
    pub const fn with(emphasis: Modifier) -> Self {
        Self { ink: Ink::Plain, ground: Ground::None, emphasis }
    }

    pub const fn of(ink: Ink) -> Self {
        Self { ink, ground: Ground::None, emphasis: Modifier::empty() }
    }

    /// Returns the style on another background.
    #[must_use]
    pub const fn on(self, ground: Ground) -> Self {
        Self { ground, ..self }
    }
}
