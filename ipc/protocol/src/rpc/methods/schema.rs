//! The protocol as one JSON schema, generated from the types.
//!
//! The root describes a line in either direction. `methods` lists each method with its schemas, for code generators.

use ipc::id::ConversationId;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::notification::type_of;
use super::{ErrorObject, Logged, NOTIFICATION_METHODS, Passing, SESSION_EVENT_METHOD, client};
use crate::approval::ServerRequest;
use crate::event::{EventKind, SCHEMA};
use crate::rpc::PROTOCOL;
use crate::rpc::transport::JSONRPC;

/// Returns the JSON schema of this protocol.
pub fn schema() -> Value {
    let mut generator = settings().into_generator();
    let clients = client::schemas(&mut generator);
    let servers = ServerRequest::schemas(&mut generator);
    let told = Told::new(&mut generator);
    let error = generator.subschema_for::<ErrorObject>();
    let mut defs = generator.take_definitions(true);
    defs.insert("events".to_owned(), json!(told.events));
    defs.insert(
        "messages".to_owned(),
        json!({
            "client_request": {"oneOf": requests(&clients)},
            "server_request": {"oneOf": requests(&servers)},
            "notification": {"oneOf": Told::calls()},
            "response": response(error.as_value()),
        }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The front-end protocol of bailiwick serve",
        "description": "JSON-RPC 2.0, one object a line, in both directions. Generated: bailiwick serve --print-schema",
        "protocol": PROTOCOL,
        "event_schema": SCHEMA,
        "oneOf": [
            {"$ref": "#/$defs/messages/client_request"},
            {"$ref": "#/$defs/messages/server_request"},
            {"$ref": "#/$defs/messages/notification"},
            {"$ref": "#/$defs/messages/response"},
        ],
        "methods": {
            "client_requests": methods(&clients),
            "server_requests": methods(&servers),
            "notifications": told.typed,
            "generic_notification": {SESSION_EVENT_METHOD: told.generic},
        },
        "$defs": defs,
    })
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with_transform(without_null)
}

fn without_null(schema: &mut Schema) {
    let is_null = |value: &Value| *value == json!("null") || *value == json!({"type": "null"});
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|value| !is_null(value));
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|value| !is_null(value));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            only.into_iter().for_each(|(name, value)| drop(schema.insert(name, value)));
        }
    }
    transform_subschemas(&mut without_null, schema);
}

type Methods = [(&'static str, Schema, Schema)];

fn named<'a>(members: impl Iterator<Item = (&'a str, Value)>) -> Map<String, Value> {
    members.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn methods(methods: &Methods) -> Map<String, Value> {
    named(
        methods.iter().map(|(method, params, result)| (*method, json!({"params": params, "result": result}))),
    )
}

fn requests(methods: &Methods) -> Vec<Value> {
    let request = |(method, params, _): &(&str, Schema, Schema)| {
        let mut request = call(method, params.as_value());
        request["properties"]["id"] = json!({"type": ["number", "string"]});
        request["required"] = json!(["jsonrpc", "id", "method", "params"]);
        request
    };
    methods.iter().map(request).collect()
}

fn call(method: &str, params: &Value) -> Value {
    object(&named(
        [
            ("jsonrpc", json!({"const": JSONRPC})),
            ("method", json!({"const": method})),
            ("params", params.clone()),
        ]
        .into_iter(),
    ))
}

/// Returns an object of exactly these members.
fn object(properties: &Map<String, Value>) -> Value {
    let required: Vec<_> = properties.keys().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Returns the schema of a response. Only a response to a line without a readable id has no id.
fn response(error: &Value) -> Value {
    let of = |member: &str, value: &Value, id: Value| {
        let members =
            [("jsonrpc", json!({"const": JSONRPC})), ("id", json!({"type": id})), (member, value.clone())];
        object(&named(members.into_iter()))
    };
    json!({"oneOf": [
        of("result", &json!({"type": "object"}), json!(["number", "string"])),
        of("error", error, json!(["number", "string", "null"])),
    ]})
}

struct Told {
    events: Map<String, Value>,
    typed: Map<String, Value>,
    generic: Value,
}

impl Told {
    fn new(generator: &mut SchemaGenerator) -> Self {
        let common = [
            ("v", json!({"const": SCHEMA})),
            ("conversation_id", generator.subschema_for::<ConversationId>().to_value()),
        ];
        let logged = generator.subschema_for::<Logged>().to_value();
        let params = |kind: &str, is_logged: bool, with_type: bool| {
            let mut members = named(common.iter().cloned());
            if with_type {
                members.insert("type".to_owned(), json!({"const": kind}));
            }
            if is_logged {
                members.insert("logged".to_owned(), logged.clone());
            }
            members.insert("data".to_owned(), json!({"$ref": format!("#/$defs/events/{kind}")}));
            object(&members)
        };
        let contents: Vec<_> = variants::<EventKind>(generator)
            .into_iter()
            .map(|(kind, content)| (kind, content, true))
            .chain(variants::<Passing>(generator).into_iter().map(|(kind, content)| (kind, content, false)))
            .collect();
        let typed = NOTIFICATION_METHODS.iter().filter_map(|method| {
            let (kind, _, is_logged) =
                contents.iter().find(|(kind, ..)| type_of(method).as_ref() == Some(kind))?;
            Some((*method, json!({"params": params(kind, *is_logged, false)})))
        });
        let typed = named(typed);
        let all: Vec<_> =
            contents.iter().map(|(kind, _, is_logged)| params(kind, *is_logged, true)).collect();
        let events = contents.into_iter().map(|(kind, content, _)| (kind, content)).collect();
        Self { events, typed, generic: json!({"params": {"oneOf": all}}) }
    }

    fn calls() -> Vec<Value> {
        let place = |method: &str| method.replace('~', "~0").replace('/', "~1");
        let of = |group: &str, method: &str| {
            call(method, &json!({"$ref": format!("#/methods/{group}/{}/params", place(method))}))
        };
        let typed = NOTIFICATION_METHODS.iter().map(|method| of("notifications", method));
        typed.chain([of("generic_notification", SESSION_EVENT_METHOD)]).collect()
    }
}

/// Returns the kinds of an adjacently tagged enum, each with the schema of its content.
fn variants<T: JsonSchema>(generator: &mut SchemaGenerator) -> Vec<(String, Value)> {
    // Keeps the definitions that the contents refer to, but not that of the enum itself.
    generator.subschema_for::<T>();
    generator.definitions_mut().remove(T::schema_name().as_ref());
    let whole = settings().into_generator().into_root_schema_for::<T>();
    let variants = whole.get("oneOf").and_then(Value::as_array).cloned().unwrap_or_default();
    let variant = |variant: Value| {
        let kind = variant["properties"]["type"]["const"].as_str()?.to_owned();
        let mut content = variant["properties"]["data"].clone();
        if let (Some(about), Some(content)) = (variant.get("description"), content.as_object_mut()) {
            content.insert("description".to_owned(), about.clone());
        }
        Some((kind, content))
    };
    variants.into_iter().filter_map(variant).collect()
}
