//! Colours and emphasis for each [`Colour`] and each [`ThemeName`].
//!
//! The terminal's background may differ from the background that a theme assumes. So text in approval requests and
//! denials is bold, or has a [`Pair`] of text and background colours.

use ratatui::style::{Color, Modifier, Style};

use super::palette::{Pair, Pairs, Shade, Tints};
use crate::model::{Look, Mode};
use crate::start::{Capabilities, Colour, ThemeName};
use crate::text::{Ground, Hue, Ink, Tone};

#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    colour: Colour,
    name: ThemeName,
    pairs: &'static Pairs,
    /// Colours of text that has no background of its own; `None` for the terminal's default colour.
    tints: Option<&'static Tints>,
}

const SIXTEEN: [Color; 16] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
    Color::DarkGray,
    Color::LightRed,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightBlue,
    Color::LightMagenta,
    Color::LightCyan,
    Color::White,
];

pub(super) fn exact(colour: Color) -> Option<[u8; 3]> {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    match colour {
        Color::Rgb(red, green, blue) => Some([red, green, blue]),
        Color::Indexed(number @ 232..) => Some([8 + (number - 232) * 10; 3]),
        Color::Indexed(number @ 16..) => {
            let level = |n: u8| LEVELS.get(usize::from(n % 6)).copied().unwrap_or_default();
            let number = number - 16;
            Some([level(number / 36), level(number / 6), level(number)])
        }
        _ => None,
    }
}

/// True for a colour that is almost black or almost white, so that it may be invisible on the terminal's background.
fn is_extreme(colour: Color) -> bool {
    exact(colour).is_some_and(|of| of.iter().all(|part| *part < 64) || of.iter().all(|part| *part > 192))
}

/// True if text in one of the colours is hardly visible on a background of the other.
fn are_alike(one: Color, other: Color) -> bool {
    let (Some(one), Some(other)) = (exact(one), exact(other)) else { return false };
    one.iter().zip(&other).map(|(one, other)| u32::from(one.abs_diff(*other))).sum::<u32>() < 150
}

/// Returns black or white, whichever is easier to read on a background.
const fn on(background: Color) -> Color {
    match background {
        Color::Black
        | Color::Blue
        | Color::Red
        | Color::Magenta
        | Color::DarkGray
        | Color::Indexed(16..=33 | 52..=69 | 88..=105 | 232..=243) => Color::White,
        Color::Rgb(red, green, blue) if (red as u32) * 3 + (green as u32) * 6 + (blue as u32) < 1280 => {
            Color::White
        }
        _ => Color::Black,
    }
}

impl Theme {
    pub(super) fn new(Capabilities { colour, theme, .. }: Capabilities) -> Self {
        let name = theme.unwrap_or_default();
        // The contrast between colours of the user's palette is unknown.
        let colour = match (colour, name) {
            (Colour::Sixteen, ThemeName::HighContrast) => Colour::None,
            (colour, _) => colour,
        };
        let pairs = Pairs::of(name);
        // On an unknown background, no colour of text is readable for certain.
        let tints = pairs.tints.as_ref().filter(|_| theme.is_some());
        Self { colour, name, pairs, tints }
    }

    pub(super) fn row(self, look: Look) -> Style {
        let plain = Style::new();
        let style = match look {
            Look::User | Look::Heading | Look::PlanHeading => plain.add_modifier(Modifier::BOLD),
            Look::PlanCode | Look::Code if self.has_tones() => self.pairs.code.toned(self.colour),
            Look::Assistant
            | Look::Tool
            | Look::Command
            | Look::Fact
            | Look::Diff
            | Look::PlanText
            | Look::PlanItem
            | Look::Code
            | Look::PlanCode => plain,
            Look::Void => self.dim().add_modifier(Modifier::CROSSED_OUT),
            Look::Thinking => self.dim().add_modifier(Modifier::ITALIC),
            Look::Output | Look::Notice | Look::Turn => self.dim(),
            Look::Claim => plain.add_modifier(Modifier::ITALIC),
            Look::Denial => self.loud(self.pairs.danger),
            Look::ToolFailed => self.calm(),
            Look::Error => self.red(),
        };
        self.without_faint(style)
    }

    /// Returns the style of a piece of text. `row` is the style of the row that contains it.
    pub(super) fn toned(self, row: Style, look: Look, tone: Tone) -> Style {
        // Interrupted text has a single style.
        if look == Look::Void {
            return row;
        }
        let style = self.on(row, look, tone.ground);
        let style = match tone.ink {
            // The colours of marks and headings are meant for the terminal's background only.
            Ink::Mark | Ink::Heading | Ink::Failed | Ink::Blocked if style.bg.is_some() => style,
            Ink::Mark => style.patch(self.dim()),
            Ink::Heading => style.patch(self.tinted(|tints| tints.accent)),
            Ink::Failed => style.patch(self.calm()),
            Ink::Blocked => style.patch(self.red()),
            // One of the 256 colours is too bright behind changed words for coloured text.
            _ if self.colour == Colour::Indexed && tone.ground.is_words() => style,
            Ink::Chosen { text, background } => self.chosen(style, text, background),
            Ink::Plain => style,
            ink => self.syntax(style, ink),
        };
        self.without_faint(style.add_modifier(tone.emphasis))
    }

    fn syntax(self, row: Style, ink: Ink) -> Style {
        let inks = &self.pairs.inks;
        let (colour, emphasis) = match ink {
            Ink::Comment => (inks.comment, Modifier::ITALIC),
            Ink::Literal => (inks.literal, Modifier::empty()),
            Ink::Constant => (inks.constant, Modifier::empty()),
            Ink::Keyword => (inks.keyword, Modifier::BOLD),
            _ => (inks.other, Modifier::empty()),
        };
        let style = if self.has_tones() { row.fg(colour.of(self.colour)) } else { row };
        style.add_modifier(emphasis)
    }

    /// Returns the style for colours that the output of a command sets. Returns `row` instead if the text would be
    /// unreadable, or is plain black or white, like the background of many terminals.
    fn chosen(self, row: Style, text: Option<Hue>, background: Option<Hue>) -> Style {
        let [text, background] = [text, background].map(|hue| hue.and_then(|hue| self.colour(hue)));
        let own = [Color::Black, Color::White, Color::Gray].map(Some);
        let style = match (text, background) {
            (None, None) => return row,
            _ if self.name == ThemeName::HighContrast => return row,
            (text, background) if text == background => return row,
            (text, None) if own.contains(&text) || text.is_some_and(is_extreme) => return row,
            (Some(text), Some(background)) if are_alike(text, background) => return row,
            (Some(text), None) => Style::new().fg(text),
            (Some(text), Some(background)) => Style::new().fg(text).bg(background),
            // The colour of the text is unknown; one that contrasts with the background is chosen.
            (None, Some(background)) => Style::new().fg(on(background)).bg(background),
        };
        row.remove_modifier(Modifier::DIM).patch(style)
    }

    fn colour(self, hue: Hue) -> Option<Color> {
        match (self.colour, hue) {
            (Colour::None, _) | (Colour::Indexed, Hue::Exact(..)) => None,
            (_, Hue::Numbered(number @ 0..16)) => SIXTEEN.get(usize::from(number)).copied(),
            (Colour::Sixteen, _) => None,
            (Colour::Indexed | Colour::Exact, Hue::Numbered(number)) => Some(Color::Indexed(number)),
            (Colour::Exact, Hue::Exact(red, green, blue)) => Some(Color::Rgb(red, green, blue)),
        }
    }

    /// Returns the style of a line with a background: changed or highlighted. With sixteen colours, only the sign of
    /// the line gets a background, since these colours are too bright for whole lines.
    fn on(self, row: Style, look: Look, ground: Ground) -> Style {
        let (sign, line, words) = match ground {
            Ground::Code if look == Look::Code => return row,
            Ground::Code => return row.patch(self.code()),
            Ground::Same if self.has_tones() => return self.pairs.code.toned(self.colour),
            Ground::Same | Ground::None => return row,
            Ground::Added => (self.pairs.added, true, false),
            Ground::Removed => (self.pairs.removed, true, false),
            Ground::AddedSign => (self.pairs.added, false, false),
            Ground::RemovedSign => (self.pairs.removed, false, false),
            Ground::AddedWords => (self.pairs.added_words, false, true),
            Ground::RemovedWords => (self.pairs.removed_words, false, true),
        };
        match self.colour {
            Colour::None if words => self.strong().add_modifier(Modifier::UNDERLINED),
            Colour::None | Colour::Sixteen if line => row,
            Colour::None => self.strong(),
            Colour::Sixteen => sign.sixteen(),
            Colour::Indexed | Colour::Exact => sign.toned(self.colour),
        }
    }

    /// Style of secondary text. Approval requests do not use it: some terminals draw it too faint to read.
    pub(super) fn dim(self) -> Style {
        let faint = Style::new().add_modifier(Modifier::DIM);
        if self.has_tones() && self.tints.is_some() {
            self.tinted(|tints| tints.quiet)
        } else {
            self.without_faint(faint)
        }
    }

    fn without_faint(self, style: Style) -> Style {
        match self.name {
            ThemeName::HighContrast => style.remove_modifier(Modifier::DIM | Modifier::ITALIC),
            ThemeName::Dark | ThemeName::Light => style,
        }
    }

    #[allow(clippy::unused_self, reason = "the theme decides each style")]
    pub(super) const fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn alarm(self) -> Style {
        self.loud(self.pairs.alarm)
    }

    pub(super) fn mode(self, mode: Mode) -> Style {
        self.loud(match mode {
            Mode::Normal
            | Mode::Agents
            | Mode::Plan
            | Mode::Log
            | Mode::Rewind
            | Mode::Page
            | Mode::Findings
            | Mode::Select => self.pairs.normal,
            Mode::Insert => self.pairs.insert,
            Mode::Command => self.pairs.command,
        })
    }

    pub(super) fn planner(self) -> Style {
        self.loud(self.pairs.planner)
    }

    pub(super) fn code(self) -> Style {
        match self.colour {
            Colour::Indexed | Colour::Exact => self.pairs.code.toned(self.colour),
            Colour::None | Colour::Sixteen => Style::new().add_modifier(Modifier::UNDERLINED),
        }
    }

    pub(super) fn open(self) -> Style {
        self.loud(self.pairs.danger)
    }

    /// True if the terminal can show the colours of the theme, exactly or by the nearest of 256.
    const fn has_tones(self) -> bool {
        matches!(self.colour, Colour::Indexed | Colour::Exact)
    }

    fn tinted(self, tint: impl FnOnce(&Tints) -> Shade) -> Style {
        let tint = self.tints.filter(|_| self.has_tones()).map(tint);
        tint.map_or_else(Style::new, |tint| Style::new().fg(tint.of(self.colour)))
    }

    /// Style of failed commands and steps.
    fn calm(self) -> Style {
        self.strong().patch(self.tinted(|tints| tints.calm))
    }

    /// Style of blocked or denied actions, and of lost data.
    fn red(self) -> Style {
        match self.colour {
            Colour::None => self.strong(),
            Colour::Sixteen => self.strong().fg(Color::Red),
            Colour::Indexed | Colour::Exact
                if self.tints.is_none() && self.name != ThemeName::HighContrast =>
            {
                self.strong().fg(Color::Red)
            }
            Colour::Indexed | Colour::Exact => self.strong().patch(self.tinted(|tints| tints.red)),
        }
    }

    fn loud(self, pair: Pair) -> Style {
        match self.colour {
            Colour::None => self.strong().add_modifier(Modifier::REVERSED),
            Colour::Sixteen => pair.sixteen(),
            Colour::Indexed | Colour::Exact => pair.toned(self.colour).add_modifier(Modifier::BOLD),
        }
    }
}
