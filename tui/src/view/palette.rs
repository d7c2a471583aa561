//! Colours of each theme: exact values, and their replacements among the 256 colours that most terminals have.

use ratatui::style::{Color, Style};

use crate::start::{Colour, ThemeName};

/// Exact colour, and its replacement among the 256 colours of terminals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shade {
    exact: Color,
    indexed: Color,
}

impl Shade {
    pub(super) const fn of(self, colour: Colour) -> Color {
        match colour {
            Colour::Indexed => self.indexed,
            Colour::Exact => self.exact,
            Colour::None | Colour::Sixteen => Color::Reset,
        }
    }
}

/// Text and background colours with a contrast of at least 4.5:1 (WCAG 2.2); 7:1 in the high-contrast theme.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    text: Shade,
    ground: Shade,
    /// Text and background for terminals with sixteen colours. Never bold: some terminals draw bold black as grey.
    sixteen: (Color, Color),
}

impl Pair {
    /// Returns the style with exact colours or their replacements among the 256.
    pub(super) const fn toned(self, colour: Colour) -> Style {
        Style::new().fg(self.text.of(colour)).bg(self.ground.of(colour))
    }

    pub(super) const fn sixteen(self) -> Style {
        Style::new().fg(self.sixteen.0).bg(self.sixteen.1)
    }
}

/// Colours of the kinds of text in code. All are readable on the backgrounds of code and of added and removed lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inks {
    pub comment: Shade,
    pub literal: Shade,
    pub constant: Shade,
    pub keyword: Shade,
    pub other: Shade,
}

/// Colours of text that has no background of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tints {
    /// Colour of secondary text. The attribute "faint" cannot replace it: terminals draw that too differently.
    pub quiet: Shade,
    pub accent: Shade,
    pub calm: Shade,
    pub red: Shade,
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
    /// Colours of text that has no background of its own; `None` if such text has the terminal's default colour.
    pub tints: Option<Tints>,
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

/// Creates a colour from its 24-bit RGB value and the number of its replacement among the 256.
const fn shade(exact: u32, indexed: u8) -> Shade {
    Shade { exact: Color::from_u32(exact), indexed: Color::Indexed(indexed) }
}

const BLACK: Shade = shade(0, 16);
const WHITE: Shade = shade(0x00ff_ffff, 231);

/// Creates a pair that has replacements among the sixteen colours.
const fn pair(text: Shade, ground: Shade, sixteen: (Color, Color)) -> Pair {
    Pair { text, ground, sixteen }
}

/// Creates a pair for a theme that does not use the sixteen colours.
const fn exactly(text: Shade, ground: Shade) -> Pair {
    Pair { text, ground, sixteen: (Color::Reset, Color::Reset) }
}

const ON_GREEN: (Color, Color) = (Color::Black, Color::Green);
const ON_RED: (Color, Color) = (Color::White, Color::Red);
const ON_GREY: (Color, Color) = (Color::Black, Color::Gray);

const ALARM: Pair = pair(BLACK, shade(0x00f2_c94c, 221), (Color::Black, Color::Yellow));
const DANGER: Pair = pair(WHITE, shade(0x00a6_1b1b, 124), ON_RED);
const NORMAL: Pair = pair(WHITE, shade(0x001d_4ed8, 26), (Color::White, Color::Blue));
const INSERT: Pair = pair(BLACK, shade(0x007f_d18b, 114), ON_GREEN);
const COMMAND: Pair = pair(BLACK, shade(0x007d_d3e0, 116), (Color::Black, Color::Cyan));
const PLANNER: Pair = pair(WHITE, shade(0x006d_28d9, 55), (Color::White, Color::Magenta));

const DARK: Pairs = Pairs {
    alarm: ALARM,
    danger: DANGER,
    added: pair(WHITE, shade(0x000f_3d22, 22), ON_GREEN),
    removed: pair(WHITE, shade(0x005c_1515, 52), ON_RED),
    added_words: pair(WHITE, shade(0x0016_6534, 28), ON_GREEN),
    removed_words: pair(WHITE, shade(0x0099_1b1b, 88), ON_RED),
    normal: NORMAL,
    insert: INSERT,
    command: COMMAND,
    planner: PLANNER,
    code: pair(WHITE, shade(0x001f_2937, 236), ON_GREY),
    inks: Inks {
        comment: shade(0x00d1_d5db, 252),
        literal: shade(0x00bb_f7d0, 158),
        constant: shade(0x00fe_d7aa, 223),
        keyword: shade(0x00e9_d5ff, 189),
        other: shade(0x00ba_e6fd, 153),
    },
    tints: Some(Tints {
        quiet: shade(0x009a_a4b2, 247),
        accent: shade(0x007c_c4fa, 117),
        calm: shade(0x00e5_b567, 179),
        red: shade(0x00ff_8a80, 210),
    }),
};

const LIGHT: Pairs = Pairs {
    alarm: ALARM,
    danger: DANGER,
    added: pair(BLACK, shade(0x00da_f5e0, 194), ON_GREEN),
    removed: pair(BLACK, shade(0x00fd_e2e2, 224), ON_RED),
    added_words: pair(BLACK, shade(0x00a9_e8b8, 157), ON_GREEN),
    removed_words: pair(BLACK, shade(0x00f9_bdbd, 217), ON_RED),
    normal: NORMAL,
    insert: INSERT,
    command: COMMAND,
    planner: PLANNER,
    code: pair(BLACK, shade(0x00ee_f0f3, 255), ON_GREY),
    inks: Inks {
        comment: shade(0x0037_4151, 238),
        literal: shade(0x0014_532d, 22),
        constant: shade(0x007c_2d12, 88),
        keyword: shade(0x0058_1c87, 54),
        other: shade(0x001e_3a8a, 18),
    },
    tints: Some(Tints {
        quiet: shade(0x005b_6472, 241),
        accent: shade(0x001d_4ed8, 26),
        calm: shade(0x008a_4b08, 94),
        red: shade(0x00a6_1b1b, 124),
    }),
};

const HIGH_CONTRAST: Pairs = Pairs {
    alarm: exactly(BLACK, shade(0x00ff_ff00, 226)),
    danger: exactly(WHITE, shade(0x0080_0000, 88)),
    added: exactly(WHITE, shade(0x0000_3000, 22)),
    removed: exactly(WHITE, shade(0x0048_0000, 52)),
    // The next green among the 256 on which white is readable is the one of the whole line.
    added_words: exactly(shade(0x00ff_ffff, 16), shade(0x0000_6000, 120)),
    removed_words: exactly(WHITE, shade(0x0090_0000, 88)),
    normal: exactly(WHITE, shade(0x0000_0080, 18)),
    insert: exactly(BLACK, shade(0x0000_ff00, 46)),
    command: exactly(BLACK, shade(0x0000_ffff, 51)),
    planner: exactly(WHITE, shade(0x0050_0080, 54)),
    code: exactly(WHITE, BLACK),
    inks: Inks { comment: WHITE, literal: WHITE, constant: WHITE, keyword: WHITE, other: WHITE },
    tints: None,
};
