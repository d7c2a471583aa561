//! The looks that stretches of text have beside the look of their whole; the theme makes styles of them.

use ratatui::style::Modifier;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tone {
    pub ink: Ink,
    pub ground: Ground,
    /// A word or more that is stressed.
    pub emphasis: Modifier,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    #[default]
    Plain,
    /// Marks of ours: line numbers, rules of tables.
    Mark,
    Comment,
    /// A string in code.
    Literal,
    /// A number or another constant in code.
    Constant,
    Keyword,
    /// The name of a function, a type or a tag in code.
    Name,
    /// Colours that a program chose.
    Chosen {
        /// Of the text.
        text: Option<Hue>,
        background: Option<Hue>,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ground {
    /// The terminal's own.
    #[default]
    None,
    Code,
    /// An unchanged line of a file near those that change.
    Same,
    Added,
    Removed,
    /// The sign of a line that is added.
    AddedSign,
    /// The sign of a line that is removed.
    RemovedSign,
    /// Words of a line that are added.
    AddedWords,
    /// Words of a line that are removed.
    RemovedWords,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hue {
    /// One of the terminal's 256; the first sixteen are of the user's own palette.
    Numbered(u8),
    /// By red, green and blue.
    Exact(u8, u8, u8),
}

impl Tone {
    /// Text with an emphasis.
    pub const fn with(emphasis: Modifier) -> Self {
        Self { ink: Ink::Plain, ground: Ground::None, emphasis }
    }

    pub const fn of(ink: Ink) -> Self {
        Self { ink, ground: Ground::None, emphasis: Modifier::empty() }
    }

    /// Returns the same tone on an area.
    #[must_use]
    pub const fn on(self, ground: Ground) -> Self {
        Self { ground, ..self }
    }
}
