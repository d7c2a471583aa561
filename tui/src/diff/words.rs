use std::ops::Range;

use similar::{DiffOp, TextDiff};

use super::{DiffLine, Kind};
use crate::text::Clusters;

const LONGEST: usize = 1000;

/// Minimum similarity of a removed and an added line, from 0 to 1, for a comparison of their words.
const LEAST: f32 = 0.4;

/// Maximum number of word pairs that are compared in one diff.
const MOST: usize = 1 << 22;

/// Marks the words in which removed lines differ from the lines that replace them.
pub(super) fn compare_words(lines: &mut [DiffLine]) {
    let (mut at, mut compared) = (0, 0);
    while at < lines.len() {
        let run = |from: usize, kind| lines.iter().skip(from).take_while(|line| line.kind == kind).count();
        let removed = run(at, Kind::Removed);
        let added = run(at + removed, Kind::Added);
        for n in at..at + removed.min(added) {
            if let Ok([old, new]) = lines.get_disjoint_mut([n, n + removed]) {
                compared += compare(old, new, MOST.saturating_sub(compared));
            }
        }
        at += (removed + added).max(1);
    }
}

/// Marks the different words of two lines. Returns the number of compared word pairs. If there would be more than
/// `most`, compares nothing and returns `most`.
fn compare(old: &mut DiffLine, new: &mut DiffLine, most: usize) -> usize {
    let (old_text, new_text) = (old.text.as_str(), new.text.as_str());
    if old_text.len().max(new_text.len()) > LONGEST {
        return 0;
    }
    let (old_words, new_words) = (words(old_text), words(new_text));
    let cost = old_words.len() * new_words.len();
    if cost > most {
        return most;
    }
    let (old_texts, new_texts) = (texts(old_text, &old_words), texts(new_text, &new_words));
    let diff = TextDiff::from_slices(&old_texts, &new_texts);
    // A line with little in common does not count as a replacement.
    if diff.ratio() >= LEAST {
        for op in diff.ops().iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
            old.words.extend(bytes(&old_words, op.old_range()));
            new.words.extend(bytes(&new_words, op.new_range()));
        }
    }
    cost
}

fn bytes(words: &[Range<usize>], of: Range<usize>) -> Option<Range<usize>> {
    let words = words.get(of)?;
    Some(words.first()?.start..words.last()?.end)
}

fn texts<'a>(text: &'a str, words: &[Range<usize>]) -> Vec<&'a str> {
    words.iter().map(|word| text.get(word.clone()).unwrap_or_default()).collect()
}

fn words(text: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut in_word = false;
    for cluster in Clusters::new(text, 0) {
        let belongs = cluster.text.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        match words.last_mut() {
            Some(last) if belongs && in_word => last.end = cluster.end(),
            _ => words.push(cluster.at..cluster.end()),
        }
        in_word = belongs;
    }
    words
}
