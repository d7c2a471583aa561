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
    Mark,
    Heading,
    Failed,
    Blocked,
    Comment,
    Literal,
    Constant,
    Keyword,
    Name,
    /// Colours that the output of a command sets; `None` for the terminal's default colour.
    Chosen {
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
    Same,
    Added,
    Removed,
    AddedSign,
    RemovedSign,
    AddedWords,
    RemovedWords,
}

impl Ground {
    pub(crate) const fn is_words(self) -> bool {
        matches!(self, Self::AddedWords | Self::RemovedWords)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hue {
    Numbered(u8),
    Exact(u8, u8, u8),
}

impl Tone {
    pub const fn with(emphasis: Modifier) -> Self {
        Self { ink: Ink::Plain, ground: Ground::None, emphasis }
    }

    pub const fn of(ink: Ink) -> Self {
        Self { ink, ground: Ground::None, emphasis: Modifier::empty() }
    }

    #[must_use]
    pub const fn on(self, ground: Ground) -> Self {
        Self { ground, ..self }
    }
}
