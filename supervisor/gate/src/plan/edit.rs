use std::ops::Range;

use protocol::plan::{OnFailure, Plan, PlanStep};

use super::layout::{Layout, Section, StepLayout};
use super::print;

pub(super) fn edited(source: &str, old: &Plan, layout: &Layout, new: &Plan) -> String {
    let newline = if source.contains("\r\n") { "\r\n" } else { "\n" };
    let mut edits = PlanEdits { source, layout, newline, list: Vec::new() };
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
    edits.applied(0..source.len())
}

struct PlanEdits<'a> {
    source: &'a str,
    layout: &'a Layout,
    newline: &'static str,
    list: Vec<(Range<usize>, String)>,
}

impl PlanEdits<'_> {
    /// Replaces a range of the file. Comments in it stay, before the new text.
    fn replace(&mut self, range: &Range<usize>, text: &str) {
        let text = text.replace('\n', self.newline);
        let mut parts = self.comments_in(range.clone());
        parts.push(&text);
        parts.retain(|part| !part.is_empty());
        let text = parts.join(self.newline);
        self.list.push((range.clone(), text));
    }

    fn add_below(&mut self, line_end: usize, text: &str) {
        self.list.push((line_end..line_end, format!("\n\n{text}").replace('\n', self.newline)));
    }

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

    /// Rewrites a section, removes it, or adds it above the steps. `whole` is the content with the heading.
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

    /// Replaces the steps. Equal steps at the beginning and at the end keep their text.
    fn steps(&mut self, old: &[PlanStep], new: &[PlanStep]) {
        let layout = self.layout;
        let before = old.iter().zip(new).take_while(|(one, other)| one == other).count();
        let most = old.len().min(new.len()) - before;
        let after = old.iter().rev().zip(new.iter().rev()).take(most);
        let after = after.take_while(|(one, other)| one == other).count();
        let changed = most - after;
        let both = before + changed;
        let (olds, news) = (before..old.len() - after, before..new.len() - after);
        if let Some(sources) = moved(&old[olds.clone()], &new[news]) {
            let sources: Vec<_> = sources.into_iter().map(|at| at.map(|at| before + at)).collect();
            self.rearrange(olds, old, new, &sources);
            self.renumber(old, old.len() - after, new.len() - after);
            return;
        }
        for (at, ((one, other), place)) in old.iter().zip(new).zip(&layout.steps).take(both).enumerate() {
            self.step(place, at, one, at, other);
        }
        for (at, place) in layout.steps.iter().enumerate().take(old.len() - after).skip(both) {
            let whole = self.whole_step(at);
            let has_comments = !self.comments_in(whole.clone()).is_empty();
            self.replace(&if has_comments { place.heading.start..place.end } else { whole }, "");
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
        self.renumber(old, old.len() - after, new.len() - after);
    }

    /// Renumbers the old steps from `first_old` on, which become `first_new` and later ones.
    fn renumber(&mut self, old: &[PlanStep], first_old: usize, first_new: usize) {
        let layout = self.layout;
        for (count, (step, place)) in old.iter().zip(&layout.steps).skip(first_old).enumerate() {
            self.step(place, first_old + count, step, first_new + count, step);
        }
    }

    /// Writes moved steps in their new order. Existing steps keep their own text with its comments.
    fn rearrange(
        &mut self,
        olds: Range<usize>,
        old: &[PlanStep],
        new: &[PlanStep],
        sources: &[Option<usize>],
    ) {
        let layout = self.layout;
        let space = self.newline.repeat(2);
        let removed = olds.clone().filter(|at| !sources.contains(&Some(*at)));
        let left: Vec<_> = removed.flat_map(|at| self.comments_in(self.whole_step(at))).collect();
        let mut pieces = vec![left.join(self.newline)];
        for (number, (step, source)) in new.iter().skip(olds.start).zip(sources).enumerate() {
            let at = olds.start + number;
            let source = source.and_then(|from| Some((from, layout.steps.get(from)?, old.get(from)?)));
            pieces.push(match source {
                Some((from, place, was)) => {
                    let mut edits = PlanEdits { list: Vec::new(), ..*self };
                    edits.step(place, from, was, at, step);
                    without_blank_end(&edits.applied(self.whole_step(from))).to_owned()
                }
                None => print::step(at + 1, step).replace('\n', self.newline),
            });
        }
        pieces.retain(|piece| !piece.is_empty());
        let whole = self.whole_step(olds.start).start..self.whole_step(olds.end - 1).end;
        let last = if olds.end < layout.steps.len() { space.as_str() } else { "" };
        self.list.push((whole, [&pieces.join(&space), last].concat()));
    }

    /// Returns the range of a step up to the next step. The last step ends with the comments right below its text.
    fn whole_step(&self, at: usize) -> Range<usize> {
        let start = |at: usize| self.layout.steps.get(at).map(|step| step.heading.start);
        let from = start(at).unwrap_or(self.source.len());
        from..start(at + 1).unwrap_or_else(|| {
            let end = self.layout.steps.get(at).map_or(self.source.len(), |step| step.end);
            let below = |end, comment: &Range<usize>| {
                let is_next = self.source.get(end..comment.start).is_some_and(|text| text == self.newline);
                if is_next { comment.end } else { end }
            };
            self.layout.comments.iter().fold(end, below)
        })
    }

    fn comments_in(&self, range: Range<usize>) -> Vec<&str> {
        let is_within = |comment: &&Range<usize>| range.start <= comment.start && comment.end <= range.end;
        let within = self.layout.comments.iter().filter(is_within);
        within.filter_map(|comment| self.source.get(comment.clone())).collect()
    }

    fn step(&mut self, place: &StepLayout, old_at: usize, old: &PlanStep, new_at: usize, new: &PlanStep) {
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

    fn part(&mut self, place: Option<&Range<usize>>, line_end: usize, text: Option<String>) {
        match (place, text) {
            (Some(place), text) => self.replace(place, &text.unwrap_or_default()),
            (None, Some(text)) => self.add_below(line_end, &text),
            (None, None) => {}
        }
    }

    fn applied(mut self, part: Range<usize>) -> String {
        // Stable, so that several additions at one position keep their order.
        self.list.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut text, mut at) = (String::with_capacity(part.len()), part.start);
        for (range, new) in self.list {
            text.push_str(self.source.get(at..range.start).unwrap_or_default());
            text.push_str(&new);
            at = range.end;
        }
        text.push_str(self.source.get(at..part.end).unwrap_or_default());
        text
    }
}

/// Returns the old step whose text each new step takes, if any; `None` as a whole if no step was moved.
fn moved(old: &[PlanStep], new: &[PlanStep]) -> Option<Vec<Option<usize>>> {
    let mut left: Vec<usize> = (0..old.len()).collect();
    let mut take = |step: &PlanStep| {
        let place = left.iter().position(|at| old.get(*at) == Some(step))?;
        Some(left.remove(place))
    };
    let mut sources: Vec<_> = new.iter().map(&mut take).collect();
    // A step that was moved and changed is recognised by its title.
    for (source, step) in sources.iter_mut().zip(new).filter(|(source, _)| source.is_none()) {
        let place = left.iter().position(|at| old.get(*at).is_some_and(|old| old.title == step.title));
        *source = place.map(|place| left.remove(place));
    }
    let is_moved = sources.iter().enumerate().any(|(at, source)| source.is_some_and(|source| source != at));
    is_moved.then_some(sources)
}

fn without_blank_end(text: &str) -> &str {
    let words = text.trim_end().len();
    let line = text.get(words..).and_then(|rest| rest.find('\n')).map_or(text.len(), |end| words + end);
    let line = text.get(..line).unwrap_or(text);
    line.strip_suffix('\r').unwrap_or(line)
}
