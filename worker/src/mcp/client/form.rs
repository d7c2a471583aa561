//! Conversion of the JSON schema in an MCP server's question to a form for the user.

use ipc::form::{FieldKind, FormChoice, FormField, TextFormat, fault};
use ipc::mcp::McpForm;
use rmcp::model::ElicitationSchema;
use serde_json::{Map, Value};

pub(super) fn of(schema: &ElicitationSchema) -> McpForm {
    let json = serde_json::to_value(schema).unwrap_or_default();
    let mut form = unread(&json);
    if let (McpForm::Fields(fields), Some(order)) = (&mut form, &schema.property_order) {
        fields.sort_by_key(|field| order.iter().position(|name| *name == field.name));
    }
    form
}

pub(super) fn unread(schema: &Value) -> McpForm {
    if !schema.is_object() {
        return McpForm::Unshown("the server's question has no form".to_owned());
    }
    match fields(schema) {
        Ok(fields) => McpForm::Fields(fields),
        Err(why) => McpForm::Unshown(why.to_owned()),
    }
}

fn fields(schema: &Value) -> Result<Vec<FormField>, &'static str> {
    let required: Vec<_> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let empty = Map::new();
    let properties = match &schema["properties"] {
        Value::Object(properties) => properties,
        Value::Null => &empty,
        _ => return Err("the form is not a list of fields"),
    };
    let fields = properties.iter().map(|(name, property)| {
        let text = |key: &str| property[key].as_str().map(str::to_owned);
        Ok::<_, &'static str>(FormField {
            name: name.clone(),
            title: text("title"),
            about: text("description").unwrap_or_default(),
            required: required.contains(&name.as_str()),
            kind: kind(property)?,
        })
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    if required.iter().any(|name| !properties.contains_key(*name)) {
        return Err("the form requires a field that does not exist");
    }
    fault(&fields).map_or(Ok(fields), Err)
}

fn kind(property: &Value) -> Result<FieldKind, &'static str> {
    if property["type"] == "array" {
        return several(property);
    }
    if let Some(choices) = choices(property)? {
        return Ok(FieldKind::Choice {
            choices,
            default: default(property, Value::as_str)?.map(str::to_owned),
        });
    }
    let count = |key: &str| count(&property[key]);
    match property["type"].as_str() {
        Some("string") => Ok(FieldKind::Text {
            format: format(property)?,
            least: count("minLength")?,
            most: count("maxLength")?,
            default: default(property, Value::as_str)?.map(str::to_owned),
        }),
        Some(word @ ("number" | "integer")) => Ok(FieldKind::Number {
            whole: word == "integer",
            least: number(&property["minimum"])?,
            most: number(&property["maximum"])?,
            default: number(&property["default"])?,
        }),
        Some("boolean") => Ok(FieldKind::YesNo { default: default(property, Value::as_bool)? }),
        _ => Err("a field is not a text, a number, a choice, or yes and no"),
    }
}

/// Reads a field that takes several values, which are in the schema's `items`.
fn several(property: &Value) -> Result<FieldKind, &'static str> {
    let choices = choices(&property["items"])?.ok_or("a list has values that cannot be chosen from")?;
    let default = match &property["default"] {
        Value::Null => Vec::new(),
        values => strings(values).ok_or("a default does not fit the kind of its field")?,
    };
    let [least, most] = ["minItems", "maxItems"].map(|key| count(&property[key]));
    Ok(FieldKind::Choices { choices, least: least?, most: most?, default })
}

fn count(value: &Value) -> Result<Option<u32>, &'static str> {
    if value.is_null() {
        return Ok(None);
    }
    let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
    count.map(Some).ok_or("a length is not a number")
}

fn strings(values: &Value) -> Option<Vec<String>> {
    values.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

/// Reads the default value of a field; `None` if there is none. Fails if the value has another type than the field.
fn default<'a, T>(
    property: &'a Value,
    read: impl Fn(&'a Value) -> Option<T>,
) -> Result<Option<T>, &'static str> {
    match &property["default"] {
        Value::Null => Ok(None),
        value => read(value).map(Some).ok_or("a default does not fit the kind of its field"),
    }
}

fn number(value: &Value) -> Result<Option<String>, &'static str> {
    match value {
        Value::Null => Ok(None),
        // 3.0 is a whole number of a server that knows no others.
        Value::Number(number) => {
            let text = number.to_string();
            Ok(Some(text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)))
        }
        _ => Err("a limit or default of a number field is not a number"),
    }
}

fn format(property: &Value) -> Result<Option<TextFormat>, &'static str> {
    Ok(Some(match property["format"].as_str() {
        None if property["format"].is_null() => return Ok(None),
        Some("email") => TextFormat::Email,
        Some("uri") => TextFormat::Uri,
        Some("date") => TextFormat::Date,
        Some("date-time") => TextFormat::DateTime,
        _ => return Err("a text has an unknown format"),
    }))
}

/// Returns the values among which the user chooses, in any of MCP's notations; `None` if the field is free.
fn choices(property: &Value) -> Result<Option<Vec<FormChoice>>, &'static str> {
    if !property["enum"].is_null() {
        let values = strings(&property["enum"]).ok_or("choices are not texts")?;
        let titles = strings(&property["enumNames"]).unwrap_or_default();
        let titles = titles.into_iter().map(Some).chain(std::iter::repeat(None));
        let choices = values.into_iter().zip(titles).map(|(value, title)| FormChoice { value, title });
        return Ok(Some(choices.collect()));
    }
    let titled = ["oneOf", "anyOf"].into_iter().find_map(|key| property[key].as_array());
    let Some(titled) = titled else { return Ok(None) };
    let choice = |entry: &Value| {
        let value = entry["const"].as_str()?.to_owned();
        Some(FormChoice { value, title: entry["title"].as_str().map(str::to_owned) })
    };
    titled.iter().map(choice).collect::<Option<Vec<_>>>().map(Some).ok_or("choices are not texts")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(properties: &Value) -> Result<Vec<FieldKind>, &'static str> {
        let schema = json!({"type": "object", "properties": properties, "required": ["a"]});
        fields(&schema).map(|fields| fields.into_iter().map(|field| field.kind).collect())
    }

    #[test]
    fn each_kind_of_field_has_its_bounds_and_its_default() {
        let kinds = shown(&json!({
            "a": {"type": "string", "minLength": 1, "maxLength": 9, "format": "email", "default": "a@b.c"},
            "b": {"type": "integer", "minimum": 1, "maximum": 10.0, "default": 3.0},
            "c": {"type": "number", "minimum": -0.5},
            "d": {"type": "boolean", "default": true},
            "e": {"type": "string", "enum": ["x", "y"], "enumNames": ["The x"], "default": "y"},
            "f": {"type": "string", "oneOf": [{"const": "z", "title": "The z"}]},
            "g": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "minItems": 1, "default": ["y"]},
            "h": {"type": "array", "items": {"anyOf": [{"const": "z", "title": "The z"}]}, "maxItems": 1},
        }));
        let text = |text: &str| Some(text.to_owned());
        let choice = |value: &str, title: Option<&str>| FormChoice {
            value: value.to_owned(),
            title: title.map(str::to_owned),
        };
        let number = |whole, least, most, default| FieldKind::Number { whole, least, most, default };
        assert_eq!(
            kinds.unwrap(),
            [
                FieldKind::Text {
                    format: Some(TextFormat::Email),
                    least: Some(1),
                    most: Some(9),
                    default: text("a@b.c"),
                },
                number(true, text("1"), text("10"), text("3")),
                number(false, text("-0.5"), None, None),
                FieldKind::YesNo { default: Some(true) },
                FieldKind::Choice {
                    choices: vec![choice("x", Some("The x")), choice("y", None)],
                    default: text("y"),
                },
                FieldKind::Choice { choices: vec![choice("z", Some("The z"))], default: None },
                FieldKind::Choices {
                    choices: vec![choice("x", None), choice("y", None)],
                    least: Some(1),
                    most: None,
                    default: vec!["y".to_owned()],
                },
                FieldKind::Choices {
                    choices: vec![choice("z", Some("The z"))],
                    least: None,
                    most: Some(1),
                    default: Vec::new(),
                },
            ]
        );
    }

    #[test]
    fn a_form_that_cannot_be_shown_as_it_is_has_a_reason() {
        for property in [
            json!({"type": "object", "properties": {}}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "string", "enum": ["x"]}, "default": "x"}),
            json!({"type": "array", "items": {"type": "string", "enum": ["x"]}, "default": ["y"]}),
            json!({"type": "array", "items": {"type": "string", "enum": ["x"]}, "minItems": 2}),
            json!({"type": "array", "items": {"type": "string", "enum": ["x"]}, "minItems": "1"}),
            json!({"type": "string", "format": "password"}),
            json!({"type": "string", "enum": [1, 2]}),
            json!({"type": "string", "enum": []}),
            json!({"type": "integer", "default": 0.5}),
            json!({"type": "integer", "default": "3"}),
            json!({"type": "boolean", "default": "yes"}),
            json!({"type": "string", "minLength": -1}),
            json!({}),
        ] {
            assert!(shown(&json!({ "a": property })).is_err(), "{property}");
        }
        assert!(shown(&json!({})).is_err(), "a required field is missing");
        let many: Map<_, _> = (0..40).map(|n| (n.to_string(), json!({"type": "boolean"}))).collect();
        assert!(matches!(unread(&json!({ "properties": many })), McpForm::Unshown(_)));
        assert!(matches!(unread(&json!(null)), McpForm::Unshown(_)));
        assert_eq!(unread(&json!({"type": "object"})), McpForm::Fields(Vec::new()));
    }

    #[test]
    fn fields_stand_in_the_order_of_the_server() {
        let text = r#"{"type": "object", "properties": {"z": {"type": "boolean"}, "a": {"type": "string"}}}"#;
        let McpForm::Fields(fields) = of(&serde_json::from_str(text).unwrap()) else { panic!("no form") };
        assert_eq!(fields.iter().map(|field| &*field.name).collect::<Vec<_>>(), ["z", "a"]);
    }
}
