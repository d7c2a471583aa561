//! The `GIT binary patch` format: both contents as literals, compressed and in git's base 85 (diff.c, base85.c of git).

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::super::blob::Blob;

const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Maximum number of bytes that a line encodes. The line's first letter, `A` to `z`, states their number from 1 to 52.
const LINE: usize = 52;

pub(super) fn write(old: Option<&Blob>, new: Option<&Blob>, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"GIT binary patch\n")?;
    literal(new, out)?;
    literal(old, out)
}

fn literal(blob: Option<&Blob>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "literal {}", blob.map_or(0, Blob::len))?;
    let mut deflate = ZlibEncoder::new(PatchLines::new(out), Compression::default());
    if let Some(blob) = blob {
        io::copy(&mut blob.reader().take(blob.len()), &mut deflate)?;
    }
    deflate.finish()?.finish()
}

/// A writer that splits its input into lines of base 85.
struct PatchLines<'a> {
    out: &'a mut dyn Write,
    line: Vec<u8>,
}

impl<'a> PatchLines<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self { out, line: Vec::with_capacity(LINE) }
    }

    /// Writes the last line and the empty line that ends a literal.
    fn finish(mut self) -> io::Result<()> {
        self.end_line()?;
        self.out.write_all(b"\n")
    }

    fn end_line(&mut self) -> io::Result<()> {
        if self.line.is_empty() {
            return Ok(());
        }
        let mut text = vec![length_letter(self.line.len())];
        for word in self.line.chunks(4) {
            let mut bytes = [0; 4];
            bytes[..word.len()].copy_from_slice(word);
            text.extend_from_slice(&digits(u32::from_be_bytes(bytes)));
        }
        text.push(b'\n');
        self.line.clear();
        self.out.write_all(&text)
    }
}

impl Write for PatchLines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(LINE - self.line.len());
        self.line.extend_from_slice(&bytes[..count]);
        if self.line.len() == LINE {
            self.end_line()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the letter for the number of bytes in a line: `A` to `Z` for 1 to 26, `a` to `z` for 27 to 52.
fn length_letter(len: usize) -> u8 {
    (b'A'..=b'Z').chain(b'a'..=b'z').nth(len - 1).unwrap_or(b'z')
}

/// Returns four bytes as five digits of base 85, the most significant first.
fn digits(word: u32) -> [u8; 5] {
    let mut text = [0; 5];
    let mut left = word;
    for digit in text.iter_mut().rev() {
        *digit = DIGITS[(left % 85) as usize];
        left /= 85;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_one_short_line() {
        let mut out = Vec::new();
        literal(None, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "literal 0\nHc$@<O00001\n\n");
    }

    #[test]
    fn lines_are_full_but_the_last() {
        let mut out = Vec::new();
        let mut lines = PatchLines::new(&mut out);
        lines.write_all(&[0xff; LINE + 1]).unwrap();
        lines.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, format!("z{}\nA{{{{R30\n\n", "|NsC0".repeat(13)));
    }
}
