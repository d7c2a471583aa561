//! Conversion of a server's results to wire types, within size limits.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ipc::mcp::{MAX_PARTS, MAX_RESULT, McpContent, McpFailure, McpLink, McpResult};
use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};

/// Maximum number of characters of a resource's description.
const MOST_ABOUT: usize = 200;

pub(super) fn of_tool(result: CallToolResult) -> Result<McpResult, McpFailure> {
    bounded(McpResult {
        failed: result.is_error.unwrap_or_default(),
        content: result.content.into_iter().map(of_block).collect(),
        structured: result.structured_content.map(|value| value.to_string()),
    })
}

pub(super) fn of_prompt(result: GetPromptResult) -> Result<McpResult, McpFailure> {
    succeeded(result.messages.into_iter().map(|message| of_block(message.content)).collect())
}

pub(super) fn of_resource(result: ReadResourceResult) -> Result<McpResult, McpFailure> {
    succeeded(result.contents.into_iter().map(of_contents).collect())
}

pub(super) fn of_resources(
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
) -> Result<McpResult, McpFailure> {
    let templates =
        templates.into_iter().map(|ResourceTemplate { uri_template, name, description, .. }| {
            McpContent::Template(McpLink { uri: uri_template, name, about: about(description) })
        });
    succeeded(resources.into_iter().map(of_link).chain(templates).take(MAX_PARTS).collect())
}

fn succeeded(content: Vec<McpContent>) -> Result<McpResult, McpFailure> {
    bounded(McpResult { failed: false, content, structured: None })
}

fn bounded(result: McpResult) -> Result<McpResult, McpFailure> {
    if result.content.len() > MAX_PARTS {
        return Err(McpFailure::Broken(format!("a result of more than {MAX_PARTS} parts")));
    }
    let parts: usize = result.content.iter().map(McpContent::size).sum();
    if parts + result.structured.as_ref().map_or(0, String::len) > MAX_RESULT {
        return Err(McpFailure::Broken(format!("a result of more than {MAX_RESULT} bytes")));
    }
    Ok(result)
}

fn of_block(block: ContentBlock) -> McpContent {
    match block {
        ContentBlock::Text(text) => McpContent::Text(text.text),
        ContentBlock::Image(image) => of_image(&image.mime_type, &image.data),
        ContentBlock::Audio(audio) => other(&audio.mime_type, audio.data.len(), ""),
        ContentBlock::Resource(embedded) => of_contents(embedded.resource),
        ContentBlock::ResourceLink(link) => of_link(link),
        _ => other("unknown", 0, ""),
    }
}

fn of_link(link: Resource) -> McpContent {
    McpContent::Link(McpLink { uri: link.uri, name: link.name, about: about(link.description) })
}

fn about(description: Option<String>) -> String {
    let description = description.unwrap_or_default();
    description.lines().next().unwrap_or_default().chars().take(MOST_ABOUT).collect()
}

fn of_contents(contents: ResourceContents) -> McpContent {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => McpContent::Resource { uri, text },
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let kind = mime_type.as_deref().unwrap_or("blob");
            if kind.starts_with("image/") {
                of_image(kind, &blob)
            } else {
                other(kind, blob.len(), &format!("is {uri}"))
            }
        }
        _ => other("unknown", 0, ""),
    }
}

/// Converts an image. Its format is detected from the bytes; bytes that are no picture are dropped.
fn of_image(kind: &str, base64: &str) -> McpContent {
    let picture = match BASE64_STANDARD.decode(base64.as_bytes()) {
        Ok(bytes) => picture::read(bytes).map_err(|error| error.to_string()),
        Err(_) => Err("is not in base64".to_owned()),
    };
    picture.map_or_else(|fault| other(kind, base64.len(), &fault), McpContent::Image)
}

/// Returns a note about content that is dropped. `base64` is the content's length in characters, four for three bytes.
fn other(kind: &str, base64: usize, note: &str) -> McpContent {
    McpContent::Other { kind: kind.to_owned(), bytes: (base64 / 4 * 3) as u64, note: note.to_owned() }
}
