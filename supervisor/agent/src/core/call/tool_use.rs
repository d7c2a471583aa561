use gate::tools::{Invocation, Registry, ToolUseError};
use ipc::id::ToolUseId;
use serde_json::value::RawValue;

#[derive(Clone, Debug)]
pub(in crate::core) struct ToolUse {
    pub(in crate::core) id: ToolUseId,
    pub(in crate::core) name: String,
    /// The arguments as JSON. An `Err` says why they are not a JSON object.
    pub(in crate::core) input: Result<String, String>,
    /// The arguments in the form that is sent back to the model.
    pub(in crate::core) echoed: Box<RawValue>,
    /// Text of the model before the call, in the same reply; `None` without such a text.
    pub(in crate::core) said: Option<String>,
}

impl ToolUse {
    pub(in crate::core) fn read(&self, tools: &Registry) -> Result<Invocation, ToolUseError> {
        match &self.input {
            Ok(input) => tools.parse(&self.name, input),
            // The registry's own error describes the expected arguments, and empty text always causes one.
            Err(reason) => match tools.parse(&self.name, "") {
                Err(ToolUseError::NotAnObject { tool, arguments, .. }) => {
                    Err(ToolUseError::NotAnObject { tool, reason: reason.clone(), arguments })
                }
                other => other,
            },
        }
    }

    /// Returns the arguments as the model wrote them; if they are not JSON, in the form that is sent back to the model.
    pub(in crate::core) fn written(&self) -> Box<RawValue> {
        let exact = self.input.as_ref().ok().and_then(|text| RawValue::from_string(text.clone()).ok());
        exact.unwrap_or_else(|| self.echoed.clone())
    }

    /// Returns a call that the supervisor makes itself; `None` if `input` is not JSON.
    pub(in crate::core) fn ours(id: String, name: &str, input: String) -> Option<Self> {
        let echoed = RawValue::from_string(input.clone()).ok()?;
        Some(Self { id: ToolUseId(id), name: name.to_owned(), input: Ok(input), echoed, said: None })
    }
}
