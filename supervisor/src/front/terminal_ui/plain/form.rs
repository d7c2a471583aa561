//! The form of an MCP server, asked field by field. All values are shown once more before they are sent.

use std::fmt::Write;

use ipc::form::{FieldKind, FormField};
use protocol::approval::{
    FormValue, FormValues, ReviewDecision, ServerFormParams, check, choice_label, default_of, field_bounds,
    picked, typed, value_in_words,
};

use super::words::TypedAnswer;
use crate::process::messages::one_line;

/// Explanation of the words that end a form before its last field is answered.
const WAYS_OUT: &str =
    ":decline tells the server that you declined, :cancel that nobody answered, :stop ends the turn.";

/// A form while the person fills it in.
pub(super) struct PlainForm {
    server: String,
    fields: Vec<FormField>,
    values: Vec<Option<FormValue>>,
    /// Index of the field that is asked next; the number of fields if none is left.
    at: usize,
}

impl PlainForm {
    pub(super) fn of(params: &ServerFormParams) -> Self {
        let fields = params.fields.clone();
        let values = fields.iter().map(default_of).collect();
        Self { server: params.server.clone(), fields, values, at: 0 }
    }

    /// Returns the introduction to a form, with its first question.
    pub(super) fn begin(&self, params: &ServerFormParams) -> String {
        let access = params.access.as_ref().map(ToString::to_string);
        let access = access.map(|access| format!(", which {access},")).unwrap_or_default();
        let asked = format!(
            "The MCP server {}{access} asks for input while it runs the tool {}",
            self.server, params.tool
        );
        format!("{}: {}\n{WAYS_OUT}\n{}", one_line(&asked), one_line(&params.message), self.question())
    }

    /// Returns the current question: about a field, or about sending the values.
    pub(super) fn question(&self) -> String {
        let (Some(field), Some(value)) = (self.fields.get(self.at), self.values.get(self.at)) else {
            return self.last_question();
        };
        let number = format!("Field {} of {}", self.at + 1, self.fields.len());
        let mut text = format!("{number}: {} ({})", one_line(field.label()), field_bounds(field));
        if !field.about.is_empty() {
            // A String takes every write.
            let _ = write!(text, "\n  {}", one_line(&field.about));
        }
        if let FieldKind::Choice { choices, .. } | FieldKind::Choices { choices, .. } = &field.kind {
            for (number, choice) in choices.iter().enumerate() {
                let _ = write!(text, "\n  {}. {}", number + 1, one_line(&choice_label(choice)));
            }
        }
        let how = match &field.kind {
            FieldKind::Choice { .. } => "Type the number of one choice",
            FieldKind::Choices { .. } => "Type the numbers of your choices, separated by commas",
            FieldKind::YesNo { .. } => "Type yes or no",
            FieldKind::Text { .. } | FieldKind::Number { .. } => "Type a value",
        };
        let kept = match value {
            Some(value) => {
                format!("; an empty line means: {}", one_line(&value_in_words(field, Some(value))))
            }
            None if field.required => String::new(),
            None => "; an empty line leaves the field empty".to_owned(),
        };
        let none = if field.required || value.is_none() { "" } else { "; - leaves the field empty" };
        format!("{text}\n{how}{kept}{none}.")
    }

    fn last_question(&self) -> String {
        let mut text = String::new();
        for (field, value) in self.fields.iter().zip(&self.values) {
            let value = value_in_words(field, value.as_ref());
            let _ = writeln!(text, "  {}: {}", one_line(field.label()), one_line(&value));
        }
        let (these, again) = if self.fields.is_empty() {
            ("your consent", "")
        } else {
            ("these values", ", again to start the form over")
        };
        format!(
            "{text}Type yes to send {these} to the MCP server {} for this call (also saved in the session's log), no or no and a reason to decline{again}, cancel to leave the form unanswered, or stop to end the turn.",
            one_line(&self.server)
        )
    }

    /// Returns the decision for a word that ends the form at any field; `None` for any other line.
    pub(super) fn way_out(text: &str) -> Option<ReviewDecision> {
        let (word, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let message = Some(rest.trim().to_owned()).filter(|reason| !reason.is_empty());
        match word {
            ":decline" => Some(ReviewDecision::Denied { message }),
            ":cancel" if message.is_none() => Some(ReviewDecision::Cancelled),
            _ => None,
        }
    }

    /// Handles a typed line. Returns the decision after the last line; the error says how to answer.
    pub(super) fn line(&mut self, text: &str) -> Result<Option<ReviewDecision>, String> {
        let (Some(field), Some(value)) = (self.fields.get(self.at), self.values.get_mut(self.at)) else {
            return self.last(text);
        };
        *value = taken(field, value.take(), text)?;
        self.at += 1;
        Ok(None)
    }

    fn last(&mut self, text: &str) -> Result<Option<ReviewDecision>, String> {
        match (TypedAnswer::of(text), text.trim()) {
            (TypedAnswer::Yes, _) => Ok(Some(ReviewDecision::Filled { values: self.filled() })),
            (TypedAnswer::No(message), _) => Ok(Some(ReviewDecision::Denied { message })),
            (TypedAnswer::Stop, _) => Ok(Some(ReviewDecision::Abort)),
            (TypedAnswer::Unclear, "cancel") => Ok(Some(ReviewDecision::Cancelled)),
            (TypedAnswer::Unclear, "again") => {
                self.at = 0;
                Ok(None)
            }
            (
                TypedAnswer::Unclear | TypedAnswer::Part(_) | TypedAnswer::YesToTurn | TypedAnswer::YesAlways,
                _,
            ) => Err("this is not a valid answer".to_owned()),
        }
    }

    fn filled(&self) -> FormValues {
        let named = self.fields.iter().zip(&self.values);
        named.filter_map(|(field, value)| Some((field.name.clone(), value.clone()?))).collect()
    }
}

/// Returns the value of a field for a typed line. An empty line keeps the value `before`.
fn taken(field: &FormField, before: Option<FormValue>, text: &str) -> Result<Option<FormValue>, String> {
    let is_none = text.trim() == "-" && !field.required;
    let value = match &field.kind {
        _ if text.trim().is_empty() => before,
        FieldKind::Choices { .. } if is_none => picked(field, Vec::new()),
        _ if is_none => None,
        FieldKind::Choice { choices, .. } => {
            let at = number(text, choices.len())?;
            choices.get(at).map(|choice| FormValue::Text(choice.value.clone()))
        }
        FieldKind::Choices { choices, .. } => {
            let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
            let chosen = parts.map(|part| number(part, choices.len())).collect::<Result<Vec<_>, _>>()?;
            let value = |at: &usize| choices.get(*at).map(|choice| choice.value.clone());
            picked(field, chosen.iter().filter_map(value).collect())
        }
        FieldKind::YesNo { .. } => typed(field, &text.trim().to_lowercase())?,
        FieldKind::Text { .. } | FieldKind::Number { .. } => typed(field, text)?,
    };
    check(field, value.as_ref()).map(|()| value)
}

/// Parses the number of a choice and returns its index. Fails if the number is not from 1 to `count`.
fn number(text: &str, count: usize) -> Result<usize, String> {
    let number = text.trim().parse::<usize>().ok().filter(|number| (1..=count).contains(number));
    number.map(|number| number - 1).ok_or_else(|| format!("type a number from 1 to {count}"))
}

#[cfg(test)]
mod tests {
    use ipc::form::FormChoice;
    use ipc::id::{AgentId, CallId};

    use super::*;

    fn form() -> (PlainForm, String) {
        let choice =
            |value: &str, title: &str| FormChoice { value: value.to_owned(), title: Some(title.to_owned()) };
        let choices = || vec![choice("b", "Bug"), choice("w", "Wish\u{1b}[2J"), choice("q", "Question")];
        let field = |name: &str, required, kind| FormField {
            name: name.to_owned(),
            title: None,
            about: "About\nit.".to_owned(),
            required,
            kind,
        };
        let fields = vec![
            field(
                "count",
                true,
                FieldKind::Number {
                    whole: true,
                    least: None,
                    most: Some("5".to_owned()),
                    default: Some("3".to_owned()),
                },
            ),
            field("kind", false, FieldKind::Choice { choices: choices(), default: Some("w".to_owned()) }),
            field(
                "labels",
                true,
                FieldKind::Choices { choices: choices(), least: None, most: Some(2), default: Vec::new() },
            ),
            field("note", false, FieldKind::Text { format: None, least: None, most: None, default: None }),
            field("urgent", true, FieldKind::YesNo { default: None }),
        ];
        let params = ServerFormParams {
            conversation_id: "c".into(),
            agent: AgentId::root(),
            call_id: CallId(1),
            server: "docs".to_owned(),
            tool: "ask".to_owned(),
            access: None,
            message: "Which?\nType yes".to_owned(),
            fields,
            digest: "d".to_owned(),
            timeout_ms: 1,
            reason: None,
        };
        let form = PlainForm::of(&params);
        let begun = form.begin(&params);
        (form, begun)
    }

    #[test]
    fn each_field_is_asked_with_its_bounds_and_all_values_are_shown_before_they_are_sent() {
        let (mut form, mut said) = form();
        for line in ["9", "4", "", "1,3", "", "Yes"] {
            write!(said, "\n? {line:?}\n").unwrap();
            match form.line(line) {
                Ok(decision) => {
                    assert_eq!(decision, None);
                    said.push_str(&form.question());
                }
                Err(why) => said.push_str(&why),
            }
        }
        insta::assert_snapshot!(said, @r#"
        The MCP server docs asks for input while it runs the tool ask: Which?\nType yes
        :decline tells the server that you declined, :cancel that nobody answered, :stop ends the turn.
        Field 1 of 5: count (whole number, at most 5)
          About\nit.
        Type a value; an empty line means: 3.
        ? "9"
        at most 5
        ? "4"
        Field 2 of 5: kind (one of 3, can stay empty)
          About\nit.
          1. Bug [b]
          2. Wish\u{1b}[2J [w]
          3. Question [q]
        Type the number of one choice; an empty line means: Wish\u{1b}[2J [w]; - leaves the field empty.
        ? ""
        Field 3 of 5: labels (any of 3, at most 2)
          About\nit.
          1. Bug [b]
          2. Wish\u{1b}[2J [w]
          3. Question [q]
        Type the numbers of your choices, separated by commas; an empty line means: none.
        ? "1,3"
        Field 4 of 5: note (text, can stay empty)
          About\nit.
        Type a value; an empty line leaves the field empty.
        ? ""
        Field 5 of 5: urgent (yes or no)
          About\nit.
        Type yes or no.
        ? "Yes"
          count: 4
          kind: Wish\u{1b}[2J [w]
          labels: Bug [b], Question [q]
          note: left empty
          urgent: yes
        Type yes to send these values to the MCP server docs for this call (also saved in the session's log), no or no and a reason to decline, again to start the form over, cancel to leave the form unanswered, or stop to end the turn.
        "#);
        let Ok(Some(ReviewDecision::Filled { values })) = form.line("yes") else { panic!("nothing is sent") };
        let values = serde_json::to_string(&values).unwrap();
        assert_eq!(values, r#"{"count":4,"kind":"w","labels":["b","q"],"urgent":true}"#);
    }

    #[test]
    fn no_line_but_yes_sends_anything() {
        for (line, expected) in [
            ("no", ReviewDecision::DENIED),
            ("no: later", ReviewDecision::Denied { message: Some("later".to_owned()) }),
            ("stop", ReviewDecision::Abort),
            ("cancel", ReviewDecision::Cancelled),
        ] {
            let (mut form, _) = form();
            for line in ["", "-", "2", "x", "no"] {
                assert_eq!(form.line(line), Ok(None));
            }
            assert!(form.line("").is_err() && form.line("y").is_err());
            assert_eq!(form.line(line), Ok(Some(expected)));
        }
        assert_eq!(
            PlainForm::way_out(":decline not now"),
            Some(ReviewDecision::Denied { message: Some("not now".to_owned()) })
        );
        assert_eq!(PlainForm::way_out(" :cancel "), Some(ReviewDecision::Cancelled));
        for text in ["decline", ":stop", ":cancel it", "no"] {
            assert_eq!(PlainForm::way_out(text), None, "{text}");
        }
    }

    #[test]
    fn a_value_that_a_field_does_not_take_is_asked_for_again() {
        let (mut form, _) = form();
        for (bad, good) in [("many", "3"), ("4", "-"), ("1 1", "1"), ("", ""), ("", "no")] {
            if !bad.is_empty() || good == "no" {
                assert!(form.line(bad).is_err(), "{bad:?}");
            }
            assert_eq!(form.line(good), Ok(None), "{good:?}");
        }
        let Ok(Some(ReviewDecision::Filled { values })) = form.line("yes") else { panic!("nothing is sent") };
        assert_eq!(serde_json::to_string(&values).unwrap(), r#"{"count":3,"labels":["b"],"urgent":false}"#);
    }
}
