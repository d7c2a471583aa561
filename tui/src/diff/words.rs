//! The words in which a line differs from the one that it takes the place of.

use std::ops::Range;

use similar::{DiffOp, TextDiff};

use super::{Diff, Kind};
use crate::text::Clusters;

/// The longest line whose words are compared.
const LONGEST: usize = 1000;

/// The most lines whose words are compared.
const MOST: usize = 2000;

impl Diff {
    /// Compares the words of lines that are removed with those of the lines that follow in their place.
    pub(super) fn compare_words(&mut self) {
        let (mut at, mut compared) = (0, 0);
        while at < self.lines.len() && compared < MOST {
            let run =
                |from: usize, kind| self.lines.iter().skip(from).take_while(|line| line.kind == kind).count();
            let removed = run(at, Kind::Removed);
            let added = run(at + removed, Kind::Added);
            for n in at..at + removed.min(added) {
                self.compare(n, n + removed);
                compared += 1;
            }
            at += (removed + added).max(1);
        }
    }

    fn compare(&mut self, old: usize, new: usize) {
        let Some((old, new)) = self.lines.get_disjoint_mut([old, new]).ok().map(|[old, new]| (old, new))
        else {
            return;
        };
        let [old_text, new_text] = [&*old, &*new].map(|line| line.text.as_str().to_owned());
        if old_text.len().max(new_text.len()) > LONGEST {
            return;
        }
        let (old_words, new_words) = (words(&old_text), words(&new_text));
        let (old_texts, new_texts) = (texts(&old_text, &old_words), texts(&new_text, &new_words));
        let diff = TextDiff::from_slices(&old_texts, &new_texts);
        // One that has little in common with the other took the place of none.
        if diff.ratio() < 0.4 {
            return;
        }
        for op in diff.ops() {
            if matches!(op, DiffOp::Equal { .. }) {
                continue;
            }
            let bytes = |words: &[Range<usize>], of: Range<usize>| {
                let words = words.get(of)?;
                Some(words.first()?.start..words.last()?.end)
            };
            if let Some(range) = bytes(&old_words, op.old_range()) {
                old.words.push(range);
            }
            if let Some(range) = bytes(&new_words, op.new_range()) {
                new.words.push(range);
            }
        }
    }
}

fn texts<'a>(text: &'a str, words: &[Range<usize>]) -> Vec<&'a str> {
    words.iter().map(|word| text.get(word.clone()).unwrap_or_default()).collect()
}

/// Words, and each other character by itself with the marks that join it.
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
