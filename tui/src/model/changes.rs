//! The changes of files that the file tools made in the session.

use std::collections::{BTreeMap, BTreeSet};

use ipc::event::FileDiff;
use ipc::path::WirePath;

use super::{Block, Look, Part};
use crate::card::in_project;
use crate::diff::{Counts, Diff};
use crate::highlight::language_of;
use crate::text::SafeText;

/// The most bytes of text that are kept; what comes after them is counted.
const KEPT: usize = 16 << 20;

/// The changes, in their order.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    steps: Vec<ChangeStep>,
    bytes: usize,
    /// The calls whose changes are not kept.
    left_out: usize,
    /// The lines that each file has more and less.
    counts: BTreeMap<WirePath, Counts>,
    /// The changes that there were so far: the number of the next one.
    next: usize,
    /// Those that the last rewind took back.
    taken_back: Vec<ChangeStep>,
}

/// The change of one file by one call.
#[derive(Debug)]
struct ChangeStep {
    /// Its place among all changes of the session.
    number: usize,
    /// The call, as its agent and its number.
    call: String,
    file: FileDiff,
}

impl Changes {
    /// A call made these changes.
    pub(crate) fn made(&mut self, call: &str, files: Vec<FileDiff>) {
        let length = |file: &FileDiff| file.old_text.as_ref().map_or(0, String::len) + file.new_text.len();
        self.bytes += files.iter().map(length).sum::<usize>();
        if self.bytes > KEPT {
            return self.left_out();
        }
        let paths: BTreeSet<_> = files.iter().map(|file| file.path.clone()).collect();
        for file in files {
            self.steps.push(ChangeStep { number: self.next, call: call.to_owned(), file });
            self.next += 1;
        }
        self.count(paths);
    }

    /// Counts the lines of these files again.
    fn count(&mut self, paths: BTreeSet<WirePath>) {
        for path in paths {
            let steps: Vec<_> = self.steps.iter().filter(|step| step.file.path == path).collect();
            if steps.is_empty() {
                self.counts.remove(&path);
            } else {
                let counts = composed(&steps).counts();
                self.counts.insert(path, counts);
            }
        }
    }

    /// The number of the next change: those that come from now on have this one or a higher one.
    pub(crate) const fn next(&self) -> usize {
        self.next
    }

    /// True before the first change.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.left_out == 0
    }

    /// Each file with the lines that it has more and less, and the number of the calls whose changes are not counted.
    pub(crate) fn files(&self) -> (impl ExactSizeIterator<Item = (&WirePath, Counts)>, usize) {
        (self.counts.iter().map(|(path, counts)| (path, *counts)), self.left_out)
    }

    /// These files are as they were before the change of this number.
    pub(crate) fn take_back(&mut self, paths: BTreeSet<WirePath>, first: usize) {
        let (kept, taken) = std::mem::take(&mut self.steps)
            .into_iter()
            .partition(|step| step.number < first || !paths.contains(&step.file.path));
        (self.steps, self.taken_back) = (kept, taken);
        self.count(paths);
    }

    /// The last rewind is undone.
    pub(crate) fn give_back(&mut self) {
        let paths = self.taken_back.iter().map(|step| step.file.path.clone()).collect();
        self.steps.append(&mut self.taken_back);
        self.steps.sort_by_key(|step| step.number);
        self.count(paths);
    }

    /// A call made changes that are not known.
    pub(crate) const fn left_out(&mut self) {
        self.left_out += 1;
    }

    /// All of them, by file or by step.
    pub(crate) fn shown(&self, by_step: bool, project: &WirePath) -> Vec<Block> {
        let mut blocks = Vec::new();
        if by_step {
            blocks.extend(self.steps.iter().map(|step| titled(&[step], project, Some(&step.call))));
        } else {
            let mut files: BTreeMap<&WirePath, Vec<&ChangeStep>> = BTreeMap::new();
            for step in &self.steps {
                files.entry(&step.file.path).or_default().push(step);
            }
            blocks.extend(files.values().map(|steps| titled(steps, project, None)));
        }
        let mut notes = Vec::new();
        if self.steps.is_empty() {
            notes.push("no file tool has changed a file".to_owned());
        }
        if self.left_out > 0 {
            let calls = if self.left_out == 1 { "call" } else { "calls" };
            notes.push(format!("changes of {} {calls} are not shown: too large, or no text", self.left_out));
        }
        notes.push("changes that commands made are not shown".to_owned());
        let note = |note: &String| Part::new(SafeText::line(note), Look::Notice);
        blocks.push(Block::of(notes.iter().map(note).collect()).apart());
        blocks
    }
}

/// The changes of one file, below its name.
fn titled(steps: &[&ChangeStep], project: &WirePath, call: Option<&str>) -> Block {
    let diff = composed(steps);
    let path = steps.first().map(|step| in_project(&step.file.path, project)).unwrap_or_default();
    let call = call.map(|call| format!("call {call}: ")).unwrap_or_default();
    let stat = format!(" {}", diff.counts());
    let title = SafeText::labelled(&call, &[path, stat.as_bytes()].concat());
    Block::of(vec![Part::new(title, Look::Heading), Part::diff(diff.in_language(&language_of(path)))]).apart()
}

/// Several changes as one, where each begins with what the one before it left; else one after the other.
fn composed(steps: &[&ChangeStep]) -> Diff {
    let follow = |pair: &[&ChangeStep]| match pair {
        [one, next] => {
            next.file.first_line == one.file.first_line
                && next.file.old_text.as_deref() == Some(&one.file.new_text)
        }
        _ => true,
    };
    match (steps.first(), steps.last()) {
        (Some(first), Some(last)) if first.file.first_line.is_some() && steps.windows(2).all(follow) => {
            of(first.file.old_text.as_deref(), &last.file)
        }
        _ => Diff::joined(steps.iter().map(|step| of(step.file.old_text.as_deref(), &step.file))),
    }
}

fn of(old: Option<&str>, change: &FileDiff) -> Diff {
    match old {
        Some(old) => Diff::between(old, &change.new_text, change.first_line),
        None => Diff::added(&change.new_text),
    }
}

/// The change of a call as one diff.
pub(crate) fn of_call(files: &[FileDiff]) -> Diff {
    let language = files.first().map(|file| language_of(file.path.as_bytes())).unwrap_or_default();
    let diffs = files.iter().map(|file| of(file.old_text.as_deref(), file));
    Diff::joined(diffs).in_language(&language)
}
