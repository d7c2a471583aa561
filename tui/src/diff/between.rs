//! Comparison of two texts.

use similar::{ChangeTag, DiffOp, TextDiff};

use super::words::compare_words;
use super::{Diff, Kind};

/// Number of unchanged lines shown around a change.
const AROUND: usize = 3;

/// Maximum number of line pairs that are compared. With more, all lines between common beginning and end are replaced.
const MOST: usize = 1 << 20;

/// Compares two texts. `first_line` is the line number in the file at which both begin; `None` shows no line numbers.
pub(crate) fn between(old: &str, new: &str, first_line: Option<u64>) -> Diff {
    let mut diff = Diff::default();
    let [old_lines, new_lines] = [old, new].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let number = |at: usize| first_line?.checked_add(u64::try_from(at).ok()?);
    for (n, group) in groups(&old_lines, &new_lines).iter().enumerate() {
        if n > 0 {
            diff.gap();
        }
        for op in group {
            for change in op.iter_changes(&old_lines, &new_lines) {
                let kind = match change.tag() {
                    ChangeTag::Equal => Kind::Same,
                    ChangeTag::Insert => Kind::Added,
                    ChangeTag::Delete => Kind::Removed,
                };
                let line = change.value();
                let places = [change.old_index(), change.new_index()];
                diff.push(kind, places.map(|at| at.and_then(number)), line);
                if first_line.is_some() && !line.ends_with('\n') {
                    diff.note("\\ no line end at the end of the file");
                }
            }
        }
    }
    compare_words(&mut diff.lines);
    diff
}

fn groups(old: &[&str], new: &[&str]) -> Vec<Vec<DiffOp>> {
    let before = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (rest_old, rest_new) = (&old[before..], &new[before..]);
    let after = rest_old.iter().rev().zip(rest_new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_len, new_len) = (rest_old.len() - after, rest_new.len() - after);
    if old_len.saturating_mul(new_len) <= MOST {
        return TextDiff::from_slices(old, new).grouped_ops(AROUND);
    }
    let from = before - before.min(AROUND);
    let equal = |old_index, new_index, len| DiffOp::Equal { old_index, new_index, len };
    vec![vec![
        equal(from, from, before - from),
        DiffOp::Replace { old_index: before, old_len, new_index: before, new_len },
        equal(before + old_len, before + new_len, after.min(AROUND)),
    ]]
}
