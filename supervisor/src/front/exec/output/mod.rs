//! The output of `exec`: text, one JSON object, or a stream of JSON objects.
//!
//! Standard output has only the result or the stream. Messages for people go to standard error.

mod call;
mod delta;
mod guests;
mod summary;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::thread;

use ipc::confinement::Tier;
use ipc::denial::Denial;
use ipc::id::{AgentCall, CallId, Generation};
use ipc::path::WirePath;
use protocol::error_code::ErrorCode;
use protocol::event::{
    EndReason, EventKind, NoticeCode, RestoredPlace, RunResult, SessionEvent, UPDATE_TASKS,
};
use protocol::frontend::{UiEvent, UiEventKind};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tui::ToolSummary;
use tui::text::{open_cluster, printable};

use self::call::{beginning, columns, ending};
use self::delta::OutputDelta;
use self::guests::OpenGuests;
use self::summary::OutputTally;

use gate::activity::Activity;
use gate::modes::{Position, permits};

use super::limits::ProjectLimits;
use crate::process::messages::{PlainDenial, harmless, one_line};
use crate::process::passing::PassedLines;
use crate::process::signals::UserSignals;
use crate::settings::args::OutputFormat;

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of the run that no other follows from")]
pub(super) struct Format {
    pub output: OutputFormat,
    /// True if the stream of JSON objects includes pieces of replies.
    pub deltas: bool,
    /// True if the answer has to fit a JSON Schema. Then standard output has only the answer.
    pub fits_schema: bool,
    /// True if the answer is returned to the caller and not printed.
    pub keeps_answer: bool,
    pub only_reads: bool,
    pub executes_plan: bool,
    /// Limits that the project's settings file sets. No flag can raise these limits.
    pub limits: ProjectLimits,
    pub log: WirePath,
}

/// A thread that prints a session's events, so that a blocked output delays neither time limits nor signals.
#[derive(Debug)]
pub(super) struct OutputPrinter {
    finished: oneshot::Receiver<Printed>,
}

#[derive(Debug)]
pub(super) struct Printed {
    /// `Ok`, or the first error of a write to standard output.
    pub(super) written: io::Result<()>,
    pub(super) answer: Option<Value>,
}

impl OutputPrinter {
    pub(super) fn start(format: Format, mut events: mpsc::UnboundedReceiver<UiEvent>) -> io::Result<Self> {
        let mut page = Page {
            format,
            within_text: false,
            has_begun: false,
            held: (!io::stdout().is_terminal()).then(String::new),
            tail: String::new(),
            open: BTreeMap::new(),
            guests: OpenGuests::default(),
            tally: OutputTally::default(),
            lines: PassedLines::of_process(),
            written: Ok(()),
            answer: None,
        };
        let (done, finished) = oneshot::channel();
        thread::Builder::new().name("print".to_owned()).spawn(move || {
            while let Some(event) = events.blocking_recv() {
                page.print(&event);
            }
            // The receiver may have been interrupted.
            let _ = done.send(Printed { written: page.written, answer: page.answer });
        })?;
        Ok(Self { finished })
    }

    /// Waits until all events are printed, or a signal arrives. The session must have closed the channel.
    pub(super) async fn finish(self) -> Printed {
        let nothing = Printed { written: Ok(()), answer: None };
        let Ok(mut signals) = UserSignals::new() else { return nothing };
        tokio::select! {
            printed = self.finished => printed.unwrap_or(nothing),
            _ = signals.next() => nothing,
        }
    }
}

/// Note for a read-only run. A run is read-only by default, and a session in the terminal UI is not.
const READ_ONLY: &str =
    "note: the project is read-only (--mode deny, the default); --mode auto lets the agent change it";

/// Note for a run that makes a plan and does not execute it.
const PLANS: &str = "note: this agent makes a plan and changes nothing itself";

struct Page {
    format: Format,
    /// True if the last output was a piece of text without a line end.
    within_text: bool,
    /// True if a part of the current reply has been printed.
    has_begun: bool,
    /// Text of the current reply, which is printed when the reply is complete; `None` if each piece is printed at once.
    held: Option<String>,
    /// Last character of the reply so far, which is printed later, as the next piece may extend it (an emoji).
    tail: String,
    /// Description of each running call. Calls of one turn can end in any order.
    open: BTreeMap<AgentCall, String>,
    guests: OpenGuests,
    lines: PassedLines<io::Stderr>,
    tally: OutputTally,
    /// `Ok`, or the first error of a write to standard output. After an error the run continues without further writes.
    written: io::Result<()>,
    answer: Option<Value>,
}

impl Page {
    fn print(&mut self, UiEvent { conversation_id, agent, kind }: &UiEvent) {
        if let UiEventKind::Logged(event) = kind {
            self.tally.add(event);
        }
        match (self.format.output, kind) {
            (OutputFormat::StreamJson, UiEventKind::Logged(event)) => {
                self.print_json(serde_json::to_string(event));
                self.cause(event);
            }
            (OutputFormat::StreamJson, UiEventKind::TextDelta { text }) if self.format.deltas => {
                self.print_json(serde_json::to_string(&OutputDelta::text(conversation_id, agent, text)));
            }
            (OutputFormat::Json, UiEventKind::Logged(event)) => {
                let summary = self.tally.summary(event, &self.format.log);
                match summary.map(|summary| serde_json::to_string(&summary)) {
                    Some(summary) => {
                        self.print_json(summary);
                        self.cause(event);
                    }
                    None => self.remark(event),
                }
            }
            // The text of a sub-agent goes to its parent, not to the person.
            (OutputFormat::Text, UiEventKind::TextDelta { text })
                if agent.is_top_level() && !self.format.fits_schema =>
            {
                self.piece(text);
            }
            (OutputFormat::Text, UiEventKind::Logged(event)) => self.event(event),
            _ => {}
        }
    }

    fn piece(&mut self, text: &str) {
        if let Some(held) = &mut self.held {
            held.push_str(text);
        } else {
            self.has_begun = true;
            let mut text = std::mem::take(&mut self.tail) + text;
            self.tail = text.split_off(open_cluster(&text));
            if !text.is_empty() {
                self.text(&text);
            }
        }
    }

    /// Prints the rest of a reply. Text in `held` is printed if `counts` is true, and otherwise dropped.
    fn settle(&mut self, counts: bool) {
        let tail = std::mem::take(&mut self.tail);
        if !tail.is_empty() {
            self.text(&tail);
        }
        let held = self.held.as_mut().map(std::mem::take).unwrap_or_default();
        if counts && !held.is_empty() {
            self.text(&held);
        }
    }

    /// Prints a piece of text without terminal controls. The characters of an emoji stay together.
    fn text(&mut self, text: &str) {
        self.lines.clear();
        self.within_text = !text.ends_with('\n');
        self.write(&printable(text));
    }

    fn print_json(&mut self, json: serde_json::Result<String>) {
        match json {
            Ok(text) => self.write(&format!("{text}\n")),
            Err(error) => self.written = Err(error.into()),
        }
    }

    fn write(&mut self, text: &str) {
        if self.written.is_ok() {
            let mut stdout = io::stdout().lock();
            self.written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        }
    }

    fn event(&mut self, event: &SessionEvent) {
        match &event.kind {
            EventKind::AssistantMessage(message) if event.agent.is_top_level() => {
                self.settle(!message.content.is_empty());
            }
            EventKind::ModelRequested { .. }
            | EventKind::ModelFailed { .. }
            // The model wrote a call as text, so the reply is no answer.
            | EventKind::Notice { code: NoticeCode::CallAsText, .. }
                if event.agent.is_top_level() =>
            {
                self.settle(false);
            }
            _ => {}
        }
        if matches!(event.kind, EventKind::AssistantMessage(_)) && self.within_text {
            self.text("\n");
        }
        self.remark(event);
    }

    fn remark(&mut self, event: &SessionEvent) {
        let text = match &event.kind {
            EventKind::SessionStarted(started) => {
                let first = format!("{} · {}", started.rights, started.model);
                let may_write = permits(Position::FIRST, started.mode).may_come_to_write();
                match started.activity {
                    Activity::Plan if self.format.executes_plan => first,
                    Activity::Plan => format!("{first}\n{PLANS}"),
                    Activity::Execute if may_write || self.format.only_reads => first,
                    Activity::Execute => format!("{first}\n{READ_ONLY}"),
                }
            }
            // The task list itself is printed.
            EventKind::ToolCallStarted { name, .. } if name == UPDATE_TASKS => return,
            EventKind::ToolCallStarted { call, name, input, .. } => {
                let summary = ToolSummary::new(name, input.get()).one_line();
                let line = beginning(&summary, columns());
                self.open.insert(of(event, *call), summary);
                line
            }
            EventKind::ToolCallFinished { call, status, content, duration_ms, .. } => {
                let Some(name) = self.open.remove(&of(event, *call)) else { return };
                ending(&name, *status, *duration_ms, content, columns())
            }
            EventKind::Denied { call, denial, .. } => {
                let beside = if call.is_none() { "outside of tool calls: " } else { "" };
                format!("✗ {beside}{}", self.denied(denial))
            }
            EventKind::ModelRequested { .. } => {
                self.has_begun = false;
                return;
            }
            EventKind::ModelFailed { message, retry_in_ms, .. } => match failed(message, *retry_in_ms) {
                failure if std::mem::take(&mut self.has_begun) => {
                    format!("! the reply above was cut off and is discarded\n{failure}")
                }
                // The last line of the run contains this message.
                _ if retry_in_ms.is_none() => return,
                failure => return self.passing(&failure),
            },
            EventKind::ProtocolViolation { violation, .. } => {
                format!("the worker sent an invalid message: {violation}")
            }
            EventKind::RightsChanged(changed) => format!("access: {}", changed.rights),
            EventKind::WorkerStarted(started)
                if started.landlock_abi == 0 || started.tier == Tier::FloorUnmediated =>
            {
                let text = format!("sandbox degraded: {}", started.not_enforced.join("; "));
                ErrorCode::PartialSandbox.mark(&text)
            }
            EventKind::WorkerStarted(started) if started.generation == Generation(1) => {
                match &started.no_full_tier {
                    Some(why) => ErrorCode::PartialSandbox.mark(&format!(
                        "only the {} tier of the sandbox: {why}; hint: bailiwick doctor",
                        started.tier
                    )),
                    None => return,
                }
            }
            EventKind::CompactionStarted(started) => started.to_string(),
            EventKind::ContextCompacted(compacted) => compacted.to_string(),
            EventKind::Notice { message, .. } => message.clone(),
            EventKind::SubAgentSpawned(spawned) => spawned.to_string(),
            EventKind::SubAgentResult(result) => result.to_string(),
            EventKind::GuestStarted(_) | EventKind::GuestEnded(_) | EventKind::ToolPinned(_) => {
                match self.guests.remark(event) {
                    Some(text) => text,
                    None => return,
                }
            }
            EventKind::WriteTurnAwaited(waits) => waits.to_string(),
            EventKind::WriteTurnTaken(taken) => taken.to_string(),
            EventKind::PlanCreated(plan) => plan.to_string(),
            EventKind::PlanApproved(plan) => plan.to_string(),
            EventKind::PlanStepStatus(step) => step.to_string(),
            EventKind::TasksUpdated(tasks) => tasks.to_string(),
            EventKind::Restored { places, .. } => restored(places),
            EventKind::ChangeSet { files, patch } => changes(files.len(), patch.as_ref()),
            EventKind::Result(result) => return self.result(event, result),
            _ => return,
        };
        self.note(&by(event, text));
    }

    /// Prints the reason for the end of a run on standard error, also if the output is JSON.
    fn cause(&mut self, event: &SessionEvent) {
        let EventKind::Result(RunResult { message: Some(message), reason, .. }) = &event.kind else {
            return;
        };
        let denial = (*reason == EndReason::DeniedAtEnd).then(|| self.tally.last_denial(&event.agent));
        match denial.flatten() {
            Some(denial) => {
                let denied = self.denied(denial);
                let text = format!("bailiwick: the agent ended its turn after a denied call: {denied}");
                self.note(&text);
            }
            None => self.note(&format!("bailiwick: {message}")),
        }
        let limits = &self.format.limits;
        if let Some(step) = limits.next_step(*reason).or_else(|| next_step(*reason).map(str::to_owned)) {
            self.note(&format!("  hint: {step}"));
        }
    }

    fn result(&mut self, event: &SessionEvent, result: &RunResult) {
        self.cause(event);
        let account = self.tally.account(result);
        self.note(&format!(
            "{} · {} · {account} · {:.1} s",
            result.reason,
            steps(result.steps),
            std::time::Duration::from_millis(result.duration_ms).as_secs_f64(),
        ));
        if self.format.keeps_answer {
            self.answer.clone_from(&result.output);
        } else if let (OutputFormat::Text, Some(answer)) = (self.format.output, &result.output) {
            self.print_json(serde_json::to_string(answer).map(|json| visible(&json)));
        }
        // A script reads the path from standard output.
        let is_text = matches!(self.format.output, OutputFormat::Text);
        let is_wanted = is_text && !self.format.executes_plan && !self.format.fits_schema;
        let path = self.tally.plan().filter(|_| is_wanted);
        let path = path.map(|path| format!("{path}\n"));
        let Some(path) = path else { return };
        if self.tally.waits() && result.reason == EndReason::Done {
            self.note("  hint: bailiwick plan approve, then bailiwick plan execute");
        }
        self.text(&path);
    }

    /// Returns the message about a denial. In a run that may only read, leaves out the advice about flags.
    fn denied(&self, denial: &Denial) -> String {
        let words = PlainDenial(denial).to_string();
        match words.split_once('\n') {
            Some((first, _)) if self.format.only_reads => first.to_owned(),
            _ => words,
        }
    }

    fn note(&mut self, text: &str) {
        if self.within_text {
            self.text("\n");
        }
        self.lines.line(&harmless(text));
    }

    /// Prints a message that the next message replaces.
    fn passing(&mut self, text: &str) {
        if self.within_text {
            self.text("\n");
        }
        self.lines.passing(&harmless(text));
    }
}

/// Escapes in JSON the characters that must not reach a terminal.
pub(super) fn visible(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        let is_shown = matches!(c, ' '..='~') || printable(c.encode_utf8(&mut [0; 4])).chars().eq([c]);
        if is_shown {
            text.push(c);
        } else {
            text.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

fn of(event: &SessionEvent, call: CallId) -> AgentCall {
    AgentCall { agent: event.agent.clone(), call }
}

/// Returns a text about an event, with the name of the sub-agent, if any, before the text.
fn by(event: &SessionEvent, text: String) -> String {
    if event.agent.is_top_level() { text } else { format!("{} {text}", event.agent) }
}

fn failed(message: &str, retry_in_ms: Option<u64>) -> String {
    match retry_in_ms {
        Some(wait) => format!("{message}; trying again in {wait} ms"),
        None => message.to_owned(),
    }
}

fn steps(count: u32) -> String {
    if count == 1 { "1 step".to_owned() } else { format!("{count} steps") }
}

/// Returns a line for each restored file, which a call had changed and programs outside the sandbox would execute.
fn restored(places: &[RestoredPlace]) -> String {
    let line = |place: &RestoredPlace| {
        let (path, what) = (one_line(&place.path.to_string()), one_line(&place.phrase()));
        if place.restored {
            format!("! changed and restored: {path} ({what})")
        } else {
            format!(
                "! changed, and could not be restored: {path} ({what}); check the file before you continue"
            )
        }
    };
    places.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn changes(count: usize, patch: Option<&WirePath>) -> String {
    let files = match count {
        0 => "no file changed".to_owned(),
        1 => "1 file changed".to_owned(),
        n => format!("{n} files changed"),
    };
    match patch {
        Some(written) => format!("{files} · patch: {written}"),
        None => files,
    }
}

/// Returns advice for the person about a run that ended for this reason; `None` if the error message suffices.
const fn next_step(reason: EndReason) -> Option<&'static str> {
    match reason {
        EndReason::StepLimit => Some("raise the limit with --max-steps, or give a smaller task"),
        EndReason::TokenLimit => Some("raise the limit with --max-tokens, or give a smaller task"),
        EndReason::CostLimit => Some("raise the limit with --max-usd, or give a smaller task"),
        EndReason::TimeLimit => Some("raise the limit with --timeout, or give a smaller task"),
        EndReason::Refusal => Some("rephrase the task"),
        EndReason::NoSandbox => Some("bailiwick doctor shows what is missing on this machine"),
        _ => None,
    }
}
