//! Parser of git's configuration syntax, after `config.c` of git.
//!
//! The parser rejects each file that git might understand differently. A rejected file is never considered harmless.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GitConfigEntry {
    pub(super) section: Vec<u8>,
    pub(super) subsection: Option<Vec<u8>>,
    pub(super) key: Vec<u8>,
    /// Value of the key; `None` for a key without `=`, which git takes for "true".
    pub(super) value: Option<Vec<u8>>,
    /// Byte range of the entry in the file: key, value and line end.
    pub(super) span: Range<usize>,
}

impl GitConfigEntry {
    pub(super) fn name(&self) -> String {
        let section = (!self.section.is_empty()).then_some(&self.section);
        let parts: Vec<_> = section.into_iter().chain(&self.subsection).chain([&self.key]).cloned().collect();
        String::from_utf8_lossy(&parts.join(&b'.')).into_owned()
    }

    pub(super) fn meaning(&self) -> Meaning<'_> {
        (&self.section, self.subsection.as_deref(), &self.key, self.value.as_deref())
    }
}

pub(super) type Meaning<'a> = (&'a [u8], Option<&'a [u8]>, &'a [u8], Option<&'a [u8]>);

/// Error for a file that git would not accept, with the position in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("git does not accept this configuration, from byte {0}")]
pub(super) struct SyntaxError(pub(super) usize);

pub(super) fn parse(text: &[u8]) -> Result<Vec<GitConfigEntry>, SyntaxError> {
    // A NUL ends the string for some of git's readers and not for others.
    if let Some(at) = text.iter().position(|byte| *byte == 0) {
        return Err(SyntaxError(at));
    }
    let at = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    Parser { text, at }.file()
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

type Header = (Vec<u8>, Option<Vec<u8>>);

impl Parser<'_> {
    fn file(mut self) -> Result<Vec<GitConfigEntry>, SyntaxError> {
        let mut entries = Vec::new();
        // Git also reads entries before the first section.
        let mut header: Header = (Vec::new(), None);
        loop {
            let start = self.at;
            match self.next() {
                None => return Ok(entries),
                Some(b'#' | b';') => self.skip_line(),
                Some(b'[') => header = self.header()?,
                Some(byte) if is_space(byte) => {}
                Some(byte) if byte.is_ascii_alphabetic() => {
                    let (section, subsection) = header.clone();
                    let (key, value) = self.entry(byte)?;
                    entries.push(GitConfigEntry { section, subsection, key, value, span: start..self.at });
                }
                Some(_) => return Err(SyntaxError(start)),
            }
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        if byte == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
            return Some(b'\n');
        }
        Some(byte)
    }

    /// Returns the next byte. The end of the file counts as a line end.
    fn next_of_line(&mut self) -> u8 {
        self.next().unwrap_or(b'\n')
    }

    fn skip_line(&mut self) {
        while self.next_of_line() != b'\n' {}
    }

    /// Parses a section header, starting after its `[`.
    fn header(&mut self) -> Result<Header, SyntaxError> {
        let mut name = Vec::new();
        loop {
            let here = self.at;
            match self.next() {
                Some(b']') if !name.is_empty() => return Ok(without_dots(name)),
                Some(b' ' | b'\t') if !name.is_empty() => return Ok((name, Some(self.subsection()?))),
                Some(byte) if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.' => {
                    name.push(byte.to_ascii_lowercase());
                }
                _ => return Err(SyntaxError(here)),
            }
        }
    }

    /// Parses the rest of `[name "subsection"]`, from before the first quotation mark to the closing `]`.
    fn subsection(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let here = self.at;
        let mut byte = self.next();
        while matches!(byte, Some(b' ' | b'\t')) {
            byte = self.next();
        }
        if byte != Some(b'"') {
            return Err(SyntaxError(here));
        }
        let mut name = Vec::new();
        loop {
            match self.next() {
                Some(b'"') => break,
                Some(b'\\') => match self.next() {
                    None | Some(b'\n') => return Err(SyntaxError(here)),
                    Some(byte) => name.push(byte),
                },
                None | Some(b'\n') => return Err(SyntaxError(here)),
                Some(byte) => name.push(byte),
            }
        }
        if self.next() == Some(b']') { Ok(name) } else { Err(SyntaxError(here)) }
    }

    fn entry(&mut self, first: u8) -> Result<(Vec<u8>, Option<Vec<u8>>), SyntaxError> {
        let mut key = vec![first.to_ascii_lowercase()];
        let mut byte = self.next_of_line();
        while byte.is_ascii_alphanumeric() || byte == b'-' {
            key.push(byte.to_ascii_lowercase());
            byte = self.next_of_line();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.next_of_line();
        }
        match byte {
            b'\n' => Ok((key, None)),
            b'=' => Ok((key, Some(self.value()?))),
            _ => Err(SyntaxError(self.at)),
        }
    }

    fn value(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let mut value = Vec::new();
        // White space outside of quotes counts only between words.
        let mut kept = 0;
        let mut quoted = false;
        loop {
            match self.next_of_line() {
                b'\n' if quoted => return Err(SyntaxError(self.at)),
                b'\n' => break,
                b'#' | b';' if !quoted => {
                    self.skip_line();
                    break;
                }
                b'"' => {
                    quoted = !quoted;
                    kept = value.len();
                }
                b'\\' => {
                    value.extend(self.escape()?);
                    kept = value.len();
                }
                byte if !quoted && is_space(byte) => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                }
                byte => {
                    value.push(byte);
                    kept = value.len();
                }
            }
        }
        value.truncate(kept);
        Ok(value)
    }

    /// Parses an escape after its backslash. `None` if a line end follows, so that the value continues on the next
    /// line.
    fn escape(&mut self) -> Result<Option<u8>, SyntaxError> {
        let at_end = self.at >= self.text.len();
        match self.next_of_line() {
            b'\n' if at_end => Err(SyntaxError(self.at)),
            b'\n' => Ok(None),
            b't' => Ok(Some(b'\t')),
            b'b' => Ok(Some(0x08)),
            b'n' => Ok(Some(b'\n')),
            byte @ (b'\\' | b'"') => Ok(Some(byte)),
            _ => Err(SyntaxError(self.at)),
        }
    }
}

/// True for the characters that git's own `isspace` accepts.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Splits a header of the old form, `[section.subsection]`.
fn without_dots(name: Vec<u8>) -> Header {
    match name.iter().position(|byte| *byte == b'.') {
        Some(at) => (name[..at].to_vec(), Some(name[at + 1..].to_vec())),
        None => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    fn as_git_reads(text: &[u8]) -> Option<Vec<(String, Option<Vec<u8>>)>> {
        let mut child = Command::new("git")
            .args(["config", "--file", "-", "--list", "-z", "--no-includes"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text).unwrap();
        let output = child.wait_with_output().unwrap();
        let entries = output.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        let entry = |entry: &[u8]| match entry.iter().position(|byte| *byte == b'\n') {
            Some(at) => (String::from_utf8_lossy(&entry[..at]).into_owned(), Some(entry[at + 1..].to_vec())),
            None => (String::from_utf8_lossy(entry).into_owned(), None),
        };
        output.status.success().then(|| entries.map(entry).collect())
    }

    fn as_we_read(text: &[u8]) -> Option<Vec<(String, Option<Vec<u8>>)>> {
        let entries = parse(text).ok()?;
        Some(entries.into_iter().map(|entry| (entry.name(), entry.value)).collect())
    }

    const TEXTS: &[&str] = &[
        "",
        "[core]\n\tbare = false\n",
        "\u{feff}[core]\nbare",
        "[CORE] HooksPath = x ; comment\n",
        "[a \"B c\\\"d\\\\\"]\r\n\tk = v\r\n",
        "[a.B]\nk=v",
        "[alias]\n x = \"!sh -c \\\"a # b\\\"\" # c\n",
        "[a]\nk = one \\\n   two   \\\nthree  \n",
        "[a]\nk = \"x\" y \"  z  \"   \n",
        "[a]\nk\n[b]l=\n[c]m = = =\n",
        "# only\n; comments",
        "[a]\n\tk = v\\tw\\nx\n",
        "[a] k = 1\n[b] l = 2",
        "[a \"\"]\nk = v\n",
        "[a]\nk = a\rb\n",
        "[include]\npath = x\n",
        "k = v",
        "x",
        "hooksPath = x\n[core]\nhooksPath = y\n",
    ];

    #[test]
    fn what_git_reads_is_what_we_read() {
        for text in TEXTS {
            assert_eq!(as_we_read(text.as_bytes()), as_git_reads(text.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn what_git_refuses_is_refused() {
        for text in ["[a", "[a \"b]", "[a]\nk = \"x\n", "[a]\nk = \\q\n", "[a]\n1 = x\n", "[a b]\nk=v"] {
            assert_eq!(as_git_reads(text.as_bytes()), None, "{text:?}");
            assert_eq!(as_we_read(text.as_bytes()), None, "{text:?}");
        }
        // Git reads past a NUL, but not in a way that is worth following.
        assert!(parse(b"[a]\nk = v\0\n").is_err());
    }

    #[test]
    fn a_span_can_be_cut_out() {
        let text = b"[core] hooksPath = x\\\n y\n\tbare = false\n";
        let entries = parse(text).unwrap();
        let mut rest = text.to_vec();
        rest.drain(entries[0].span.clone());
        assert_eq!(rest, b"[core] \tbare = false\n");
    }

    fn fragment() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(vec![
            "[a]",
            "[a \"b\"]",
            "[A.B]",
            "\n",
            "\r\n",
            "\r",
            " ",
            "\t",
            "k",
            "=",
            "v",
            "\"",
            "\\",
            "#",
            ";",
            "k = v\n",
            "\\\n",
            "é",
            "[",
            "]",
            "1",
            "-",
            "\\n",
            "core",
            "\u{feff}",
        ])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        /// Tests that git reads each file that this parser accepts in the same way, or rejects it.
        #[test]
        fn we_never_read_what_git_does_not(parts in proptest::collection::vec(fragment(), 0..14)) {
            let text = parts.concat();
            if let (Some(ours), Some(git)) = (as_we_read(text.as_bytes()), as_git_reads(text.as_bytes())) {
                prop_assert_eq!(ours, git, "{:?}", text);
            }
        }
    }
}
