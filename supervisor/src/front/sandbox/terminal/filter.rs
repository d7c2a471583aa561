//! A filter for the output of a confined command to the person's terminal. Text, colours, cursor and screen control
//! pass. Clipboard access, and sequences that make the terminal type chosen text, do not.
//!
//! Some sequences make a terminal answer as if the person had typed. The next reader of the keyboard, such as a shell
//! after the command's end, takes the answer for keys. The parser follows ECMA-48 §5 as real terminals read it (xterm's
//! ctlseqs; `vt100.net/emu/dec_ansi_parser`). Sequences that pass are written anew in their complete 7-bit form, so
//! that no terminal can read them in another way:
//!
//! | passes | does not |
//! | --- | --- |
//! | text, C0 controls | ENQ (answers with text that can be programmed), CAN and SUB (begin file transfers in some terminals) |
//! | `ESC x` | `ESC k` (a name for the window, up to ST) |
//! | CSI: cursor, erasing, colours, modes, the title stack | reports of titles, window and screen contents (`t`, `*y`), printing (`i`), macros (`*z`), tests (`y`), modes saved and set again (`?s`, `?r`), the lock of the keyboard (`2h`), unknown intermediates |
//! | OSC 0, 1, 2 (title), 4, 5, 10–19, 104, 105, 110–119 (colours), 8 (links), 133 (prompts) | OSC 52 (clipboard), 50 (font), 1337 and 777 (files, clipboard, notices), every other |
//! | | DCS (key definitions, settings, macros), APC (images read from files), PM, SOS |
//!
//! Requests with an answer of a fixed form (cursor position, attributes, modes, colours) pass, because full-screen
//! programs wait for the answers. The filter records them, so that answers after the command's end can be dropped. The
//! output is UTF-8.
//!
//! `docs/adr/0020-one-filter-keeps-its-own-parser.md` lists the promises that the crate `vte` does not keep.

use std::collections::BTreeSet;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const ENQ: u8 = 0x05;

/// Maximum size in bytes of a control sequence or string that can pass.
const LONGEST: usize = 8 << 10;

/// Maximum number of repetitions of a character by one sequence (REP).
const MOST_REPEATED: u16 = 4096;

/// The replacement for bytes that are not valid UTF-8.
const UNREADABLE: &[u8] = "\u{fffd}".as_bytes();

/// Numbers of the operating system commands (OSC) that pass, besides those that set colours.
const COMMANDS: [&[u8]; 5] = [b"0", b"1", b"2", b"8", b"133"];

/// Private modes that are reset after the command, because they make the terminal type reports or hide output: mouse
/// and focus reports, the alternate screens, bracketed paste (DECSET of xterm's ctlseqs), synchronized output (2026),
/// reports of colour schemes (2031) and of sizes (2048), keys as Windows encodes them (9001).
const UNDONE: [u16; 18] =
    [9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 47, 1047, 1049, 2004, 2026, 2031, 2048, 9001];

#[derive(Debug, Default)]
pub(super) struct Filter {
    state: FilterState,
    held: Vec<u8>,
    /// The first bytes of an incomplete UTF-8 character.
    character: Vec<u8>,
    asked: bool,
    modes: BTreeSet<u16>,
    keys: FilterKeys,
}

/// The changes of the key encoding that must be undone after the command.
#[derive(Debug, Default)]
struct FilterKeys {
    /// Entries on the flag stack of kitty's keyboard protocol: pushed (`CSI > flags u`) and not popped
    /// (`CSI < number u`).
    pushed: u16,
    /// True if flags of kitty's protocol were set without a push (`CSI = flags ; mode u`).
    set: bool,
    /// The xterm resources that were set, such as modifyOtherKeys (XTMODKEYS, `CSI > resource ; value m`).
    resources: BTreeSet<u16>,
}

impl FilterKeys {
    fn remember(&mut self, prefix: u8, numbers: &[u8], end: u8) {
        let number = first(numbers);
        match (prefix, end) {
            (b'>', b'u') => self.pushed = self.pushed.saturating_add(1),
            (b'<', b'u') => self.pushed = self.pushed.saturating_sub(number.unwrap_or(1).max(1)),
            (b'=', b'u') => self.set = true,
            (b'>', b'm') => drop(number.map(|number| self.resources.insert(number))),
            _ => {}
        }
    }

    fn undo(self, out: &mut Vec<u8>) {
        if self.pushed > 0 {
            out.extend_from_slice(format!("\x1b[<{}u", self.pushed).as_bytes());
        }
        if self.set {
            out.extend_from_slice(b"\x1b[=0u");
        }
        for resource in self.resources {
            out.extend_from_slice(format!("\x1b[>{resource}m").as_bytes());
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FilterState {
    #[default]
    Text,
    Escape,
    Control,
    Command,
    /// Inside a control string of a kind that does not pass.
    Ignored,
    /// After an ESC inside a string. If a backslash follows, the string ends.
    StringEscape {
        command: bool,
    },
}

impl Filter {
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            self.byte(byte, &mut out);
        }
        out
    }

    /// True if the command asked the terminal something, so that an answer may still arrive.
    pub(super) fn asked(&self) -> bool {
        self.asked
    }

    /// Returns the bytes that reset the terminal modes that the command has set.
    pub(super) fn undo(&mut self) -> Vec<u8> {
        let mut out = vec![];
        // This comes before the alternate screen is left, because kitty has separate flags for each screen.
        std::mem::take(&mut self.keys).undo(&mut out);
        for mode in std::mem::take(&mut self.modes) {
            out.extend_from_slice(format!("\x1b[?{mode}l").as_bytes());
        }
        out
    }

    /// Handles one byte. The bytes of a UTF-8 character are collected first.
    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        if !self.character.is_empty() {
            if (0x80..=0xbf).contains(&byte) {
                self.character.push(byte);
                if self.character.len() == length(self.character[0]) {
                    let character = std::mem::take(&mut self.character);
                    self.character(&character, out);
                }
                return;
            }
            self.character.clear();
            self.character(&[], out);
        }
        match length(byte) {
            1 => self.step(byte, out),
            0 => self.character(&[], out),
            _ => self.character.push(byte),
        }
    }

    /// Handles a character. `bytes` may be invalid UTF-8.
    fn character(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if let [0xc2, control @ 0x80..=0x9f] = *bytes {
            // A C1 control means the same as ESC and the control minus 0x40 (ECMA-48 §5.3).
            self.step(ESC, out);
            return self.step(control - 0x40, out);
        }
        let valid = !bytes.is_empty() && std::str::from_utf8(bytes).is_ok();
        let bytes = if valid { bytes } else { UNREADABLE };
        match self.state {
            FilterState::Text => out.extend_from_slice(bytes),
            FilterState::Command if self.held.len() < LONGEST => self.held.extend_from_slice(bytes),
            FilterState::Command | FilterState::Ignored => {}
            // Terminals differ in how they read a byte outside of ASCII inside a sequence.
            FilterState::Escape | FilterState::Control | FilterState::StringEscape { .. } => {
                self.enter(FilterState::Text);
            }
        }
    }

    fn step(&mut self, byte: u8, out: &mut Vec<u8>) {
        if matches!(byte, CAN | SUB) {
            return self.enter(FilterState::Text);
        }
        match self.state {
            FilterState::Text => self.text(byte, out),
            FilterState::Escape => self.escape(byte, out),
            FilterState::Control => self.control(byte, out),
            FilterState::Command | FilterState::Ignored => self.string(byte, out),
            FilterState::StringEscape { command } => self.string_escape(command, byte, out),
        }
    }

    fn enter(&mut self, state: FilterState) {
        self.state = state;
        self.held.clear();
    }

    fn text(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            ESC => self.enter(FilterState::Escape),
            ENQ => {}
            _ => out.push(byte),
        }
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'[' => self.enter(FilterState::Control),
            b']' => self.enter(FilterState::Command),
            b'P' | b'X' | b'^' | b'_' | b'k' => self.enter(FilterState::Ignored),
            // The end of a string without a beginning.
            b'\\' => self.enter(FilterState::Text),
            ESC => self.enter(FilterState::Escape),
            // A control inside a sequence is carried out, and the sequence continues.
            0..=0x1f => self.text(byte, out),
            b' '..=b'/' if self.held.len() < 2 => self.held.push(byte),
            b'0'..=b'~' => {
                // DECID asks for the terminal's attributes.
                self.asked |= byte == b'Z';
                out.push(ESC);
                out.append(&mut self.held);
                out.push(byte);
                self.enter(FilterState::Text);
            }
            _ => self.enter(FilterState::Text),
        }
    }

    fn control(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            ESC => self.enter(FilterState::Escape),
            0..=0x1f => self.text(byte, out),
            b' '..=b'?' => {
                if self.held.len() < LONGEST {
                    self.held.push(byte);
                }
            }
            b'@'..=b'~' => {
                let sequence = std::mem::take(&mut self.held);
                if sequence.len() < LONGEST && self.control_passes(&sequence, byte) {
                    out.extend_from_slice(b"\x1b[");
                    out.extend_from_slice(&sequence);
                    out.push(byte);
                }
                self.enter(FilterState::Text);
            }
            _ => self.enter(FilterState::Text),
        }
    }

    fn control_passes(&mut self, sequence: &[u8], end: u8) -> bool {
        let split = sequence.iter().position(|byte| *byte < b'0').unwrap_or(sequence.len());
        let (parameters, intermediates) = sequence.split_at(split);
        let (prefix, numbers) = match parameters {
            [prefix @ b'<'..=b'?', numbers @ ..] => (*prefix, numbers),
            _ => (0, parameters),
        };
        let well_formed = numbers.iter().all(|byte| *byte < b'<') && intermediates.iter().all(|b| *b < b'0');
        let passes = match (prefix, intermediates, end) {
            // Only the title stack passes.
            (0, [], b't') => matches!(first(numbers), Some(22 | 23)),
            (_, [], b'i' | b'y') | (b'>', [], b'n' | b't' | b'T') | (b'?', [], b'S' | b'r' | b's') => false,
            // The lock of the keyboard does not pass.
            (0, [], b'h') => !numbers.split(|byte| *byte == b';').any(|mode| first(mode) == Some(2)),
            // A repetition is limited to a screen's size.
            (0, [], b'b') => numbers.is_empty() || first(numbers).is_some_and(|times| times <= MOST_REPEATED),
            (_, [], _) | (0, [b' '], b'q') | (0, [b'!'], b'p') | (0 | b'?', [b'$'], b'p') => true,
            _ => false,
        };
        if passes && well_formed {
            self.asked |=
                matches!((prefix, intermediates, end), (_, [], b'c' | b'n' | b'x') | (_, [b'$'], b'p'))
                    || matches!((prefix, end), (b'?', b'u') | (b'>', b'q'));
            if intermediates.is_empty() {
                self.remember(prefix, numbers, end);
                self.keys.remember(prefix, numbers, end);
            }
        }
        passes && well_formed
    }

    fn remember(&mut self, prefix: u8, numbers: &[u8], end: u8) {
        if prefix != b'?' || !matches!(end, b'h' | b'l') {
            return;
        }
        for mode in numbers.split(|byte| *byte == b';').filter_map(first) {
            if end == b'h' && UNDONE.contains(&mode) {
                self.modes.insert(mode);
            } else {
                self.modes.remove(&mode);
            }
        }
    }

    fn string(&mut self, byte: u8, out: &mut Vec<u8>) {
        let command = self.state == FilterState::Command;
        match byte {
            ESC => self.state = FilterState::StringEscape { command },
            BEL if command => self.end_command(out),
            // Controls are not a part of the string.
            0..=0x1f | 0x7f => {}
            _ if command && self.held.len() < LONGEST => self.held.push(byte),
            _ => {}
        }
    }

    fn string_escape(&mut self, command: bool, byte: u8, out: &mut Vec<u8>) {
        if byte == b'\\' && command {
            return self.end_command(out);
        }
        // Any other byte also ends the unfinished string, and begins a new sequence.
        self.enter(FilterState::Escape);
        if byte == b'\\' {
            self.enter(FilterState::Text);
        } else {
            self.escape(byte, out);
        }
    }

    fn end_command(&mut self, out: &mut Vec<u8>) {
        let command = std::mem::take(&mut self.held);
        if command.len() < LONGEST && command_passes(&command) {
            self.asked |= command.split(|byte| *byte == b';').any(|part| part == b"?");
            out.extend_from_slice(b"\x1b]");
            out.extend_from_slice(&command);
            out.extend_from_slice(b"\x1b\\");
        }
        self.enter(FilterState::Text);
    }
}

/// Returns the number of bytes of the UTF-8 character that begins with `first`; 0 if none does.
const fn length(first: u8) -> usize {
    match first {
        0..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 0,
    }
}

fn command_passes(command: &[u8]) -> bool {
    let number = command.split(|byte| *byte == b';').next().unwrap_or_default();
    // Colours of the palette, of text and cursor, and their resets.
    let colour = matches!(first(number), Some(4 | 5 | 10..=19 | 104 | 105 | 110..=119));
    COMMANDS.contains(&number) || (colour && number.iter().all(u8::is_ascii_digit))
}

fn first(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.split(|byte| !byte.is_ascii_digit()).next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passed(text: &[u8]) -> String {
        String::from_utf8_lossy(&Filter::default().pass(text)).into_owned()
    }

    #[test]
    fn what_programs_draw_with_passes() {
        for text in [
            "plain äöü 漢字 🦀\t\r\n\x08\x07",
            "\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mrgb\x1b[m",
            "\x1b[2J\x1b[10;20H\x1b[K\x1b[?1049h\x1b[?25l\x1b[4 q\x1b[!p",
            "\x1b7\x1b8\x1b(B\x1b=\x1bM\x1b#8\x1bc",
            "\x1b]0;a title\x1b\\\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\",
            "\x1b]11;?\x1b\\\x1b]4;1;rgb:00/11/22\x1b\\\x1b]104\x1b\\\x1b[22;2t\x1b[23;2t",
            "\x1b[s\x1b[u\x1b[2;20r\x1b[r\x1b[4h\x1b[4l\x1b[b\x1b[80b",
            "\x1b[6n\x1b[c\x1b[>c\x1b[?2026$p\x1b[?u\x1b[>q",
        ] {
            assert_eq!(passed(text.as_bytes()), text);
        }
        assert_eq!(passed(b"\x1b]2;bell\x07"), "\x1b]2;bell\x1b\\");
    }

    #[test]
    fn what_types_reads_or_stores_does_not() {
        for text in [
            "\x05",
            "\x1b[21t\x1b[20t\x1b[14t\x1b[18t\x1b[8;1;1t\x1b[t",
            "\x1b[?1003;1006s\x1b[?1003;1006r\x1b[2h\x1b[4;2h\x1b[>4n\x1b[2147483647b\x1b[4097b",
            "\x1b[>0t\x1b[1;1;1;1;1;1*y\x1b[1*z\x1b[5i\x1b[?5i\x1b[2;1y\x1b[1$w\x1b[2$u",
            "\x1b]52;c;cm0gLXJm\x07\x1b]52;c;?\x1b\\\x1b]50;?\x07\x1b]1337;CopyToClipboard=\x07",
            "\x1b]0052;c;cm0=\x07\x1b]5 2;c;cm0=\x07\x1b];\x07\x1b]\x07\x1b]8a;x\x07\x1b]0x;y\x07\x1b]4x;?\x07",
            "\x1bP$q\"p\x1b\\\x1bP+q544e\x1b\\\x1bP1;1|17/6c73\x1b\\\x1bP1;0;0!zAB\x1b\\",
            "\x1b_Ga=T,t=f;L2V0Yy9wYXNzd2Q=\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\\x1bkname\x1b\\",
            "\u{9b}21t\u{9d}52;c;cm0=\u{9c}\u{90}$qm\u{9c}",
            "\x1b\\\x18\x1a",
        ] {
            assert_eq!(passed(text.as_bytes()), "", "{text:?}");
        }
        assert_eq!(passed(b"\x9b21t\x9d52;\xc3\x1b[21t"), "\u{fffd}21t\u{fffd}52;\u{fffd}");
        assert_eq!(passed(b"\x1b]2;x\x1b]52;c;x\x07a"), "a");
        assert_eq!(passed(b"\x1b[2\x1b[21t"), "");
        assert_eq!(passed(b"\x1b[\xc3\x9b21t\x1b\xc3\x9d52;"), "21t52;");
    }

    #[test]
    fn a_sequence_is_written_whole_and_in_seven_bits() {
        assert_eq!(passed("\u{9b}1mx".as_bytes()), "\x1b[1mx");
        assert_eq!(passed(b"\x1b[1\n;2mx"), "\n\x1b[1;2mx");
        assert_eq!(passed(b"\x1b[1"), "");
        assert_eq!(passed(b"\x1b[1\x18mx"), "mx");
        let mut filter = Filter::default();
        let pieces: Vec<u8> = "é\x1b[1;31mß".bytes().flat_map(|byte| filter.pass(&[byte])).collect();
        assert_eq!(String::from_utf8(pieces).unwrap(), "é\x1b[1;31mß");
        let long = [b"\x1b]2;".to_vec(), vec![b'x'; LONGEST], b"\x07a".to_vec()].concat();
        assert_eq!(passed(&long), "a");
    }

    /// Tests the cases of ADR 20 that no other test covers.
    #[test]
    fn a_dropped_sequence_takes_no_text_along() {
        assert_eq!(passed("\x1b[1;2?1000hé".as_bytes()), "é");
        assert_eq!(passed("\x1b[1ém".as_bytes()), "m");
        assert_eq!(passed("\x1bPq“[2J\x1b\\a".as_bytes()), "a");
        assert_eq!(passed(b"\x1b]2;a\x18b"), "b");
        let mut filter = Filter::default();
        filter.pass(["\x1b[?", &"1;".repeat(32), "1000h"].concat().as_bytes());
        assert_eq!(filter.undo(), b"\x1b[?1000l");
    }

    #[test]
    fn modes_that_are_left_on_are_undone() {
        let mut filter = Filter::default();
        filter.pass(b"\x1b[?1049h\x1b[?1000;1006h\x1b[?1000l\x1b[?7h");
        assert_eq!(filter.undo(), b"\x1b[?1006l\x1b[?1049l");
        assert_eq!(filter.undo(), b"");
        assert!(!filter.asked());
        filter.pass(b"\x1b[6n");
        assert!(filter.asked());
    }

    #[test]
    fn another_encoding_of_keys_is_undone() {
        let mut filter = Filter::default();
        filter.pass(b"\x1b[?2048;2031h\x1b[?9001h\x1b[?2026h");
        assert_eq!(filter.undo(), b"\x1b[?2026l\x1b[?2031l\x1b[?2048l\x1b[?9001l");
        filter.pass(b"\x1b[>31u\x1b[>1u\x1b[>u\x1b[<u\x1b[>4;2m\x1b[>1;1m\x1b[?1049h");
        assert_eq!(filter.undo(), b"\x1b[<2u\x1b[>1m\x1b[>4m\x1b[?1049l");
        filter.pass(b"\x1b[=5;1u");
        assert_eq!(filter.undo(), b"\x1b[=0u");
        filter.pass(b"\x1b[>1u\x1b[<5u\x1b[1;31m");
        assert_eq!(filter.undo(), b"");
    }

    proptest! {
        /// Tests that the output does not depend on how the bytes are split, and that a second pass changes nothing.
        #[test]
        fn any_bytes_in_any_pieces(bytes in hostile(), cut in 0usize..64) {
            let whole = Filter::default().pass(&bytes);
            let mut filter = Filter::default();
            let cut = cut.min(bytes.len());
            let pieces = [filter.pass(&bytes[..cut]), filter.pass(&bytes[cut..])].concat();
            prop_assert_eq!(&whole, &pieces);
            prop_assert_eq!(&Filter::default().pass(&whole), &whole);
            prop_assert!(std::str::from_utf8(&whole).is_ok());
            prop_assert!(!whole.windows(5).any(|window| window == b"\x1b]52;"));
        }
    }

    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            proptest::sample::select(vec![
                &b"\x1b"[..],
                b"\x1b[",
                b"\x1b]",
                b"52;",
                b"\x1b]52;c;",
                b"\x1b\\",
                b"\x07",
                b"\x9b",
                b"\xc2",
                b"\xe2\x82",
                b"\xc2\x9b",
                b"21t",
                b"?1000h",
                b"\x1bP",
                b"\x9c",
                b"\x18",
                b"m",
                b"1;2",
            ])
            .prop_map(<[u8]>::to_vec),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }
}
