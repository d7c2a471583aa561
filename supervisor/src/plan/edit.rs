//! Edits of a plan file, field by field.

use std::ops::Range;

use ipc::plan::{OnFailure, Plan, PlanStep};

use super::layout::{Layout, Section, StepLayout};
use super::print;

/// The text with another plan's fields in the place of those that differ.
pub(super) fn edited(source: &str, old: &Plan, layout: &Layout, new: &Plan) -> String {
    let newline = if source.contains("\r\n") { "\r\n" } else { "\n" };
    let mut edits = Edits { source, layout, newline, list: Vec::new() };
    if old.title != new.title {
        edits.replace(&layout.title, &new.title);
    }
    edits.context(old, new);
    let rights = new.rights.as_ref();
    if old.rights != new.rights {
        edits.section(layout.rights.as_ref(), rights.map(print::rights_list), rights.map(print::rights));
    }
    if old.on_failure != new.on_failure {
        let word = new.on_failure.map(OnFailure::as_str);
        edits.section(layout.on_failure.as_ref(), word.map(str::to_owned), word.map(print::on_failure));
    }
    edits.steps(&old.steps, &new.steps);
    edits.applied()
}

/// Replacements of parts of a text; none overlaps another.
struct Edits<'a> {
    source: &'a str,
    layout: &'a Layout,
    newline: &'static str,
    list: Vec<(Range<usize>, String)>,
}

impl Edits<'_> {
    /// Replaces a part; the comments in it stay, in front of the new text.
    fn replace(&mut self, range: &Range<usize>, text: &str) {
        let is_within = |comment: &&Range<usize>| range.start <= comment.start && comment.end <= range.end;
        let comments =
            self.layout.comments.iter().filter(is_within).filter_map(|c| self.source.get(c.clone()));
        let text = text.replace('\n', self.newline);
        let parts: Vec<_> = comments.chain([text.as_str()]).filter(|part| !part.is_empty()).collect();
        self.list.push((range.clone(), parts.join(self.newline)));
    }

    /// Adds a paragraph behind a line.
    fn add_below(&mut self, line_end: usize, text: &str) {
        self.list.push((line_end..line_end, format!("\n\n{text}").replace('\n', self.newline)));
    }

    /// Adds a paragraph above a line.
    fn add_above(&mut self, line_start: usize, text: &str) {
        self.list.push((line_start..line_start, format!("{text}\n\n").replace('\n', self.newline)));
    }

    fn context(&mut self, old: &Plan, new: &Plan) {
        if old.context == new.context {
            return;
        }
        let (content, section) = (new.context.clone(), print::context(&new.context));
        let is_there = !new.context.is_empty();
        self.section(self.layout.context.as_ref(), is_there.then_some(content), is_there.then_some(section));
    }

    /// Brings a section to this content: written anew, removed, or added above the steps.
    fn section(&mut self, place: Option<&Section>, content: Option<String>, whole: Option<String>) {
        match (place, content, whole) {
            (Some(Section { content: Some(old), .. }), Some(new), _) => self.replace(old, &new),
            (Some(Section { heading, content: None }), Some(new), _) => self.add_below(heading.end, &new),
            (Some(Section { heading, content }), None, _) => {
                let end = content.as_ref().map_or(heading.end, |content| content.end);
                self.replace(&(heading.start..end), "");
            }
            (None, _, Some(whole)) => self.add_above(self.layout.steps_heading, &whole),
            (None, _, None) => {}
        }
    }

    /// Steps that are the same at both ends keep their text; those between them are changed in order.
    fn steps(&mut self, old: &[PlanStep], new: &[PlanStep]) {
        let layout = self.layout;
        let before = old.iter().zip(new).take_while(|(one, other)| one == other).count();
        let most = old.len().min(new.len()) - before;
        let after = old.iter().rev().zip(new.iter().rev()).take(most);
        let after = after.take_while(|(one, other)| one == other).count();
        let changed = most - after;
        let both = before + changed;
        for (at, ((one, other), place)) in old.iter().zip(new).zip(&layout.steps).take(both).enumerate() {
            self.step(place, (at, one), (at, other));
        }
        for place in layout.steps.iter().take(old.len() - after).skip(both) {
            self.replace(&(place.heading.start..place.end), "");
        }
        let added = new.iter().enumerate().take(new.len() - after).skip(both);
        let added: Vec<_> = added.map(|(at, step)| print::step(at + 1, step)).collect();
        let last = both.checked_sub(1).and_then(|last| layout.steps.get(last));
        match (last, layout.steps.first()) {
            _ if added.is_empty() => {}
            (Some(place), _) => self.add_below(place.end, &added.join("\n\n")),
            (None, Some(first)) => self.add_above(first.heading.start, &added.join("\n\n")),
            (None, None) => {}
        }
        let (first_old, first_new) = (old.len() - after, new.len() - after);
        let kept = old.iter().zip(&layout.steps).skip(first_old).enumerate();
        for (count, (step, place)) in kept {
            self.step(place, (first_old + count, step), (first_new + count, step));
        }
    }

    fn step(&mut self, place: &StepLayout, old: (usize, &PlanStep), new: (usize, &PlanStep)) {
        let ((old_at, old), (new_at, new)) = (old, new);
        if old_at != new_at {
            self.replace(&place.number, &(new_at + 1).to_string());
        }
        if old.title != new.title {
            self.replace(&place.title, &new.title);
        }
        if old.description != new.description {
            let text = (!new.description.is_empty()).then(|| new.description.clone());
            self.part(place.description.as_ref(), place.heading.end, text);
        }
        let described = place.description.as_ref().map_or(place.heading.end, |range| range.end);
        if old.files != new.files {
            self.part(place.files.as_ref(), described, print::files(&new.files));
        }
        if old.acceptance != new.acceptance {
            let end = place.files.as_ref().map_or(described, |range| range.end);
            self.part(place.acceptance.as_ref(), end, print::acceptance(&new.acceptance));
        }
    }

    /// Brings a part of a step to this text, or adds it behind a line.
    fn part(&mut self, place: Option<&Range<usize>>, line_end: usize, text: Option<String>) {
        match (place, text) {
            (Some(place), text) => self.replace(place, &text.unwrap_or_default()),
            (None, Some(text)) => self.add_below(line_end, &text),
            (None, None) => {}
        }
    }

    fn applied(mut self) -> String {
        // Stable: what is added at one place stays in order.
        self.list.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut text, mut at) = (String::with_capacity(self.source.len()), 0);
        for (range, new) in self.list {
            text.push_str(self.source.get(at..range.start).unwrap_or_default());
            text.push_str(&new);
            at = range.end;
        }
        text.push_str(self.source.get(at..).unwrap_or_default());
        text
    }
}
