use protocol::approval::{PlanApprovalParams, ServerRequest};
use protocol::plan::{Acceptance, PlanStep};

use super::sheet::CardPage;
use crate::model::{Block, Editor, Look, Part};
use crate::plan::{Draft, DraftPlace, Field};
use crate::text::SafeText;

#[derive(Debug)]
pub(crate) struct Steps {
    pub draft: Draft,
    editor: Option<Editor>,
    /// True if the edited field has just been added. Such a field is removed if it stays empty.
    is_new: bool,
    /// Reason why the last change was rejected; `None` after an accepted change.
    pub remark: Option<String>,
    pub sheet: CardPage,
}

impl Steps {
    pub(crate) fn of(request: &ServerRequest) -> Option<Self> {
        let ServerRequest::PlanApproval(PlanApprovalParams { plan, .. }) = request else { return None };
        let draft = Draft::new(plan.clone());
        Some(Self { draft, editor: None, is_new: false, remark: None, sheet: CardPage::default() })
    }

    pub(crate) fn write(&mut self) {
        self.editor = Some(Editor::with(self.draft.text()));
        self.is_new = false;
    }

    pub(crate) fn add_step(&mut self) {
        self.draft.add_step();
        self.write();
        self.is_new = true;
    }

    pub(crate) fn add_condition(&mut self) {
        if self.draft.add_condition() {
            self.write();
            self.is_new = true;
        }
    }

    pub(crate) fn finish(&mut self) {
        let Some(editor) = self.editor.take() else { return };
        let text = editor.whole();
        if self.is_new && text.trim().is_empty() {
            self.draft.undo();
        } else if self.is_new {
            self.draft.fill(&text);
        } else if !self.draft.set(&text) {
            self.remark = Some("the title needs text".to_owned());
            self.editor = Some(editor);
            return;
        }
        self.is_new = false;
    }

    pub(crate) fn give_up(&mut self) {
        if self.editor.take().is_some() && self.is_new {
            self.draft.undo();
        }
        self.is_new = false;
    }

    pub(crate) const fn editor(&self) -> Option<&Editor> {
        self.editor.as_ref()
    }

    pub(crate) const fn editor_mut(&mut self) -> Option<&mut Editor> {
        self.editor.as_mut()
    }

    pub(crate) fn takes_lines(&self) -> bool {
        self.draft.at().field != Field::Title
    }

    pub(crate) fn mark(&self) -> &'static str {
        match self.draft.at() {
            DraftPlace { step: 0, .. } => "plan › ",
            DraftPlace { field: Field::Title, .. } => "title › ",
            DraftPlace { field: Field::Description, .. } => "text › ",
            DraftPlace { field: Field::Files, .. } => "files › ",
            DraftPlace { field: Field::Condition(_), .. } if self.is_command() => "run › ",
            DraftPlace { field: Field::Condition(_), .. } => "check › ",
        }
    }

    fn is_command(&self) -> bool {
        let DraftPlace { step, field: Field::Condition(at) } = self.draft.at() else { return false };
        let step = step.checked_sub(1).and_then(|step| self.draft.plan().steps.get(step));
        matches!(step.and_then(|step| step.acceptance.get(at)), Some(Acceptance::Command(_)))
    }

    /// Lays out the steps and scrolls to the selected field.
    pub(crate) fn lay(&mut self, revision: u64, size: (u16, u16)) {
        let heading = "the steps of the plan, as you edit them:";
        let mut parts = vec![Part::new(SafeText::line(heading), Look::Heading)];
        parts.extend(self.remark.as_ref().map(|why| Part::new(SafeText::line(why), Look::Error)));
        let chosen = self.draft.at();
        let mut at = 0;
        for number in 0..=self.draft.plan().steps.len() {
            for field in self.draft.fields(number) {
                let is_chosen = chosen == DraftPlace { step: number, field };
                let part = self.part(number, field, is_chosen, chosen.step == number);
                if is_chosen {
                    at = parts.len();
                }
                parts.extend(part);
            }
        }
        self.sheet.renew(Block::of(parts), revision);
        self.sheet.reveal(at, 0, size);
    }

    /// Returns the text of a field as a part; `None` for an empty field of a step that is not selected.
    fn part(&self, number: usize, field: Field, is_chosen: bool, is_in_chosen: bool) -> Option<Part> {
        let step = number.checked_sub(1).and_then(|at| self.draft.plan().steps.get(at));
        let (label, text) = words(step, field, &self.draft.plan().title);
        if text.is_empty() && field != Field::Title && !is_in_chosen {
            return None;
        }
        let mark = if is_chosen { "▸ " } else { "  " };
        let title = match (field, number) {
            (Field::Title, 0) => "plan  ".to_owned(),
            (Field::Title, _) => format!("{number:<3} "),
            _ => format!("    {label:<6}"),
        };
        let look = if is_chosen { Look::User } else { Look::Assistant };
        let lines = if text.is_empty() { "none" } else { &text };
        let first = [mark, &title].concat();
        let rest = " ".repeat(first.chars().count());
        Some(Part::new(SafeText::exact(lines), look).after(first, rest))
    }
}

fn words(step: Option<&PlanStep>, field: Field, plan: &str) -> (&'static str, String) {
    let Some(step) = step else { return ("", plan.to_owned()) };
    match field {
        Field::Title => ("", step.title.clone()),
        Field::Description => ("text", step.description.clone()),
        Field::Files => ("files", step.files.join("\n")),
        Field::Condition(at) => match step.acceptance.get(at) {
            Some(Acceptance::Command(text)) => ("run", text.clone()),
            Some(Acceptance::Criterion(text)) => ("check", text.clone()),
            None => ("", String::new()),
        },
    }
}
