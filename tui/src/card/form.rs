//! Form of an MCP server that a person fills in.

use ipc::form::{FieldKind, FormField, TextFormat};
use protocol::approval::{FormValue, FormValues, ServerFormParams, ServerRequest, default_of, typed};

use super::content::{fact, server_access};
use crate::model::{Block, Editor, Look, Part};
use crate::text::SafeText;

/// Maximum number of characters of a field's name before its text.
const MARK: usize = 24;

/// Values of a form while a person fills it in.
#[derive(Debug)]
pub(crate) struct FormDraft {
    fields: Vec<FormField>,
    entries: Vec<Editor>,
    /// True for fields whose faults are shown.
    tried: Vec<bool>,
    chosen: usize,
}

impl FormDraft {
    /// Returns the form of a request with its defaults; `None` for other requests.
    pub(crate) fn of(request: &ServerRequest) -> Option<Self> {
        let ServerRequest::ServerForm(params) = request else { return None };
        let fields = params.fields.clone();
        let entry = |field: &FormField| Editor::with(default_of(field).map_or_else(String::new, written));
        let entries = fields.iter().map(entry).collect();
        let tried = vec![false; fields.len()];
        Some(Self { fields, entries, tried, chosen: 0 })
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    fn field(&self) -> Option<&FormField> {
        self.fields.get(self.chosen)
    }

    /// True if the chosen field is filled in by typing.
    pub(crate) fn takes_text(&self) -> bool {
        let kind = self.field().map(|field| &field.kind);
        matches!(kind, Some(FieldKind::Text { .. } | FieldKind::Number { .. }))
    }

    pub(crate) fn editor(&self) -> Option<&Editor> {
        self.entries.get(self.chosen).filter(|_| self.takes_text())
    }

    pub(crate) fn editor_mut(&mut self) -> Option<&mut Editor> {
        let takes_text = self.takes_text();
        self.entries.get_mut(self.chosen).filter(|_| takes_text)
    }

    /// Returns the name of the chosen field, shortened for the line of its text.
    pub(crate) fn mark(&self) -> String {
        let name: String = self.field().map_or("", FormField::label).chars().take(MARK).collect();
        format!("{name} › ")
    }

    /// Chooses the next or the previous field; returns false at the end.
    pub(crate) fn go(&mut self, forward: bool) -> bool {
        if let Some(tried) = self.tried.get_mut(self.chosen) {
            *tried = true;
        }
        let to = if forward { self.chosen + 1 } else { self.chosen.wrapping_sub(1) };
        let is_field = to < self.fields.len();
        if is_field {
            self.chosen = to;
        }
        is_field
    }

    /// Takes the next or the previous value of a field that offers some.
    pub(crate) fn choose(&mut self, forward: bool) {
        let Some(field) = self.fields.get(self.chosen) else { return };
        let mut values: Vec<&str> = match &field.kind {
            FieldKind::YesNo { .. } => vec!["yes", "no"],
            FieldKind::Choice { choices, .. } => choices.iter().map(|choice| choice.value.as_str()).collect(),
            FieldKind::Text { .. } | FieldKind::Number { .. } => return,
        };
        if !field.required {
            values.push("");
        }
        let Some(entry) = self.entries.get_mut(self.chosen) else { return };
        let now = values.iter().position(|value| *value == entry.text());
        let last = values.len() - 1;
        let to = match (now, forward) {
            (Some(at), true) if at < last => at + 1,
            (Some(at), false) if at > 0 => at - 1,
            (Some(_) | None, true) => 0,
            (Some(_) | None, false) => last,
        };
        *entry = Editor::with(values.get(to).copied().unwrap_or_default().to_owned());
    }

    /// Returns the values. If a field has a fault, that field is chosen.
    pub(crate) fn values(&mut self) -> Option<FormValues> {
        let mut values = FormValues::new();
        let mut first = None;
        for (at, (field, entry)) in self.fields.iter().zip(&self.entries).enumerate() {
            match typed(field, &entry.whole()) {
                Ok(value) => values.extend(value.map(|value| (field.name.clone(), value))),
                Err(_) => _ = first.get_or_insert(at),
            }
        }
        if let Some(at) = first {
            self.chosen = at;
            self.tried.fill(true);
            return None;
        }
        Some(values)
    }

    /// Returns the text of the request, and the place of the chosen field in it. `editing` marks that field.
    pub(crate) fn block(&self, params: &ServerFormParams, editing: bool) -> (Block, usize) {
        let asked = format!("the MCP server {} asks, while it runs {}:", params.server, params.tool);
        let mut parts = vec![
            Part::new(SafeText::line(&asked), Look::Heading),
            Part::new(SafeText::exact(&params.message), Look::Claim),
        ];
        let mut at = 0;
        for (number, (field, entry)) in self.fields.iter().zip(&self.entries).enumerate() {
            let is_chosen = editing && number == self.chosen;
            if is_chosen {
                at = parts.len();
            }
            let shows_fault = self.tried.get(number).copied().unwrap_or(false) && !is_chosen;
            parts.extend(lines(field, &entry.whole(), is_chosen, shows_fault));
        }
        parts.extend(server_access(params.access.as_ref()));
        let sends = if self.fields.is_empty() { "your consent" } else { "these values" };
        parts.push(fact(
            "sends",
            &format!("{sends} to that server, for this call; the session's log keeps them"),
        ));
        (Block::of(parts), at)
    }
}

/// Returns the lines of one field: its name, its bounds, its value, and its fault.
fn lines(field: &FormField, text: &str, is_chosen: bool, shows_fault: bool) -> Vec<Part> {
    let (mark, look) = if is_chosen { ("▸ ", Look::User) } else { ("  ", Look::Assistant) };
    let title = format!("{} ({})", field.label(), bounds(field));
    let within = |text: SafeText, look| Part::new(text, look).after("    ".to_owned(), "    ".to_owned());
    let mut parts = vec![Part::new(SafeText::line(&title), look).after(mark.to_owned(), "  ".to_owned())];
    if !field.about.is_empty() {
        parts.push(within(SafeText::exact(&field.about), Look::Claim));
    }
    let shown = match &field.kind {
        FieldKind::Choice { choices, .. } => choices
            .iter()
            .find(|choice| choice.value == text)
            .and_then(|choice| choice.title.as_ref())
            .map_or_else(|| text.to_owned(), |title| format!("{title} [{text}]")),
        _ => text.to_owned(),
    };
    let shown = if shown.is_empty() { SafeText::line("–") } else { SafeText::exact(&shown) };
    parts.push(within(shown, if is_chosen { Look::User } else { Look::Command }));
    let fault = typed(field, text).err().filter(|_| shows_fault || is_chosen && !text.is_empty());
    parts.extend(fault.map(|why| within(SafeText::line(&why), Look::Error)));
    parts
}

/// Returns the kind of a field's value and its bounds in words.
fn bounds(field: &FormField) -> String {
    let kind = match &field.kind {
        FieldKind::Text { format, least, most, .. } => {
            let kind = match format {
                None => "text",
                Some(TextFormat::Email) => "mail address",
                Some(TextFormat::Uri) => "address",
                Some(TextFormat::Date) => "date",
                Some(TextFormat::DateTime) => "date and time",
            };
            let [least, most] = [least, most].map(|bound| bound.map(|bound| bound.to_string()));
            between(kind, least, most, " characters")
        }
        FieldKind::Number { whole, least, most, .. } => {
            let kind = if *whole { "whole number" } else { "number" };
            between(kind, least.clone(), most.clone(), "")
        }
        FieldKind::YesNo { .. } => "yes or no".to_owned(),
        FieldKind::Choice { choices, .. } => format!("one of {}", choices.len()),
    };
    if field.required { kind } else { format!("{kind}, may stay empty") }
}

fn between(kind: &str, least: Option<String>, most: Option<String>, of: &str) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("{kind}, {least} to {most}{of}"),
        (Some(least), None) => format!("{kind}, at least {least}{of}"),
        (None, Some(most)) => format!("{kind}, at most {most}{of}"),
        (None, None) => kind.to_owned(),
    }
}

fn written(value: FormValue) -> String {
    match value {
        FormValue::YesNo(true) => "yes".to_owned(),
        FormValue::YesNo(false) => "no".to_owned(),
        FormValue::Number(number) => number.to_string(),
        FormValue::Text(text) => text,
    }
}
