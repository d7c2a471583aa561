//! Replacement of exact text in the content of a file, for `edit_file`.

use std::borrow::Cow;

use ipc::tool::{Edit, ToolErrorKind};
use memchr::memmem;

use super::closest;
use super::text::Form;
use crate::fault::{Result, failed};

/// Maximum number of line numbers in the error message about a text that occurs more than once.
const TOLD: usize = 10;

#[derive(Debug, PartialEq, Eq)]
pub struct Replaced {
    pub bytes: Vec<u8>,
    pub replacements: u64,
}

/// Makes all edits, one after the other. Fails if one does not match.
pub fn replace(old: &[u8], edits: &[Edit]) -> Result<Replaced> {
    if edits.is_empty() {
        return Err(failed(
            ToolErrorKind::InvalidArgument,
            "The call has no edit; give old_string and new_string.",
        ));
    }
    let form = Form::of(old, true);
    let ends = LineEnds::of(&form.decode(old));
    let mut replaced = Replaced { bytes: old.to_vec(), replacements: 0 };
    for (index, edit) in edits.iter().enumerate() {
        let label =
            if edits.len() == 1 { String::new() } else { format!("Edit {} of {}: ", index + 1, edits.len()) };
        let one = OneEdit {
            form,
            label,
            edit,
            old: ends.adapt(&edit.old_string),
            new: ends.adapt(&edit.new_string),
        };
        replaced = one.apply(replaced)?;
    }
    Ok(replaced)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnds {
    Lf,
    CrLf,
    Mixed,
}

impl LineEnds {
    fn of(text: &str) -> Self {
        let all = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        match memmem::find_iter(text.as_bytes(), "\r\n").count() {
            0 => Self::Lf,
            pairs if pairs == all => Self::CrLf,
            _ => Self::Mixed,
        }
    }

    /// Converts text to the file's line ends, which the model cannot see. Mixed line ends leave the text unchanged.
    fn adapt(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Lf if text.contains("\r\n") => text.replace("\r\n", "\n").into(),
            Self::CrLf if text.contains('\n') => text.replace("\r\n", "\n").replace('\n', "\r\n").into(),
            Self::Lf | Self::CrLf | Self::Mixed => text.into(),
        }
    }
}

struct OneEdit<'a> {
    form: Form,
    label: String,
    edit: &'a Edit,
    old: Cow<'a, str>,
    new: Cow<'a, str>,
}

impl OneEdit<'_> {
    fn apply(&self, before: Replaced) -> Result<Replaced> {
        self.check()?;
        let (old, new) = (self.encode(&self.old)?, self.encode(&self.new)?);
        let found = occurrences(&before.bytes, &old, self.form);
        match found.len() {
            0 => return Err(self.absent(&before.bytes)),
            1 => {}
            _ if self.edit.replace_all => {}
            _ => return Err(self.ambiguous(&before.bytes, &found)),
        }
        Ok(Replaced {
            bytes: splice(&before.bytes, &found, old.len(), &new),
            replacements: before.replacements + found.len() as u64,
        })
    }

    fn check(&self) -> Result<()> {
        let message = match () {
            () if self.old.is_empty() => {
                "old_string is empty; give the text to replace, or use write_file for a whole file."
            }
            () if self.edit.old_string == self.edit.new_string => {
                "old_string and new_string are the same; nothing would change."
            }
            () if self.old == self.new => {
                "old_string and new_string differ only in line ends, which the file keeps; use shell_exec to convert them."
            }
            () => return Ok(()),
        };
        Err(failed(ToolErrorKind::InvalidArgument, format!("{}{message}", self.label)))
    }

    fn encode<'a>(&self, text: &'a str) -> Result<Cow<'a, [u8]>> {
        self.form.encode(text).ok_or_else(|| {
            let message = format!("{}The file is {}, which cannot encode some of the given characters; use others, or convert the file first.", self.label, self.form.name());
            failed(ToolErrorKind::InvalidArgument, message)
        })
    }

    fn absent(&self, bytes: &[u8]) -> crate::fault::Stop {
        let hint = closest::hint(&self.form.decode(bytes), &self.old);
        failed(
            ToolErrorKind::NoUniqueMatch,
            format!("{}old_string does not occur in the file. {hint}", self.label),
        )
    }

    fn ambiguous(&self, bytes: &[u8], found: &[usize]) -> crate::fault::Stop {
        let lines: Vec<_> =
            found.iter().take(TOLD).map(|&at| line_of(bytes, at, self.form).to_string()).collect();
        let more = if found.len() > TOLD { " …" } else { "" };
        let message = format!(
            "{}old_string occurs {} times, at lines {}{more}; add lines around it until it is unique, or set replace_all.",
            self.label,
            found.len(),
            lines.join(", "),
        );
        failed(ToolErrorKind::NoUniqueMatch, message)
    }
}

/// Returns the positions of `needle`, which do not overlap. In UTF-16, a match starts only at a whole code unit.
fn occurrences(bytes: &[u8], needle: &[u8], form: Form) -> Vec<usize> {
    let finder = memmem::Finder::new(needle);
    let (mut found, mut from) = (Vec::new(), form.mark);
    while let Some(index) = bytes.get(from..).and_then(|rest| finder.find(rest)) {
        let at = from + index;
        let aligned = (at - form.mark).is_multiple_of(form.unit());
        if aligned {
            found.push(at);
        }
        from = if aligned { at + needle.len() } else { at + 1 };
    }
    found
}

fn splice(bytes: &[u8], found: &[usize], length: usize, new: &[u8]) -> Vec<u8> {
    let mut spliced = Vec::with_capacity(bytes.len() + found.len() * new.len());
    let mut from = 0;
    for &at in found {
        spliced.extend_from_slice(&bytes[from..at]);
        spliced.extend_from_slice(new);
        from = at + length;
    }
    spliced.extend_from_slice(&bytes[from..]);
    spliced
}

fn line_of(bytes: &[u8], at: usize, form: Form) -> usize {
    1 + memchr::memchr_iter(b'\n', form.decode(&bytes[..at]).as_bytes()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Stop;

    fn edit(old: &str, new: &str) -> Edit {
        Edit { old_string: old.to_owned(), new_string: new.to_owned(), replace_all: false }
    }

    fn refusal(old: &[u8], edits: &[Edit]) -> (ToolErrorKind, String) {
        match replace(old, edits) {
            Err(Stop::Failed(error)) => (error.kind, error.message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn bytes_around_the_text_stay_as_they_are() {
        let table: [(&[u8], Edit, &[u8]); 11] = [
            (b"a b c", edit("b", "X"), b"a X c"),
            (b"no newline", edit("newline", "end"), b"no end"),
            (b"a\r\nb\r\nc", edit("a\nb\n", "x\ny\nz\n"), b"x\r\ny\r\nz\r\nc"),
            (b"a\r\nb\r\n", edit("b", "x\r\ny"), b"a\r\nx\r\ny\r\n"),
            (b"a\nb\n", edit("a\r\nb", "c\r\nd"), b"c\nd\n"),
            (b"a\r\nb\nc\n", edit("b\nc", "d\ne"), b"a\r\nd\ne\n"),
            (b"\xef\xbb\xbfa", edit("a", "b"), b"\xef\xbb\xbfb"),
            (b"\xff\xfea\0b\0", edit("b", "\u{fc}c"), b"\xff\xfea\0\xfc\0c\0"),
            (b"\xfe\xff\0a\0b", edit("ab", "z"), b"\xfe\xff\0z"),
            (b"gr\xfcn\xe9\x81", edit("gr\u{fc}n", "\u{e4}"), b"\xe4\xe9\x81"),
            (b"bin\0\xff\xfe word", edit("word", "w"), b"bin\0\xff\xfe w"),
        ];
        for (old, edit, expected) in table {
            let replaced = replace(old, std::slice::from_ref(&edit)).unwrap();
            assert_eq!(replaced, Replaced { bytes: expected.to_vec(), replacements: 1 }, "{edit:?}");
        }
    }

    #[test]
    fn utf16_matches_only_at_whole_units() {
        // Between the units 0x0061 0x6100 lie the bytes 61 00 00 61: "a" little-endian occurs once.
        let replaced = replace(b"\xff\xfea\0\0a", &[edit("a", "b")]).unwrap();
        assert_eq!(replaced.bytes, b"\xff\xfeb\0\0a");
    }

    #[test]
    fn several_edits_happen_in_order() {
        let replaced =
            replace(b"one two two", &[edit("one", "two"), Edit { replace_all: true, ..edit("two", "3") }]);
        assert_eq!(replaced.unwrap(), Replaced { bytes: b"3 3 3".to_vec(), replacements: 4 });
    }

    #[test]
    fn refusals_say_what_to_do() {
        let many = "x\n".repeat(12);
        let table: [(&[u8], Vec<Edit>, ToolErrorKind, &str); 7] = [
            (b"a", vec![], ToolErrorKind::InvalidArgument, "The call has no edit"),
            (b"a", vec![edit("", "b")], ToolErrorKind::InvalidArgument, "old_string is empty"),
            (b"a", vec![edit("a", "a")], ToolErrorKind::InvalidArgument, "are the same"),
            (b"a\r\n", vec![edit("a\n", "a\r\n")], ToolErrorKind::InvalidArgument, "only in line ends"),
            (
                b"a\nb\na",
                vec![edit("a", "c")],
                ToolErrorKind::NoUniqueMatch,
                "occurs 2 times, at lines 1, 3;",
            ),
            (
                many.as_bytes(),
                vec![edit("x", "c")],
                ToolErrorKind::NoUniqueMatch,
                "12 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …",
            ),
            (
                b"a b",
                vec![edit("a", "c"), edit("a", "d")],
                ToolErrorKind::NoUniqueMatch,
                "Edit 2 of 2: old_string does not occur",
            ),
        ];
        for (old, edits, kind, part) in table {
            let (found, message) = refusal(old, &edits);
            assert!(found == kind && message.contains(part), "{message}");
        }
    }

    #[test]
    fn characters_that_the_file_cannot_hold_are_refused() {
        let (kind, message) = refusal(b"gr\xfcn", &[edit("gr", "→")]);
        assert_eq!(kind, ToolErrorKind::InvalidArgument);
        assert!(message.contains("windows-1252"), "{message}");
    }
}
