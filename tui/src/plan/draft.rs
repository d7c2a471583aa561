//! Plan that a person edits field by field. The supervisor checks if the edited fields can be written as Markdown.

use protocol::plan::{Acceptance, Plan, PlanStep};

const MOST: usize = 100;

#[derive(Debug)]
pub(crate) struct Draft {
    plan: Plan,
    at: DraftPlace,
    before: Vec<(Plan, DraftPlace)>,
    changes: usize,
    /// Digits of a step number typed so far, as a number.
    typed: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DraftPlace {
    /// Number of the step, from 1; 0 is the plan itself, which has only a title.
    pub step: usize,
    pub field: Field,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Field {
    #[default]
    Title,
    Description,
    Files,
    Condition(usize),
}

impl Draft {
    pub(crate) const fn new(plan: Plan) -> Self {
        let at = DraftPlace { step: 1, field: Field::Title };
        Self { plan, at, before: Vec::new(), changes: 0, typed: 0 }
    }

    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) const fn at(&self) -> DraftPlace {
        self.at
    }

    /// Returns the number of changes; 0 if the plan is unchanged.
    pub(crate) const fn changes(&self) -> usize {
        self.changes
    }

    pub(crate) fn fields(&self, step: usize) -> Vec<Field> {
        let conditions = self.step(step).map_or(0, |step| step.acceptance.len());
        let more = (step > 0).then_some([Field::Description, Field::Files]).into_iter().flatten();
        std::iter::once(Field::Title).chain(more).chain((0..conditions).map(Field::Condition)).collect()
    }

    pub(crate) fn go(&mut self, down: bool) {
        let fields = self.fields(self.at.step);
        let place = fields.iter().position(|field| *field == self.at.field).unwrap_or(0);
        match (down, place.checked_sub(1)) {
            (true, _) if place + 1 < fields.len() => self.at.field = fields[place + 1],
            (true, _) if self.at.step < self.plan.steps.len() => self.go_to(self.at.step + 1),
            (false, Some(before)) => self.at.field = fields[before],
            (false, None) if self.at.step > 0 => {
                self.at.step -= 1;
                self.at.field = self.fields(self.at.step).last().copied().unwrap_or_default();
            }
            _ => {}
        }
    }

    pub(crate) fn go_steps(&mut self, by: isize) {
        self.go_to(self.at.step.saturating_add_signed(by).min(self.plan.steps.len()));
    }

    pub(crate) fn go_by_digit(&mut self, digit: usize) {
        let longer = self.typed.saturating_mul(10).saturating_add(digit);
        let steps = self.plan.steps.len();
        if let Some(step) = [longer, digit].into_iter().find(|step| *step <= steps) {
            self.go_to(step);
            self.typed = step;
        }
    }

    fn go_to(&mut self, step: usize) {
        self.at = DraftPlace { step, field: Field::Title };
        self.typed = 0;
    }

    /// Swaps the selected condition with its neighbour in the step; if none is selected, swaps the selected step.
    pub(crate) fn shift(&mut self, down: bool) {
        let DraftPlace { step, field } = self.at;
        let Some(at) = step.checked_sub(1) else { return };
        let conditions = self.step(step).map_or(0, |step| step.acceptance.len());
        let (from, len) = match field {
            Field::Condition(condition) => (condition, conditions),
            _ => (at, self.plan.steps.len()),
        };
        let to = if down { Some(from + 1).filter(|to| *to < len) } else { from.checked_sub(1) };
        let Some(to) = to else { return };
        self.keep();
        if matches!(field, Field::Condition(_)) {
            self.plan.steps[at].acceptance.swap(from, to);
            self.at.field = Field::Condition(to);
        } else {
            self.plan.steps.swap(from, to);
            self.at.step = to + 1;
        }
    }

    pub(crate) fn add_step(&mut self) {
        self.keep();
        self.plan.steps.insert(self.at.step, PlanStep::default());
        self.go_to(self.at.step + 1);
    }

    /// Adds an acceptance condition after the selected one, else at the end of the step. False if no step is selected.
    pub(crate) fn add_condition(&mut self) -> bool {
        let Some(step) = self.at.step.checked_sub(1).filter(|at| *at < self.plan.steps.len()) else {
            return false;
        };
        self.keep();
        let conditions = &mut self.plan.steps[step].acceptance;
        let at = match self.at.field {
            Field::Condition(at) => at + 1,
            _ => conditions.len(),
        };
        conditions.insert(at, Acceptance::Command(String::new()));
        self.at.field = Field::Condition(at);
        true
    }

    /// Deletes the selected condition, or the whole step if its title is selected. The only step of a plan stays.
    pub(crate) fn delete(&mut self) {
        match (self.at.step, self.at.field) {
            (0, _) => {}
            (_, Field::Title) if self.plan.steps.len() < 2 => {}
            (step, Field::Title) => {
                self.keep();
                self.plan.steps.remove(step - 1);
                self.go_to(step.min(self.plan.steps.len()));
            }
            (_, Field::Description | Field::Files) => _ = self.set(""),
            (step, Field::Condition(at)) => {
                self.keep();
                let conditions = &mut self.plan.steps[step - 1].acceptance;
                conditions.remove(at);
                let left = conditions.len();
                self.at.field = match left.checked_sub(1) {
                    Some(last) => Field::Condition(at.min(last)),
                    None => Field::Files,
                };
            }
        }
    }

    /// Changes the selected acceptance condition from a command to a criterion in words, or the reverse.
    pub(crate) fn change_kind(&mut self) {
        let DraftPlace { step, field: Field::Condition(at) } = self.at else { return };
        self.keep();
        let condition = &mut self.plan.steps[step - 1].acceptance[at];
        *condition = match std::mem::replace(condition, Acceptance::Criterion(String::new())) {
            Acceptance::Command(text) => Acceptance::Criterion(text),
            Acceptance::Criterion(text) => Acceptance::Command(text),
        };
    }

    pub(crate) fn undo(&mut self) -> bool {
        let Some((plan, at)) = self.before.pop() else { return false };
        (self.plan, self.at) = (plan, at);
        self.changes -= 1;
        true
    }

    pub(crate) fn text(&self) -> String {
        let Some(step) = self.step(self.at.step) else { return self.plan.title.clone() };
        match self.at.field {
            Field::Title => step.title.clone(),
            Field::Description => step.description.clone(),
            Field::Files => step.files.join("\n"),
            Field::Condition(at) => match step.acceptance.get(at) {
                Some(Acceptance::Command(text) | Acceptance::Criterion(text)) => text.clone(),
                None => String::new(),
            },
        }
    }

    /// Sets the text of the selected field. Deletes a condition without text. Returns false for a title without text.
    pub(crate) fn set(&mut self, text: &str) -> bool {
        let text = match self.at.field {
            // The indentation of the first line is significant in Markdown.
            Field::Description => text.trim_end().trim_start_matches('\n').to_owned(),
            _ => text.trim().to_owned(),
        };
        if text == self.text() {
            return !text.is_empty() || self.at.field != Field::Title;
        }
        match self.at.field {
            Field::Title if text.is_empty() => return false,
            Field::Condition(_) if text.is_empty() => self.delete(),
            _ => {
                self.keep();
                self.write(text);
            }
        }
        true
    }

    /// Sets the text of a field that was just added. Addition and text count as one change.
    pub(crate) fn fill(&mut self, text: &str) {
        self.write(text.trim().to_owned());
    }

    fn write(&mut self, new: String) {
        let Some(step) = self.at.step.checked_sub(1) else {
            self.plan.title = new;
            return;
        };
        let step = &mut self.plan.steps[step];
        match self.at.field {
            Field::Title => step.title = new,
            Field::Description => step.description = new,
            Field::Files => {
                let files = new.lines().map(str::trim).filter(|file| !file.is_empty());
                step.files = files.map(str::to_owned).collect();
            }
            Field::Condition(at) => match &mut step.acceptance[at] {
                Acceptance::Command(text) | Acceptance::Criterion(text) => *text = new,
            },
        }
    }

    fn step(&self, number: usize) -> Option<&PlanStep> {
        self.plan.steps.get(number.checked_sub(1)?)
    }

    fn keep(&mut self) {
        if self.before.len() >= MOST {
            self.before.remove(0);
        }
        self.before.push((self.plan.clone(), self.at));
        self.changes += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn draft(titles: &[&str]) -> Draft {
        let step = |title: &&str| PlanStep { title: (*title).to_owned(), ..PlanStep::default() };
        let plan =
            Plan { title: "P".to_owned(), steps: titles.iter().map(step).collect(), ..Plan::default() };
        Draft::new(plan)
    }

    fn titles(draft: &Draft) -> String {
        draft.plan.steps.iter().map(|step| step.title.as_str()).collect()
    }

    #[test]
    fn steps_are_moved_added_and_deleted_and_each_change_is_undone() {
        let mut draft = draft(&["a", "b", "c"]);
        draft.shift(false);
        assert_eq!((titles(&draft), draft.changes()), ("abc".to_owned(), 0), "it is the first");
        draft.shift(true);
        draft.shift(true);
        draft.shift(true);
        assert_eq!((titles(&draft), draft.at().step, draft.changes()), ("bca".to_owned(), 3, 2));
        draft.add_step();
        assert!(!draft.set("  "), "the title needs text");
        assert!(draft.set(" d "));
        draft.go_steps(-3);
        draft.delete();
        assert_eq!((titles(&draft), draft.at().step), ("cad".to_owned(), 1));
        while draft.undo() {}
        assert_eq!((titles(&draft), draft.at().step, draft.changes()), ("abc".to_owned(), 1, 0));
    }

    #[test]
    fn the_last_step_stays() {
        let mut draft = draft(&["a"]);
        draft.delete();
        draft.go_steps(-1);
        draft.delete();
        assert_eq!((titles(&draft), draft.changes()), ("a".to_owned(), 0));
    }

    #[test]
    fn conditions_are_added_moved_changed_and_deleted() {
        let mut draft = draft(&["a"]);
        for text in ["x", "y"] {
            assert!(draft.add_condition() && draft.set(text));
        }
        draft.shift(false);
        draft.change_kind();
        let [command, criterion] = [Acceptance::Command("x".into()), Acceptance::Criterion("y".into())];
        assert_eq!(draft.plan.steps[0].acceptance, [criterion, command.clone()]);
        assert!(draft.set(""));
        assert_eq!(
            (&draft.plan.steps[0].acceptance[..], draft.at().field),
            (&[command][..], Field::Condition(0))
        );
        draft.delete();
        assert_eq!(draft.at().field, Field::Files);
        draft.go_steps(-1);
        assert!(!draft.add_condition(), "the plan itself has none");
    }

    #[test]
    fn files_are_lines_and_a_description_keeps_its_indentation() {
        let mut draft = draft(&["a"]);
        draft.go(true);
        assert!(draft.set("\n    code\n\n"));
        draft.go(true);
        assert!(draft.set("src/a.rs\n\n  src/b.rs \n"));
        let step = &draft.plan.steps[0];
        assert_eq!((step.description.as_str(), step.files.len()), ("    code", 2));
        assert_eq!(draft.text(), "src/a.rs\nsrc/b.rs");
    }

    proptest! {
        #[test]
        fn whatever_is_pressed_leads_to_a_field_and_back(keys in prop::collection::vec((0..11_u8, ".{0,3}"), 0..60)) {
            let mut draft = draft(&["a", "b", "c"]);
            let plan = draft.plan.clone();
            for (key, text) in keys {
                match key {
                    0 => draft.go(true),
                    1 => draft.go(false),
                    2 => draft.go_steps(1),
                    3 => draft.go_steps(-1),
                    4 => draft.shift(true),
                    5 => draft.shift(false),
                    6 => draft.add_step(),
                    7 => _ = draft.add_condition(),
                    8 => draft.delete(),
                    9 => draft.change_kind(),
                    _ => _ = draft.set(&text),
                }
                prop_assert!(draft.fields(draft.at().step).contains(&draft.at().field), "{:?}", draft.at());
                prop_assert!(draft.at().step <= draft.plan.steps.len() && !draft.plan.steps.is_empty());
            }
            while draft.undo() {}
            prop_assert_eq!(draft.plan, plan);
        }
    }
}
