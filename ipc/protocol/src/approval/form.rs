//! The request of an MCP server for a completed form, and the check of the values in the answer.

use std::collections::{BTreeMap, BTreeSet};

use ipc::form::{FieldKind, FormChoice, FormField, MAX_VALUE, TextFormat, number, whole_number};
use ipc::id::{AgentId, CallId, ConversationId};
use serde::{Deserialize, Serialize};

use super::ServerAccess;

/// Asks the person to fill in a form for an MCP server during a call.
///
/// `approved` with `values` sends the values to the server, for that call. `denied` tells the server that the person
/// declined, `cancelled` (or no answer in time) that nobody answered. A form that seems to ask for a secret is declined
/// without a request, and a notice says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
pub struct ServerFormParams {
    /// The session whose agent asks.
    pub conversation_id: ConversationId,
    /// The agent whose call the server carries out.
    pub agent: AgentId,
    /// The call that the server carries out.
    pub call_id: CallId,
    /// Name of the server in the settings.
    pub server: String,
    /// The called tool, by the server's own name for it.
    pub tool: String,
    /// Access of the server; absent if it is not confined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<ServerAccess>,
    /// The server's message (untrusted, not sanitised).
    pub message: String,
    /// The fields, in the server's order. All texts are the server's.
    pub fields: Vec<FormField>,
    /// SHA-256 of session, agent, call, number of the question, server, message and fields, in hexadecimal.
    pub digest: String,
    /// Time limit for the answer, in milliseconds after the request.
    pub timeout_ms: u64,
    /// The agent's reason: always absent, since the server asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Value of a completed field of a form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[derive(schemars::JsonSchema)]
pub enum FormValue {
    /// The answer to a question of yes or no.
    YesNo(bool),
    /// A number.
    Number(serde_json::Number),
    /// A text, or a chosen value.
    Text(String),
    /// Several chosen values.
    List(Vec<String>),
}

/// Values of a form by the names of their fields, without empty fields.
pub type FormValues = BTreeMap<String, FormValue>;

/// Returns the default value of a field, if the server gives a valid one.
pub fn default_of(field: &FormField) -> Option<FormValue> {
    match &field.kind {
        FieldKind::Text { default, .. } | FieldKind::Choice { default, .. } => {
            default.clone().map(FormValue::Text)
        }
        FieldKind::Number { default, whole, .. } => {
            default.as_ref().and_then(|text| numeric(text, *whole)).map(FormValue::Number)
        }
        FieldKind::YesNo { default } => default.map(FormValue::YesNo),
        FieldKind::Choices { default, .. } => picked(field, default.clone()),
    }
}

/// Returns the chosen values as the value of a field. An empty list tells the server that nothing is chosen; if it were
/// left out, the server would use its default. `None` if the list is empty and the field needs a choice.
pub fn picked(field: &FormField, values: Vec<String>) -> Option<FormValue> {
    let is_needed =
        matches!(&field.kind, FieldKind::Choices { least, .. } if least.is_some_and(|least| least > 0));
    (!values.is_empty() || !is_needed).then_some(FormValue::List(values))
}

/// Parses typed text as a value, and an empty text as an empty field (`None`). The error says how to fill in the field.
pub fn typed(field: &FormField, text: &str) -> Result<Option<FormValue>, String> {
    if text.trim().is_empty() && !matches!(field.kind, FieldKind::Choices { .. }) {
        return check(field, None).map(|()| None);
    }
    let value = match &field.kind {
        FieldKind::Choices { .. } => {
            let values =
                text.split(',').map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
            let value = picked(field, values.collect());
            return check(field, value.as_ref()).map(|()| value);
        }
        FieldKind::Text { .. } => FormValue::Text(text.to_owned()),
        FieldKind::Choice { .. } => FormValue::Text(text.trim().to_owned()),
        FieldKind::Number { whole, .. } => {
            numeric(text.trim(), *whole).map(FormValue::Number).ok_or_else(|| expected(*whole).to_owned())?
        }
        FieldKind::YesNo { .. } => match text.trim() {
            "yes" => FormValue::YesNo(true),
            "no" => FormValue::YesNo(false),
            _ => return Err("answer yes or no".to_owned()),
        },
    };
    check(field, Some(&value)).map(|()| Some(value))
}

/// Returns the default values of a form. The error names the first field without a valid default.
pub fn defaults(fields: &[FormField]) -> Result<FormValues, String> {
    let value = |field: &FormField| Some((field.name.clone(), default_of(field)?));
    let values: FormValues = fields.iter().filter_map(value).collect();
    check_all(fields, &values).map(|()| values)
}

/// Checks the value of a field, `None` for an empty field. The error says how to fill in the field.
pub fn check(field: &FormField, value: Option<&FormValue>) -> Result<(), String> {
    let Some(value) = value else {
        return if field.required { Err("a value is needed".to_owned()) } else { Ok(()) };
    };
    match (&field.kind, value) {
        (FieldKind::Text { format, least, most, .. }, FormValue::Text(text)) => {
            check_text(text, *format, *least, *most)
        }
        (FieldKind::Choice { choices, .. }, FormValue::Text(text)) => {
            let is_one = choices.iter().any(|choice| choice.value == *text);
            is_one.then_some(()).ok_or_else(|| "choose one of the values".to_owned())
        }
        (FieldKind::Choices { choices, least, most, .. }, FormValue::List(values)) => {
            check_list(choices, *least, *most, values)
        }
        (FieldKind::YesNo { .. }, FormValue::YesNo(_)) => Ok(()),
        (FieldKind::Number { whole, least, most, .. }, FormValue::Number(value)) => {
            let is_whole = !whole || value.is_i64() || value.is_u64();
            let value = value.as_f64().filter(|_| is_whole).ok_or_else(|| expected(*whole).to_owned())?;
            let bound = |text: &Option<String>| text.as_deref().and_then(number);
            match (bound(least), bound(most)) {
                (Some(least), _) if value < least => Err(format!("at least {least}")),
                (_, Some(most)) if value > most => Err(format!("at most {most}")),
                _ => Ok(()),
            }
        }
        _ => Err("the value does not fit the kind of this field".to_owned()),
    }
}

fn check_list(
    choices: &[FormChoice],
    least: Option<u32>,
    most: Option<u32>,
    values: &[String],
) -> Result<(), String> {
    let is_one = |value: &String| choices.iter().any(|choice| choice.value == *value);
    let distinct: BTreeSet<_> = values.iter().collect();
    let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
    if !values.iter().all(is_one) || distinct.len() < values.len() {
        Err("choose from the listed values, each at most once".to_owned())
    } else if let Some(least) = least.filter(|least| count < *least) {
        Err(format!("choose at least {least}"))
    } else if let Some(most) = most.filter(|most| count > *most) {
        Err(format!("choose at most {most}"))
    } else {
        Ok(())
    }
}

/// Checks all values of a form. The error names the first invalid field.
pub fn check_all(fields: &[FormField], values: &FormValues) -> Result<(), String> {
    if let Some(name) = values.keys().find(|name| !fields.iter().any(|field| field.name == **name)) {
        return Err(format!("the form has no field {name:?}"));
    }
    fields.iter().try_for_each(|field| {
        check(field, values.get(&field.name)).map_err(|why| format!("field {:?}: {why}", field.name))
    })
}

const fn expected(whole: bool) -> &'static str {
    if whole { "a whole number is needed" } else { "a number is needed" }
}

fn numeric(text: &str, whole: bool) -> Option<serde_json::Number> {
    if let Some(number) = whole_number(text) {
        return Some(number.into());
    }
    number(text).filter(|_| !whole).and_then(serde_json::Number::from_f64)
}

fn check_text(
    text: &str,
    format: Option<TextFormat>,
    least: Option<u32>,
    most: Option<u32>,
) -> Result<(), String> {
    let characters = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    if text.len() > MAX_VALUE {
        return Err(format!("enter at most {MAX_VALUE} bytes"));
    }
    if let Some(least) = least.filter(|least| characters < *least) {
        return Err(format!("enter at least {least} characters"));
    }
    if let Some(most) = most.filter(|most| characters > *most) {
        return Err(format!("enter at most {most} characters"));
    }
    match format {
        Some(TextFormat::Email) if !is_email(text) => Err("a mail address is needed".to_owned()),
        Some(TextFormat::Uri) if !is_uri(text) => Err("an address with a scheme is needed".to_owned()),
        Some(TextFormat::Date) if !is_date(text) => Err("a date is needed, such as 2026-11-29".to_owned()),
        Some(TextFormat::DateTime) if !is_date_time(text) => {
            Err("a date and time is needed, such as 2026-11-29T17:30:00Z".to_owned())
        }
        _ => Ok(()),
    }
}

fn is_email(text: &str) -> bool {
    let parts = text.rsplit_once('@');
    parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
        && !text.contains(char::is_whitespace)
}

fn is_uri(text: &str) -> bool {
    let scheme = text.split_once(':').filter(|(_, rest)| !rest.is_empty()).map(|(scheme, _)| scheme);
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    scheme.is_some_and(is_scheme) && !text.contains(char::is_whitespace)
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut part = |digits: usize| {
        let part =
            parts.next().filter(|part| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit()));
        part.and_then(|part| part.parse::<u32>().ok())
    };
    let (year, month, day) = (part(4), part(2), part(2));
    let is_day = matches!((month, day), (Some(1..=12), Some(1..=31)));
    year.is_some() && is_day && parts.next().is_none()
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let clock = time.get(..8).unwrap_or_default();
    let is_clock = clock.split(':').count() == 3
        && clock.split(':').all(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit()));
    let zone = time.get(8..).unwrap_or_default().trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    is_date(date)
        && is_clock
        && (matches!(zone, "Z" | "z") || zone.starts_with(['+', '-']) && zone.len() == 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(required: bool, kind: FieldKind) -> FormField {
        FormField { name: "a".to_owned(), title: None, about: String::new(), required, kind }
    }

    fn text(format: Option<TextFormat>, least: Option<u32>, most: Option<u32>) -> FormField {
        field(true, FieldKind::Text { format, least, most, default: None })
    }

    fn numbers(whole: bool) -> FormField {
        let [least, most] = ["1", "10"].map(|text| Some(text.to_owned()));
        field(false, FieldKind::Number { whole, least, most, default: Some("2".to_owned()) })
    }

    fn choice() -> FormField {
        let choices = ["x", "y"].map(|value| FormChoice { value: value.to_owned(), title: None });
        field(true, FieldKind::Choice { choices: choices.into(), default: None })
    }

    fn some(required: bool, least: Option<u32>, most: Option<u32>, default: &[&str]) -> FormField {
        let FieldKind::Choice { choices, .. } = choice().kind else { panic!("no choice") };
        let default = default.iter().map(|&value| value.to_owned()).collect();
        field(required, FieldKind::Choices { choices, least, most, default })
    }

    #[test]
    fn no_choice_is_an_empty_list_where_the_form_permits_one() {
        let list =
            |values: &[&str]| Some(FormValue::List(values.iter().map(|&value| value.to_owned()).collect()));
        assert_eq!(default_of(&some(true, None, None, &[])), list(&[]));
        assert_eq!(default_of(&some(false, None, None, &["y"])), list(&["y"]));
        assert_eq!(default_of(&some(true, Some(1), None, &[])), None);
        assert_eq!(typed(&some(false, None, None, &["x"]), ""), Ok(list(&[])));
        assert_eq!(typed(&some(false, Some(1), None, &[]), ""), Ok(None));
        assert_eq!(typed(&some(true, Some(1), None, &[]), ""), Err("a value is needed".to_owned()));
    }

    #[test]
    fn typed_text_is_a_value_of_the_field_or_says_how_to_fill_it_in() {
        use TextFormat::{Date, DateTime, Email, Uri};
        let yes_no = || field(true, FieldKind::YesNo { default: Some(false) });
        let rows = [
            (text(None, Some(2), Some(3)), "äé", Ok("\"äé\"")),
            (text(None, Some(2), Some(3)), "a", Err("enter at least 2 characters")),
            (text(None, None, Some(3)), "abcd", Err("enter at most 3 characters")),
            (text(None, None, None), " ", Err("a value is needed")),
            (text(Some(Email), None, None), "a@b.example", Ok("\"a@b.example\"")),
            (text(Some(Email), None, None), "a.example", Err("a mail address is needed")),
            (text(Some(Uri), None, None), "https://a.example", Ok("\"https://a.example\"")),
            (text(Some(Uri), None, None), "a.example", Err("an address with a scheme is needed")),
            (text(Some(Date), None, None), "2026-11-29", Ok("\"2026-11-29\"")),
            (text(Some(Date), None, None), "29.11.2026", Err("a date is needed, such as 2026-11-29")),
            (
                text(Some(DateTime), None, None),
                "2026-11-29T17:30:00.5+01:00",
                Ok("\"2026-11-29T17:30:00.5+01:00\""),
            ),
            (
                text(Some(DateTime), None, None),
                "2026-11-29",
                Err("a date and time is needed, such as 2026-11-29T17:30:00Z"),
            ),
            (numbers(true), "7", Ok("7")),
            (numbers(true), "7.5", Err("a whole number is needed")),
            (numbers(true), "11", Err("at most 10")),
            (numbers(false), "0.5", Err("at least 1")),
            (numbers(false), "2.5", Ok("2.5")),
            (numbers(false), "NaN", Err("a number is needed")),
            (numbers(false), "many", Err("a number is needed")),
            (yes_no(), "yes", Ok("true")),
            (yes_no(), "perhaps", Err("answer yes or no")),
            (choice(), "y", Ok("\"y\"")),
            (choice(), "z", Err("choose one of the values")),
            (some(true, None, None, &[]), "y, x", Ok("[\"y\",\"x\"]")),
            (some(true, None, None, &[]), "x, z", Err("choose from the listed values, each at most once")),
            (some(true, None, None, &[]), "x, x", Err("choose from the listed values, each at most once")),
            (some(true, Some(2), None, &[]), "x", Err("choose at least 2")),
            (some(true, None, Some(1), &[]), "x,y", Err("choose at most 1")),
        ];
        for (field, said, expected) in rows {
            let value = typed(&field, said).map(|value| serde_json::to_string(&value.unwrap()).unwrap());
            assert_eq!(value, expected.map(str::to_owned).map_err(str::to_owned), "{said} {field:?}");
        }
        assert_eq!(typed(&numbers(true), ""), Ok(None));
        assert_eq!(default_of(&numbers(true)), Some(FormValue::Number(2.into())));
    }

    #[test]
    fn values_are_those_of_the_form_and_of_the_kinds_of_its_fields() {
        let values = |json: &str| -> FormValues { serde_json::from_str(json).unwrap() };
        let fields = [numbers(true)];
        assert_eq!(check_all(&fields, &values("{}")), Ok(()));
        assert_eq!(check_all(&fields, &values(r#"{"a":3}"#)), Ok(()));
        for bad in
            [r#"{"b":3}"#, r#"{"a":"3"}"#, r#"{"a":true}"#, r#"{"a":3.5}"#, r#"{"a":1e9}"#, r#"{"a":0}"#]
        {
            assert!(check_all(&fields, &values(bad)).is_err(), "{bad}");
        }
        assert!(check_all(&[choice()], &values("{}")).is_err());
        let lists = [some(true, None, Some(1), &[])];
        assert_eq!(check_all(&lists, &values(r#"{"a":["x"]}"#)), Ok(()));
        for bad in [r#"{"a":"x"}"#, r#"{"a":["x","y"]}"#, r#"{"a":["z"]}"#, "{}"] {
            assert!(check_all(&lists, &values(bad)).is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<FormValues>(r#"{"a":[1]}"#).is_err());
        let long = FormValues::from([("a".to_owned(), FormValue::Text("x".repeat(MAX_VALUE + 1)))]);
        assert!(check_all(&[text(None, None, None)], &long).is_err());
    }
}
