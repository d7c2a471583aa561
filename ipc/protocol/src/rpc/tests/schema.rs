use std::collections::BTreeSet;

use serde_json::Value;

use super::super::*;
use crate::approval::SERVER_METHODS;

fn names(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn every_method_has_its_schema_and_every_reference_leads_somewhere() {
    let schema = schema();
    let methods = &schema["methods"];
    assert_eq!(names(&methods["client_requests"]), CLIENT_METHODS.iter().copied().collect());
    assert_eq!(names(&methods["server_requests"]), SERVER_METHODS.iter().copied().collect());
    assert_eq!(names(&methods["notifications"]), NOTIFICATION_METHODS.iter().copied().collect());
    assert_eq!(names(&schema["$defs"]["events"]).len(), NOTIFICATION_METHODS.len());
    follow(&schema, &schema);
}

/// Checks that the schema permits `null` only for the id of a response to an unreadable line.
#[test]
fn what_is_optional_is_never_null() {
    let text = schema().to_string();
    assert_eq!(text.matches("\"null\"").count(), 1);
}

fn follow(root: &Value, value: &Value) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                let place = reference.strip_prefix('#').unwrap();
                assert!(root.pointer(place).is_some(), "{reference}");
            }
            members.values().for_each(|value| follow(root, value));
        }
        Value::Array(values) => values.iter().for_each(|value| follow(root, value)),
        _ => {}
    }
}
