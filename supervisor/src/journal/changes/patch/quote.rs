//! File names in a patch, quoted as git does with `core.quotePath` on (quote.c).

use super::super::path::ProjectPath;

pub(super) struct QuotedName(Vec<u8>);

impl QuotedName {
    /// Builds a name from a prefix (`a/`, `b/`, or empty for renames), the path `base` of the project in its
    /// repository, and the path of the file in the project.
    pub(super) fn after(prefix: &str, base: &[u8], path: &ProjectPath) -> Self {
        Self([prefix.as_bytes(), base, path.as_bytes()].concat())
    }

    /// Returns the name, in C-style quotes if it has bytes that need them.
    pub(super) fn text(&self) -> Vec<u8> {
        if !self.0.iter().any(|byte| needs_quotes(*byte)) {
            return self.0.clone();
        }
        let mut quoted = vec![b'"'];
        self.0.iter().for_each(|byte| push_escaped(&mut quoted, *byte));
        quoted.push(b'"');
        quoted
    }

    /// Returns the name for the end of a `---` or `+++` line. A tab follows a name with a space, because patch(1) would
    /// end the name at the space.
    pub(super) fn end(&self) -> Vec<u8> {
        let mut text = self.text();
        if text.contains(&b' ') {
            text.push(b'\t');
        }
        text
    }
}

const fn needs_quotes(byte: u8) -> bool {
    byte < b' ' || byte >= 0x7f || matches!(byte, b'"' | b'\\')
}

fn push_escaped(quoted: &mut Vec<u8>, byte: u8) {
    let letter = match byte {
        0x07 => b'a',
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0b => b'v',
        0x0c => b'f',
        b'\r' => b'r',
        b'"' | b'\\' => byte,
        _ if needs_quotes(byte) => {
            quoted.extend_from_slice(format!("\\{byte:03o}").as_bytes());
            return;
        }
        _ => return quoted.push(byte),
    };
    quoted.extend_from_slice(&[b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use ipc::path::WirePath;

    use super::*;

    #[test]
    fn names_are_quoted_as_git_quotes_them() {
        for (path, text, end) in [
            (b"src/a.rs" as &[u8], "a/src/a.rs", "a/src/a.rs"),
            (b"a b", "a/a b", "a/a b\t"),
            ("\u{fc}".as_bytes(), r#""a/\303\274""#, r#""a/\303\274""#),
            (b"x\xff y", r#""a/x\377 y""#, "\"a/x\\377 y\"\t"),
            (b"q\"\\", r#""a/q\"\\""#, r#""a/q\"\\""#),
            (
                b"\x01\x07\x08\t\n\x0b\x0c\r\x7f",
                r#""a/\001\a\b\t\n\v\f\r\177""#,
                r#""a/\001\a\b\t\n\v\f\r\177""#,
            ),
        ] {
            let path = ProjectPath::try_from(WirePath::from(path.to_vec())).unwrap();
            let name = QuotedName::after("a/", b"", &path);
            assert_eq!(String::from_utf8(name.text()).unwrap(), text);
            assert_eq!(String::from_utf8(name.end()).unwrap(), end);
        }
    }
}
