//! A tool whose arguments are a Rust type: schema, check and conversion all follow from it.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::schema::schema;
use super::{Invocation, Tool, ToolDefinition, ToolUseError};

/// The arguments of a tool, as the model writes them.
pub trait Arguments: DeserializeOwned + JsonSchema {
    /// The call that they make.
    type Call: Into<Invocation>;

    /// The tool's name: a contract.
    const NAME: &'static str;
    /// What the model is told of the tool.
    const DESCRIPTION: &'static str;

    /// The call; or the field that makes no sense, and what was expected of it.
    fn into_call(self) -> Result<Self::Call, (&'static str, String)>;
}

/// The tool with the arguments `A`.
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

    /// Reads the arguments.
    pub(super) fn call(&self, input: &str) -> Result<A::Call, ToolUseError> {
        // Two steps, for two different mistakes: text that is no JSON object at all, and an object that does not fit.
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

/// Checks that a text is a JSON object; the error says why it is none.
pub(super) fn object(input: &str) -> Result<(), String> {
    let read = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(input);
    read.map(drop).map_err(|error| plain(&error.to_string()))
}

/// A message of serde's in the model's words: it sees its arguments as a value, not as lines, and knows no `u64`.
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

/// `{path, offset?, limit?}`: what the tool takes, read from its schema.
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
