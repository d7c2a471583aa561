//! Messages that the guest of an MCP server may send, by phase. Any other message ends the guest.
//!
//! | phase ╲ message | `Ready` | `Tool`, `Prompt` | `Described` | `Progress` | `Done` | `Question` | `ToolsChanged` | `Gone` |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | Describing | ✗ | bounded | → Serving | ✗ | of an open request, once | ✗ | ✗ | → Gone |
//! | Serving | ✗ | ✗ | ✗ | of an open request | of an open request, once | of an open request, bounded | yes | → Gone |
//! | Gone | ✗ | ✗ | ✗ | ✗ | ✗ | ✗ | ✗ | ✗ |
//!
//! `Ready` is the first message of every guest, before these phases.

use std::collections::{BTreeMap, BTreeSet};

use ipc::form::{MAX_MESSAGE, fault};
use ipc::mcp::{
    MAX_DEFINITIONS, MAX_NAME, MAX_PARTS, MAX_PROMPTS, MAX_RESULT, MAX_ROUNDS, MAX_SCHEMA, MAX_TEXT,
    MAX_TOOLS, MAX_WORDS, McpContent, McpDescription, McpFailure, McpForm, McpPrompt, McpReport, McpResult,
    McpTool,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpViolation {
    #[error("a message out of order")]
    Phase,
    #[error("a message about a request that is not open")]
    NoSuchRequest,
    #[error("more than the bound of {0}")]
    TooMuch(&'static str),
    /// A picture that does not have the declared format.
    #[error("a picture that cannot be shown")]
    Picture,
    #[error("{0} that came before")]
    Twice(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Describing,
    Serving,
    Gone,
}

#[derive(Debug)]
pub(super) struct Conversation {
    phase: Phase,
    open: BTreeMap<u64, u32>,
    questions: BTreeSet<u64>,
    names: BTreeSet<String>,
    tools: usize,
    prompts: usize,
    definitions: usize,
}

impl Conversation {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Describing,
            open: BTreeMap::new(),
            questions: BTreeSet::new(),
            names: BTreeSet::new(),
            tools: 0,
            prompts: 0,
            definitions: 0,
        }
    }

    pub(super) fn opened(&mut self, request: u64) {
        self.open.insert(request, 0);
    }

    pub(super) fn open(&self) -> Vec<u64> {
        self.open.keys().copied().collect()
    }

    /// Checks if the guest may send a message now, and updates the phase and the open requests.
    pub(super) fn admit(&mut self, report: &McpReport) -> Result<(), McpViolation> {
        match (self.phase, report) {
            (Phase::Describing, McpReport::Tool(tool)) => self.tool(tool),
            (Phase::Describing, McpReport::Prompt(prompt)) => self.prompt(prompt),
            (Phase::Describing, McpReport::Described(description)) => {
                self.phase = Phase::Serving;
                self.names.clear();
                described(description)
            }
            (Phase::Serving, McpReport::Progress { request, words }) => {
                self.is_open(*request)?;
                within(words.len(), MAX_WORDS, "words")
            }
            (Phase::Describing | Phase::Serving, McpReport::Done { request, outcome }) => {
                self.open.remove(request).ok_or(McpViolation::NoSuchRequest)?;
                match outcome {
                    Ok(result) => bounded_result(result),
                    Err(failure) => bounded_failure(failure),
                }
            }
            (Phase::Serving, McpReport::Question { question, request, message, form }) => {
                self.question(*question, *request)?;
                within(message.len(), MAX_MESSAGE, "a question")?;
                bounded_form(form)
            }
            (Phase::Serving, McpReport::ToolsChanged) => Ok(()),
            (Phase::Describing | Phase::Serving, McpReport::Gone(failure)) => {
                self.phase = Phase::Gone;
                bounded_failure(failure)
            }
            _ => Err(McpViolation::Phase),
        }
    }

    fn is_open(&self, request: u64) -> Result<(), McpViolation> {
        self.open.contains_key(&request).then_some(()).ok_or(McpViolation::NoSuchRequest)
    }

    fn question(&mut self, question: u64, request: u64) -> Result<(), McpViolation> {
        let rounds = self.open.get_mut(&request).ok_or(McpViolation::NoSuchRequest)?;
        *rounds += 1;
        if *rounds > MAX_ROUNDS {
            return Err(McpViolation::TooMuch("questions"));
        }
        self.questions.insert(question).then_some(()).ok_or(McpViolation::Twice("a question"))
    }

    fn tool(&mut self, tool: &McpTool) -> Result<(), McpViolation> {
        self.tools += 1;
        within(self.tools, MAX_TOOLS, "tools")?;
        within(tool.input_schema.len(), MAX_SCHEMA, "a schema")?;
        within(tool.output_schema.as_ref().map_or(0, String::len), MAX_SCHEMA, "a schema")?;
        within(tool.annotations.as_ref().map_or(0, String::len), MAX_SCHEMA, "annotations")?;
        within(tool.name.len(), MAX_NAME, "a name")?;
        within(tool.title.as_ref().map_or(0, String::len), MAX_TEXT, "a title")?;
        within(tool.description.len(), MAX_TEXT, "a description")?;
        self.define(tool.size())?;
        self.names.insert(format!("tool {}", tool.name)).then_some(()).ok_or(McpViolation::Twice("a tool"))
    }

    fn prompt(&mut self, prompt: &McpPrompt) -> Result<(), McpViolation> {
        self.prompts += 1;
        within(self.prompts, MAX_PROMPTS, "prompts")?;
        within(prompt.name.len(), MAX_NAME, "a name")?;
        within(prompt.description.len(), MAX_TEXT, "a description")?;
        within(prompt.arguments.len(), MAX_PARTS, "arguments")?;
        self.define(prompt.size())?;
        self.names
            .insert(format!("prompt {}", prompt.name))
            .then_some(())
            .ok_or(McpViolation::Twice("a prompt"))
    }

    fn define(&mut self, bytes: usize) -> Result<(), McpViolation> {
        self.definitions = self.definitions.saturating_add(bytes);
        within(self.definitions, MAX_DEFINITIONS, "definitions")
    }
}

fn described(description: &McpDescription) -> Result<(), McpViolation> {
    for name in [&description.name, &description.version, &description.protocol] {
        within(name.len(), MAX_NAME, "a name")?;
    }
    within(description.instructions.len(), MAX_TEXT, "instructions")
}

fn bounded_result(result: &McpResult) -> Result<(), McpViolation> {
    within(result.content.len(), MAX_PARTS, "parts")?;
    let parts: usize = result.content.iter().map(McpContent::size).sum();
    let structured = result.structured.as_ref().map_or(0, String::len);
    within(parts.saturating_add(structured), MAX_RESULT, "a result")?;
    whole_pictures(result)
}

fn whole_pictures(result: &McpResult) -> Result<(), McpViolation> {
    let is_whole = |part: &McpContent| match part {
        McpContent::Image(image) => picture::check(image).is_ok(),
        _ => true,
    };
    if result.content.iter().all(is_whole) { Ok(()) } else { Err(McpViolation::Picture) }
}

fn bounded_form(form: &McpForm) -> Result<(), McpViolation> {
    match form {
        McpForm::Fields(fields) => fault(fields).map_or(Ok(()), |_| Err(McpViolation::TooMuch("a form"))),
        McpForm::Page => Ok(()),
        McpForm::Unshown(why) => within(why.len(), MAX_WORDS, "words"),
    }
}

fn bounded_failure(failure: &McpFailure) -> Result<(), McpViolation> {
    match failure {
        McpFailure::Ended { said: words, .. }
        | McpFailure::Broken(words)
        | McpFailure::Refused { message: words, .. } => within(words.len(), MAX_WORDS, "words"),
        McpFailure::NotStarted { .. } | McpFailure::Silent { .. } | McpFailure::Cancelled => Ok(()),
    }
}

fn within(size: usize, most: usize, of: &'static str) -> Result<(), McpViolation> {
    if size <= most { Ok(()) } else { Err(McpViolation::TooMuch(of)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::form::{FieldKind, FormField};
    use ipc::image::{Image, MediaType};
    use ipc::mcp::McpLink;

    fn tool(name: &str) -> McpReport {
        McpReport::Tool(McpTool {
            name: name.to_owned(),
            title: None,
            description: String::new(),
            input_schema: "{}".to_owned(),
            output_schema: None,
            annotations: None,
        })
    }

    fn described() -> McpReport {
        McpReport::Described(McpDescription {
            name: "s".to_owned(),
            version: "1".to_owned(),
            protocol: "2025-11-25".to_owned(),
            instructions: String::new(),
            resources: false,
        })
    }

    fn done(request: u64) -> McpReport {
        McpReport::Done { request, outcome: Err(McpFailure::Cancelled) }
    }

    fn question(question: u64, request: u64) -> McpReport {
        McpReport::Question { question, request, message: String::new(), form: McpForm::Fields(Vec::new()) }
    }

    fn serving() -> Conversation {
        let mut conversation = Conversation::new();
        conversation.admit(&described()).unwrap();
        conversation
    }

    #[test]
    fn definitions_come_before_and_requests_after_the_description() {
        let mut conversation = Conversation::new();
        assert_eq!(conversation.admit(&McpReport::ToolsChanged), Err(McpViolation::Phase));
        conversation.admit(&tool("a")).unwrap();
        assert_eq!(conversation.admit(&tool("a")), Err(McpViolation::Twice("a tool")));
        conversation.admit(&described()).unwrap();
        assert_eq!(conversation.admit(&tool("b")), Err(McpViolation::Phase));
        assert_eq!(conversation.admit(&described()), Err(McpViolation::Phase));
        assert_eq!(conversation.admit(&McpReport::Ready), Err(McpViolation::Phase));
        conversation.admit(&McpReport::ToolsChanged).unwrap();
        conversation.admit(&McpReport::Gone(McpFailure::Cancelled)).unwrap();
        assert_eq!(conversation.admit(&McpReport::ToolsChanged), Err(McpViolation::Phase));
    }

    #[test]
    fn a_request_ends_once() {
        let mut conversation = serving();
        assert_eq!(conversation.admit(&done(1)), Err(McpViolation::NoSuchRequest));
        conversation.opened(1);
        conversation.admit(&done(1)).unwrap();
        assert_eq!(conversation.admit(&done(1)), Err(McpViolation::NoSuchRequest));
        assert_eq!(conversation.admit(&question(1, 1)), Err(McpViolation::NoSuchRequest));
    }

    #[test]
    fn questions_of_a_request_are_bounded_and_differ() {
        let mut conversation = serving();
        conversation.opened(1);
        conversation.admit(&question(1, 1)).unwrap();
        assert_eq!(conversation.admit(&question(1, 1)), Err(McpViolation::Twice("a question")));
        for number in 2..u64::from(MAX_ROUNDS) {
            conversation.admit(&question(number, 1)).unwrap();
        }
        assert_eq!(conversation.admit(&question(100, 1)), Err(McpViolation::TooMuch("questions")));
        let nameless = FormField {
            name: String::new(),
            title: None,
            about: String::new(),
            required: false,
            kind: FieldKind::YesNo { default: None },
        };
        conversation.opened(2);
        let forms = [
            (String::new(), McpForm::Fields(vec![nameless]), "a form"),
            (String::new(), McpForm::Unshown("x".repeat(MAX_WORDS + 1)), "words"),
            ("x".repeat(MAX_MESSAGE + 1), McpForm::Page, "a question"),
        ];
        for (number, (message, form, of)) in (200..).zip(forms) {
            let report = McpReport::Question { question: number, request: 2, message, form };
            assert_eq!(conversation.admit(&report), Err(McpViolation::TooMuch(of)));
        }
    }

    #[test]
    fn definitions_and_results_are_bounded() {
        let mut conversation = Conversation::new();
        for number in 0..MAX_TOOLS {
            conversation.admit(&tool(&number.to_string())).unwrap();
        }
        assert_eq!(conversation.admit(&tool("x")), Err(McpViolation::TooMuch("tools")));
        let mut conversation = serving();
        conversation.opened(1);
        let content = vec![McpContent::Text("x".repeat(MAX_RESULT)), McpContent::Text("x".to_owned())];
        let outcome = Ok(McpResult { failed: false, content, structured: None });
        let report = McpReport::Done { request: 1, outcome };
        assert_eq!(conversation.admit(&report), Err(McpViolation::TooMuch("a result")));
        conversation.opened(2);
        let claimed = Image::new(MediaType::Png, (1, 1), *b"no picture").unwrap();
        let outcome =
            Ok(McpResult { failed: false, content: vec![McpContent::Image(claimed)], structured: None });
        let report = McpReport::Done { request: 2, outcome };
        assert_eq!(conversation.admit(&report), Err(McpViolation::Picture));
    }

    #[test]
    fn every_part_of_a_result_counts_and_progress_ends_with_its_request() {
        let long = || "x".repeat(MAX_RESULT + 1);
        let link = || McpLink { uri: String::new(), name: String::new(), about: long() };
        let parts = [
            McpContent::Link(link()),
            McpContent::Template(link()),
            McpContent::Resource { uri: long(), text: String::new() },
            McpContent::Other { kind: String::new(), bytes: 0, note: long() },
        ];
        for (request, part) in (1..).zip(parts) {
            let mut conversation = serving();
            conversation.opened(request);
            let result = McpResult { failed: false, content: vec![part], structured: None };
            let report = McpReport::Done { request, outcome: Ok(result) };
            assert_eq!(conversation.admit(&report), Err(McpViolation::TooMuch("a result")));
        }
        let mut conversation = serving();
        let progress = |words: String| McpReport::Progress { request: 1, words };
        assert_eq!(conversation.admit(&progress(String::new())), Err(McpViolation::NoSuchRequest));
        conversation.opened(1);
        conversation.admit(&progress("1 of 3".to_owned())).unwrap();
        let words = progress("x".repeat(MAX_WORDS + 1));
        assert_eq!(conversation.admit(&words), Err(McpViolation::TooMuch("words")));
        conversation.admit(&done(1)).unwrap();
        assert_eq!(conversation.admit(&progress(String::new())), Err(McpViolation::NoSuchRequest));
    }
}
