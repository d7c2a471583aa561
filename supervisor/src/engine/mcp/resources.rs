//! One tool for the resources of all MCP servers: it lists the resources of a server, or reads one.
//!
//! A call of this tool is judged and shown as a call of that server, with a digest that no tool of the server can have.

use std::sync::Arc;

use gate::tools::{ExternalCall, GuestTool, Invocation, Tool, ToolDefinition, ToolUseError};
use serde::Deserialize;
use serde_json::value::RawValue;

pub(super) const READ: &str = "read_resource";

/// Maximum size of a resource's URI in bytes.
const MOST_URI: usize = 4096;

const EXPECTED: &str = "{server, uri?}";

pub(super) struct ReadResource {
    definition: ToolDefinition,
    servers: Vec<(String, Arc<GuestTool>)>,
}

#[derive(Deserialize)]
struct ResourceArguments {
    server: String,
    uri: Option<String>,
}

/// Returns the tool for resources; `None` if no server has resources.
pub(super) fn tool(servers: Vec<(String, GuestTool)>) -> Option<Box<dyn Tool>> {
    if servers.is_empty() {
        return None;
    }
    let names = servers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let schema = r#"{"type":"object","properties":{"server":{"type":"string"},"uri":{"type":"string"}},"required":["server"]}"#;
    let definition = ToolDefinition {
        name: READ.into(),
        description: format!(
            "Reads a resource of one of the user's MCP servers ({names}). Without `uri` it lists them."
        )
        .into(),
        input_schema: RawValue::from_string(schema.to_owned()).ok()?,
    };
    let servers = servers.into_iter().map(|(name, guest)| (name, Arc::new(guest))).collect();
    Some(Box::new(ReadResource { definition, servers }))
}

/// Returns the resource's URI in the arguments of a call; `None` if the call lists resources.
pub(super) fn uri(json: &str) -> Option<String> {
    serde_json::from_str::<ResourceArguments>(json).ok().and_then(|arguments| arguments.uri)
}

impl Tool for ReadResource {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn parse(&self, input: &str) -> Result<Invocation, ToolUseError> {
        let ResourceArguments { server, uri } =
            serde_json::from_str(input).map_err(|error| ToolUseError::NotAnObject {
                tool: READ.to_owned(),
                reason: error.to_string(),
                arguments: EXPECTED.to_owned(),
            })?;
        let misfit = |field: &str, reason: String| ToolUseError::Argument {
            tool: READ.to_owned(),
            field: Some(field.to_owned()),
            reason,
            arguments: EXPECTED.to_owned(),
        };
        let Some((_, guest)) = self.servers.iter().find(|(name, _)| *name == server) else {
            return Err(misfit("server", "no server with resources has this name".to_owned()));
        };
        if uri.is_some_and(|uri| uri.len() > MOST_URI) {
            return Err(misfit("uri", format!("the URI has more than {MOST_URI} bytes")));
        }
        Ok(Invocation::External(ExternalCall {
            server,
            tool: READ.to_owned(),
            json: input.to_owned(),
            guest: Some(Arc::clone(guest)),
        }))
    }
}

#[cfg(test)]
mod tests {
    use ipc::rights::Rights;

    use super::*;

    fn parsed(input: &str) -> String {
        let guest = GuestTool {
            rights: Rights::default(),
            access: protocol::approval::ServerAccess::default(),
            definition: "d".to_owned(),
            always: false,
        };
        match tool(vec![("docs".to_owned(), guest)]).unwrap().parse(input) {
            Ok(Invocation::External(call)) => format!("{} {} {:?}", call.server, call.tool, uri(&call.json)),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_call_names_a_server_with_resources_and_a_short_address() {
        assert_eq!(parsed(r#"{"server":"docs"}"#), "docs read_resource None");
        assert_eq!(parsed(r#"{"server":"docs","uri":"a:b"}"#), r#"docs read_resource Some("a:b")"#);
        assert!(parsed(r#"{"server":"other"}"#).contains("no server with resources has this name"));
        assert!(parsed("[]").contains("expected one with the arguments {server, uri?}"));
        let long = "x".repeat(MOST_URI + 1);
        assert!(parsed(&format!(r#"{{"server":"docs","uri":"{long}"}}"#)).contains("more than 4096 bytes"));
        assert!(tool(Vec::new()).is_none());
    }
}
