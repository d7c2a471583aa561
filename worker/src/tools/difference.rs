use ipc::effect::FileEffect;

use super::text::{Encoding, Form, SNIFF, is_binary};

pub fn difference(effect: &FileEffect) -> Vec<String> {
    let (Some(old), Some(new)) = (&effect.old, &effect.new) else { return Vec::new() };
    let (old, new) = (old.bytes.as_slice(), new.bytes.as_slice());
    if old.is_empty() || new.is_empty() || [old, new].iter().any(|bytes| is_no_text(bytes)) {
        return Vec::new();
    }
    let (before, after) = (Form::of(old, true), Form::of(new, true));
    let mut told = Vec::new();
    // ASCII text is the same in windows-1252.
    let is_both = before.encoding == Encoding::Windows1252 && new.is_ascii();
    if before.name() != after.name() && !is_both {
        told.push(format!("the file's encoding was {}, and is {} now", before.name(), after.name()));
    } else if before.mark != 0 && after.mark == 0 {
        told.push("the file had a byte order mark, and has none now".to_owned());
    }
    if let (Some(was), Some(is)) = (line_end(before, old), line_end(after, new))
        && was != is
    {
        told.push(format!("the file's line ends were {was}, and are {is} now"));
    }
    told
}

fn is_no_text(bytes: &[u8]) -> bool {
    is_binary(bytes.get(..SNIFF).unwrap_or(bytes))
}

/// Returns the name of the line ends in a text; `None` if they are mixed or there are none.
fn line_end(form: Form, bytes: &[u8]) -> Option<&'static str> {
    let text = form.decode(bytes);
    let all = text.matches('\n').count();
    let long = text.matches("\r\n").count();
    match (all, long) {
        (0, _) => None,
        (_, 0) => Some("LF"),
        _ if all == long => Some("CRLF"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ipc::effect::FileState;

    use super::*;

    fn told(old: &[u8], new: &[u8]) -> String {
        let state = |bytes: &[u8]| Some(FileState { bytes: bytes.to_vec(), mode: 0o644 });
        let effect = FileEffect { path: "/p/f".into(), old: state(old), new: state(new), replacements: 0 };
        difference(&effect).join("; ")
    }

    #[test]
    fn a_text_that_changes_its_form_is_told() {
        let table: [(&[u8], &[u8], &str); 12] = [
            (b"a\r\nb\r\n", b"a\nc\n", "the file's line ends were CRLF, and are LF now"),
            (b"a\nb\n", b"a\r\nb\r\n", "the file's line ends were LF, and are CRLF now"),
            (b"a\r\nb\n", b"a\nb\n", ""),
            (b"a\r\nb\r\n", b"one line", ""),
            (b"\xef\xbb\xbfa", b"b", "the file had a byte order mark, and has none now"),
            (b"\xff\xfea\0\r\0\n\0", b"a\n", UTF_16),
            (b"\xfe\xff\0a", "\u{feff}b".as_bytes(), "the file's encoding was UTF-16BE, and is UTF-8 now"),
            (
                b"na\xefve text of old",
                "na\u{ef}ve".as_bytes(),
                "the file's encoding was windows-1252, and is UTF-8 now",
            ),
            (b"na\xefve text of old", b"naive", ""),
            ("gr\u{fc}n".as_bytes(), b"green", ""),
            (b"\0\x01\x02\r\n", b"text\n", ""),
            (b"", b"text\n", ""),
        ];
        for (old, new, expected) in table {
            assert_eq!(told(old, new), expected, "{}", old.escape_ascii());
        }
    }

    const UTF_16: &str =
        "the file's encoding was UTF-16LE, and is UTF-8 now; the file's line ends were CRLF, and are LF now";
}
