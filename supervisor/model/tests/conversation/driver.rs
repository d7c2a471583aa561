//! An agent with a scripted model, and a worker that answers at once. The bytes of every request are kept.

use std::collections::VecDeque;
use std::time::Duration;

use agent::core::{Agent, AgentConfig, Backoff, ContextItem, Effect, EndReason, Input, RunLimits, Window};
use agent::prompt::{self, PromptEnvironment};
use bytes::Bytes;
use futures_util::StreamExt;
use gate::activity::Activity;
use gate::approval::ApprovalSettings;
use gate::tools::Registry;
use gate::{ApprovalMode, StandingRights};
use ipc::id::AgentId;
use ipc::image::Image;
use ipc::message::CallOutcome;
use ipc::rights::Rights;
use ipc::tool::{CommandExit, CommandResult, FileText, ToolCall, ToolError, ToolErrorKind, ToolOutput};
use model::provider::anthropic::ApiVersion;
use model::provider::{GiveUp, ModelProvider, ProviderError, ReplayProvider, RequestOptions, Tried};
use protocol::frontend::{AgentAction, Op};

use crate::writer::Writer;

/// The model's reaction to a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Stream(String),
    /// Only this many bytes of the stream arrive.
    Cut(String, usize),
    Overloaded,
    /// The user interrupts after this many bytes of the stream.
    Interrupted(String, usize),
}

/// Sends a failed request again without a delay, up to three times.
struct AtOnce;

impl Backoff for AtOnce {
    fn delay(&self, tried: Tried, error: &ProviderError) -> Result<Duration, GiveUp> {
        match tried.attempt {
            _ if !error.retryable => Err(GiveUp::Pointless),
            ..=3 => Ok(Duration::ZERO),
            attempt => Err(GiveUp::Attempts(attempt)),
        }
    }
}

pub(crate) struct Conversation {
    agent: Agent,
    writer: Writer,
    answers: VecDeque<Answer>,
    pub(crate) bodies: Vec<Bytes>,
    pub(crate) ends: Vec<EndReason>,
}

impl Conversation {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>, options: RequestOptions) -> Self {
        Self::speaking(ApiVersion::default(), answers, options)
    }

    pub(crate) fn speaking(
        version: ApiVersion,
        answers: impl IntoIterator<Item = Answer>,
        options: RequestOptions,
    ) -> Self {
        Self::written(Writer::of_version(version), answers, options)
    }

    pub(crate) fn written(
        writer: Writer,
        answers: impl IntoIterator<Item = Answer>,
        options: RequestOptions,
    ) -> Self {
        let answers = answers.into_iter().collect();
        Self { agent: Agent::new(config(options)), writer, answers, bodies: Vec::new(), ends: Vec::new() }
    }

    /// Adds context besides the user's words.
    pub(crate) async fn context(&mut self, text: &str) {
        let item = ContextItem { source: "AGENTS.md".to_owned(), text: text.to_owned() };
        self.take(Input::Context(vec![item])).await;
    }

    pub(crate) async fn user(&mut self, text: &str) {
        self.shows(text, Vec::new()).await;
    }

    pub(crate) async fn shows(&mut self, text: &str, images: Vec<Image>) {
        self.take(Input::Op(Op::Act(AgentAction::Prompt { text: text.to_owned(), images }))).await;
    }

    /// Returns the number of prepared answers that are left.
    pub(crate) fn unused(&self) -> usize {
        self.answers.len()
    }

    async fn take(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.agent.handle(input) {
                match effect {
                    Effect::StartStream { request, model, .. } => {
                        self.bodies.push(self.writer.body(&model));
                        inputs.extend(self.answer(request).await);
                    }
                    Effect::Dispatch { call, tool } => {
                        inputs.push_back(Input::CallFinished {
                            call,
                            outcome: outcome(&tool),
                            duration_ms: 1,
                        });
                    }
                    Effect::StartTimer { id, .. } => inputs.push_back(Input::Timer(id)),
                    Effect::Finish(end) => self.ends.push(end.reason),
                    _ => {}
                }
            }
        }
    }

    async fn answer(&mut self, request: agent::core::RequestId) -> Vec<Input> {
        let overloaded = ProviderError::new("overloaded_error", "it has no time").retryable();
        let (body, interrupted) = match self.answers.pop_front() {
            None => (Err(ProviderError::new("invalid_response", "the script is at its end")), false),
            Some(Answer::Overloaded) => (Err(overloaded), false),
            Some(Answer::Stream(text)) => (Ok(Bytes::from(text)), false),
            Some(Answer::Cut(text, length)) => (Ok(Bytes::from(text).slice(..length)), false),
            Some(Answer::Interrupted(text, length)) => (Ok(Bytes::from(text).slice(..length)), true),
        };
        let reply = ReplayProvider::with_errors([body]).of(self.writer.kind());
        let model = model::provider::ModelRequest {
            model: String::new(),
            system: "".into(),
            tools: [].into(),
            messages: Vec::new(),
            max_tokens: 1,
            options: RequestOptions::default(),
        };
        let items: Vec<_> = reply.stream(model).collect().await;
        let inputs = items.into_iter().filter_map(|item| match item {
            Ok(event) => Some(Input::Stream { request, event }),
            Err(_) if interrupted => None,
            Err(error) => Some(Input::StreamFailed { request, error }),
        });
        inputs.chain(interrupted.then_some(Input::Op(Op::Act(AgentAction::Interrupt)))).collect()
    }
}

pub(crate) fn config(options: RequestOptions) -> AgentConfig {
    let rights = Rights { read: vec!["/".into()], write: vec!["/p".into()], ..Rights::default() };
    AgentConfig {
        model: "claude-opus-5-5".to_owned(),
        system: prompt::SYSTEM.into(),
        tools: Registry::for_activity(Activity::Execute).into(),
        max_tokens: 32_000,
        options,
        sees_images: true,
        prices: None,
        window: Window::default(),
        surroundings: surroundings(),
        fails_when_denied: true,
        answer: None,
        limits: RunLimits::default(),
        backoff: Box::new(AtOnce),
        standing: StandingRights::new(rights, "/p".into(), None, ApprovalMode::Auto),
        conversation: "s".into(),
        approvals: ApprovalSettings::default(),
        id: AgentId::root(),
        activity: Activity::Execute,
        planning: None,
        execution: None,
    }
}

fn surroundings() -> PromptEnvironment {
    let (platform, date) = ("Linux".to_owned(), "2026-11-22".to_owned());
    PromptEnvironment { platform, date, activity: Activity::Execute, instructions: None }
}

fn outcome(tool: &ToolCall) -> CallOutcome {
    match tool {
        ToolCall::ReadFile(read) if read.path.to_string().contains("missing") => {
            let message = format!("{} does not exist; list_directory shows what does", read.path);
            CallOutcome::Failed(ToolError { kind: ToolErrorKind::NotFound, message, access: None })
        }
        ToolCall::ReadFile(read) => CallOutcome::Done(ToolOutput::File(file(&read.path.to_string()))),
        ToolCall::ShellExec(command) => CallOutcome::Done(ToolOutput::Command(output(
            i32::from(command.command.contains("fail")),
            &command.command,
        ))),
        other => panic!("no outcome for {other:?}"),
    }
}

fn file(path: &str) -> FileText {
    let lines = 12;
    let text: Vec<_> =
        (0..lines).map(|line| format!("    let line_{line} = {path:?}.len() + {line};\n")).collect();
    let text = text.concat();
    FileText {
        text,
        first_line: 1,
        lines,
        total_lines: Some(lines),
        encoding: "UTF-8".to_owned(),
        notes: Vec::new(),
    }
}

fn output(code: i32, text: &str) -> CommandResult {
    CommandResult {
        exit: CommandExit::Code(code),
        head: text.to_owned(),
        omitted_bytes: 0,
        tail: String::new(),
        saved: None,
        named: Vec::new(),
        process: 0,
        refused: Vec::new(),
        duration_ms: 7,
    }
}
