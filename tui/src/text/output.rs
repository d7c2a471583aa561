//! Output of a program. Its colours are drawn; other terminal control sequences are shown as text or dropped.

use ratatui::style::Modifier;
use vte::ansi::{Attr, Color, Handler, NamedColor, Processor, Rgb};
use vte::{Params, Parser, Perform};

use super::{Hue, Ink, Styled, Tone};

/// Maximum length in bytes of a control sequence that is interpreted.
const LONGEST: usize = 128;

/// Output of a program, received in pieces.
#[derive(Clone, Debug, Default)]
pub struct Output {
    text: Styled,
    state: State,
    /// Beginning of a control sequence or of a line end whose rest has not been received.
    held: String,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    emphasis: Modifier,
    text: Option<Hue>,
    background: Option<Hue>,
}

#[derive(Clone, Copy)]
enum Effect {
    Style,
    /// No effect on text that stays visible, such as erasing the rest of a line. The sequence is dropped.
    Idle,
    /// Any other effect. The sequence is shown as text.
    Other,
}

/// Effect of the first control sequence that the parser (vte) reads; `None` if it has read none.
#[derive(Default)]
struct First(Option<Effect>);

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
                (Some(""), _) | (None, None) => {
                    from.clone_into(&mut self.held);
                    return;
                }
                // Overwritten text is shown on separate lines, so that nothing is hidden.
                (Some(after), _) => {
                    self.show("\n");
                    after.strip_prefix('\n').unwrap_or(after)
                }
                (None, Some((Effect::Style, end))) => {
                    Processor::<vte::ansi::StdSyncHandler>::new()
                        .advance(&mut self.state, &from.as_bytes()[..end]);
                    &from[end..]
                }
                (None, Some((Effect::Idle, end))) => &from[end..],
                (None, Some((Effect::Other, _))) => {
                    self.show("\x1b");
                    &from[1..]
                }
            };
        }
        self.show(rest);
    }

    /// Ends the output. An incomplete control sequence is shown as text.
    pub fn finish(&mut self) {
        let held = std::mem::take(&mut self.held);
        if held.starts_with('\x1b') {
            self.show(&held);
        }
        self.text.finish();
    }

    pub fn keep_last(&mut self, keep: usize) {
        self.text.keep_last(keep);
    }

    fn show(&mut self, text: &str) {
        if !text.is_empty() {
            self.text.push_in(text, self.state.tone());
        }
    }
}

/// Returns the effect and the length of the control sequence at the start of `text`; `None` if it is incomplete.
fn sequence(text: &str) -> Option<(Effect, usize)> {
    let bytes = text.as_bytes();
    // Strings such as OSC are shown as text: vte would return nothing until they end.
    if *bytes.get(1)? != b'[' {
        return Some((Effect::Other, 1));
    }
    let mut first = First::default();
    let end = Parser::new().advance_until_terminated(&mut first, &bytes[..bytes.len().min(LONGEST)]);
    // Inside a sequence, vte skips DEL and characters beyond ASCII. Such a sequence is shown, so that no text is
    // hidden.
    if !bytes[1..end].iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Some((Effect::Other, 1));
    }
    match first.0 {
        None if bytes.len() < LONGEST => None,
        effect => Some((effect.unwrap_or(Effect::Other), end)),
    }
}

impl Perform for First {
    /// Called if vte has dropped a malformed sequence, for the character after it.
    fn print(&mut self, _character: char) {
        self.0 = Some(Effect::Other);
    }

    fn execute(&mut self, _control: u8) {
        self.0 = Some(Effect::Other);
    }

    fn csi_dispatch(&mut self, parameters: &Params, intermediates: &[u8], _ignored: bool, end: char) {
        let mut parameters = parameters.iter();
        let effect = match (intermediates, parameters.next(), parameters.next(), end) {
            ([], _, _, 'm') => Effect::Style,
            ([], Some([0..=2]), None, 'K') | (b"?", Some([25]), None, 'h' | 'l') => Effect::Idle,
            _ => Effect::Other,
        };
        self.0 = Some(effect);
    }

    fn terminated(&self) -> bool {
        self.0.is_some()
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
    fn a_sequence_that_holds_other_characters_is_shown() {
        let text = |untrusted| Output::new(untrusted).text.text().as_str().to_owned();
        assert_eq!(text("\x1b[1é\x7fm\x1b[3\u{9b}1m"), "\\u{1b}[1é\\u{7f}m\\u{1b}[3\\u{9b}1m");
        assert_eq!(text("\x1b[0<mx\x1b[1\x182m\x1b[?25Km"), "\\u{1b}[0<mx\\u{1b}[1\\u{18}2m\\u{1b}[?25Km");
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
