//! Descriptions of form fields for a person. All texts of the server are untrusted; a front end has to sanitise them.

use ipc::form::{FieldKind, FormChoice, FormField, TextFormat};

use super::FormValue;

/// Returns the kind of a field's value and its bounds in words.
pub fn field_bounds(field: &FormField) -> String {
    let number = |bound: &Option<u32>| bound.map(|bound| bound.to_string());
    let kind = match &field.kind {
        FieldKind::Text { format, least, most, .. } => {
            let kind = match format {
                None => "text",
                Some(TextFormat::Email) => "mail address",
                Some(TextFormat::Uri) => "address",
                Some(TextFormat::Date) => "date",
                Some(TextFormat::DateTime) => "date and time",
            };
            between(kind, number(least), number(most), " characters")
        }
        FieldKind::Number { whole, least, most, .. } => {
            let kind = if *whole { "whole number" } else { "number" };
            between(kind, least.clone(), most.clone(), "")
        }
        FieldKind::YesNo { .. } => "yes or no".to_owned(),
        FieldKind::Choice { choices, .. } => format!("one of {}", choices.len()),
        FieldKind::Choices { choices, least, most, .. } => {
            let least = least.filter(|least| *least > 0).map(|least| least.to_string());
            between(&format!("any of {}", choices.len()), least, number(most), "")
        }
    };
    if field.required { kind } else { format!("{kind}, can stay empty") }
}

fn between(kind: &str, least: Option<String>, most: Option<String>, of: &str) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("{kind}, {least} to {most}{of}"),
        (Some(least), None) => format!("{kind}, at least {least}{of}"),
        (None, Some(most)) => format!("{kind}, at most {most}{of}"),
        (None, None) => kind.to_owned(),
    }
}

/// Returns the title of a choice with its value, or the value alone if the choice has no title.
pub fn choice_label(choice: &FormChoice) -> String {
    match &choice.title {
        Some(title) => format!("{title} [{}]", choice.value),
        None => choice.value.clone(),
    }
}

/// Describes the value of a field: choices by their titles, a missing value as `left empty`.
pub fn value_in_words(field: &FormField, value: Option<&FormValue>) -> String {
    let (FieldKind::Choice { choices, .. } | FieldKind::Choices { choices, .. }) = &field.kind else {
        return match value {
            None => "left empty".to_owned(),
            Some(FormValue::YesNo(yes)) => if *yes { "yes" } else { "no" }.to_owned(),
            Some(FormValue::Number(number)) => number.to_string(),
            Some(FormValue::Text(text)) => text.clone(),
            Some(FormValue::List(values)) => values.join(", "),
        };
    };
    let of_value = |value: &String| {
        let choice = choices.iter().find(|choice| choice.value == *value);
        choice.map_or_else(|| value.clone(), choice_label)
    };
    match value {
        Some(FormValue::Text(text)) => of_value(text),
        Some(FormValue::List(values)) if values.is_empty() => "none".to_owned(),
        Some(FormValue::List(values)) => values.iter().map(of_value).collect::<Vec<_>>().join(", "),
        _ => "left empty".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_named_by_their_titles_and_values() {
        let choice = |value: &str, title: Option<&str>| FormChoice {
            value: value.to_owned(),
            title: title.map(str::to_owned),
        };
        let choices = vec![choice("b", Some("Bug")), choice("w", None)];
        let kind = FieldKind::Choices { choices, least: Some(1), most: Some(2), default: Vec::new() };
        let field =
            FormField { name: "a".to_owned(), title: None, about: String::new(), required: false, kind };
        assert_eq!(field_bounds(&field), "any of 2, 1 to 2, can stay empty");
        let words = |values: &[&str]| {
            let values = values.iter().map(|&value| value.to_owned()).collect();
            value_in_words(&field, Some(&FormValue::List(values)))
        };
        assert_eq!((words(&["b", "w"]), words(&[])), ("Bug [b], w".to_owned(), "none".to_owned()));
        assert_eq!(value_in_words(&field, None), "left empty");
    }
}
