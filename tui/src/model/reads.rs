//! Row of the transcript that several consecutive tool calls share if all of them only read.

use std::collections::BTreeMap;

use ratatui::style::Modifier;

use super::block::Block;
use super::look::Look;
use super::part::{Fold, Part};
use super::transcript::Transcript;
use crate::text::{SafeText, Styled, Tone};

/// Finished tool calls that only read, by the indices of their blocks in the transcript.
#[derive(Debug, Default)]
pub(crate) struct Reads(BTreeMap<usize, FinishedRead>);

#[derive(Clone, Debug)]
pub(crate) struct FinishedRead {
    pub verb: String,
    pub object: String,
    pub lines: usize,
}

impl Reads {
    pub(crate) fn finished(&mut self, transcript: &mut Transcript, block: usize, read: FinishedRead) {
        self.0.insert(block, read);
        let is_read = |at: &usize| self.0.contains_key(at);
        let first = (0..=block).rev().take_while(is_read).last().unwrap_or(block);
        let run: Vec<_> = (first..transcript.len()).take_while(is_read).collect();
        let mut parts = Vec::new();
        for at in &run {
            let (Some(read), Some(block)) = (self.0.get(at), transcript.block_mut(*at)) else { return };
            let mut of_read = std::mem::take(&mut block.parts);
            block.gap &= *at == first;
            // A single read has a first row and a result. Below a shared row, each result needs a row that names the
            // file.
            if of_read.len() == 2 && run.len() > 1 {
                let name = SafeText::line(&format!("{} {}", read.verb, read.object));
                of_read.insert(1, Part::new(name, Look::Turn).folded(Fold::Told));
            }
            parts.extend(of_read.into_iter().skip(1));
        }
        let reads: Vec<_> = run.iter().filter_map(|at| self.0.get(at)).collect();
        parts.insert(0, Part::styled(head(&reads), Look::Tool));
        if let Some(block) = transcript.block_mut(first) {
            *block = Block { parts, gap: block.gap, opened: block.opened };
        }
    }

    pub(crate) fn cut_from(&mut self, block: usize) {
        self.0.split_off(&block);
    }
}

fn head(reads: &[&FinishedRead]) -> Styled {
    let mut row = Styled::from(SafeText::line("✓ "));
    let mut add = |text: &str, tone| row.append(SafeText::line(text).all(), tone);
    let mut verb = None;
    for FinishedRead { verb: of_read, object, .. } in reads {
        match verb.replace(of_read) {
            Some(before) if before == of_read => add(", ", Tone::default()),
            before => {
                add(if before.is_some() { " · " } else { "" }, Tone::default());
                add(of_read, Tone::with(Modifier::BOLD));
                add(" ", Tone::default());
            }
        }
        add(object, Tone::default());
    }
    let lines: usize = reads.iter().map(|read| read.lines).sum();
    let unit = if lines == 1 { "line" } else { "lines" };
    add(&format!(" ({lines} {unit})"), Tone::default());
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(reads: &mut Reads, transcript: &mut Transcript, block: usize, verb: &str, object: &str) {
        let read = FinishedRead { verb: verb.to_owned(), object: object.to_owned(), lines: 2 };
        let parts = ["→", "a\nb\n"].map(|text| Part::new(SafeText::exact(text), Look::Tool));
        *transcript.block_mut(block).unwrap() = Block::of(parts.into());
        reads.finished(transcript, block, read);
    }

    fn heads(transcript: &mut Transcript) -> Vec<String> {
        let text = |block: &mut Block| block.parts.first().map(|part| part.text().as_str().to_owned());
        (0..transcript.len()).filter_map(|at| transcript.block_mut(at).and_then(text)).collect()
    }

    #[test]
    fn reads_in_any_order_are_one_row_with_every_result() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let (mut reads, mut transcript) = (Reads::default(), Transcript::default());
            (0..4).for_each(|_| _ = transcript.push(Block::default()));
            transcript.block_mut(3).unwrap().parts.push(Part::new(SafeText::exact("text"), Look::Tool));
            for block in order {
                let (verb, object) = [("read", "a"), ("read", "b"), ("search", "fn")][block];
                finish(&mut reads, &mut transcript, block, verb, object);
            }
            assert_eq!(heads(&mut transcript), ["✓ read a, b · search fn (6 lines)", "text"], "{order:?}");
            assert_eq!(transcript.block_mut(0).unwrap().parts.len(), 1 + 3 * 2);
        }
    }

    #[test]
    fn a_read_behind_other_text_has_a_row_of_its_own() {
        let (mut reads, mut transcript) = (Reads::default(), Transcript::default());
        (0..3).for_each(|_| _ = transcript.push(Block::default()));
        transcript.block_mut(1).unwrap().parts.push(Part::new(SafeText::exact("text"), Look::Tool));
        finish(&mut reads, &mut transcript, 0, "read", "a");
        finish(&mut reads, &mut transcript, 2, "read", "b");
        assert_eq!(heads(&mut transcript), ["✓ read a (2 lines)", "text", "✓ read b (2 lines)"]);
        reads.cut_from(2);
        transcript.block_mut(2).unwrap().parts.clear();
        finish(&mut reads, &mut transcript, 1, "read", "c");
        assert_eq!(heads(&mut transcript), ["✓ read a, c (4 lines)"]);
    }
}
