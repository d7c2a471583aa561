//! A parser from the bytes of a terminal's keyboard to keys and pastes, in the encoding of xterm (ctlseqs, "PC-Style
//! Function Keys").
//!
//! The parser of crossterm is not used: it reads the terminal in blocking mode, and loops for ever on a closed
//! terminal.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui::ThemeName;

use super::background;

/// Maximum size in bytes of a paste. The rest of a longer one is dropped.
const LONGEST_PASTE: usize = 16 << 20;

/// Maximum size in bytes of a control sequence with a meaning. Longer ones are dropped.
const LONGEST_SEQUENCE: usize = 64;

/// Maximum size in bytes of a control string whose end the parser waits for.
const LONGEST_STRING: usize = 64 << 10;

const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const ESC: u8 = 0x1b;
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TypedKey {
    Key(KeyEvent),
    Paste(String),
    /// True if the terminal got the focus, false if it lost the focus (DECSET 1004).
    Focus(bool),
    /// Number of notches that the mouse wheel turned; negative if up.
    Wheel(i16),
    /// The theme that fits the background colour that the terminal reported.
    Theme(ThemeName),
    /// The answer to a query for the terminal's attributes. Answers come in order, so all earlier answers have arrived.
    Attributes,
}

#[derive(Debug, Default)]
pub(super) struct Keys {
    pending: Vec<u8>,
    /// The content of an unfinished paste; `None` if no paste is unfinished.
    paste: Option<Vec<u8>>,
}

/// The kind of an incomplete input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyRest {
    /// An escape byte, which is the Escape key if nothing follows soon.
    OfEscape,
    /// The beginning of a control sequence, paste mark or character.
    OfSequence,
}

enum Parsed {
    /// Size in bytes of a complete key, paste or report, and its meaning; `None` if it has no meaning.
    Whole(usize, Option<TypedKey>),
    /// Only the beginning of a key, paste or report.
    Cut,
}

impl Keys {
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<TypedKey> {
        self.pending.extend_from_slice(bytes);
        self.parse(false)
    }

    /// Returns the kind of the incomplete input; `None` if nothing is incomplete. An unfinished paste does not count,
    /// because there is no time limit for its end.
    pub(super) fn waits_for(&self) -> Option<KeyRest> {
        match &self.pending[..] {
            [] => None,
            _ if self.paste.is_some() => None,
            [ESC] => Some(KeyRest::OfEscape),
            _ => Some(KeyRest::OfSequence),
        }
    }

    /// Ends the wait for further bytes: an escape byte becomes the Escape key, and other incomplete input is dropped.
    pub(super) fn give_up_waiting(&mut self) -> Vec<TypedKey> {
        match self.waits_for() {
            Some(KeyRest::OfEscape) => self.parse(true),
            Some(KeyRest::OfSequence) => {
                // If the rest of a terminal's answer still comes, it must not be read as text.
                if !matches!(key(&self.pending, true), Parsed::Cut) {
                    self.pending.clear();
                }
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    fn parse(&mut self, nothing_follows: bool) -> Vec<TypedKey> {
        let (pending, mut typed, mut at) = (std::mem::take(&mut self.pending), Vec::new(), 0);
        while at < pending.len() {
            let rest = &pending[at..];
            let parsed = match &mut self.paste {
                Some(paste) => paste_goes_on(paste, rest),
                None => key(rest, nothing_follows),
            };
            let Parsed::Whole(length, what) = parsed else { break };
            if self.paste.is_none() && rest.starts_with(PASTE_BEGINS) {
                self.paste = Some(Vec::new());
            } else if matches!(what, Some(TypedKey::Paste(_))) {
                self.paste = None;
            }
            typed.extend(what);
            at += length;
        }
        self.pending = pending[at..].to_vec();
        typed
    }
}

/// Adds bytes to a paste, up to the end mark, or up to bytes that may be the beginning of the end mark.
fn paste_goes_on(paste: &mut Vec<u8>, bytes: &[u8]) -> Parsed {
    let ends = memchr::memmem::find(bytes, PASTE_ENDS);
    let length = ends.unwrap_or_else(|| bytes.len() - beginning_of(PASTE_ENDS, bytes));
    let room = LONGEST_PASTE.saturating_sub(paste.len());
    paste.extend_from_slice(&bytes[..length.min(room)]);
    match (ends, length) {
        (Some(_), _) => {
            let text = String::from_utf8_lossy(paste).into_owned();
            Parsed::Whole(length + PASTE_ENDS.len(), Some(TypedKey::Paste(text)))
        }
        (None, 0) => Parsed::Cut,
        (None, _) => Parsed::Whole(length, None),
    }
}

/// Returns the number of bytes at the end of `bytes` that may be the beginning of `mark`.
fn beginning_of(mark: &[u8], bytes: &[u8]) -> usize {
    (1..mark.len()).rev().find(|length| bytes.ends_with(&mark[..*length])).unwrap_or(0)
}

fn key(bytes: &[u8], nothing_follows: bool) -> Parsed {
    match *bytes {
        [ESC] if !nothing_follows => Parsed::Cut,
        [ESC] | [ESC, ESC, ..] => plain(1, KeyCode::Esc),
        [ESC, b'[', ..] if bytes.len() > 2 || !nothing_follows => control_sequence(bytes, nothing_follows),
        [ESC, b'O', b'M', ..] => plain(3, KeyCode::Enter),
        [ESC, b'O', end, ..] => Parsed::Whole(3, final_byte(end).map(|code| typed(code, KeyModifiers::NONE))),
        [ESC, b'O'] if !nothing_follows => Parsed::Cut,
        [ESC, b']' | b'P' | b'X' | b'^' | b'_', ..] if bytes.len() > 2 || !nothing_follows => {
            control_string(bytes, nothing_follows)
        }
        [ESC, ..] => with_alt(&bytes[1..], nothing_follows),
        _ => character(bytes, nothing_follows),
    }
}

fn with_alt(bytes: &[u8], nothing_follows: bool) -> Parsed {
    match character(bytes, nothing_follows) {
        Parsed::Whole(length, Some(TypedKey::Key(key))) => {
            Parsed::Whole(length + 1, Some(typed(key.code, key.modifiers | KeyModifiers::ALT)))
        }
        Parsed::Whole(length, other) => Parsed::Whole(length + 1, other),
        Parsed::Cut => Parsed::Cut,
    }
}

fn character(bytes: &[u8], nothing_follows: bool) -> Parsed {
    let control =
        |letter: u8| Parsed::Whole(1, Some(typed(KeyCode::Char(letter.into()), KeyModifiers::CONTROL)));
    match bytes[0] {
        b'\r' => plain(1, KeyCode::Enter),
        b'\t' => plain(1, KeyCode::Tab),
        // Older terminals send ^H.
        0x7f | 0x08 => plain(1, KeyCode::Backspace),
        0 => control(b' '),
        byte @ 0x01..=0x1a => control(byte + b'`'),
        byte @ 0x1b..=0x1f => control(byte + b'@'),
        byte @ 0x20..=0x7e => plain(1, KeyCode::Char(byte.into())),
        0x80..=0xff => beyond_ascii(bytes, nothing_follows),
    }
}

fn beyond_ascii(bytes: &[u8], nothing_follows: bool) -> Parsed {
    let longest = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(longest) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&longest[..error.valid_up_to()]).unwrap_or_default()
        }
        // The input ends inside a character.
        Err(error) if error.error_len().is_none() && !nothing_follows => return Parsed::Cut,
        Err(_) => return Parsed::Whole(1, None),
    };
    match valid.chars().next() {
        Some(c) => plain(c.len_utf8(), KeyCode::Char(c)),
        None => Parsed::Whole(1, None),
    }
}

/// Parses `CSI parameters final` (ECMA-48 §5.4). `nothing_follows` is true if no further bytes are expected.
fn control_sequence(bytes: &[u8], nothing_follows: bool) -> Parsed {
    let body = &bytes[2..];
    let Some(length) = body.iter().position(|byte| !(0x20..=0x3f).contains(byte)) else {
        let is_over = nothing_follows || body.len() > LONGEST_SEQUENCE;
        return if is_over { Parsed::Whole(bytes.len(), None) } else { Parsed::Cut };
    };
    let end = body[length];
    if !(0x40..=0x7e).contains(&end) {
        // Another key interrupted this sequence. The sequence is dropped.
        return Parsed::Whole(2 + length, None);
    }
    let key = std::str::from_utf8(&body[..length]).ok().and_then(|parameters| function_key(parameters, end));
    Parsed::Whole(3 + length, key)
}

/// Parses OSC, DCS, SOS, PM and APC strings (ECMA-48 §5.6), which are terminal reports and no keys.
fn control_string(bytes: &[u8], nothing_follows: bool) -> Parsed {
    let body = &bytes[2..];
    // xterm accepts BEL as the end. ESC begins the end or another sequence.
    let end = body.iter().position(|byte| [BEL, CAN, SUB, ESC].contains(byte));
    let answer = end.filter(|_| bytes[1] == b']').and_then(|end| background::answer(&body[..end]));
    match (end, end.map(|end| &body[end..])) {
        (Some(end), Some([ESC, b'\\', ..])) => Parsed::Whole(2 + end + 2, answer.map(TypedKey::Theme)),
        (Some(end), Some([ESC, _, ..])) => Parsed::Whole(2 + end, None),
        (Some(end), Some([BEL, ..])) => Parsed::Whole(2 + end + 1, answer.map(TypedKey::Theme)),
        (Some(end), Some([CAN | SUB, ..])) => Parsed::Whole(2 + end + 1, None),
        // The rest of a terminal's answer may still come, and is no text.
        _ if bytes[1] == b']' && background::is_beginning(body) => Parsed::Cut,
        _ if nothing_follows || body.len() > LONGEST_STRING => Parsed::Whole(bytes.len(), None),
        _ => Parsed::Cut,
    }
}

fn function_key(parameters: &str, end: u8) -> Option<TypedKey> {
    if parameters.starts_with('?') && end == b'c' {
        return Some(TypedKey::Attributes);
    }
    if let Some(button) = parameters.strip_prefix('<').filter(|_| end == b'M') {
        return wheel(button);
    }
    if parameters.starts_with(['<', '=', '>', '?']) {
        // Answers of the terminal and released mouse buttons are no keys.
        return None;
    }
    let mut numbers = parameters.split(';').map(|number| {
        // Numbers after a colon are details of kitty's protocol.
        number.split(':').next().unwrap_or_default().parse::<u32>().ok()
    });
    let (first, second, third) =
        (numbers.next().flatten(), numbers.next().flatten(), numbers.next().flatten());
    match (end, first) {
        (b'I' | b'O', None) => Some(TypedKey::Focus(end == b'I')),
        // The format of modifyOtherKeys with xterm's `formatOtherKeys: 0`.
        (b'~', Some(27)) => Some(typed(code_point(third?)?, modifiers(second))),
        (b'~', Some(number)) => Some(typed(numbered(number)?, modifiers(second))),
        (b'u', Some(number)) => Some(typed(code_point(number)?, modifiers(second))),
        (b'Z', _) => Some(typed(KeyCode::BackTab, modifiers(second) | KeyModifiers::SHIFT)),
        (_, _) => Some(typed(final_byte(end)?, modifiers(second))),
    }
}

/// Parses a mouse report (SGR, 1006). Only the wheel has a meaning.
fn wheel(report: &str) -> Option<TypedKey> {
    match report.split(';').next()?.parse() {
        Ok(64u8) => Some(TypedKey::Wheel(-1)),
        Ok(65) => Some(TypedKey::Wheel(1)),
        _ => None,
    }
}

/// Parses the modifiers of xterm: 1 + shift 1 + alt 2 + control 4.
fn modifiers(number: Option<u32>) -> KeyModifiers {
    let bits = number.unwrap_or(1).saturating_sub(1);
    let all = [(1, KeyModifiers::SHIFT), (2, KeyModifiers::ALT), (4, KeyModifiers::CONTROL)];
    all.into_iter().filter(|(bit, _)| bits & bit != 0).fold(KeyModifiers::NONE, |sum, (_, key)| sum | key)
}

fn final_byte(end: u8) -> Option<KeyCode> {
    Some(match end {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'P'..=b'S' => KeyCode::F(end - b'P' + 1),
        _ => return None,
    })
}

fn numbered(number: u32) -> Option<KeyCode> {
    let function =
        |first: u32, key: u8| u8::try_from(number - first).ok().map(|offset| KeyCode::F(key + offset));
    match number {
        1 | 7 => Some(KeyCode::Home),
        2 => Some(KeyCode::Insert),
        3 => Some(KeyCode::Delete),
        4 | 8 => Some(KeyCode::End),
        5 => Some(KeyCode::PageUp),
        6 => Some(KeyCode::PageDown),
        11..=15 => function(11, 1),
        17..=21 => function(17, 6),
        23 | 24 => function(23, 11),
        _ => None,
    }
}

fn code_point(number: u32) -> Option<KeyCode> {
    Some(match number {
        9 => KeyCode::Tab,
        13 => KeyCode::Enter,
        27 => KeyCode::Esc,
        8 | 127 => KeyCode::Backspace,
        _ => KeyCode::Char(char::from_u32(number).filter(|c| !c.is_control())?),
    })
}

fn plain(length: usize, code: KeyCode) -> Parsed {
    Parsed::Whole(length, Some(typed(code, KeyModifiers::NONE)))
}

fn typed(code: KeyCode, mut modifiers: KeyModifiers) -> TypedKey {
    if matches!(code, KeyCode::Char(c) if c.is_uppercase()) {
        modifiers |= KeyModifiers::SHIFT;
    }
    TypedKey::Key(KeyEvent::new(code, modifiers))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8]) -> Vec<TypedKey> {
        let mut keys = Keys::default();
        let mut typed = keys.take(bytes);
        typed.extend(keys.give_up_waiting());
        typed
    }

    fn names(bytes: &[u8]) -> String {
        named(all(bytes))
    }

    fn named(typed: Vec<TypedKey>) -> String {
        let name = |typed: TypedKey| match typed {
            TypedKey::Paste(text) => format!("paste {text:?}"),
            TypedKey::Focus(focused) => format!("focus {focused}"),
            TypedKey::Wheel(notches) => format!("wheel {notches}"),
            TypedKey::Theme(theme) => format!("{theme:?}"),
            TypedKey::Attributes => "attributes".to_owned(),
            TypedKey::Key(key) => {
                let held = |modifier, name| if key.modifiers.contains(modifier) { name } else { "" };
                let control = held(KeyModifiers::CONTROL, "C-");
                let alt = held(KeyModifiers::ALT, "A-");
                let shift = held(KeyModifiers::SHIFT, "S-");
                format!("{control}{alt}{shift}{:?}", key.code)
            }
        };
        typed.into_iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn keys_are_what_terminals_send_for_them() {
        insta::assert_snapshot!(names(b"aZ \xc3\xa4\xe6\xbc\xa2\xf0\x9f\xa6\x80"), @"Char('a') S-Char('Z') Char(' ') Char('ä') Char('漢') Char('🦀')");
        insta::assert_snapshot!(names(b"\r\n\t\x7f\x08\x03\x1a\0\x1c"), @r"Enter C-Char('j') Tab Backspace Backspace C-Char('c') C-Char('z') C-Char(' ') C-Char('\\')");
        insta::assert_snapshot!(names(b"\x1b[A\x1bOB\x1b[1;5C\x1b[1;2D\x1b[H\x1b[4~\x1b[5~\x1b[6;3~\x1b[3~"), @"Up Down C-Right S-Left Home End PageUp A-PageDown Delete");
        insta::assert_snapshot!(names(b"\x1bOM\x1bOP\x1b[15~\x1b[17~\x1b[24~\x1b[1;2S\x1b[Z"), @"Enter F(1) F(5) F(6) F(12) S-F(4) S-BackTab");
        insta::assert_snapshot!(names(b"\x1b[13;2u\x1b[27;5;13~\x1b[97;5u\x1b[27u"), @"S-Enter C-Enter C-Char('a') Esc");
        insta::assert_snapshot!(names(b"\x1bx\x1b\r\x1b\x7f\x1b\x01"), @"A-Char('x') A-Enter A-Backspace C-A-Char('a')");
        insta::assert_snapshot!(names(b"\x1b\x1b\x1b[A\x1b"), @"Esc Esc Up Esc");
        insta::assert_snapshot!(names(b"\x1b[<64;10;5M\x1b[<65;1;1M\x1b[<0;3;4M\x1b[<0;3;4m\x1b[<64;1;1m\x1b[<;M\x1b[<999M"), @"wheel -1 wheel 1");
        insta::assert_snapshot!(names(b"\x1b[Ia\x1b[O\x1b[1;2I"), @"focus true Char('a') focus false");
    }

    #[test]
    fn what_a_terminal_reports_is_no_key() {
        for report in [
            "\x1b]11;rgb:y/y/y\x1b\\",
            "\x1b]0;y\x07",
            "\x1bP1$ry\x1b\\",
            "\x1b_Gy\x1b\\",
            "\x1b^y\x18",
            "\x1bXy\x1a",
        ] {
            assert_eq!(names(format!("{report}a").as_bytes()), "Char('a')", "{report:?}");
            let mut keys = Keys::default();
            let bytes = report.bytes().flat_map(|byte| keys.take(&[byte])).collect::<Vec<_>>();
            assert_eq!(bytes, [], "{report:?}, byte by byte");
            assert_eq!(keys.waits_for(), None);
        }
        assert_eq!(names(b"\x1b]y\x1b[A"), "Up", "cut off by a key");
        assert_eq!(names(b"\x1b]yyy"), "", "never ended");
        assert_eq!(names(b"\x1b]"), "", "what may begin an answer is no key");
    }

    #[test]
    fn the_answer_to_the_question_for_the_background_is_no_text_however_it_comes() {
        let answer = b"\x1b]11;rgb:ffff/fafa/f0f0\x1b\\\x1b[?62;22c";
        assert_eq!(names(answer), "Light attributes");
        assert_eq!(names(b"\x1b]11;rgb:1e/1e/1e\x07"), "Dark");
        let mut keys = Keys::default();
        let mut typed = keys.take(&answer[..9]);
        typed.extend(keys.give_up_waiting());
        typed.extend(keys.take(&answer[9..]));
        assert_eq!(typed, [TypedKey::Theme(ThemeName::Light), TypedKey::Attributes]);
    }

    #[test]
    fn what_means_nothing_is_no_key() {
        for bytes in [
            &b"\x1b[<0;1;1M"[..],
            b"\x1b[M",
            b"\x1b[>1;2c",
            b"\x1b[99~",
            b"\xff",
            b"\x1b[27;5~",
            b"\x1b[1114112u",
        ] {
            assert_eq!(names(bytes), "", "{bytes:?}");
        }
        assert_eq!(names(b"\x1b[1;\x1b[A"), "Up");
        assert_eq!(names(&[b"\x1b[", &[b'1'; 100][..]].concat()), "");
    }

    #[test]
    fn a_paste_is_one_thing_and_none_of_it_is_a_key() {
        assert_eq!(
            names(b"a\x1b[200~x\ry\x03\x1b[A\n\x1b[201~b"),
            "Char('a') paste \"x\\ry\\u{3}\\u{1b}[A\\n\" Char('b')"
        );
        let mut keys = Keys::default();
        let half = keys.take(&[PASTE_BEGINS, &vec![b'x'; 1 << 20]].concat());
        assert!(half.is_empty() && keys.waits_for().is_none());
        let whole = keys.take(b"\x1b[201~");
        assert!(matches!(&whole[..], [TypedKey::Paste(text)] if text.len() == 1 << 20));
    }

    #[test]
    fn a_lone_escape_waits_for_what_follows() {
        let mut keys = Keys::default();
        assert!(keys.take(b"\x1b").is_empty());
        assert_eq!(keys.waits_for(), Some(KeyRest::OfEscape));
        assert_eq!(keys.take(b"[A"), [typed(KeyCode::Up, KeyModifiers::NONE)]);
        assert!(keys.take(b"\x1b").is_empty());
        assert_eq!(keys.give_up_waiting(), [typed(KeyCode::Esc, KeyModifiers::NONE)]);
        assert_eq!(keys.waits_for(), None);
    }

    #[test]
    fn half_of_a_sequence_is_never_text_and_waits_for_its_rest() {
        for (half, rest, whole) in [
            (&b"\x1b[1;"[..], &b"3D"[..], "A-Left"),
            (b"\x1b[", b"H", "Home"),
            (b"\x1bO", b"P", "F(1)"),
            (b"\xe6\xbc", b"\xa2", "Char('漢')"),
            (b"\x1b[20", b"0~a\rb\x1b[201~", "paste \"a\\rb\""),
            (b"\x1b[?62", b";22c", "attributes"),
            (b"\x1b]0;x", b"y\x07", ""),
        ] {
            let mut keys = Keys::default();
            assert_eq!(keys.take(half), [], "{half:?}");
            assert_eq!(keys.waits_for(), Some(KeyRest::OfSequence), "{half:?}");
            assert_eq!(named(keys.take(rest)), whole);
            keys.take(half);
            assert_eq!(keys.give_up_waiting(), [], "{half:?}");
            assert_eq!(named(keys.take(b"x")), "Char('x')", "{half:?}");
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_the_input_is_cut(bytes in pieces(), at in 0usize..64) {
            let (one, two) = bytes.split_at(at.min(bytes.len()));
            let mut keys = Keys::default();
            let mut typed = keys.take(one);
            typed.extend(keys.take(two));
            typed.extend(keys.give_up_waiting());
            prop_assert_eq!(typed, all(&bytes));
        }
    }

    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            Just(PASTE_BEGINS.to_vec()),
            Just(PASTE_ENDS.to_vec()),
            Just(b"\x1b[1;5".to_vec()),
            Just(b"\x1bO".to_vec()),
            Just("é漢".as_bytes().to_vec()),
        ];
        proptest::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
    }
}
