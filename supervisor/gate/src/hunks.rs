//! Hunks of unified diffs. They work on lines of bytes, so that any encoding and any line ends are possible.

use std::io::{self, Write};
use std::ops::Range;
use std::time::Instant;

use protocol::approval::HunkRange;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

/// Number of equal lines around a change.
const CONTEXT: usize = 3;

type TextLine<'a> = &'a [u8];

/// Hunk of a diff: its text, and the ranges of bytes that it replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    pub range: HunkRange,
    pub text: Vec<u8>,
}

/// Returns the hunks of a diff. After `deadline` the diff stays correct, but replaces more than needed.
pub fn hunks(old: &[u8], new: &[u8], deadline: Instant) -> Vec<Hunk> {
    let (old, new) = (lines(old), lines(new));
    let hunk = |ops: &Vec<DiffOp>| {
        let mut text = Vec::new();
        // A Vec takes every write.
        let _ = write_hunk(ops, &old, &new, &mut text);
        let bytes = |all: &[TextLine<'_>], of: fn(&DiffOp) -> Range<usize>| {
            let Extent(first, end) = extent(ops, of).unwrap_or(Extent(0, 0));
            let length = |lines: &[TextLine<'_>]| lines.iter().map(|line| line.len()).sum::<usize>();
            let start = length(&all[..first]);
            start..start + length(&all[first..end])
        };
        Hunk {
            range: HunkRange { old: bytes(&old, DiffOp::old_range), new: bytes(&new, DiffOp::new_range) },
            text,
        }
    };
    groups(&old, &new, deadline).iter().map(hunk).collect()
}

/// Writes the hunks of a diff. After `deadline`, the diff stays correct but replaces more than needed.
pub fn write_hunks(old: &[u8], new: &[u8], deadline: Instant, out: &mut dyn Write) -> io::Result<()> {
    let (old, new) = (lines(old), lines(new));
    groups(&old, &new, deadline).iter().try_for_each(|hunk| write_hunk(hunk, &old, &new, out))
}

/// Returns the diff operations of each hunk.
fn groups(old: &[TextLine<'_>], new: &[TextLine<'_>], deadline: Instant) -> Vec<Vec<DiffOp>> {
    let ops = capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline));
    let ops = in_sequence(&ops, old, new).unwrap_or_else(|| replaced(old, new));
    group_diff_ops(ops, CONTEXT)
}

/// Splits a text into lines with their line feeds. A carriage return belongs to its line, as in git.
fn lines(text: &[u8]) -> Vec<TextLine<'_>> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Corrects the positions of diff operations, so that each begins where the one before ends. `None` if the operations
/// do not lead from the old text to the new one.
///
/// `similar` 2.7 may keep old positions after it merged neighbouring operations.
fn in_sequence(ops: &[DiffOp], old: &[TextLine<'_>], new: &[TextLine<'_>]) -> Option<Vec<DiffOp>> {
    let (mut old_index, mut new_index) = (0, 0);
    let mut placed = Vec::with_capacity(ops.len());
    for op in ops {
        let (old_len, new_len) = (op.old_range().len(), op.new_range().len());
        placed.push(match op {
            DiffOp::Equal { len, .. } => DiffOp::Equal { old_index, new_index, len: *len },
            DiffOp::Delete { .. } => DiffOp::Delete { old_index, old_len, new_index },
            DiffOp::Insert { .. } => DiffOp::Insert { old_index, new_index, new_len },
            DiffOp::Replace { .. } => DiffOp::Replace { old_index, old_len, new_index, new_len },
        });
        let (old_part, new_part) =
            (old.get(old_index..old_index + old_len)?, new.get(new_index..new_index + new_len)?);
        if matches!(op, DiffOp::Equal { .. }) && old_part != new_part {
            return None;
        }
        old_index += old_len;
        new_index += new_len;
    }
    (old_index == old.len() && new_index == new.len()).then_some(placed)
}

/// Returns a diff with one replacement: everything between the equal lines at the beginning and at the end.
fn replaced(old: &[TextLine<'_>], new: &[TextLine<'_>]) -> Vec<DiffOp> {
    let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_len, new_len) = (old_rest.len() - end, new_rest.len() - end);
    vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: start },
        DiffOp::Replace { old_index: start, old_len, new_index: start, new_len },
        DiffOp::Equal { old_index: start + old_len, new_index: start + new_len, len: end },
    ]
}

fn write_hunk(
    ops: &[DiffOp],
    old: &[TextLine<'_>],
    new: &[TextLine<'_>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let (Some(before), Some(after)) = (extent(ops, DiffOp::old_range), extent(ops, DiffOp::new_range)) else {
        return Ok(());
    };
    writeln!(out, "@@ -{before} +{after} @@")?;
    for op in ops {
        if matches!(op, DiffOp::Equal { .. }) {
            write_lines(b' ', &old[op.old_range()], out)?;
        } else {
            write_lines(b'-', &old[op.old_range()], out)?;
            write_lines(b'+', &new[op.new_range()], out)?;
        }
    }
    Ok(())
}

fn write_lines(sign: u8, lines: &[TextLine<'_>], out: &mut dyn Write) -> io::Result<()> {
    for line in lines {
        out.write_all(&[sign])?;
        out.write_all(line)?;
        if !line.ends_with(b"\n") {
            out.write_all(b"\n\\ No newline at end of file\n")?;
        }
    }
    Ok(())
}

/// Returns the lines that a hunk spans in the text that `of` selects, the old or the new; `None` for no operations.
fn extent(ops: &[DiffOp], of: fn(&DiffOp) -> Range<usize>) -> Option<Extent> {
    Some(Extent(of(ops.first()?).start, of(ops.last()?).end))
}

/// First line of a range, counted from 0, and the line after the range.
struct Extent(usize, usize);

/// Writes the first line, from 1, and the number of lines unless it is 1. For an empty range, writes the line before.
impl std::fmt::Display for Extent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.1 - self.0 {
            0 => write!(f, "{},0", self.0),
            1 => write!(f, "{}", self.0 + 1),
            count => write!(f, "{},{count}", self.0 + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::time::Duration;

    use insta::assert_snapshot;

    use super::*;

    fn hunks(old: &str, new: &str) -> String {
        let mut out = Vec::new();
        let deadline = Instant::now() + Duration::from_mins(1);
        write_hunks(old.as_bytes(), new.as_bytes(), deadline, &mut out).unwrap();
        String::from_utf8(out).unwrap().replace('\r', "<CR>")
    }

    #[test]
    fn a_change_has_three_lines_of_context() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        assert_snapshot!(hunks(old, &old.replace('5', "five")), @r"
        @@ -2,7 +2,7 @@
         2
         3
         4
        -5
        +five
         6
         7
         8
        ");
    }

    #[test]
    fn the_missing_newline_is_said_on_the_side_that_lacks_it() {
        assert_snapshot!(hunks("a\nb", "a\nb\n"), @r"
        @@ -1,2 +1,2 @@
         a
        -b
        \ No newline at end of file
        +b
        ");
    }

    #[test]
    fn carriage_returns_are_text() {
        assert_snapshot!(hunks("a\r\nb\rc\r\n", "a\r\nb\rd\r\n"), @r"
        @@ -1,2 +1,2 @@
         a<CR>
        -b<CR>c<CR>
        +b<CR>d<CR>
        ");
    }

    #[test]
    fn a_new_text_begins_at_line_zero_of_nothing() {
        assert_snapshot!(hunks("", "a\n"), @r"
        @@ -0,0 +1 @@
        +a
        ");
    }

    #[test]
    fn steps_that_lead_elsewhere_are_not_believed() {
        let (old, new) = (lines(b"a\nb\nc\n"), lines(b"a\nx\ny\nc\n"));
        let step = |old_index, new_index, len| DiffOp::Equal { old_index, new_index, len };
        assert_eq!(in_sequence(&[step(0, 0, 3)], &old, &new), None);
        assert_eq!(in_sequence(&[step(0, 0, 1)], &old, &new), None);
        assert_eq!(in_sequence(&[step(0, 0, 9)], &old, &new), None);
        let right = replaced(&old, &new);
        assert_eq!(in_sequence(&right, &old, &new), Some(right));
    }

    #[test]
    fn a_deadline_in_the_past_still_gives_a_patch() {
        let text = |odd: &str| {
            (0..5000).fold(String::new(), |mut text, n| {
                let _ = writeln!(text, "{}{}", if n % 2 == 1 { odd } else { "same" }, n % 7);
                text
            })
        };
        let (old, new) = (text("old"), text("new"));
        let mut out = Vec::new();
        write_hunks(old.as_bytes(), new.as_bytes(), Instant::now(), &mut out).unwrap();
        let side = |sign: char| -> String {
            let lines = std::str::from_utf8(&out).unwrap().lines().skip(1);
            lines.filter(|line| line.starts_with([' ', sign])).flat_map(|line| [&line[1..], "\n"]).collect()
        };
        // Three equal lines at the beginning are context.
        assert!(old.ends_with(&side('-')) && new.ends_with(&side('+')));
        assert!(side('-').len() > old.len() - 40);
    }
}
