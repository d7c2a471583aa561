//! Form that an MCP server sends and a person fills in.

use std::collections::BTreeSet;

use ipc::form::{FieldKind, FormField};
use protocol::approval::{
    FormValue, FormValues, ServerFormParams, ServerRequest, check, choice_label, default_of, field_bounds,
    picked, typed,
};

use super::content::{fact, server_access};
use crate::model::{Block, Editor, Look, Part};
use crate::text::SafeText;

/// Maximum number of characters of a field's name, shown before the text that is being typed.
const MARK: usize = 24;

/// Maximum number of selectable values that are listed for a field that is not at the cursor.
const MOST_NAMED: usize = 12;

/// Content of a field while a person fills in the form.
#[derive(Debug)]
enum FieldEntry {
    /// Text, number, or the single selected value.
    Written(Editor),
    /// Selected values, and the index of the value at the cursor.
    Several { chosen: BTreeSet<String>, at: usize },
}

#[derive(Debug)]
pub(crate) struct FormDraft {
    fields: Vec<FormField>,
    entries: Vec<FieldEntry>,
    tried: Vec<bool>,
    chosen: usize,
}

impl FormDraft {
    /// Returns the form with its default values; `None` if the request is not about a form.
    pub(crate) fn of(request: &ServerRequest) -> Option<Self> {
        let ServerRequest::ServerForm(params) = request else { return None };
        let fields = params.fields.clone();
        let entries = fields.iter().map(FieldEntry::of).collect();
        let tried = vec![false; fields.len()];
        Some(Self { fields, entries, tried, chosen: 0 })
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    fn field(&self) -> Option<&FormField> {
        self.fields.get(self.chosen)
    }

    pub(crate) fn takes_text(&self) -> bool {
        let kind = self.field().map(|field| &field.kind);
        matches!(kind, Some(FieldKind::Text { .. } | FieldKind::Number { .. }))
    }

    pub(crate) fn takes_several(&self) -> bool {
        matches!(self.entries.get(self.chosen), Some(FieldEntry::Several { .. }))
    }

    pub(crate) fn editor(&self) -> Option<&Editor> {
        match self.entries.get(self.chosen).filter(|_| self.takes_text()) {
            Some(FieldEntry::Written(editor)) => Some(editor),
            _ => None,
        }
    }

    pub(crate) fn editor_mut(&mut self) -> Option<&mut Editor> {
        let takes_text = self.takes_text();
        match self.entries.get_mut(self.chosen).filter(|_| takes_text) {
            Some(FieldEntry::Written(editor)) => Some(editor),
            _ => None,
        }
    }

    /// Selects or deselects the value at the cursor.
    pub(crate) fn toggle(&mut self) {
        let (Some(field), Some(FieldEntry::Several { chosen, at })) =
            (self.fields.get(self.chosen), self.entries.get_mut(self.chosen))
        else {
            return;
        };
        if let FieldKind::Choices { choices, .. } = &field.kind
            && let Some(choice) = choices.get(*at)
            && !chosen.remove(&choice.value)
        {
            chosen.insert(choice.value.clone());
        }
    }

    /// Returns the name of the selected field, cut to [`MARK`] characters, to be shown before the typed text.
    pub(crate) fn mark(&self) -> String {
        let name: String = self.field().map_or("", FormField::label).chars().take(MARK).collect();
        format!("{name} › ")
    }

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

    /// Goes to the next or previous value of the selected field.
    pub(crate) fn choose(&mut self, forward: bool) {
        let (Some(field), Some(entry)) = (self.fields.get(self.chosen), self.entries.get_mut(self.chosen))
        else {
            return;
        };
        let mut values: Vec<&str> = match &field.kind {
            FieldKind::YesNo { .. } => vec!["yes", "no"],
            FieldKind::Choice { choices, .. } | FieldKind::Choices { choices, .. } => {
                choices.iter().map(|choice| choice.value.as_str()).collect()
            }
            FieldKind::Text { .. } | FieldKind::Number { .. } => return,
        };
        let entry = match entry {
            FieldEntry::Written(entry) => entry,
            FieldEntry::Several { at, .. } => {
                let step = if forward { 1 } else { values.len() - 1 };
                *at = (*at + step) % values.len();
                return;
            }
        };
        if !field.required {
            values.push("");
        }
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

    /// Returns the values of all fields. If a field is invalid, selects it and returns `None`.
    pub(crate) fn values(&mut self) -> Option<FormValues> {
        let mut values = FormValues::new();
        let mut first = None;
        for (at, (field, entry)) in self.fields.iter().zip(&self.entries).enumerate() {
            match entry.value(field) {
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

    /// Returns the form as a block, and the index of the selected field's part. Marks the selected field if `editing`.
    pub(crate) fn block(&self, params: &ServerFormParams, editing: bool) -> (Block, usize) {
        let asked = format!("the MCP server {} asks during the call of {}:", params.server, params.tool);
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
            parts.extend(lines(field, entry, is_chosen, shows_fault));
        }
        parts.extend(server_access(params.access.as_ref()));
        let sends = if self.fields.is_empty() { "your consent" } else { "these values" };
        parts.push(fact(
            "sends",
            &format!("{sends} to that server, for this call; the session's log stores them"),
        ));
        (Block::of(parts), at)
    }
}

impl FieldEntry {
    fn of(field: &FormField) -> Self {
        match &field.kind {
            FieldKind::Choices { default, .. } => {
                Self::Several { chosen: default.iter().cloned().collect(), at: 0 }
            }
            _ => Self::Written(Editor::with(default_of(field).map_or_else(String::new, written))),
        }
    }

    fn value(&self, field: &FormField) -> Result<Option<FormValue>, String> {
        let Self::Several { chosen, .. } = self else { return typed(field, &self.whole()) };
        let choices = match &field.kind {
            FieldKind::Choices { choices, .. } => choices.as_slice(),
            _ => &[],
        };
        let values = choices.iter().map(|choice| &choice.value).filter(|value| chosen.contains(*value));
        let value = picked(field, values.cloned().collect());
        check(field, value.as_ref()).map(|()| value)
    }

    /// Returns the typed text; empty for a field with several values.
    fn whole(&self) -> String {
        match self {
            Self::Written(editor) => editor.whole(),
            Self::Several { .. } => String::new(),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Written(editor) => editor.whole().is_empty(),
            Self::Several { chosen, .. } => chosen.is_empty(),
        }
    }
}

/// Returns the name, bounds, value and error of a field, one part each.
fn lines(field: &FormField, entry: &FieldEntry, is_chosen: bool, shows_fault: bool) -> Vec<Part> {
    let (mark, look) = if is_chosen { ("▸ ", Look::User) } else { ("  ", Look::Assistant) };
    let title = format!("{} ({})", field.label(), field_bounds(field));
    let within = |text: SafeText, look| Part::new(text, look).after("    ".to_owned(), "    ".to_owned());
    let mut parts = vec![Part::new(SafeText::line(&title), look).after(mark.to_owned(), "  ".to_owned())];
    if !field.about.is_empty() {
        parts.push(within(SafeText::exact(&field.about), Look::Claim));
    }
    if let FieldKind::Choice { choices, .. } = &field.kind {
        let labels: Vec<_> = choices.iter().take(MOST_NAMED).map(choice_label).collect();
        let more = if choices.len() > MOST_NAMED { " · …" } else { "" };
        parts.push(within(SafeText::exact(&format!("{}{more}", labels.join(" · "))), Look::Claim));
    }
    let look = if is_chosen { Look::User } else { Look::Command };
    match (&field.kind, entry) {
        (FieldKind::Choices { choices, .. }, FieldEntry::Several { chosen, at }) => {
            parts.extend(choices.iter().enumerate().map(|(number, choice)| {
                let cursor = if is_chosen && number == *at { "› " } else { "  " };
                let tick = if chosen.contains(&choice.value) { "[x]" } else { "[ ]" };
                within(SafeText::exact(&format!("{cursor}{tick} {}", choice_label(choice))), look)
            }));
        }
        (kind, entry) => {
            let text = entry.whole();
            let shown = match kind {
                FieldKind::Choice { choices, .. } => {
                    choices.iter().find(|choice| choice.value == text).map_or(text, choice_label)
                }
                _ => text,
            };
            let shown = if shown.is_empty() { SafeText::line("–") } else { SafeText::exact(&shown) };
            parts.push(within(shown, look));
        }
    }
    let fault = entry.value(field).err().filter(|_| shows_fault || is_chosen && !entry.is_empty());
    parts.extend(fault.map(|why| within(SafeText::line(&why), Look::Error)));
    parts
}

fn written(value: FormValue) -> String {
    match value {
        FormValue::YesNo(true) => "yes".to_owned(),
        FormValue::YesNo(false) => "no".to_owned(),
        FormValue::Number(number) => number.to_string(),
        FormValue::Text(text) => text,
        FormValue::List(_) => String::new(),
    }
}
