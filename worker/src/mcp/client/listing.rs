//! Retrieval of a server's description, tools and prompts, within size limits.

use std::collections::BTreeSet;

use ipc::mcp::{
    MAX_DEFINITIONS, MAX_DEPTH, MAX_NAME, MAX_PROMPTS, MAX_SCHEMA, MAX_TEXT, MAX_TOOLS, McpDescription,
    McpFailure, McpPrompt, McpPromptArgument, McpReport, McpTool,
};
use rmcp::model::{ErrorCode, PaginatedRequestParams, Prompt, Tool};
use rmcp::service::ServiceError;
use serde::Serialize;
use serde_json::Value;

use super::{McpService, request_failed};
use crate::mcp::state::GuestState;

/// Maximum number of pages in which a server may deliver a list.
const MAX_PAGES: usize = 128;

type Failed = Option<McpFailure>;

/// Reports the tools and prompts of a server, and returns its description.
pub(super) async fn describe(service: &McpService, state: &GuestState) -> Result<McpDescription, Failed> {
    let info = service.peer().peer_info().ok_or(None)?;
    let mut bytes = 0;
    if info.capabilities.tools.is_some() {
        for tool in tools(service, &mut bytes).await? {
            state.report(McpReport::Tool(tool)).await;
        }
    }
    if info.capabilities.prompts.is_some() {
        for prompt in prompts(service, &mut bytes).await? {
            state.report(McpReport::Prompt(prompt)).await;
        }
    }
    let program = info.server_info.as_ref();
    Ok(McpDescription {
        name: name(program.map_or("", |program| &program.name)),
        version: name(program.map_or("", |program| &program.version)),
        protocol: name(&info.protocol_version.to_string()),
        instructions: text(info.instructions.as_deref().unwrap_or_default()),
        resources: info.capabilities.resources.is_some(),
    })
}

async fn tools(service: &McpService, bytes: &mut usize) -> Result<Vec<McpTool>, Failed> {
    let mut cursors = Cursors::default();
    let mut names = BTreeSet::new();
    let mut tools = Vec::new();
    loop {
        let page = service.peer().list_tools(cursors.params()).await.map_err(request_failed)?;
        for found in page.tools {
            let tool = tool(&found)?;
            within(tools.len() + 1, MAX_TOOLS, "tools")?;
            *bytes += tool.size();
            within(*bytes, MAX_DEFINITIONS, "bytes of definitions")?;
            if !names.insert(tool.name.clone()) {
                return broken("two tools have the same name".to_owned());
            }
            tools.push(tool);
        }
        if !cursors.follow(page.next_cursor)? {
            return Ok(tools);
        }
    }
}

async fn prompts(service: &McpService, bytes: &mut usize) -> Result<Vec<McpPrompt>, Failed> {
    let mut cursors = Cursors::default();
    let mut names = BTreeSet::new();
    let mut prompts = Vec::new();
    loop {
        let page = match service.peer().list_prompts(cursors.params()).await {
            Ok(page) => page,
            // Announced, and not there.
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                return Ok(prompts);
            }
            Err(error) => return Err(request_failed(error)),
        };
        for found in page.prompts {
            let prompt = prompt(&found)?;
            within(prompts.len() + 1, MAX_PROMPTS, "prompts")?;
            *bytes += prompt.size();
            within(*bytes, MAX_DEFINITIONS, "bytes of definitions")?;
            if !names.insert(prompt.name.clone()) {
                return broken("two prompts have the same name".to_owned());
            }
            prompts.push(prompt);
        }
        if !cursors.follow(page.next_cursor)? {
            return Ok(prompts);
        }
    }
}

/// Cursors of the pages that were already fetched, to detect loops.
#[derive(Debug, Default)]
pub(super) struct Cursors {
    next: Option<String>,
    seen: BTreeSet<String>,
}

impl Cursors {
    pub(super) fn params(&self) -> Option<PaginatedRequestParams> {
        self.next.as_ref().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor.clone())))
    }

    pub(super) fn follow(&mut self, next: Option<String>) -> Result<bool, Failed> {
        let Some(next) = next else { return Ok(false) };
        if !self.seen.insert(next.clone()) {
            return broken("a list refers back to one of its own pages".to_owned());
        }
        within(self.seen.len(), MAX_PAGES, "pages of a list")?;
        self.next = Some(next);
        Ok(true)
    }
}

fn tool(found: &Tool) -> Result<McpTool, Failed> {
    if found.name.is_empty() {
        return broken("a tool without a name".to_owned());
    }
    within(found.name.len(), MAX_NAME, "bytes of a name")?;
    let output_schema = found.output_schema.as_deref();
    Ok(McpTool {
        name: found.name.to_string(),
        title: found.title.as_deref().map(text),
        description: text(found.description.as_deref().unwrap_or_default()),
        input_schema: schema(&found.input_schema)?,
        output_schema: output_schema.map(schema).transpose()?,
        annotations: found.annotations.as_ref().map(json).transpose()?,
    })
}

fn prompt(found: &Prompt) -> Result<McpPrompt, Failed> {
    within(found.name.len(), MAX_NAME, "bytes of a name")?;
    let arguments = found.arguments.iter().flatten().map(|argument| McpPromptArgument {
        name: name(&argument.name),
        required: argument.required.unwrap_or_default(),
    });
    Ok(McpPrompt {
        name: found.name.clone(),
        description: text(found.description.as_deref().unwrap_or_default()),
        arguments: arguments.take(MAX_PROMPTS).collect(),
    })
}

fn schema(schema: &serde_json::Map<String, Value>) -> Result<String, Failed> {
    let deepest = schema.values().map(depth).max().unwrap_or_default();
    within(deepest + 1, MAX_DEPTH, "levels of a schema")?;
    json(schema)
}

fn json(value: &impl Serialize) -> Result<String, Failed> {
    let text = serde_json::to_string(value).map_err(|error| Some(McpFailure::Broken(error.to_string())))?;
    within(text.len(), MAX_SCHEMA, "bytes of a schema")?;
    Ok(text)
}

/// Returns the nesting depth of a JSON value. The recursion is bounded, since the parser limits the depth.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or_default(),
        Value::Object(values) => 1 + values.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn name(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_NAME)].to_owned()
}

fn text(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

pub(super) fn within(size: usize, most: usize, of: &str) -> Result<(), Failed> {
    if size <= most { Ok(()) } else { broken(format!("more than {most} {of}")) }
}

fn broken<T>(reason: String) -> Result<T, Failed> {
    Err(Some(McpFailure::Broken(reason)))
}
