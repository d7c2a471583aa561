use std::fmt::Write as _;

use protocol::plan::{Acceptance, Plan, PlanRights, PlanStep};

use super::document::Document;
use super::error::Unwritable;
use super::span;

/// Returns the file of a plan. Fails unless it would be read back as the same plan: titles, paths and criteria must
/// have no space around them, and titles and paths one line. Texts must not begin or end with a blank line, must not
/// contain headings of steps or sections, labels on a line, or comments, and must close their fences. A criterion must
/// not be a code span or a fenced block. The limits of a file apply.
pub fn print(plan: &Plan) -> Result<String, Unwritable> {
    let text = canonical(plan);
    read_back(&text, plan)?;
    Ok(text)
}

/// Fails if a plan cannot be written as a file.
pub fn validate(plan: &Plan) -> Result<(), Unwritable> {
    print(plan).map(drop)
}

/// Parses a text. Fails unless the result equals `plan`.
pub(super) fn read_back(text: &str, plan: &Plan) -> Result<Document, Unwritable> {
    let document = Document::parse(text).map_err(|error| Unwritable { cause: error.to_string() })?;
    match difference(document.plan(), plan) {
        None => Ok(document),
        Some(field) => Err(Unwritable { cause: format!("{field} cannot be expressed in a plan file") }),
    }
}

fn difference(one: &Plan, other: &Plan) -> Option<String> {
    let fields = [
        (one.title != other.title, "the title"),
        (one.context != other.context, "the context"),
        (one.rights != other.rights, "the rights"),
        (one.on_failure != other.on_failure, "\"On failure\""),
        (one.steps.len() != other.steps.len(), "the number of steps"),
    ];
    if let Some((_, field)) = fields.into_iter().find(|(differs, _)| *differs) {
        return Some(field.to_owned());
    }
    let mut pairs = one.steps.iter().zip(&other.steps).enumerate();
    let (at, (one, other)) = pairs.find(|(_, (one, other))| one != other)?;
    let fields = [
        (one.title != other.title, "title"),
        (one.description != other.description, "description"),
        (one.files != other.files, "list of files"),
    ];
    let field =
        fields.into_iter().find(|(differs, _)| *differs).map_or("acceptance criteria", |(_, field)| field);
    Some(format!("the {field} of step {}", at + 1))
}

fn canonical(plan: &Plan) -> String {
    let mut parts = vec![format!("# {}", plan.title)];
    if !plan.context.is_empty() {
        parts.push(context(&plan.context));
    }
    parts.extend(plan.rights.as_ref().map(rights));
    parts.extend(plan.on_failure.map(|word| on_failure(word.as_str())));
    parts.push("## Steps".to_owned());
    parts.extend(plan.steps.iter().enumerate().map(|(at, one)| step(at + 1, one)));
    parts.join("\n\n") + "\n"
}

pub(super) fn context(text: &str) -> String {
    format!("## Context\n{text}")
}

pub(super) fn on_failure(word: &str) -> String {
    format!("## On failure\n{word}")
}

pub(super) fn rights(rights: &PlanRights) -> String {
    format!("## Rights\n{}", rights_list(rights))
}

pub(super) fn rights_list(rights: &PlanRights) -> String {
    let path = |path: &String| {
        let is_plain = span::code(path).is_none() && path.trim() == path;
        format!("- write: {}", if is_plain { path.clone() } else { span::span(path) })
    };
    let mut lines: Vec<_> = rights.write.iter().map(path).collect();
    lines.extend(rights.servers.iter().map(|name| format!("- server: {name}")));
    lines.extend(rights.tools.iter().map(|name| format!("- tool: {name}")));
    if rights.network || lines.is_empty() {
        lines.push(format!("- network: {}", if rights.network { "on" } else { "off" }));
    }
    lines.join("\n")
}

pub(super) fn step(number: usize, step: &PlanStep) -> String {
    let mut text = format!("### {number}. {}", step.title);
    if !step.description.is_empty() {
        // A String takes every write.
        let _ = write!(text, "\n{}", step.description);
    }
    for list in [files(&step.files), acceptance(&step.acceptance)].into_iter().flatten() {
        let _ = write!(text, "\n\n{list}");
    }
    text
}

pub(super) fn files(files: &[String]) -> Option<String> {
    let items: Vec<_> = files.iter().map(|file| format!("- {}", span::span(file))).collect();
    (!items.is_empty()).then(|| format!("Files:\n{}", items.join("\n")))
}

pub(super) fn acceptance(all: &[Acceptance]) -> Option<String> {
    let item = |one: &Acceptance| match one {
        Acceptance::Command(text) if !text.contains('\n') => format!("- {}", span::span(text)),
        Acceptance::Command(text) => {
            let fence = "`".repeat(span::longest_run(text).max(2) + 1);
            format!("- {fence}\n{}\n  {fence}", indented(text))
        }
        Acceptance::Criterion(text) => format!("- {}", indented(text).trim_start_matches(' ')),
    };
    let items: Vec<_> = all.iter().map(item).collect();
    (!items.is_empty()).then(|| format!("Acceptance:\n{}", items.join("\n")))
}

fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { String::new() } else { format!("  {line}") };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}
