//! The looks that stretches of text have beside the look of their whole; the theme makes styles of them.

use ratatui::style::Modifier;

/// The look of a stretch of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tone {
    /// The kind of text.
    pub ink: Ink,
    /// The area behind it.
    pub ground: Ground,
    /// A word or more that is stressed.
    pub emphasis: Modifier,
}

/// A kind of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    #[default]
    Plain,
    /// Marks of ours: line numbers, rules of tables.
    Mark,
    /// A comment in code.
    Comment,
    /// A string in code.
    Literal,
    /// A number or another constant in code.
    Constant,
    /// A keyword in code.
    Keyword,
    /// The name of a function, a type or a tag in code.
    Name,
    /// Colours that a program chose.
    Chosen {
        /// Of the text.
        text: Option<Hue>,
        /// Of the background.
        background: Option<Hue>,
    },
}

/// Area behind text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ground {
    /// The terminal's own.
    #[default]
    None,
    /// Text of a program.
    Code,
    /// An unchanged line of a file near those that change.
    Same,
    /// A line that is added.
    Added,
    /// A line that is removed.
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

/// A colour that a program chose.
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

    /// Text of a kind.
    pub const fn of(ink: Ink) -> Self {
        Self { ink, ground: Ground::None, emphasis: Modifier::empty() }
    }

    /// The same on an area.
    #[must_use]
    pub const fn on(self, ground: Ground) -> Self {
        Self { ground, ..self }
    }
}
