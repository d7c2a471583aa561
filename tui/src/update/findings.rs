//! Findings of a review. They are collected at the end of the review's turn; `:findings` lists them.

use super::scrolled;
use crate::card::CardPage;
use crate::commands::Command;
use crate::message::Action;
use crate::model::{
    AgentView, Areas, Block, Editor, Findings, Look, Mode, Model, Part, findings_in, plan_rows,
};
use crate::text::SafeText;

pub(super) fn found(view: &mut AgentView) {
    let all = findings_in(&view.answer);
    if all.is_empty() {
        return;
    }
    let findings = Findings { all, ..Findings::default() };
    view.say(Look::Notice, &format!("{findings} · :findings lists them"));
    view.findings = findings;
}

pub(super) fn open(model: &mut Model) {
    let view = model.agents.shown_mut();
    if view.findings.all.is_empty() {
        view.findings.all = findings_in(&view.answer);
    }
    if view.findings.all.is_empty() {
        return model.answer(Look::Notice, "there are no findings; :review starts a review");
    }
    model.mode = Mode::Findings;
    model.agents.shown_mut().findings.is_open = false;
    lay(model);
}

pub(super) fn walk(model: &mut Model, command: Command, actions: &mut Vec<Action>) {
    let size = size(model);
    let findings = &mut model.agents.shown_mut().findings;
    if let Some(rows) = scrolled(command, size.1) {
        if findings.is_open {
            return findings.sheet.scroll(rows, size);
        }
        let last = findings.all.len().saturating_sub(1);
        findings.chosen = findings.chosen.saturating_add_signed(rows).min(last);
        return lay(model);
    }
    match command {
        Command::OpenFinding => open_one(model, true),
        Command::FixFinding => fix(model),
        Command::Repaint => actions.push(Action::Repaint),
        _ if findings.is_open => open_one(model, false),
        _ => model.mode = model.came_from,
    }
}

pub(super) fn wheel(model: &mut Model, rows: isize) {
    let size = size(model);
    model.agents.shown_mut().findings.sheet.scroll(rows, size);
}

fn open_one(model: &mut Model, is_open: bool) {
    model.agents.shown_mut().findings.is_open = is_open;
    lay(model);
}

/// Appends a request to fix the selected finding to the text at the prompt.
fn fix(model: &mut Model) {
    let Findings { all, chosen, .. } = &model.agents.shown().findings;
    let Some(request) = all.get(*chosen).map(|finding| finding.request(chosen + 1)) else { return };
    let mut editor = Editor::with(model.prompt.whole());
    let between = if model.prompt.text().trim().is_empty() { "" } else { "\n" };
    match editor.insert(&[between, &request].concat()) {
        Ok(()) => (model.prompt, model.mode) = (editor, Mode::Insert),
        Err(error) => model.answer(Look::Error, &error.to_string()),
    }
}

fn size(model: &Model) -> (u16, u16) {
    let area = Areas::now(model).transcript;
    (area.width, plan_rows(area.height))
}

fn lay(model: &mut Model) {
    let (size, revision) = (size(model), model.next_revision());
    let findings = &mut model.agents.shown_mut().findings;
    let chosen = findings.chosen;
    if let Some(finding) = findings.all.get(chosen).filter(|_| findings.is_open) {
        findings.sheet = CardPage::new(finding.page(chosen + 1), revision);
    } else {
        findings.sheet.renew(list(findings), revision);
        findings.sheet.reveal(chosen + 1, 0, size);
    }
}

fn list(findings: &Findings) -> Block {
    const PLACE: usize = 32;
    const BEFORE: usize = 18;
    let width =
        findings.all.iter().map(|finding| finding.place.chars().count()).max().unwrap_or(0).min(PLACE);
    let mut parts = vec![Part::new(SafeText::line(&findings.to_string()), Look::Heading)];
    for (at, finding) in findings.all.iter().enumerate() {
        let (mark, look) = if at == findings.chosen { ("▸", Look::Heading) } else { (" ", Look::Tool) };
        let (severity, place) = (finding.severity.as_str(), &finding.place);
        let text = format!("{mark} {:>2}  {severity:<8}  {place:<width$}  {}", at + 1, finding.sentence);
        // A long sentence continues below its beginning.
        let part = Part::new(SafeText::line(&text), look);
        parts.push(part.after(String::new(), " ".repeat(BEFORE + width)));
    }
    Block::of(parts)
}
