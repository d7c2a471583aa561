//! Tools whose arguments are a Rust type, which provides the schema, the checks and the conversion.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::schema::schema;
use super::{Invocation, Tool, ToolDefinition, ToolUseError};

pub trait Arguments: DeserializeOwned + JsonSchema {
    type Call: Into<Invocation>;

    /// Name of the tool. It must never change.
    const NAME: &'static str;
    const DESCRIPTION: &'static str;

    /// Converts the arguments to a call. The error is the name of a field with an invalid value, and what is expected.
    fn into_call(self) -> Result<Self::Call, (&'static str, String)>;
}

pub(super) struct Typed<A> {
    definition: ToolDefinition,
    arguments: PhantomData<fn() -> A>,
}

impl<A: Arguments> Typed<A> {
    pub(super) fn new() -> Self {
        let input_schema = schema::<A>();
        let (name, description) = (A::NAME.into(), A::DESCRIPTION.into());
        let definition = ToolDefinition { name, description, input_schema };
        Self { definition, arguments: PhantomData }
    }

    pub(super) fn call(&self, input: &str) -> Result<A::Call, ToolUseError> {
        // Two steps for two kinds of mistakes: text that is not a JSON object, and an object with invalid arguments.
        object(input).map_err(|reason| ToolUseError::NotAnObject {
            tool: A::NAME.to_owned(),
            reason,
            arguments: signature(&self.definition.input_schema),
        })?;
        let mut json = serde_json::Deserializer::from_str(input);
        let arguments: A = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| self.argument_error(&error.path().to_string(), &error.inner().to_string()))?;
        arguments.into_call().map_err(|(field, reason)| self.argument_error(field, &reason))
    }

    pub(super) fn argument_error(&self, field: &str, reason: &str) -> ToolUseError {
        ToolUseError::Argument {
            tool: A::NAME.to_owned(),
            field: (field != ".").then(|| field.to_owned()),
            reason: plain(reason),
            arguments: signature(&self.definition.input_schema),
        }
    }
}

impl<A: Arguments> Tool for Typed<A> {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn parse(&self, input: &str) -> Result<Invocation, ToolUseError> {
        self.call(input).map(Into::into)
    }
}

/// Fails with the reason if the input is not a JSON object.
pub(super) fn object(input: &str) -> Result<(), String> {
    let read = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(input);
    read.map(drop).map_err(|error| plain(&error.to_string()))
}

/// Rewrites an error of serde for the model, which sends its arguments as one line and does not know `u64`.
fn plain(reason: &str) -> String {
    const LENGTH: usize = 300;
    let reason = reason.rsplit_once(" at line ").map_or(reason, |(reason, _)| reason);
    let reason = reason
        .replace("expected u64", "expected a whole number")
        .replace("expected u32", "expected a whole number");
    match reason.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason,
    }
}

/// Returns the signature of a tool from the schema of its arguments: `{path, offset?, limit?}`.
pub(super) fn signature(schema: &RawValue) -> String {
    #[derive(serde::Deserialize)]
    struct TypedObject {
        #[serde(default)]
        properties: serde_json::Map<String, serde_json::Value>,
        #[serde(default)]
        required: Vec<String>,
    }
    let Ok(TypedObject { properties, required }) = serde_json::from_str(schema.get()) else {
        return "an object".to_owned();
    };
    let fields = properties.keys().map(|name| {
        let optional = if required.contains(name) { "" } else { "?" };
        format!("{name}{optional}")
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}
