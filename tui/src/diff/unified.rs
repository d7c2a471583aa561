use super::words::compare_words;
use super::{Diff, Kind};

#[derive(Default)]
struct Hunk {
    old: u64,
    old_left: u64,
    new: u64,
    new_left: u64,
}

/// Parses a unified diff. Lines outside of its hunks become lines of kind `Note`.
pub(crate) fn read_unified(unified: &str) -> Diff {
    let mut diff = Diff::default();
    let mut hunk = Hunk::default();
    for line in unified.split_inclusive('\n') {
        let (sign, text) = line.split_at(line.len().min(usize::from(line.is_char_boundary(1))));
        let kind = match sign {
            " " | "\n" if hunk.old_left > 0 && hunk.new_left > 0 => Kind::Same,
            "+" if hunk.new_left > 0 => Kind::Added,
            "-" if hunk.old_left > 0 => Kind::Removed,
            _ => {
                match header(line) {
                    Some(next) => {
                        if diff.lines.iter().any(|line| line.kind != Kind::Note) {
                            diff.gap();
                        }
                        hunk = next;
                    }
                    None if line.starts_with('\\') => diff.note("\\ no line end at the end of the file"),
                    None => diff.push(Kind::Note, [None; 2], line),
                }
                continue;
            }
        };
        diff.push(kind, [Some(hunk.old), Some(hunk.new)], text);
        if kind != Kind::Added {
            (hunk.old, hunk.old_left) = (hunk.old.saturating_add(1), hunk.old_left - 1);
        }
        if kind != Kind::Removed {
            (hunk.new, hunk.new_left) = (hunk.new.saturating_add(1), hunk.new_left - 1);
        }
    }
    compare_words(&mut diff.lines);
    diff
}

fn header(line: &str) -> Option<Hunk> {
    let ranges = line.strip_prefix("@@ -")?.trim_end_matches('\n').strip_suffix(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
    Some(Hunk { old, old_left, new, new_left })
}
