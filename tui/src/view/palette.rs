//! Colours of each theme.

use ratatui::style::{Color, Style};

use crate::start::ThemeName;

/// Text and background colours with a contrast of at least 4.5:1 (WCAG 2.2), or 7:1 in the high-contrast theme.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    exact: (Color, Color),
    /// Colours of the terminal's palette. Never bold: some terminals draw bold black as grey.
    sixteen: (Color, Color),
}

impl Pair {
    pub(super) const fn exact(self) -> Style {
        Style::new().fg(self.exact.0).bg(self.exact.1)
    }

    pub(super) const fn sixteen(self) -> Style {
        Style::new().fg(self.sixteen.0).bg(self.sixteen.1)
    }
}

/// Colours of the kinds of text in code. Each is readable on the backgrounds of code, and of added and removed lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inks {
    pub comment: Color,
    pub literal: Color,
    pub constant: Color,
    pub keyword: Color,
    pub other: Color,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Pairs {
    pub alarm: Pair,
    pub danger: Pair,
    pub added: Pair,
    pub removed: Pair,
    pub added_words: Pair,
    pub removed_words: Pair,
    pub normal: Pair,
    pub insert: Pair,
    pub command: Pair,
    pub planner: Pair,
    pub code: Pair,
    pub inks: Inks,
    /// Style of a failure on the terminal's background.
    pub failed: Style,
}

impl Pairs {
    pub(super) const fn of(theme: ThemeName) -> &'static Self {
        match theme {
            ThemeName::Dark => &DARK,
            ThemeName::Light => &LIGHT,
            ThemeName::HighContrast => &HIGH_CONTRAST,
        }
    }
}

const BLACK: Color = Color::Rgb(0, 0, 0);
const WHITE: Color = Color::Rgb(255, 255, 255);

/// Returns a pair in exact colours and in the nearest of the sixteen.
const fn pair(exact: (Color, Color), sixteen: (Color, Color)) -> Pair {
    Pair { exact, sixteen }
}

/// Returns a pair of a theme that does not use the sixteen colours.
const fn exactly(text: Color, background: Color) -> Pair {
    Pair { exact: (text, background), sixteen: (Color::Reset, Color::Reset) }
}

const BOLD: Style = Style::new().add_modifier(ratatui::style::Modifier::BOLD);

const ALARM: Pair = pair((BLACK, Color::Rgb(0xf2, 0xc9, 0x4c)), (Color::Black, Color::Yellow));
const DANGER: Pair = pair((WHITE, Color::Rgb(0xa6, 0x1b, 0x1b)), (Color::White, Color::Red));
const NORMAL: Pair = pair((WHITE, Color::Rgb(0x1d, 0x4e, 0xd8)), (Color::White, Color::Blue));
const INSERT: Pair = pair((BLACK, Color::Rgb(0x7f, 0xd1, 0x8b)), (Color::Black, Color::Green));
const COMMAND: Pair = pair((BLACK, Color::Rgb(0x7d, 0xd3, 0xe0)), (Color::Black, Color::Cyan));
const PLANNER: Pair = pair((WHITE, Color::Rgb(0x6d, 0x28, 0xd9)), (Color::White, Color::Magenta));

const DARK: Pairs = Pairs {
    alarm: ALARM,
    danger: DANGER,
    added: pair((WHITE, Color::Rgb(0x0f, 0x3d, 0x22)), (Color::Black, Color::Green)),
    removed: pair((WHITE, Color::Rgb(0x5c, 0x15, 0x15)), (Color::White, Color::Red)),
    added_words: pair((WHITE, Color::Rgb(0x16, 0x65, 0x34)), (Color::Black, Color::Green)),
    removed_words: pair((WHITE, Color::Rgb(0x99, 0x1b, 0x1b)), (Color::White, Color::Red)),
    normal: NORMAL,
    insert: INSERT,
    command: COMMAND,
    planner: PLANNER,
    code: pair((WHITE, Color::Rgb(0x1f, 0x29, 0x37)), (Color::Black, Color::Gray)),
    inks: Inks {
        comment: Color::Rgb(0xd1, 0xd5, 0xdb),
        literal: Color::Rgb(0xbb, 0xf7, 0xd0),
        constant: Color::Rgb(0xfe, 0xd7, 0xaa),
        keyword: Color::Rgb(0xe9, 0xd5, 0xff),
        other: Color::Rgb(0xba, 0xe6, 0xfd),
    },
    failed: BOLD.fg(Color::Red),
};

const LIGHT: Pairs = Pairs {
    alarm: ALARM,
    danger: DANGER,
    added: pair((BLACK, Color::Rgb(0xda, 0xf5, 0xe0)), (Color::Black, Color::Green)),
    removed: pair((BLACK, Color::Rgb(0xfd, 0xe2, 0xe2)), (Color::White, Color::Red)),
    added_words: pair((BLACK, Color::Rgb(0xa9, 0xe8, 0xb8)), (Color::Black, Color::Green)),
    removed_words: pair((BLACK, Color::Rgb(0xf9, 0xbd, 0xbd)), (Color::White, Color::Red)),
    normal: NORMAL,
    insert: INSERT,
    command: COMMAND,
    planner: PLANNER,
    code: pair((BLACK, Color::Rgb(0xee, 0xf0, 0xf3)), (Color::Black, Color::Gray)),
    inks: Inks {
        comment: Color::Rgb(0x37, 0x41, 0x51),
        literal: Color::Rgb(0x14, 0x53, 0x2d),
        constant: Color::Rgb(0x7c, 0x2d, 0x12),
        keyword: Color::Rgb(0x58, 0x1c, 0x87),
        other: Color::Rgb(0x1e, 0x3a, 0x8a),
    },
    failed: BOLD.fg(Color::Rgb(0xa6, 0x1b, 0x1b)),
};

const HIGH_CONTRAST: Pairs = Pairs {
    alarm: exactly(BLACK, Color::Rgb(0xff, 0xff, 0)),
    danger: exactly(WHITE, Color::Rgb(0x80, 0, 0)),
    added: exactly(WHITE, Color::Rgb(0, 0x30, 0)),
    removed: exactly(WHITE, Color::Rgb(0x48, 0, 0)),
    added_words: exactly(WHITE, Color::Rgb(0, 0x60, 0)),
    removed_words: exactly(WHITE, Color::Rgb(0x90, 0, 0)),
    normal: exactly(WHITE, Color::Rgb(0, 0, 0x80)),
    insert: exactly(BLACK, Color::Rgb(0, 0xff, 0)),
    command: exactly(BLACK, Color::Rgb(0, 0xff, 0xff)),
    planner: exactly(WHITE, Color::Rgb(0x50, 0, 0x80)),
    code: exactly(WHITE, BLACK),
    inks: Inks { comment: WHITE, literal: WHITE, constant: WHITE, keyword: WHITE, other: WHITE },
    failed: BOLD,
};
