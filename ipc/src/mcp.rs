//! Messages between the supervisor and the guest around one MCP server.
//!
//! The guest starts the server as its child and speaks MCP with it, so that the supervisor parses nothing that a server wrote.
//! The messages are frames of generation 0 on a stream socket. JSON crosses as text, which the guest has checked: it parses, and is
//! within the bounds of this module. Everything else in a report is a claim.

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

/// The most bytes of words about progress, a failure or an end.
pub const MAX_WORDS: usize = 4 << 10;

/// The most questions that a server may ask during one request.
pub const MAX_ROUNDS: u32 = 8;

/// The most requests that are open at a time.
pub const MAX_OPEN: usize = 64;

/// A message to the guest of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpOrder {
    /// Starts the server. Always the first, and sent once.
    Start(McpCommand),
    /// Makes a request. Requests may overlap.
    Request {
        /// Number of the request, never used again.
        request: u64,
        /// The request.
        what: McpRequest,
    },
    /// Takes a request back. It still ends with one `Done`.
    Cancel {
        /// Number of the request.
        request: u64,
    },
    /// Answers a question of the server.
    Answer {
        /// Number of the question.
        question: u64,
        /// The answer.
        answer: McpAnswer,
    },
}

/// The program of an MCP server that speaks on its standard streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpCommand {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// A request to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpRequest {
    /// Calls a tool.
    CallTool {
        /// The server's name for the tool.
        tool: String,
        /// The arguments, a JSON object.
        arguments: String,
    },
    /// Lists the resources, and the forms of their addresses.
    ListResources,
    /// Reads a resource.
    ReadResource {
        /// Its address.
        uri: String,
    },
    /// Expands a prompt.
    GetPrompt {
        /// Its name.
        name: String,
        /// The arguments, a JSON object of strings.
        arguments: String,
    },
}

/// A person's answer to a question of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpAnswer {
    /// The form, filled in: a JSON object.
    Accepted(String),
    /// The person declined.
    Declined,
    /// Nobody answered.
    Cancelled,
}

/// The form of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpForm {
    /// Fields to fill in, within the bounds of [`crate::form`].
    Fields(Vec<FormField>),
    /// The server wants a page to be opened instead.
    Page,
    /// A form that is not shown, with the reason.
    Unshown(String),
}

/// A message of the guest of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpReport {
    /// It has its order, and starts the server.
    Ready,
    /// A tool of the server. All tools come before `Described`.
    Tool(McpTool),
    /// A prompt of the server. All prompts come before `Described`.
    Prompt(McpPrompt),
    /// The server is initialised, and takes requests.
    Described(McpDescription),
    /// A request goes on.
    Progress {
        /// Number of the request.
        request: u64,
        /// The server's words for its state, at most one line.
        words: String,
    },
    /// A request ended.
    Done {
        /// Number of the request.
        request: u64,
        /// The result, or the reason why there is none.
        outcome: Result<McpResult, McpFailure>,
    },
    /// The server asks the person something while it carries out a request.
    Question {
        /// Number of the question, never used again.
        question: u64,
        /// Number of the request.
        request: u64,
        /// The server's words.
        message: String,
        /// The form, or its replacement.
        form: McpForm,
    },
    /// The server says that its tools have changed.
    ToolsChanged,
    /// The server did not start, or ended. Open requests have failed before. Nothing follows.
    Gone(McpFailure),
}

/// A tool, as its server describes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct McpTool {
    /// The server's name for the tool.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// The text for the model.
    pub description: String,
    /// The JSON schema of the arguments.
    pub input_schema: String,
    /// The JSON schema of the structured result.
    pub output_schema: Option<String>,
    /// Claims about the tool, a JSON object: `readOnlyHint` and the like.
    pub annotations: Option<String>,
}

impl McpTool {
    /// Bytes of all texts.
    pub fn size(&self) -> usize {
        let optional = [&self.title, &self.output_schema, &self.annotations];
        let optional: usize = optional.into_iter().flatten().map(String::len).sum();
        self.name.len() + self.description.len() + self.input_schema.len() + optional
    }
}

/// A prompt, as its server describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpPrompt {
    /// Its name.
    pub name: String,
    /// The text for people.
    pub description: String,
    /// The names of its arguments, in their order.
    pub arguments: Vec<McpPromptArgument>,
}

impl McpPrompt {
    /// Bytes of all texts.
    pub fn size(&self) -> usize {
        let arguments: usize = self.arguments.iter().map(|argument| argument.name.len()).sum();
        self.name.len() + self.description.len() + arguments
    }
}

/// An argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpPromptArgument {
    /// Its name.
    pub name: String,
    /// True if it has to be given.
    pub required: bool,
}

/// Claims of a server about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpDescription {
    /// Name of the program.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Version of MCP that is spoken.
    pub protocol: String,
    /// Text for the model.
    pub instructions: String,
    /// True if it has resources.
    pub resources: bool,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpResult {
    /// True if the server says that the call failed.
    pub failed: bool,
    /// The parts, in their order.
    pub content: Vec<McpContent>,
    /// The structured result, a JSON value.
    pub structured: Option<String>,
}

/// A part of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpContent {
    /// A text for the model.
    Text(String),
    /// A picture, not looked into.
    Image(Image),
    /// A text of a resource.
    Resource {
        /// Its address.
        uri: String,
        /// The text.
        text: String,
    },
    /// The address of a resource.
    Link(McpLink),
    /// The form of the addresses of some resources, with names in braces for its open parts.
    Template(McpLink),
    /// Something that is not shown, such as sound.
    Other {
        /// The kind, as MCP names it.
        kind: String,
        /// Its size in bytes.
        bytes: u64,
        /// Words about it: its address, or the fault of a picture.
        note: String,
    },
}

/// An address, or a form of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpLink {
    /// The address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// The server's description, at most one line; empty without one.
    pub about: String,
}

impl McpContent {
    /// Bytes of all texts and pictures.
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

/// The reason why a request has no result, or a server is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum McpFailure {
    /// The program could not be started: the error number of execve(2), or of what it takes.
    NotStarted {
        /// The error number.
        errno: i32,
    },
    /// The server ended.
    Ended {
        /// Its exit code, if it was not ended by a signal.
        code: Option<i32>,
        /// The last lines of its standard error.
        said: String,
    },
    /// It did not answer in time.
    Silent {
        /// The time that it had, in seconds.
        seconds: u64,
    },
    /// It sent what is not MCP, or beyond a bound.
    Broken(String),
    /// It answered with an error of JSON-RPC.
    Refused {
        /// Its code.
        code: i64,
        /// Its words.
        message: String,
    },
    /// It was taken back.
    Cancelled,
}
