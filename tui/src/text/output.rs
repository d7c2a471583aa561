//! Output of a program. Colours are drawn; other terminal control sequences are shown as text or dropped.

use ratatui::style::Modifier;
use vte::ansi::{Attr, Color, Handler, NamedColor, Processor, Rgb};

use super::{Hue, Ink, Styled, Tone};

/// Maximum length of a control sequence that is interpreted.
const LONGEST: usize = 128;

/// Output of a program, received in pieces.
#[derive(Clone, Debug, Default)]
pub struct Output {
    text: Styled,
    /// Style of the next text.
    state: State,
    /// Beginning of a control sequence or line end.
    held: String,
}

/// Colours and attributes that the program has set.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    emphasis: Modifier,
    text: Option<Hue>,
    background: Option<Hue>,
}

/// Control sequence at the beginning of a text.
enum Sequence {
    /// Complete sequence of this length that sets colours or emphasis.
    Style(usize),
    /// Complete sequence of this length that has no visible effect later, such as erasing the rest of a line or hiding the
    /// cursor.
    Idle(usize),
    /// Incomplete sequence.
    Open,
    /// Any other sequence, which is shown.
    Other,
}

impl Output {
    pub fn new(untrusted: &str) -> Self {
        let mut output = Self::default();
        output.push(untrusted);
        output.finish();
        output
    }

    pub const fn styled(&self) -> &Styled {
        &self.text
    }

    pub fn push(&mut self, untrusted: &str) {
        let text = [&std::mem::take(&mut self.held), untrusted].concat();
        let mut rest = text.as_str();
        while let Some(at) = rest.find(['\x1b', '\r']) {
            let (before, from) = rest.split_at(at);
            self.show(before);
            rest = match (from.strip_prefix('\r'), sequence(from)) {
                (Some(""), _) | (None, Sequence::Open) => {
                    from.clone_into(&mut self.held);
                    return;
                }
                // Overwritten text is shown on lines of its own, so that nothing is hidden.
                (Some(after), _) => {
                    self.show("\n");
                    after.strip_prefix('\n').unwrap_or(after)
                }
                (None, Sequence::Style(end)) => {
                    Processor::<vte::ansi::StdSyncHandler>::new()
                        .advance(&mut self.state, &from.as_bytes()[..end]);
                    &from[end..]
                }
                (None, Sequence::Idle(end)) => &from[end..],
                (None, Sequence::Other) => {
                    self.show("\x1b");
                    &from[1..]
                }
            };
        }
        self.show(rest);
    }

    /// Ends the output; an incomplete sequence is shown as text.
    pub fn finish(&mut self) {
        let held = std::mem::take(&mut self.held);
        if held.starts_with('\x1b') {
            self.show(&held);
        }
        self.text.finish();
    }

    /// Removes the beginning until at most `keep` bytes are left.
    pub fn keep_last(&mut self, keep: usize) {
        self.text.keep_last(keep);
    }

    fn show(&mut self, text: &str) {
        if !text.is_empty() {
            self.text.push_in(text, self.state.tone());
        }
    }
}

/// Parses the sequence at the beginning of a text (ECMA-48, section 5.4).
fn sequence(text: &str) -> Sequence {
    let bytes = text.as_bytes();
    match bytes.get(1) {
        None => return Sequence::Open,
        Some(b'[') => {}
        Some(_) => return Sequence::Other,
    }
    let parameters = bytes.iter().skip(2).take_while(|byte| matches!(byte, b'0'..=b'?')).count();
    let end = 2 + parameters + 1;
    match (bytes.get(2 + parameters), text.get(2..2 + parameters)) {
        (None, _) if text.len() < LONGEST => Sequence::Open,
        (Some(b'm'), Some(set)) if end <= LONGEST && !set.starts_with(['<', '=', '>', '?']) => {
            Sequence::Style(end)
        }
        (Some(b'K'), Some("" | "0" | "1" | "2")) | (Some(b'h' | b'l'), Some("?25")) => Sequence::Idle(end),
        _ => Sequence::Other,
    }
}

impl State {
    fn tone(self) -> Tone {
        let Self { emphasis, text, background } = self;
        if text.is_none() && background.is_none() {
            return Tone::with(emphasis);
        }
        Tone { emphasis, ..Tone::of(Ink::Chosen { text, background }) }
    }
}

impl Handler for State {
    fn terminal_attribute(&mut self, attribute: Attr) {
        match attribute {
            Attr::Reset => *self = Self::default(),
            Attr::Bold => self.emphasis |= Modifier::BOLD,
            Attr::Dim => self.emphasis |= Modifier::DIM,
            Attr::Italic => self.emphasis |= Modifier::ITALIC,
            // Reversed text is reserved for escapes.
            Attr::Underline
            | Attr::DoubleUnderline
            | Attr::Undercurl
            | Attr::DottedUnderline
            | Attr::DashedUnderline
            | Attr::Reverse => self.emphasis |= Modifier::UNDERLINED,
            Attr::Strike => self.emphasis |= Modifier::CROSSED_OUT,
            Attr::CancelBold => self.emphasis -= Modifier::BOLD,
            Attr::CancelBoldDim => self.emphasis -= Modifier::BOLD | Modifier::DIM,
            Attr::CancelItalic => self.emphasis -= Modifier::ITALIC,
            Attr::CancelUnderline | Attr::CancelReverse => self.emphasis -= Modifier::UNDERLINED,
            Attr::CancelStrike => self.emphasis -= Modifier::CROSSED_OUT,
            Attr::Foreground(colour) => self.text = hue(colour),
            Attr::Background(colour) => self.background = hue(colour),
            // Blinking and hidden text are not supported.
            Attr::BlinkSlow
            | Attr::BlinkFast
            | Attr::CancelBlink
            | Attr::Hidden
            | Attr::CancelHidden
            | Attr::UnderlineColor(_) => {}
        }
    }
}

fn hue(colour: Color) -> Option<Hue> {
    match colour {
        Color::Named(NamedColor::Foreground | NamedColor::Background) => None,
        Color::Named(name) => u8::try_from(name as usize).ok().map(Hue::Numbered),
        Color::Indexed(number) => Some(Hue::Numbered(number)),
        Color::Spec(Rgb { r, g, b }) => Some(Hue::Exact(r, g, b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(output: &Output) -> Vec<(&str, Tone)> {
        let text = output.text.text();
        let pieces = output.text.pieces(0..text.len());
        pieces.into_iter().map(|(range, tone)| (&text.as_str()[range], tone)).collect()
    }

    const fn chosen(text: Option<Hue>, background: Option<Hue>) -> Tone {
        Tone::of(Ink::Chosen { text, background })
    }

    #[test]
    fn colours_are_tones() {
        let output = Output::new("a\x1b[1;31mb\x1b[0;38;5;200mc\x1b[48:2::1:2:3md\x1b[me\x1b[7mf\x1b[27mg");
        let pink = Some(Hue::Numbered(200));
        let red = Tone { emphasis: Modifier::BOLD, ..chosen(Some(Hue::Numbered(1)), None) };
        let expected = [
            ("a", Tone::default()),
            ("b", red),
            ("c", chosen(pink, None)),
            ("d", chosen(pink, Some(Hue::Exact(1, 2, 3)))),
            ("e", Tone::default()),
            ("f", Tone::with(Modifier::UNDERLINED)),
            ("g", Tone::default()),
        ];
        assert_eq!(pieces(&output), expected);
    }

    #[test]
    fn everything_else_shows_or_means_nothing() {
        let text = |untrusted| Output::new(untrusted).text.text().as_str().to_owned();
        assert_eq!(
            text("\x1b[2J\x1b]8;;http://x\x07y\x1b]8;;\x07"),
            "\\u{1b}[2J\\u{1b}]8;;http://x\\u{7}y\\u{1b}]8;;\\u{7}"
        );
        assert_eq!(text("1%\x1b[K\r2%\r\nend\x1b[?25h"), "1%\n2%\nend");
        assert_eq!(text("\x1b[8mhidden\x1b[>4m\x1b[38;5"), "hidden\\u{1b}[>4m\\u{1b}[38;5");
        assert_eq!(text("\x1bPq\x1b\\\x1b"), "\\u{1b}Pq\\u{1b}\\\\u{1b}");
        let long = ["\x1b[", &"1;".repeat(200), "mx"].concat();
        assert!(text(&long).starts_with("\\u{1b}[1;1;"));
    }

    #[test]
    fn pieces_make_the_same_output_as_the_whole() {
        let whole =
            "a\x1b[1;32mgreen\x1b[0m\r\n\x1b[Kone\rtwo \x1b[38;2;1;2;3mx👨\u{200d}👩\x1b]0;t\x07\x1b[4";
        for size in 1..8 {
            let mut output = Output::default();
            let characters: Vec<char> = whole.chars().collect();
            characters.chunks(size).for_each(|piece| output.push(&piece.iter().collect::<String>()));
            output.finish();
            assert_eq!(pieces(&output), pieces(&Output::new(whole)), "by {size}");
        }
    }
}
