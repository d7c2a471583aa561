//! Colours and emphasis, fit for light and for dark terminals.
//!
//! The background of the terminal is unknown. On requests and denials text has therefore the terminal's own colour, plain or
//! bold, or is one of a [`Pair`] of text and background, neither of which depends on the terminal's own.

use ratatui::style::{Color, Modifier, Style};

use crate::model::{Look, Mode};
use crate::start::Colour;
use crate::text::{Ground, Ink, Tone};

/// Chooses a style for each kind of text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    colour: Colour,
}

/// Text and background, at least 4.5:1 apart (WCAG 2.2, contrast ratio).
#[derive(Clone, Copy)]
struct Pair {
    exact: (Color, Color),
    /// Not bold: some terminals draw bold text in the bright colour of the same name, and black as grey.
    sixteen: (Color, Color),
}

impl Pair {
    const fn exact(self) -> Style {
        Style::new().fg(self.exact.0).bg(self.exact.1)
    }

    const fn sixteen(self) -> Style {
        Style::new().fg(self.sixteen.0).bg(self.sixteen.1)
    }
}

const BLACK: Color = Color::Rgb(0, 0, 0);
const WHITE: Color = Color::Rgb(255, 255, 255);

const ALARM: Pair =
    Pair { exact: (BLACK, Color::Rgb(0xf2, 0xc9, 0x4c)), sixteen: (Color::Black, Color::Yellow) };
const DANGER: Pair =
    Pair { exact: (WHITE, Color::Rgb(0xa6, 0x1b, 0x1b)), sixteen: (Color::White, Color::Red) };
const ADDED: Pair =
    Pair { exact: (WHITE, Color::Rgb(0x14, 0x53, 0x2d)), sixteen: (Color::Black, Color::Green) };
const REMOVED: Pair =
    Pair { exact: (WHITE, Color::Rgb(0x7f, 0x1d, 0x1d)), sixteen: (Color::White, Color::Red) };
const NORMAL: Pair =
    Pair { exact: (WHITE, Color::Rgb(0x1d, 0x4e, 0xd8)), sixteen: (Color::White, Color::Blue) };
const INSERT: Pair =
    Pair { exact: (BLACK, Color::Rgb(0x7f, 0xd1, 0x8b)), sixteen: (Color::Black, Color::Green) };
const COMMAND: Pair =
    Pair { exact: (BLACK, Color::Rgb(0x7d, 0xd3, 0xe0)), sixteen: (Color::Black, Color::Cyan) };
const PLANNER: Pair =
    Pair { exact: (WHITE, Color::Rgb(0x6d, 0x28, 0xd9)), sixteen: (Color::White, Color::Magenta) };
const CODE: Pair =
    Pair { exact: (WHITE, Color::Rgb(0x37, 0x41, 0x51)), sixteen: (Color::Black, Color::Gray) };

impl Theme {
    pub(super) const fn new(colour: Colour) -> Self {
        Self { colour }
    }

    /// The style of a row of text that is no diff.
    pub(super) fn row(self, look: Look) -> Style {
        let plain = Style::new();
        match look {
            Look::User | Look::Heading | Look::PlanHeading => plain.add_modifier(Modifier::BOLD),
            Look::PlanCode | Look::Code if self.colour == Colour::Exact => CODE.exact(),
            Look::Assistant
            | Look::Tool
            | Look::Command
            | Look::Fact
            | Look::Diff
            | Look::PlanText
            | Look::PlanItem
            | Look::Code
            | Look::PlanCode => plain,
            Look::Void => plain.add_modifier(Modifier::DIM | Modifier::CROSSED_OUT),
            Look::Thinking => plain.add_modifier(Modifier::DIM | Modifier::ITALIC),
            Look::Output | Look::Notice | Look::Turn => self.dim(),
            Look::Claim => plain.add_modifier(Modifier::ITALIC),
            Look::Denial => self.loud(DANGER),
            Look::ToolFailed | Look::Error => self.red(),
        }
    }

    /// The style of a stretch of a row that has this one.
    pub(super) fn toned(self, row: Style, look: Look, tone: Tone) -> Style {
        // What does not count looks alike.
        if look == Look::Void {
            return row;
        }
        let style = match tone.ground {
            Ground::Code if look != Look::Code => row.patch(self.code()),
            _ => row,
        };
        let style = match tone.ink {
            Ink::Mark => style.patch(self.dim()),
            _ => style,
        };
        style.add_modifier(tone.emphasis)
    }

    /// The styles of the sign and of the text of a diff's line: sixteen colours are too loud for whole lines.
    pub(super) fn diff(self, line: &str) -> (Style, Style) {
        let pair = match line.as_bytes().first() {
            Some(b'+') => ADDED,
            Some(b'-') => REMOVED,
            _ => return (Style::new(), Style::new()),
        };
        match self.colour {
            Colour::None => (self.strong(), Style::new()),
            Colour::Sixteen => (pair.sixteen(), Style::new()),
            Colour::Exact => (pair.exact(), pair.exact()),
        }
    }

    /// Text beside the point. Some terminals draw it too faint to read: no word of a request is.
    #[allow(clippy::unused_self, reason = "the theme decides each style")]
    pub(super) const fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Text that stands out.
    #[allow(clippy::unused_self, reason = "the theme decides each style")]
    pub(super) const fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The title of a request.
    pub(super) fn alarm(self) -> Style {
        self.loud(ALARM)
    }

    /// The word for the mode.
    pub(super) fn mode(self, mode: Mode) -> Style {
        self.loud(match mode {
            Mode::Normal | Mode::Agents | Mode::Plan => NORMAL,
            Mode::Insert => INSERT,
            Mode::Command => COMMAND,
        })
    }

    /// The word for a planner.
    pub(super) fn planner(self) -> Style {
        self.loud(PLANNER)
    }

    /// Code within a line of a plan.
    pub(super) fn code(self) -> Style {
        match self.colour {
            Colour::Exact => CODE.exact(),
            Colour::None | Colour::Sixteen => Style::new().add_modifier(Modifier::UNDERLINED),
        }
    }

    /// The network, while it is on.
    pub(super) fn open(self) -> Style {
        self.loud(DANGER)
    }

    fn red(self) -> Style {
        match self.colour {
            Colour::None => self.strong(),
            Colour::Sixteen | Colour::Exact => self.strong().fg(Color::Red),
        }
    }

    fn loud(self, pair: Pair) -> Style {
        match self.colour {
            Colour::None => self.strong().add_modifier(Modifier::REVERSED),
            Colour::Sixteen => pair.sixteen(),
            Colour::Exact => pair.exact().add_modifier(Modifier::BOLD),
        }
    }
}
