//! The protocol as one JSON schema, made from the types themselves.
//!
//! The root describes a line in either direction; `methods` lists each method with the schemas of its parameters and its
//! result, for those who generate code.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::notification::type_of;
use super::{
    ErrorObject, JSONRPC, Logged, NOTIFICATION_METHODS, PROTOCOL, Passing, SESSION_EVENT_METHOD, client,
};
use crate::approval::ServerRequest;
use crate::event::{EventKind, SCHEMA};
use crate::id::ConversationId;

/// The schema of this protocol.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let clients = client::schemas(&mut generator);
    let servers = ServerRequest::schemas(&mut generator);
    let (typed, generic) = notifications(&mut generator);
    let error = generator.subschema_for::<ErrorObject>();
    let defs = generator.take_definitions(true);
    let requests = |methods: &[(&str, Schema, Schema)]| -> Vec<Value> {
        methods.iter().map(|(method, params, _)| call(method, params.as_value(), true)).collect()
    };
    let told = typed.iter().map(|(method, params)| call(method, params, false));
    let told: Vec<_> = told.chain([call(SESSION_EVENT_METHOD, &generic, false)]).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The front-end protocol of bailiwick serve",
        "description": "JSON-RPC 2.0, one object a line, in both directions. Generated: bailiwick serve --print-schema",
        "protocol": PROTOCOL,
        "event_schema": SCHEMA,
        "oneOf": [
            {"$ref": "#/$defs/message/client_request"},
            {"$ref": "#/$defs/message/server_request"},
            {"$ref": "#/$defs/message/notification"},
            {"$ref": "#/$defs/message/response"},
        ],
        "methods": {
            "client_requests": methods(&clients),
            "server_requests": methods(&servers),
            "notifications": named(typed.iter().map(|(method, params)| (*method, json!({"params": params})))),
            "generic_notification": {SESSION_EVENT_METHOD: {"params": generic}},
        },
        "$defs": with_messages(defs, &json!({
            "client_request": {"oneOf": requests(&clients)},
            "server_request": {"oneOf": requests(&servers)},
            "notification": {"oneOf": told},
            "response": response(&error),
        })),
    })
}

fn with_messages(mut defs: Map<String, Value>, messages: &Value) -> Map<String, Value> {
    defs.insert("message".to_owned(), messages.clone());
    defs
}

fn named<'a>(members: impl Iterator<Item = (&'a str, Value)>) -> Map<String, Value> {
    members.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn methods(methods: &[(&str, Schema, Schema)]) -> Map<String, Value> {
    named(
        methods.iter().map(|(method, params, result)| (*method, json!({"params": params, "result": result}))),
    )
}

fn call(method: &str, params: &Value, answered: bool) -> Value {
    let mut call = json!({
        "type": "object",
        "properties": {"jsonrpc": {"const": JSONRPC}, "method": {"const": method}, "params": params},
        "required": ["jsonrpc", "method", "params"],
        "additionalProperties": false,
    });
    if answered {
        call["properties"]["id"] = json!({"type": ["number", "string"]});
        call["required"] = json!(["jsonrpc", "id", "method", "params"]);
    }
    call
}

/// A response in either direction; only ours to a line whose id could not be read has none.
fn response(error: &Schema) -> Value {
    let of = |member: &str, value: &Value, id: Value| {
        json!({
            "type": "object",
            "properties": {"jsonrpc": {"const": JSONRPC}, "id": {"type": id}, member: value},
            "required": ["jsonrpc", "id", member],
            "additionalProperties": false,
        })
    };
    json!({"oneOf": [
        of("result", &json!({"type": "object"}), json!(["number", "string"])),
        of("error", error.as_value(), json!(["number", "string", "null"])),
    ]})
}

/// The parameters of each notification in the typed form, and of all in the generic form.
fn notifications(generator: &mut SchemaGenerator) -> (Vec<(&'static str, Value)>, Value) {
    let logged = generator.subschema_for::<Logged>();
    let conversation = generator.subschema_for::<ConversationId>();
    let params = |content: &Content, with_type: bool| {
        let mut properties = named(
            [
                ("v", json!({"const": SCHEMA})),
                ("conversation_id", json!(conversation)),
                ("data", content.data.clone()),
            ]
            .into_iter(),
        );
        let mut required = vec!["v", "conversation_id", "data"];
        if with_type {
            properties.insert("type".to_owned(), json!({"const": content.r#type}));
            required.push("type");
        }
        if content.is_logged {
            properties.insert("logged".to_owned(), json!(logged));
            required.push("logged");
        }
        let mut params = json_schema!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        if let Some(text) = &content.description {
            params.insert("description".to_owned(), text.clone());
        }
        params.to_value()
    };
    let contents: Vec<_> = of::<EventKind>(true).into_iter().chain(of::<Passing>(false)).collect();
    // The definitions that the contents refer to.
    generator.subschema_for::<EventKind>();
    generator.subschema_for::<Passing>();
    for unneeded in ["EventKind", "Passing"] {
        generator.definitions_mut().remove(unneeded);
    }
    let find = |method: &&'static str| {
        let content =
            contents.iter().find(|content| type_of(method).as_deref() == content.r#type.as_str())?;
        Some((*method, params(content, false)))
    };
    let typed = NOTIFICATION_METHODS.iter().filter_map(find).collect();
    let generic: Vec<_> = contents.iter().map(|content| params(content, true)).collect();
    (typed, json!({"oneOf": generic}))
}

/// One kind of content: a variant of an adjacently tagged enum.
struct Content {
    r#type: Value,
    data: Value,
    description: Option<Value>,
    is_logged: bool,
}

fn of<T: schemars::JsonSchema>(is_logged: bool) -> Vec<Content> {
    let whole = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let variants = whole.get("oneOf").and_then(Value::as_array).cloned().unwrap_or_default();
    let content = |variant: Value| Content {
        r#type: variant["properties"]["type"]["const"].clone(),
        data: variant["properties"]["data"].clone(),
        description: variant.get("description").cloned(),
        is_logged,
    };
    variants.into_iter().map(content).collect()
}
