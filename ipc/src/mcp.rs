//! Messages between the supervisor and the guest, the process that starts one MCP server and speaks MCP with it.
//!
//! The supervisor parses nothing that a server wrote: JSON is sent as text, which the guest has checked against the
//! limits of this module. Everything else in a report is untrusted. The messages are frames of generation 0 on a stream
//! socket.

use serde::{Deserialize, Serialize};

use crate::form::FormField;
use crate::image::Image;

/// The most tools of one server.
pub const MAX_TOOLS: usize = 512;

/// The most bytes of one JSON schema.
pub const MAX_SCHEMA: usize = 64 << 10;

/// The deepest nesting of one JSON schema.
pub const MAX_DEPTH: usize = 32;

/// The most bytes of a line of a server, which is one message of MCP.
pub const MAX_LINE: usize = 4 << 20;

/// The most prompts of one server.
pub const MAX_PROMPTS: usize = 256;

/// The most bytes of a name: of a tool, a prompt, an argument, a program.
pub const MAX_NAME: usize = 256;

/// The most bytes of a description and of instructions.
pub const MAX_TEXT: usize = 64 << 10;

/// The most bytes of all tools and prompts of one server.
pub const MAX_DEFINITIONS: usize = 4 << 20;

/// The most bytes of one result, well below [`crate::frame::MAX_FRAME`].
pub const MAX_RESULT: usize = 3 << 20;

/// The most parts of one result.
pub const MAX_PARTS: usize = 1024;

/// Maximum size in bytes of a server's text about progress, a failure or its end.
pub const MAX_WORDS: usize = 4 << 10;

/// The most questions that a server may ask a person during one request.
pub const MAX_ROUNDS: u32 = 8;

/// The most requests to one server that are open at a time.
pub const MAX_OPEN: usize = 64;

/// A message to the guest of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpOrder {
    /// Starts the server. Always the first order, sent once.
    Start(McpCommand),
    /// Sends a request to the server. Requests may overlap.
    Request {
        /// Number of the request, never used again.
        request: u64,
        /// The request, which the guest translates to JSON-RPC.
        what: McpRequest,
    },
    /// Cancels a request. It still ends with one `Done`.
    Cancel {
        /// The number that the supervisor gave the request in [`McpOrder::Request`].
        request: u64,
    },
    /// Answers a question of the server.
    Answer {
        /// The number that the guest gave the question in [`McpReport::Question`].
        question: u64,
        /// The answer of the person, or that there is none.
        answer: McpAnswer,
    },
}

/// The program of an MCP server that uses its standard streams for MCP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpCommand {
    /// Path of the program, or a name that is looked up in `PATH`.
    pub program: String,
    /// Arguments of the program.
    pub arguments: Vec<String>,
}

/// A request of the supervisor to an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpRequest {
    /// Calls a tool.
    CallTool {
        /// The tool's name on the server.
        tool: String,
        /// Arguments of the tool: the text of a JSON object.
        arguments: String,
    },
    /// Lists the resources, and the templates of their addresses.
    ListResources,
    /// Reads a resource.
    ReadResource {
        /// Address of the resource.
        uri: String,
    },
    /// Expands a prompt.
    GetPrompt {
        /// Name of the prompt.
        name: String,
        /// Arguments of the prompt: the text of a JSON object whose values are strings.
        arguments: String,
    },
}

/// A person's answer to a question of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpAnswer {
    /// The completed form: the text of a JSON object.
    Accepted(String),
    /// The person declined.
    Declined,
    /// No person answered.
    Cancelled,
}

/// The form of a server's question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpForm {
    /// Fields to fill in, within the bounds of [`crate::form`].
    Fields(Vec<FormField>),
    /// No fields: the server wants the person to open a web page.
    Page,
    /// No fields: the guest does not accept the form, for this reason.
    Unshown(String),
}

/// A message of the guest of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpReport {
    /// The guest has its order, and starts the server.
    Ready,
    /// A tool of the server. All tools come before `Described`.
    Tool(McpTool),
    /// A prompt of the server. All prompts come before `Described`.
    Prompt(McpPrompt),
    /// The server is initialised, and accepts requests.
    Described(McpDescription),
    /// The server reports progress.
    Progress {
        /// The number that the supervisor gave the request in [`McpOrder::Request`].
        request: u64,
        /// The server's text about its progress, at most one line.
        words: String,
    },
    /// A request ended.
    Done {
        /// The number that the supervisor gave the request in [`McpOrder::Request`].
        request: u64,
        /// The result, or the reason why there is none.
        outcome: Result<McpResult, McpFailure>,
    },
    /// The server asks the person a question during a request.
    Question {
        /// Number of the question, never used again.
        question: u64,
        /// The number that the supervisor gave the request in [`McpOrder::Request`].
        request: u64,
        /// The server's question to the person (untrusted).
        message: String,
        /// The form to fill in, a page to open, or the reason why no form is shown.
        form: McpForm,
    },
    /// The server reports that its tools have changed.
    ToolsChanged,
    /// The server did not start, or ended. All open requests have failed before, and no message follows.
    Gone(McpFailure),
}

/// A tool, as its server describes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct McpTool {
    /// The tool's name on the server.
    pub name: String,
    /// Name of the tool for people, if the server gives one.
    pub title: Option<String>,
    /// Description of the tool for the model (untrusted).
    pub description: String,
    /// The JSON schema of the arguments, as text.
    pub input_schema: String,
    /// The JSON schema of the structured result as text, if the server gives one.
    pub output_schema: Option<String>,
    /// The server's claims about the tool, if it makes any: a JSON object with `readOnlyHint` and the like, as text.
    pub annotations: Option<String>,
}

impl McpTool {
    /// Returns the number of bytes of all texts of the tool.
    pub fn size(&self) -> usize {
        let optional = [&self.title, &self.output_schema, &self.annotations];
        let optional: usize = optional.into_iter().flatten().map(String::len).sum();
        self.name.len() + self.description.len() + self.input_schema.len() + optional
    }
}

/// A prompt, as its server describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpPrompt {
    /// Name of the prompt.
    pub name: String,
    /// Description of the prompt for people.
    pub description: String,
    /// The arguments, in their order.
    pub arguments: Vec<McpPromptArgument>,
}

impl McpPrompt {
    /// Returns the number of bytes of all texts of the prompt.
    pub fn size(&self) -> usize {
        let arguments: usize = self.arguments.iter().map(|argument| argument.name.len()).sum();
        self.name.len() + self.description.len() + arguments
    }
}

/// An argument of a server's prompt, for which a person gives the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpPromptArgument {
    /// Name of the argument.
    pub name: String,
    /// True if the argument is required.
    pub required: bool,
}

/// Claims of a server about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpDescription {
    /// Name of the server's program, as the server reports it.
    pub name: String,
    /// Version of the server's program, as the server reports it.
    pub version: String,
    /// Version of the MCP protocol in use.
    pub protocol: String,
    /// The server's instructions for the model (untrusted).
    pub instructions: String,
    /// True if the server has resources.
    pub resources: bool,
}

/// The result of a request to an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpResult {
    /// True if the server reports that the tool call failed.
    pub failed: bool,
    /// Parts of the result, in the server's order.
    pub content: Vec<McpContent>,
    /// The structured result, if there is one: the text of a JSON value.
    pub structured: Option<String>,
}

/// A part of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpContent {
    /// A text for the model (untrusted).
    Text(String),
    /// A picture, which the guest did not parse.
    Image(Image),
    /// The text of a resource.
    Resource {
        /// Address of the resource.
        uri: String,
        /// The resource's content (untrusted).
        text: String,
    },
    /// The address of a resource.
    Link(McpLink),
    /// A template for addresses of resources: the variable parts are names in braces.
    Template(McpLink),
    /// Content that is not displayed, such as sound.
    Other {
        /// Kind of the content, as MCP names it.
        kind: String,
        /// Size of the content in bytes.
        bytes: u64,
        /// A remark about the content: its address, or the fault of a picture.
        note: String,
    },
}

/// An address of a resource, or a template for addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpLink {
    /// The address or template.
    pub uri: String,
    /// Name of the resource, as the server gives it.
    pub name: String,
    /// The server's description, at most one line; empty if there is none.
    pub about: String,
}

impl McpContent {
    /// Returns the number of bytes of all texts and pictures in the part.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Image(image) => image.bytes().len(),
            Self::Resource { uri, text } => uri.len() + text.len(),
            Self::Link(link) | Self::Template(link) => link.uri.len() + link.name.len() + link.about.len(),
            Self::Other { kind, note, .. } => kind.len() + note.len(),
        }
    }
}

/// The reason why a request has no result, or a server has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpFailure {
    /// Starting the program failed.
    NotStarted {
        /// The error number of execve(2), or of an earlier step.
        errno: i32,
    },
    /// The server ended.
    Ended {
        /// Exit code. `None` if a signal ended the server.
        code: Option<i32>,
        /// The last lines of the server's standard error.
        said: String,
    },
    /// The server did not answer in time.
    Silent {
        /// The time limit in seconds.
        seconds: u64,
    },
    /// The server sent something that is not MCP or exceeds a limit, described by this text.
    Broken(String),
    /// The server answered with a JSON-RPC error.
    Refused {
        /// The JSON-RPC error code.
        code: i64,
        /// The server's own words (untrusted).
        message: String,
    },
    /// The request was cancelled.
    Cancelled,
}
