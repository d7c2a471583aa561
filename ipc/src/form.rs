//! Forms in which an MCP server asks a person something: flat, typed and bounded. All texts are the server's.
//!
//! The guest, which is the process around the server, converts the server's JSON schema to such a form.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Maximum number of fields of a form.
pub const MAX_FIELDS: usize = 16;

/// Maximum number of choices of a field.
pub const MAX_CHOICES: usize = 64;

/// Maximum bytes of the name of a field, of a title, or of a choice.
pub const MAX_LABEL: usize = 256;

/// Maximum bytes of a field's description.
pub const MAX_ABOUT: usize = 1 << 10;

/// Maximum bytes of a text that the person enters.
pub const MAX_VALUE: usize = 4 << 10;

/// Maximum bytes of the question with which a server sends a form.
pub const MAX_MESSAGE: usize = 4 << 10;

/// A field of the form that an MCP server asks the person to fill in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FormField {
    /// Name of the field in the server's form.
    pub name: String,
    /// Name of the field for people, if the server gives one.
    pub title: Option<String>,
    /// The server's description of the field; empty if there is none.
    pub about: String,
    /// True if the person must fill in the field.
    pub required: bool,
    /// Kind of value that the field takes.
    pub kind: FieldKind,
}

/// Kind of value that a field takes, with its bounds and its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FieldKind {
    /// The value is a text.
    Text {
        /// Form that the text must have. `None` for any text.
        format: Option<TextFormat>,
        /// Minimum number of characters, if there is one.
        least: Option<u32>,
        /// Maximum number of characters, if there is one.
        most: Option<u32>,
        /// Text that is sent if the person enters none.
        default: Option<String>,
    },
    /// The value is a number. Bounds and default are decimal numbers, as text.
    Number {
        /// True if the number must have no fraction.
        whole: bool,
        /// Smallest permitted number, if there is one.
        least: Option<String>,
        /// Largest permitted number, if there is one.
        most: Option<String>,
        /// Number that is sent if the person enters none.
        default: Option<String>,
    },
    /// The value is yes or no.
    YesNo {
        /// Answer that is sent if the person gives none.
        default: Option<bool>,
    },
    /// The value is one of several choices.
    Choice {
        /// The choices, in the server's order.
        choices: Vec<FormChoice>,
        /// Value that is sent if the person chooses none.
        default: Option<String>,
    },
    /// The value is any number of choices, or none.
    Choices {
        /// The choices, in the server's order.
        choices: Vec<FormChoice>,
        /// Minimum number of chosen values, if there is one.
        least: Option<u32>,
        /// Maximum number of chosen values, if there is one.
        most: Option<u32>,
        /// Values that are sent if the person chooses none.
        default: Vec<String>,
    },
}

/// A value that a person can choose in a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FormChoice {
    /// The value that is sent to the server.
    pub value: String,
    /// Name of the choice for people, if the server gives one.
    pub title: Option<String>,
}

/// Form that a text value must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TextFormat {
    /// A mail address.
    Email,
    /// A URI: an address with a scheme, such as `https:`.
    Uri,
    /// A date: `2026-11-29`.
    Date,
    /// A date with time and zone: `2026-11-29T17:30:00Z`.
    DateTime,
}

impl FormField {
    /// Returns the field's name for people: its title or, without a title, its name.
    pub fn label(&self) -> &str {
        self.title.as_deref().filter(|title| !title.trim().is_empty()).unwrap_or(&self.name)
    }
}

/// Returns the reason why a form is invalid or exceeds the limits of this module; `None` if the form is fine.
pub fn fault(fields: &[FormField]) -> Option<&'static str> {
    let mut names = BTreeSet::new();
    let faults = fields.iter().map(|field| {
        if field.name.is_empty() || !names.insert(&field.name) {
            return Some("a field has no name, or the same name as another field");
        }
        let labels = [Some(&field.name), field.title.as_ref()];
        if labels.into_iter().flatten().any(|label| label.len() > MAX_LABEL) || field.about.len() > MAX_ABOUT
        {
            return Some("the name or description of a field is too long");
        }
        fault_of_kind(&field.kind)
    });
    let too_many = (fields.len() > MAX_FIELDS).then_some("the form has too many fields");
    too_many.or_else(|| faults.flatten().next())
}

fn fault_of_kind(kind: &FieldKind) -> Option<&'static str> {
    match kind {
        FieldKind::Text { default, least, .. } => {
            let is_long = default.as_ref().is_some_and(|text| text.len() > MAX_VALUE)
                || least.is_some_and(|least| usize::try_from(least).is_ok_and(|least| least > MAX_VALUE));
            is_long.then_some("a default or minimum length of a text field is too long")
        }
        FieldKind::Number { whole, least, most, default } => {
            let is_number = |text: &String| match whole {
                true => whole_number(text).is_some(),
                false => number(text).is_some(),
            };
            let bounds = [least, most].into_iter().flatten().all(|text| number(text).is_some());
            (!bounds || !default.iter().all(is_number))
                .then_some("a limit or default of a number field is not a number")
        }
        FieldKind::YesNo { .. } => None,
        FieldKind::Choice { choices, default } => fault_of_choices(choices, default.as_slice()),
        FieldKind::Choices { choices, least, most, default } => {
            let count = u32::try_from(choices.len()).unwrap_or(u32::MAX);
            let is_possible =
                least.is_none_or(|least| least <= count && most.is_none_or(|most| least <= most));
            fault_of_choices(choices, default)
                .or_else(|| (!is_possible).then_some("the limits on the number of choices cannot be met"))
        }
    }
}

fn fault_of_choices(choices: &[FormChoice], default: &[String]) -> Option<&'static str> {
    let labels = choices.iter().flat_map(|choice| [Some(&choice.value), choice.title.as_ref()]);
    let values: BTreeSet<_> = choices.iter().map(|choice| &choice.value).collect();
    if choices.is_empty() || choices.len() > MAX_CHOICES || values.len() < choices.len() {
        Some("a field has no choices, too many choices, or the same choice twice")
    } else if labels.flatten().any(|label| label.len() > MAX_LABEL) {
        Some("a choice is too long")
    } else if default.iter().any(|value| !values.contains(value)) {
        Some("a default is not one of the choices")
    } else {
        let chosen: BTreeSet<_> = default.iter().collect();
        (chosen.len() < default.len()).then_some("a default has the same choice twice")
    }
}

/// Parses a finite decimal number. Returns `None` for any other text.
pub fn number(text: &str) -> Option<f64> {
    let is_plain = text.len() <= 32 && text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    text.parse().ok().filter(|number: &f64| is_plain && number.is_finite())
}

/// Parses a decimal number without a fraction. Returns `None` for any other text.
pub fn whole_number(text: &str) -> Option<i64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, kind: FieldKind) -> FormField {
        FormField { name: name.to_owned(), title: None, about: String::new(), required: true, kind }
    }

    fn choice(values: &[&str], default: Option<&str>) -> FieldKind {
        let choice = |value: &&str| FormChoice { value: (*value).to_owned(), title: None };
        FieldKind::Choice {
            choices: values.iter().map(choice).collect(),
            default: default.map(str::to_owned),
        }
    }

    fn choices(values: &[&str], least: u32, most: u32, default: &[&str]) -> FieldKind {
        let FieldKind::Choice { choices, .. } = choice(values, None) else { panic!("no choice") };
        let default = default.iter().map(|&value| value.to_owned()).collect();
        FieldKind::Choices { choices, least: Some(least), most: Some(most), default }
    }

    fn text(default: Option<String>, least: Option<u32>) -> FieldKind {
        FieldKind::Text { format: None, least, most: None, default }
    }

    fn numbers(whole: bool, bound: &str, default: &str) -> FieldKind {
        let [bound, default] = [bound, default].map(|text| Some(text.to_owned()));
        FieldKind::Number { whole, least: bound.clone(), most: bound, default }
    }

    #[test]
    fn a_form_is_within_its_bounds_or_has_a_fault() {
        let fine = [
            field("a", text(Some("x".repeat(MAX_VALUE)), Some(1))),
            field("b", numbers(true, "-3.5", "7")),
            field("c", numbers(false, "1e3", "0.25")),
            field("d", FieldKind::YesNo { default: None }),
            field("e", choice(&["x", "y"], Some("y"))),
            field("f", choices(&["x", "y"], 0, 2, &["y", "x"])),
        ];
        assert_eq!(fault(&fine), None);
        assert_eq!(fault(&[]), None);
        let many: Vec<_> = (0..=MAX_CHOICES).map(|number| number.to_string()).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        for kind in [
            text(Some("x".repeat(MAX_VALUE + 1)), None),
            text(None, Some(5000)),
            numbers(true, "1", "0.5"),
            numbers(false, "1", "NaN"),
            numbers(false, "inf", "1"),
            numbers(false, "1", "1e999"),
            choice(&[], None),
            choice(&["x", "x"], None),
            choice(&["x"], Some("y")),
            choice(&many, None),
            choice(&["x".repeat(MAX_LABEL + 1).as_str()], None),
            choices(&[], 0, 1, &[]),
            choices(&["x"], 0, 1, &["y"]),
            choices(&["x", "y"], 0, 2, &["x", "x"]),
            choices(&["x"], 2, 3, &[]),
            choices(&["x", "y"], 2, 1, &[]),
        ] {
            assert!(fault(&[field("a", kind.clone())]).is_some(), "{kind:?}");
        }
        let yes_no = || FieldKind::YesNo { default: None };
        assert!(fault(&[field("a", yes_no()), field("a", yes_no())]).is_some());
        assert!(fault(&[field("", yes_no())]).is_some());
        assert!(fault(&[field(&"x".repeat(MAX_LABEL + 1), yes_no())]).is_some());
        assert!(fault(&[FormField { about: "x".repeat(MAX_ABOUT + 1), ..field("a", yes_no()) }]).is_some());
        let fields: Vec<_> = (0..=MAX_FIELDS).map(|number| field(&number.to_string(), yes_no())).collect();
        assert!(fault(&fields).is_some() && fault(&fields[1..]).is_none());
    }
}
