//! Two tools for MCP tools that are too many for the prompt: one finds such tools by words, the other calls one.

use std::sync::Arc;

use gate::tools::{ExternalTool, Invocation, SupervisorCall, Tool, ToolDefinition, ToolUseError};
use serde::Deserialize;
use serde_json::value::RawValue;

pub(super) const FIND: &str = "find_tools";
pub(super) const CALL: &str = "call_tool";

/// Maximum number of tools that one answer lists.
const MOST: usize = 8;

/// Maximum size of one answer in bytes.
const MOST_BYTES: usize = 16 << 10;

/// MCP tools that are left out of the prompt because there are too many.
#[derive(Default)]
pub(super) struct Catalogue(pub(super) Vec<(ToolDefinition, ExternalTool)>);

#[derive(Deserialize)]
struct FindArguments {
    words: String,
}

#[derive(Deserialize)]
struct CallArguments {
    name: String,
    arguments: Option<Box<RawValue>>,
}

impl Catalogue {
    /// Returns a text with the tools that match best and the schemas of their arguments. `json` has the words to find.
    pub(super) fn find(&self, json: &str) -> String {
        let words =
            serde_json::from_str::<FindArguments>(json).map(|arguments| arguments.words.to_lowercase());
        let words = words.unwrap_or_default();
        let words: Vec<_> =
            words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let mut found: Vec<_> =
            self.0.iter().map(|(definition, _)| (fitness(definition, &words), definition)).collect();
        found.retain(|(fitness, _)| *fitness > 0);
        found.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.name.cmp(&b.name)));
        let mut text = String::new();
        for (_, definition) in found.iter().take(MOST) {
            let entry = format!(
                "{}\n{}\narguments: {}\n\n",
                definition.name,
                definition.description,
                definition.input_schema.get()
            );
            if text.len() + entry.len() <= MOST_BYTES {
                text.push_str(&entry);
            }
        }
        if text.is_empty() { "no tool fits; try other words".to_owned() } else { text }
    }
}

/// Returns a rank: the number of words in the tool's name and description. A word in the name counts three times.
fn fitness(definition: &ToolDefinition, words: &[&str]) -> usize {
    let (name, description) = (definition.name.to_lowercase(), definition.description.to_lowercase());
    let of_word =
        |word: &&str| 3 * usize::from(name.contains(*word)) + usize::from(description.contains(*word));
    words.iter().map(of_word).sum()
}

fn definition(name: &'static str, description: &str, schema: &str) -> Option<ToolDefinition> {
    let input_schema = RawValue::from_string(schema.to_owned()).ok()?;
    Some(ToolDefinition { name: name.into(), description: description.to_owned().into(), input_schema })
}

/// Returns the tool that finds tools and the tool that calls them; none if the catalogue is empty.
pub(super) fn tools(catalogue: &Arc<Catalogue>, servers: &str) -> Vec<Box<dyn Tool>> {
    if catalogue.0.is_empty() {
        return Vec::new();
    }
    let find = definition(
        FIND,
        &format!(
            "Finds tools of the user's MCP servers ({servers}) by words, and shows their arguments. Call one with `{CALL}`."
        ),
        r#"{"type":"object","properties":{"words":{"type":"string","description":"Words for the task, such as: search issues"}},"required":["words"]}"#,
    );
    let call = definition(
        CALL,
        &format!("Calls a tool that `{FIND}` found."),
        r#"{"type":"object","properties":{"name":{"type":"string","description":"The tool's whole name"},"arguments":{"type":"object","description":"The arguments of that tool"}},"required":["name"]}"#,
    );
    let find = find.map(|definition| Box::new(FindTools(definition)) as Box<dyn Tool>);
    let call = call.map(|definition| Box::new(CallTool(definition, Arc::clone(catalogue))) as Box<dyn Tool>);
    find.into_iter().chain(call).collect()
}

struct FindTools(ToolDefinition);

impl Tool for FindTools {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn parse(&self, input: &str) -> Result<Invocation, ToolUseError> {
        serde_json::from_str::<FindArguments>(input).map_err(|error| misfit(FIND, &error, "{words}"))?;
        Ok(Invocation::Supervisor(SupervisorCall { tool: FIND.into(), json: input.to_owned() }))
    }
}

struct CallTool(ToolDefinition, Arc<Catalogue>);

impl Tool for CallTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    /// Parses the call as a call of the tool that its arguments name. The gate then judges that call.
    fn parse(&self, input: &str) -> Result<Invocation, ToolUseError> {
        let expected = "{name, arguments?}";
        let CallArguments { name, arguments } =
            serde_json::from_str(input).map_err(|error| misfit(CALL, &error, expected))?;
        let Some((_, tool)) = self.1.0.iter().find(|(definition, _)| definition.name == name) else {
            return Err(ToolUseError::Argument {
                tool: CALL.to_owned(),
                field: Some("name".to_owned()),
                reason: format!("no tool has this name; `{FIND}` finds tools"),
                arguments: expected.to_owned(),
            });
        };
        tool.parse(arguments.as_ref().map_or("{}", |arguments| arguments.get()))
    }
}

fn misfit(tool: &str, error: &serde_json::Error, arguments: &str) -> ToolUseError {
    ToolUseError::NotAnObject {
        tool: tool.to_owned(),
        reason: error.to_string(),
        arguments: arguments.to_owned(),
    }
}
