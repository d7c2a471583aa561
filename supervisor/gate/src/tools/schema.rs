//! JSON schemas for the model, generated from the argument types.

use schemars::JsonSchema;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use serde_json::Value;
use serde_json::value::RawValue;

/// Returns the JSON schema of arguments, without everything that costs tokens and tells a model nothing.
pub(super) fn schema<T: JsonSchema>() -> Box<RawValue> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    lean(&mut schema);
    // The tool has a description of its own; the type's documentation is for readers of the code.
    schema.remove("description");
    serde_json::value::to_raw_value(&schema).unwrap_or_default()
}

fn lean(schema: &mut Schema) {
    for key in ["title", "format", "default"] {
        schema.remove(key);
    }
    if let Some(kind) = schema.get_mut("type") {
        without_null(kind);
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if let Some(Value::Array(forms)) = schema.get("anyOf")
        && let [only, Value::Object(null)] = forms.as_slice()
        && null.get("type") == Some(&Value::from("null"))
    {
        flatten(schema, only.clone());
    }
    transform_subschemas(&mut lean, schema);
}

/// Replaces `["integer", "null"]` by `"integer"`: a model leaves out an absent argument and never writes null.
fn without_null(kind: &mut Value) {
    if let Value::Array(kinds) = kind
        && let [only, Value::String(null)] = kinds.as_slice()
        && null == "null"
    {
        *kind = only.clone();
    }
}

/// Replaces `anyOf: [X, null]` by X, and keeps the description.
fn flatten(schema: &mut Schema, form: Value) {
    schema.remove("anyOf");
    if let Value::Object(form) = form {
        for (key, value) in form {
            if schema.get(&key).is_none() {
                schema.insert(key, value);
            }
        }
    }
}
