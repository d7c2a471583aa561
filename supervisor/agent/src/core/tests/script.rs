//! A driver for tests, which records each effect as one line.

use std::fmt::Write;
use std::time::Duration;

use complaint::named_in;
use gate::activity::Activity;
use gate::approval::{ApprovalSettings, KeptSetting};
use gate::tools::{Registry, ServedCall};
use gate::{ApprovalMode, StandingRights};
use ipc::confinement::Tier;
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::CallOutcome;
use ipc::named::{Asked, NamedPlace, Permits};
use ipc::refusal::Refusal;
use ipc::rights::{Network, Rights, RightsChange};
use ipc::tool::{
    CommandExit, CommandResult, FileText, SavedOutput, ToolError, ToolErrorKind, ToolOutput, Written,
    WrittenFile,
};
use protocol::approval::ServerRequest;
use protocol::event::{ApprovalAnswered, EventKind, ModelChanged, TokenUsage};
use protocol::frontend::{AgentAction, Op, UiEventKind};
use serde_json::value::RawValue;

use crate::conversation::{
    AssistantBlock, ContentBlock, GiveUp, Message, ModelRequest, ProviderError, RequestOptions, StopReason,
    StreamEvent, Tried, UserBlock,
};
use crate::core::{
    Agent, AgentConfig, Backoff, ContextItem, Effect, Input, ReadyWorker, RequestId, RunLimits, STEP_CHANGES,
    ServedOutcome, TimerId, Window,
};
use crate::prompt::PromptEnvironment;

/// Permits two retries, each after a second.
pub(super) struct Twice;

impl Backoff for Twice {
    fn delay(&self, tried: Tried, error: &ProviderError) -> Result<Duration, GiveUp> {
        match tried.attempt {
            _ if !error.retryable => Err(GiveUp::Pointless),
            ..=2 => Ok(Duration::from_secs(1)),
            attempt => Err(GiveUp::Attempts(attempt)),
        }
    }
}

pub(super) fn standing() -> StandingRights {
    StandingRights::new(
        Rights {
            read: vec!["/".into()],
            hidden: vec!["/home/me/.ssh".into()],
            write: vec!["/p".into(), "/tmp/bw-1".into()],
            protected: vec!["/p/.git/hooks".into()],
            ..Rights::default()
        },
        "/p".into(),
        Some("/tmp/bw-1".into()),
        ApprovalMode::Auto,
    )
}

pub(super) fn with_net(standing: StandingRights, net: Network) -> StandingRights {
    let rights = Rights { net, ..standing.rights().clone() };
    standing.with_rights(rights)
}

/// Returns access that can write nothing but the private temp directory.
pub(super) fn only_temp(standing: StandingRights) -> StandingRights {
    let rights = Rights { write: vec!["/tmp/bw-1".into()], ..standing.rights().clone() };
    standing.with_rights(rights)
}

fn surroundings() -> PromptEnvironment {
    PromptEnvironment {
        platform: "Linux".to_owned(),
        date: "2026-11-22".to_owned(),
        activity: Activity::Execute,
        instructions: None,
    }
}

pub(super) fn config() -> AgentConfig {
    AgentConfig {
        model: "m".to_owned(),
        system: "be good".into(),
        tools: Registry::for_activity(Activity::Execute).into(),
        max_tokens: 1000,
        options: RequestOptions::default(),
        sees_images: true,
        prices: None,
        window: Window::default(),
        surroundings: surroundings(),
        limits: RunLimits::default(),
        fails_when_denied: true,
        answer: None,
        backoff: Box::new(Twice),
        standing: standing(),
        conversation: "s".into(),
        approvals: ApprovalSettings::default(),
        id: AgentId::root(),
        activity: Activity::Execute,
        planning: None,
        execution: None,
    }
}

pub(super) struct Script {
    pub(super) agent: Agent,
    pub(super) effects: Vec<Effect>,
    pub(super) shown: usize,
    /// True if the script reports the changed files itself; false if the test does.
    pub(super) looks: bool,
}

fn look(effect: &Effect) -> Option<CallId> {
    match effect {
        Effect::Serve { call, served: ServedCall::Supervisor(served), .. } if served.tool == STEP_CHANGES => {
            Some(*call)
        }
        _ => None,
    }
}

impl Script {
    pub(super) fn new() -> Self {
        Self::with(config())
    }

    pub(super) fn with(config: AgentConfig) -> Self {
        Self { agent: Agent::new(config), effects: Vec::new(), shown: 0, looks: true }
    }

    pub(super) fn limited(limits: RunLimits) -> Self {
        Self::with(AgentConfig { limits, ..config() })
    }

    pub(super) fn input(&mut self, input: Input) -> &mut Self {
        let effects = self.agent.handle(input);
        let look = effects.iter().find_map(look);
        self.effects.extend(effects);
        match look {
            // A look at the project between two steps finds nothing, unless a test says otherwise.
            Some(call) if self.looks => {
                let outcome = ServedOutcome::Answered("[]".to_owned());
                self.input(Input::Served { call, outcome, duration_ms: 1 })
            }
            _ => self,
        }
    }

    pub(super) fn user(&mut self, text: &str) -> &mut Self {
        self.input(Input::Op(Op::Act(AgentAction::Prompt { text: text.to_owned(), images: vec![] })))
    }

    pub(super) fn context(&mut self, source: &str, text: &str) -> &mut Self {
        let item = ContextItem { source: source.to_owned(), text: text.to_owned() };
        self.input(Input::Context(vec![item]))
    }

    pub(super) fn stream(&mut self, request: u64, event: StreamEvent) -> &mut Self {
        self.input(Input::Stream { request: RequestId(request), event })
    }

    pub(super) fn started(&mut self, request: u64) -> &mut Self {
        let event =
            StreamEvent::MessageStarted { message_id: format!("msg_{request}"), model: "m-1".to_owned() };
        self.stream(request, event)
    }

    pub(super) fn delta(&mut self, request: u64, index: usize, text: &str) -> &mut Self {
        self.stream(request, StreamEvent::TextDelta { index, text: text.to_owned() })
    }

    pub(super) fn reply(&mut self, request: u64, blocks: &[AssistantBlock], stop: StopReason) -> &mut Self {
        self.started(request);
        for (index, block) in blocks.iter().enumerate() {
            self.stream(request, StreamEvent::BlockClosed { index, block: block.clone() });
        }
        self.stream(request, completed(stop))
    }

    pub(super) fn failed(&mut self, request: u64, error: ProviderError) -> &mut Self {
        self.input(Input::StreamFailed { request: RequestId(request), error })
    }

    pub(super) fn outcome(&mut self, call: u64, outcome: CallOutcome) -> &mut Self {
        self.input(Input::CallFinished { call: CallId(call), outcome, duration_ms: 7 })
    }

    pub(super) fn lost(&mut self, call: u64) -> &mut Self {
        self.input(Input::CallLost { call: CallId(call), reason: "the worker died".to_owned() })
    }

    pub(super) fn timer(&mut self, timer: u64) -> &mut Self {
        self.input(Input::Timer(TimerId(timer)))
    }

    pub(super) fn interrupt(&mut self) -> &mut Self {
        self.input(Input::Op(Op::Act(AgentAction::Interrupt)))
    }

    pub(super) fn set_rights(&mut self, change: RightsChange) -> &mut Self {
        self.input(Input::Op(Op::Act(AgentAction::SetRights { change })))
    }

    pub(super) fn net(&mut self, net: Network) -> &mut Self {
        self.set_rights(RightsChange::Network { net, reach: None })
    }

    pub(super) fn ready(&mut self, generation: u32) -> &mut Self {
        self.input(Input::WorkerReady(ready(generation, Tier::Floor)))
    }

    pub(super) fn not_replaced(&mut self) -> &mut Self {
        self.input(Input::NotReplaced { reason: "it would not start".to_owned() })
    }

    /// Returns the effects since the last call of this method, one line each.
    pub(super) fn lines(&mut self) -> String {
        let mut text = String::new();
        for effect in &self.effects[self.shown..] {
            writeln!(text, "{}", line(effect)).unwrap();
        }
        self.shown = self.effects.len();
        text
    }

    pub(super) fn last_messages(&self) -> String {
        messages(self.requests().last().expect("a request"))
    }

    pub(super) fn durations(&self) -> Vec<u64> {
        let durations = self.effects.iter().filter_map(|effect| match effect {
            Effect::Log { kind: EventKind::ToolCallFinished { duration_ms, .. }, .. } => Some(*duration_ms),
            _ => None,
        });
        durations.collect()
    }

    pub(super) fn output(&self) -> Option<serde_json::Value> {
        let end = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Finish(end) => Some(end),
            _ => None,
        });
        end.expect("an end").output.clone()
    }

    pub(super) fn requests(&self) -> Vec<&ModelRequest> {
        let requests = self.effects.iter().filter_map(|effect| match effect {
            Effect::StartStream { model, .. } => Some(model),
            _ => None,
        });
        requests.collect()
    }
}

pub(super) fn ready(generation: u32, tier: Tier) -> ReadyWorker {
    ReadyWorker {
        generation: Generation(generation),
        pid: 100 + generation,
        tier,
        rights_digest: "r".to_owned(),
        ruleset_digest: format!("ruleset {generation}"),
    }
}

pub(super) fn completed(stop_reason: StopReason) -> StreamEvent {
    let usage = TokenUsage { input: 10, cache_read: 100, output: 5, ..TokenUsage::default() };
    StreamEvent::MessageCompleted { stop_reason, usage }
}

pub(in crate::core) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

pub(super) fn text(text: &str) -> AssistantBlock {
    let raw = raw(&serde_json::json!({ "type": "text", "text": text }).to_string());
    AssistantBlock { content: ContentBlock::Text { text: text.to_owned() }, raw }
}

pub(in crate::core) fn thinking() -> AssistantBlock {
    let raw = raw(r#"{"type":"thinking","thinking":"","signature":"s"}"#);
    AssistantBlock { content: ContentBlock::Thinking { thinking: String::new() }, raw }
}

pub(super) fn call(id: &str, name: &str, input: &str) -> AssistantBlock {
    let raw = raw(&format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}"#));
    let content = ContentBlock::ToolUse { id: id.into(), name: name.to_owned(), input: Ok(input.to_owned()) };
    AssistantBlock { content, raw }
}

pub(super) fn broken_call(id: &str, name: &str) -> AssistantBlock {
    let raw = raw(&format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}"#));
    let input = Err("EOF while parsing a string".to_owned());
    AssistantBlock { content: ContentBlock::ToolUse { id: id.into(), name: name.to_owned(), input }, raw }
}

pub(super) fn read(id: &str, path: &str) -> AssistantBlock {
    call(id, "read_file", &format!(r#"{{"path":"{path}"}}"#))
}

pub(super) fn run(id: &str, command: &str) -> AssistantBlock {
    call(id, "shell_exec", &format!(r#"{{"command":"{command}"}}"#))
}

pub(in crate::core) fn file(text: &str) -> CallOutcome {
    let lines = text.lines().count() as u64;
    CallOutcome::Done(ToolOutput::File(FileText {
        text: text.to_owned(),
        first_line: 1,
        lines,
        total_lines: Some(lines),
        encoding: "UTF-8".to_owned(),
        notes: vec![],
    }))
}

pub(in crate::core) fn command(code: i32, output: &str) -> CallOutcome {
    CallOutcome::Done(ToolOutput::Command(CommandResult {
        exit: CommandExit::Code(code),
        head: output.to_owned(),
        omitted_bytes: 0,
        tail: String::new(),
        saved: None,
        named: named_in([output, ""]).into_iter().map(open_place).collect(),
        process: 0,
        refused: Vec::new(),
        duration_ms: 7,
    }))
}

/// Returns the outcome of a command after which its worker found the same paths inaccessible.
pub(in crate::core) fn proved_command(code: i32, output: &str) -> CallOutcome {
    let CallOutcome::Done(ToolOutput::Command(mut result)) = command(code, output) else { unreachable!() };
    let refused = Some(libc::EACCES);
    result.named.iter_mut().for_each(|place| place.asked = Asked { write: refused, ..Asked::default() });
    CallOutcome::Done(ToolOutput::Command(result))
}

pub(in crate::core) fn refused_command(code: i32, output: &str, refused: Vec<Refusal>) -> CallOutcome {
    let CallOutcome::Done(ToolOutput::Command(result)) = command(code, output) else { unreachable!() };
    CallOutcome::Done(ToolOutput::Command(CommandResult { refused, ..result }))
}

fn open_place(named: &str) -> NamedPlace {
    let (named, path) = (named.to_owned(), named.into());
    NamedPlace { named, path, nearest: None, permits: Permits::ALL, device: 1, asked: Asked::default() }
}

/// Returns the outcome of a command whose output was saved to a file.
pub(super) fn saved_command(output: &str) -> CallOutcome {
    let saved = SavedOutput { path: "/tmp/bw-1/out.log".into(), bytes: output.len() as u64, cut: None };
    let CallOutcome::Done(ToolOutput::Command(result)) = command(0, output) else { unreachable!() };
    CallOutcome::Done(ToolOutput::Command(CommandResult { saved: Some(saved), ..result }))
}

pub(super) fn written(path: &str, bytes: u64) -> CallOutcome {
    let file =
        WrittenFile { path: path.into(), created: true, bytes, replacements: 0, change: None, notes: vec![] };
    CallOutcome::Done(ToolOutput::Written(Written { files: vec![file] }))
}

pub(super) fn not_found() -> CallOutcome {
    let message = "a.rs does not exist; list_directory shows what does".to_owned();
    CallOutcome::Failed(ToolError { kind: ToolErrorKind::NotFound, message, access: None })
}

pub(super) fn error(kind: &str, retryable: bool) -> ProviderError {
    ProviderError { retryable, ..ProviderError::new(kind, format!("it failed ({kind})")) }
}

pub(super) fn messages(request: &ModelRequest) -> String {
    let lines = request.messages.iter().map(|message| match &**message {
        Message::User(blocks) => {
            format!("user {}", blocks.iter().map(user_block).collect::<Vec<_>>().join(" "))
        }
        Message::Assistant(blocks) => {
            format!("assistant {}", blocks.iter().map(|block| block.get()).collect::<Vec<_>>().join(" "))
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn user_block(block: &UserBlock) -> String {
    match block {
        UserBlock::Text(text) => format!("{text:?}"),
        UserBlock::Image(image) => image.to_string(),
        UserBlock::ToolResult { tool_use, content, is_error, images } => {
            let kind = if *is_error { "error" } else { "result" };
            let images = images.iter().fold(String::new(), |text, image| format!("{text} with {image}"));
            format!("[{kind} {tool_use}: {content:?}{images}]")
        }
    }
}

fn line(effect: &Effect) -> String {
    match effect {
        Effect::StartStream { request, model, .. } => {
            format!("start {} with {} messages", request.0, model.messages.len())
        }
        Effect::CancelStream(request) => format!("cancel {}", request.0),
        Effect::Dispatch { call, tool } => format!("dispatch {call} {}", tool.name()),
        Effect::Prepare { call, tool } => format!("prepare {call} {}", tool.name()),
        Effect::Locate { call, path } => format!("locate {call}: {path}"),
        Effect::RequestApproval { id, request } => format!("ask {id}: {}", asked(request)),
        Effect::AnswerHost { id, allowed } => format!("host question {}: {allowed}", id.number),
        Effect::AnswerForm { id, answer } => format!("form {id}: {answer:?}"),
        Effect::CloseApproval(id) => format!("asked {id} no more"),
        Effect::Keep(KeptSetting::Tool(call)) => format!("keep {} of {}", call.tool, call.server),
        Effect::Keep(KeptSetting::Prefixes(prefixes)) => format!("keep {prefixes:?}"),
        Effect::CarryOut { call, grant, .. } => format!("carry out {call}: {grant}"),
        Effect::Serve { call, served, .. } => format!("serve {call} {served:?}"),
        Effect::ReplaceWorker { .. } => "replace the worker".to_owned(),
        Effect::SpawnAgent { call, agent } => format!("spawn {call}: {}", agent.spawn.task),
        Effect::CancelCall(call) => format!("cancel call {call}"),
        Effect::StartTimer { id, after } => format!("timer {} after {after:?}", id.0),
        Effect::Log { kind, observed_by } => format!("log {} by {observed_by:?}", event(kind)),
        Effect::Show(UiEventKind::TextDelta { text }) => format!("show {text:?}"),
        Effect::Show(UiEventKind::ThinkingDelta { text }) => format!("show thinking {text:?}"),
        Effect::Show(other) => format!("show {other:?}"),
        Effect::Finish(end) => format!(
            "finish {} text={:?} steps={} tokens={} message={:?}",
            end.reason.as_str(),
            end.text,
            end.steps,
            end.usage.total(),
            end.message
        ),
    }
}

/// Returns a request for approval as one line, without the fields that most requests share.
fn asked(request: &ServerRequest) -> String {
    let mut params: serde_json::Value = serde_json::from_str(request.params().unwrap().get()).unwrap();
    for usual in
        ["turn", "in_part", "digest", "conversation_id", "agent", "rights", "timeout_ms", "environment"]
    {
        params.as_object_mut().unwrap().remove(usual);
    }
    format!("{} {params}", request.method())
}

fn event(kind: &EventKind) -> String {
    match kind {
        EventKind::ApprovalAnswered(ApprovalAnswered { id, call, decision, by, cause, in_part }) => {
            let id = id.map_or_else(|| "-".to_owned(), |id| id.to_string());
            let part = in_part.as_ref().map(|part| format!(" {part}")).unwrap_or_default();
            format!(
                "answered {id} of call {call}: {} by {by:?} {}{part}",
                decision.as_str(),
                cause.as_deref().unwrap_or("-")
            )
        }
        EventKind::GrantAdded(grant) => format!("grant {}: {} ({})", grant.id, grant.covers, grant.given()),
        EventKind::GrantRevoked { id } => format!("grant {id} revoked"),
        EventKind::ModeChanged { mode } => format!("mode {mode}"),
        EventKind::TurnAllowed(allowed) => format!("call {}: {allowed}", allowed.call),
        EventKind::ModelChanged(ModelChanged { from, to, new_context, .. }) => {
            format!("model {from} -> {to}, new context: {new_context}")
        }
        EventKind::ToolCallFinished { call, tool_use, status, content, images, .. } => {
            let images = if images.is_empty() { String::new() } else { format!(" {images:?}") };
            format!("finished {call} {tool_use} {status:?} {content:?}{images}")
        }
        EventKind::ToolCallStarted { call, tool_use, name, input, .. } => {
            format!("started {call} {tool_use} {name} {input}")
        }
        EventKind::CompactionStarted(started) => {
            format!("compacting {:?}: {} of {}", started.cause, started.tokens, started.window)
        }
        EventKind::ContextCompacted(compacted) => format!(
            "compacted {:?} by {:?}: {} to {}",
            compacted.cause, compacted.summary, compacted.tokens_before, compacted.tokens_after
        ),
        EventKind::Denied { call: Some(call), denial, .. } => format!("denied {call} {denial}"),
        EventKind::Denied { call: None, denial, .. } => format!("denied beside {denial}"),
        EventKind::AssistantMessage(message) => {
            format!(
                "assistant {} {} blocks, {}",
                message.message_id,
                message.content.len(),
                message.stop_reason
            )
        }
        EventKind::ModelRequested { step, attempt } => format!("requested {step}.{attempt}"),
        EventKind::ModelFailed { kind, discarded, retry_in_ms, .. } => {
            let void = if *discarded { " void" } else { "" };
            format!("failed {kind}{void} retry={retry_in_ms:?}")
        }
        EventKind::UserMessage { text, images } => {
            let images = images.iter().fold(String::new(), |text, image| format!("{text}{image} "));
            format!("user {images}{text:?}")
        }
        EventKind::ContextAdded { source, text } => format!("context {source} {text:?}"),
        EventKind::RightsChanged(changed) => {
            format!("rights changed: generation {}, {}", changed.generation, changed.rights)
        }
        EventKind::Notice { code, message } => format!("notice {code} {message}"),
        other => format!("{other:?}"),
    }
}
