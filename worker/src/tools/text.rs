//! Encodings of text: detection, decoding and encoding.

use std::borrow::Cow;

use encoding_rs::{Decoder, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Number of bytes that are checked to tell binary files from text.
pub const SNIFF: usize = 8 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    /// UTF-8 with some invalid bytes.
    BrokenUtf8,
    Utf16Le,
    Utf16Be,
    /// Assumed if the text is neither UTF-8 nor UTF-16: windows-1252 has a character for every byte.
    Windows1252,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub encoding: Encoding,
    /// Length of the byte-order mark in bytes; 0 without one.
    pub mark: usize,
}

impl Form {
    /// Detects the encoding of a text. `whole` is true if `sample` is the whole file.
    pub fn of(sample: &[u8], whole: bool) -> Self {
        let marked = |encoding, mark| Self { encoding, mark };
        match sample {
            [0xef, 0xbb, 0xbf, rest @ ..] => marked(unmarked(rest, whole, true), 3),
            [0xff, 0xfe, ..] => marked(Encoding::Utf16Le, 2),
            [0xfe, 0xff, ..] => marked(Encoding::Utf16Be, 2),
            _ => marked(unmarked(sample, whole, false), 0),
        }
    }

    pub fn name(self) -> &'static str {
        self.codec().name()
    }

    pub fn decoder(self) -> Decoder {
        self.codec().new_decoder_without_bom_handling()
    }

    pub fn note(self) -> Option<&'static str> {
        match self.encoding {
            Encoding::BrokenUtf8 => Some("Bytes that are not UTF-8 are shown as U+FFFD."),
            Encoding::Windows1252 => Some("The bytes are not UTF-8; they are shown as windows-1252."),
            Encoding::Utf8 | Encoding::Utf16Le | Encoding::Utf16Be => None,
        }
    }

    pub fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        let text = bytes.get(self.mark..).unwrap_or_default();
        self.codec().decode_without_bom_handling(text).0
    }

    /// Encodes a text; `None` if the encoding lacks one of the text's characters.
    pub fn encode(self, text: &str) -> Option<Cow<'_, [u8]>> {
        match self.encoding {
            Encoding::Utf8 | Encoding::BrokenUtf8 => Some(Cow::Borrowed(text.as_bytes())),
            Encoding::Utf16Le => Some(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Encoding::Utf16Be => Some(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Encoding::Windows1252 => {
                let (bytes, _, unmappable) = WINDOWS_1252.encode(text);
                (!unmappable).then_some(bytes)
            }
        }
    }

    pub fn unit(self) -> usize {
        if matches!(self.encoding, Encoding::Utf16Le | Encoding::Utf16Be) { 2 } else { 1 }
    }

    fn codec(self) -> &'static encoding_rs::Encoding {
        match self.encoding {
            Encoding::Utf8 | Encoding::BrokenUtf8 => UTF_8,
            Encoding::Utf16Le => UTF_16LE,
            Encoding::Utf16Be => UTF_16BE,
            Encoding::Windows1252 => WINDOWS_1252,
        }
    }
}

/// Divisor: bytes that are not UTF-8 count as text if at most one byte in so many is a control character.
const CONTROLS: usize = 20;

/// True if the bytes have a NUL without a UTF-16 mark, or if they have many control characters and are not UTF-8. The
/// second rule is for packed or encrypted data, which would otherwise count as windows-1252.
pub fn is_binary(sample: &[u8]) -> bool {
    let sample = &sample[..sample.len().min(SNIFF)];
    if sample.starts_with(&[0xff, 0xfe]) || sample.starts_with(&[0xfe, 0xff]) {
        return false;
    }
    if sample.contains(&0) {
        return true;
    }
    let controls = sample.iter().filter(|byte| is_odd_control(**byte)).count();
    controls > sample.len() / CONTROLS && !is_utf8(sample)
}

/// True for a control character that neither text files nor terminal output contain.
const fn is_odd_control(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c' | b'\x1b' | b'\x08')
}

/// True if the bytes are UTF-8; the last character may be incomplete.
fn is_utf8(sample: &[u8]) -> bool {
    str::from_utf8(sample).map_or_else(|error| error.error_len().is_none(), |_| true)
}

/// Detects the encoding of text after its byte-order mark, if it has one. Text with more valid than invalid non-ASCII
/// characters counts as UTF-8 with errors.
fn unmarked(sample: &[u8], whole: bool, marked: bool) -> Encoding {
    if str::from_utf8(sample).is_ok() {
        return Encoding::Utf8;
    }
    let (mut wide, mut broken, mut rest) = (0, 0, sample.len());
    for chunk in sample.utf8_chunks() {
        wide += chunk.valid().chars().filter(|char| !char.is_ascii()).count();
        rest -= chunk.valid().len() + chunk.invalid().len();
        // A sample may end inside a character.
        if !chunk.invalid().is_empty() && (whole || rest > 0) {
            broken += 1;
        }
    }
    match (broken, wide) {
        (0, _) => Encoding::Utf8,
        _ if marked || wide > broken => Encoding::BrokenUtf8,
        _ => Encoding::Windows1252,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_told_apart() {
        let table: [(&[u8], bool, Encoding, usize); 9] = [
            (b"", true, Encoding::Utf8, 0),
            ("grün".as_bytes(), true, Encoding::Utf8, 0),
            (b"\xef\xbb\xbfa", true, Encoding::Utf8, 3),
            (b"\xff\xfea\0", true, Encoding::Utf16Le, 2),
            (b"\xfe\xff\0a", true, Encoding::Utf16Be, 2),
            (b"gr\xfcn", true, Encoding::Windows1252, 0),
            (b"gr\xc3\xbcn gr\xc3\xbcn \xff", true, Encoding::BrokenUtf8, 0),
            (b"abc\xc3", false, Encoding::Utf8, 0),
            (b"abc\xc3", true, Encoding::Windows1252, 0),
        ];
        for (bytes, whole, encoding, mark) in table {
            assert_eq!(Form::of(bytes, whole), Form { encoding, mark }, "{bytes:x?}");
        }
    }

    #[test]
    fn what_was_decoded_encodes_to_the_same_bytes() {
        for bytes in [&b"gr\xfcn\x81"[..], b"\xff\xfea\0=\xd8\0\xde", b"\xfe\xff\0a", "é".as_bytes()] {
            let form = Form::of(bytes, true);
            let text = form.decode(bytes);
            assert_eq!(form.encode(&text).unwrap(), &bytes[form.mark..], "{bytes:x?}");
        }
        assert!(Form::of(b"\xfc", true).encode("→").is_none());
    }

    #[test]
    fn nul_is_binary_but_in_utf16() {
        assert!(is_binary(b"a\0b"));
        assert!(!is_binary(b"\xff\xfea\0"));
        assert!(!is_binary("ä".as_bytes()));
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let step = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[4].max(1)
        };
        std::iter::repeat_with(step).take(length).collect()
    }

    #[test]
    fn noise_is_binary_without_nul_too() {
        for length in [64, 700, SNIFF, 3 * SNIFF] {
            let bytes = noise(length);
            assert!(!bytes.contains(&0));
            assert!(is_binary(&bytes), "{length}");
        }
        // Only the first bytes count.
        assert!(!is_binary(&[vec![b'a'; SNIFF], noise(SNIFF)].concat()));
    }

    #[test]
    fn old_encodings_and_terminal_output_are_text() {
        let prose = b"Gr\xfc\xdfe aus K\xf6ln \x96 sch\xf6n.\r\n\tf\xfcr \x84dich\x93\x0c\n".repeat(200);
        assert!(!is_binary(&prose));
        let coloured = b"\x1b[1m\x1b[31merror\x1b[0m: \x08\x08caf\xe9\r\n".repeat(200);
        assert!(!is_binary(&coloured));
        // UTF-8 with many control characters is text, even if the sample ends inside a character.
        let odd = "\x01\x02\x03ä".repeat(SNIFF);
        assert!(!is_binary(odd.as_bytes()) && !is_binary(&odd.as_bytes()[1..]));
        // A stray control now and then.
        assert!(!is_binary(&[&b"\x01 title \x02"[..], &prose].concat()));
    }
}
