//! Comments on the steps of a plan. The denial of the plan carries all of them, as its reason, to the planning agent.

use protocol::approval::{PlanApprovalParams, ServerRequest};

use super::sheet::CardPage;
use crate::model::{Block, Editor, Look, Part};
use crate::text::SafeText;

#[derive(Debug)]
pub(crate) struct Comments {
    about: Vec<Comment>,
    chosen: usize,
    is_writing: bool,
    typed: usize,
    pub sheet: CardPage,
}

#[derive(Debug)]
struct Comment {
    title: String,
    editor: Editor,
}

impl Comments {
    /// Returns an empty set of comments if the request is about a plan, else `None`.
    pub(crate) fn of(request: &ServerRequest) -> Option<Self> {
        let ServerRequest::PlanApproval(PlanApprovalParams { plan, .. }) = request else { return None };
        let titles = std::iter::once(&plan.title).chain(plan.steps.iter().map(|step| &step.title));
        let about = titles.map(|title| Comment { title: title.clone(), editor: Editor::default() });
        Some(Self {
            about: about.collect(),
            chosen: 1,
            is_writing: false,
            typed: 0,
            sheet: CardPage::default(),
        })
    }

    /// Moves the comments on the previous version of the plan to the steps with the same titles, else to those at the
    /// same positions. Returns the number of comments whose step no longer exists.
    pub(crate) fn take_over(&mut self, before: Self) -> usize {
        let old: Vec<_> = before.about.iter().map(|comment| comment.title.clone()).collect();
        let mut gone = 0;
        for (number, comment) in before.about.into_iter().enumerate() {
            if comment.editor.text().trim().is_empty() {
                continue;
            }
            let place = self.place_of(number, &comment.title, &old);
            match place.and_then(|place| self.about.get_mut(place)).filter(|about| about.editor.is_empty()) {
                Some(about) => about.editor = comment.editor,
                None => gone += 1,
            }
        }
        gone
    }

    fn place_of(&self, number: usize, title: &str, old: &[String]) -> Option<usize> {
        let there = self.about.get(number).map(|about| &about.title);
        if number == 0 || there.is_some_and(|there| there == title) {
            return Some(number);
        }
        let moved = (1..).zip(self.about.iter().skip(1)).find(|(_, about)| about.title == title);
        let renamed = || there.filter(|there| !old.contains(there)).map(|_| number);
        moved.map(|(place, _)| place).or_else(renamed)
    }

    pub(crate) fn choose(&mut self, by: isize) {
        self.typed = 0;
        self.chosen = self.chosen.saturating_add_signed(by).min(self.about.len().saturating_sub(1));
    }

    /// Selects a step by its number, which may be typed as several digits. Number 0 is the whole plan.
    pub(crate) fn choose_by_digit(&mut self, digit: usize) {
        let longer = self.typed.saturating_mul(10).saturating_add(digit);
        let number = if longer < self.about.len() { longer } else { digit };
        if number < self.about.len() {
            (self.chosen, self.typed) = (number, number);
        }
    }

    pub(crate) const fn write(&mut self) {
        self.is_writing = true;
    }

    pub(crate) const fn end_writing(&mut self) {
        self.is_writing = false;
    }

    pub(crate) fn editor(&self) -> Option<&Editor> {
        self.about.get(self.chosen).filter(|_| self.is_writing).map(|about| &about.editor)
    }

    pub(crate) fn editor_mut(&mut self) -> Option<&mut Editor> {
        let is_writing = self.is_writing;
        self.about.get_mut(self.chosen).filter(|_| is_writing).map(|about| &mut about.editor)
    }

    pub(crate) fn mark(&self) -> String {
        if self.chosen == 0 { "on the plan › ".to_owned() } else { format!("on step {} › ", self.chosen) }
    }

    /// Joins all comments to one text, such as `On step 2 (Fix the parser): use a fuzzer`; `None` without comments.
    pub(crate) fn message(&self) -> Option<String> {
        let lines = self.written().map(|(number, comment, text)| match number {
            0 => format!("On the plan: {text}"),
            _ => format!("On step {number} ({}): {text}", comment.title),
        });
        let lines: Vec<_> = lines.collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    pub(crate) fn count(&self) -> usize {
        self.written().count()
    }

    fn written(&self) -> impl Iterator<Item = (usize, &Comment, &str)> {
        let each = self.about.iter().enumerate();
        each.map(|(number, comment)| (number, comment, comment.editor.text().trim()))
            .filter(|(_, _, text)| !text.is_empty())
    }

    /// Lays out the page of comments and scrolls to the selected step.
    pub(crate) fn lay(&mut self, revision: u64, size: (u16, u16)) {
        let heading = "no, with comments on the steps: the planner revises the plan, and asks again";
        let mut parts = vec![Part::new(SafeText::line(heading), Look::Heading)];
        let (mut at, mut more) = (0, 0);
        for (number, Comment { title, editor }) in self.about.iter().enumerate() {
            let is_chosen = number == self.chosen;
            let (mark, look) = if is_chosen { ("▸ ", Look::Heading) } else { ("", Look::Assistant) };
            let about = if number == 0 { "0 the plan".to_owned() } else { format!("{number} {title}") };
            let text = editor.text().trim();
            if is_chosen {
                (at, more) = (parts.len(), usize::from(!text.is_empty()));
            }
            parts.push(Part::new(SafeText::line(&format!("{mark}{about}")), look));
            if !text.is_empty() {
                parts.push(Part::new(SafeText::exact(text), Look::Command));
            }
        }
        self.sheet.renew(Block::of(parts), revision);
        self.sheet.reveal(at, more, size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comments(steps: usize) -> Comments {
        let comment = |n: usize| Comment { title: format!("T{n}"), editor: Editor::default() };
        Comments {
            about: (0..=steps).map(comment).collect(),
            chosen: 1,
            is_writing: false,
            typed: 0,
            sheet: CardPage::default(),
        }
    }

    #[test]
    fn comments_go_on_with_their_steps_and_those_of_deleted_steps_are_counted() {
        let titled = |titles: &[&str]| {
            let mut comments = comments(titles.len());
            for (about, title) in comments.about.iter_mut().skip(1).zip(titles) {
                about.title = (*title).to_owned();
            }
            comments
        };
        let cases = [
            (&["b", "a", "c"][..], "0T0 1b 2a 3c", 0),
            (&["a", "new", "c"], "0T0 1a 2b 3c", 0),
            (&["b", "c"], "0T0 1b 2c", 1),
            (&["a", "x", "b", "c"], "0T0 1a 3b 4c", 0),
        ];
        for (titles, expected, gone) in cases {
            let mut before = titled(&["a", "b", "c"]);
            before.about.iter_mut().for_each(|about| about.editor = Editor::with(about.title.clone()));
            let mut after = titled(titles);
            assert_eq!(after.take_over(before), gone, "{titles:?}");
            let written: Vec<_> =
                after.written().map(|(number, _, text)| format!("{number}{text}")).collect();
            assert_eq!(written.join(" "), expected, "{titles:?}");
        }
    }

    #[test]
    fn a_step_is_chosen_by_the_digits_of_its_number() {
        let mut comments = comments(120);
        let mut chosen = |digits: &str| {
            comments.choose(isize::MIN);
            digits
                .chars()
                .filter_map(|c| c.to_digit(10))
                .for_each(|digit| comments.choose_by_digit(digit as usize));
            comments.chosen
        };
        let cases = [("7", 7), ("12", 12), ("120", 120), ("121", 1), ("999", 9), ("0", 0), ("05", 5)];
        for (digits, expected) in cases {
            assert_eq!(chosen(digits), expected, "{digits}");
        }
        let mut few = self::comments(2);
        few.choose_by_digit(9);
        assert_eq!(few.chosen, 1, "there is no step 9");
    }
}
