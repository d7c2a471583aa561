//! `bailiwick --plain`: a session in lines, for screen readers and for terminals that cannot move their cursor.
//!
//! Printed text never changes. Questions are answered by a whole word that is typed after the question. Empty lines and
//! earlier input do not answer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::thread;
use std::time::Instant;

use ipc::id::{AgentId, ApprovalId};
use ipc::path::WirePath;
use ipc::rights::RightsSummary;
use nix::errno::Errno;
use nix::sys::termios::{FlushArg, tcflush};
use nix::unistd::read;
use protocol::approval::{
    ApplyPatchApprovalParams, ApprovalMode, ChangePart, FilePart, ProjectPrefixes, ReviewDecision,
    ServerRequest, TurnAccess,
};
use protocol::event::EventKind;
use protocol::frontend::{AgentAction, UiEvent, UiEventKind, UserAction, UserActionKind};
use tokio::sync::mpsc;
use tui::{ALLOWED, KnownModels, allowed};

use self::form::PlainForm;
use self::words::{PlainCommand, TypedAnswer};
use super::farewell::Farewell;
use super::start::known_models;
use super::ui::UiEnded;
use super::{PreparedUi, UiFinished, of_session};
use crate::journal::shown::{ShownLive, broken};
use crate::process::messages::{harmless, notes};
use crate::process::tty;

mod form;
mod words;

const WELCOME: &str =
    "Type a message and press Enter. :help lists the commands, Ctrl+C stops a turn, Ctrl+D ends the session.";

/// Explanation of the words that answer every question.
const ANSWERS: &str = "Type yes to allow this once, no to deny it, no and a reason to tell the agent why, or stop to end the turn.";

/// Explains the possible answers to a request. For an answer that allows more than once, also explains its effect.
fn answers(request: &ServerRequest) -> String {
    let mut text = ANSWERS.to_owned();
    for more in
        [part_answer(request), request.in_project().map(always_answer), request.turn().map(turn_answer)]
            .into_iter()
            .flatten()
    {
        text.push(' ');
        text.push_str(&more);
    }
    text
}

/// Explains the answer that allows only some hunks; `None` if the change has fewer than two, or cannot be divided.
fn part_answer(request: &ServerRequest) -> Option<String> {
    let params = request.in_part()?;
    let hunks: Vec<_> = hunks(params).collect();
    if hunks.len() < 2 {
        return None;
    }
    let named = |(number, (path, _, hunk)): (usize, &(&WirePath, usize, &str))| {
        let line = hunk.strip_prefix("@@ -").and_then(|rest| rest.split([',', ' ']).next());
        let place = line.map_or_else(String::new, |line| format!(" at line {line}"));
        format!("{number} is {path}{place}")
    };
    let all: Vec<_> = (1..).zip(&hunks).map(named).collect();
    Some(format!("Or type part and numbers of hunks to allow only these, as in part 1: {}.", all.join(", ")))
}

/// Returns the hunks of all files in the order of display, each with its file and its number in that file.
fn hunks(params: &ApplyPatchApprovalParams) -> impl Iterator<Item = (&WirePath, usize, &str)> {
    params
        .file_changes
        .0
        .iter()
        .flat_map(|(path, change)| (1..).zip(change.hunks()).map(move |(number, hunk)| (path, number, hunk)))
}

/// Returns the approval of the hunks with these numbers; `None` if a number is wrong or the change cannot be divided.
fn in_part(numbers: &[usize], request: &ServerRequest) -> Option<ReviewDecision> {
    let params = request.in_part()?;
    let all: Vec<_> = hunks(params).collect();
    if numbers.len() == all.len() && numbers.last() == Some(&all.len()) {
        return Some(ReviewDecision::Approved);
    }
    let mut files: BTreeMap<&WirePath, Vec<usize>> = BTreeMap::new();
    for number in numbers {
        let (path, hunk, _) = all.get(number.checked_sub(1)?)?;
        files.entry(path).or_default().push(*hunk);
    }
    let part = |(path, hunks): (&WirePath, Vec<usize>)| FilePart::Hunks { path: path.clone(), hunks };
    let files = files.into_iter().map(part).collect();
    let part = ChangePart::of(&params.digest, &params.file_changes, files)?;
    Some(ReviewDecision::ApprovedInPart { part })
}

fn turn_answer(turn: &TurnAccess) -> String {
    let places: Vec<_> = turn.write.iter().map(ToString::to_string).collect();
    let again = if turn.network_after.reaches_out() { ", and is on again after that" } else { "" };
    let commands = if turn.confirms_commands { " Commands still need your approval." } else { "" };
    format!(
        "Or type turn to allow everything in this turn: writing {}; the network is off until the turn ends{again}.{commands}",
        places.join(", ")
    )
}

fn always_answer(kept: &ProjectPrefixes) -> String {
    format!(
        "Or type always to allow commands that begin with {} in this project, now and in later sessions. They can write in the project, without the network. This rule is saved as approvals.preapproved in {}, until you delete the rule there.",
        kept.words(),
        kept.file
    )
}

/// Returns the decision for a typed answer; `None` if the text does not answer this request.
fn decision(text: &str, request: &ServerRequest) -> Option<ReviewDecision> {
    match TypedAnswer::of(text) {
        TypedAnswer::Yes => Some(ReviewDecision::Approved),
        TypedAnswer::Part(numbers) => in_part(&numbers, request),
        TypedAnswer::YesToTurn => request.turn().map(|_| ReviewDecision::ApprovedForTurn),
        TypedAnswer::YesAlways => request.in_project().map(ProjectPrefixes::all),
        TypedAnswer::No(message) => Some(ReviewDecision::Denied { message }),
        TypedAnswer::Stop => Some(ReviewDecision::Abort),
        TypedAnswer::Unclear => None,
    }
}

struct OpenQuestion {
    agent: AgentId,
    id: ApprovalId,
    request: Box<ServerRequest>,
    /// The form that the person fills in; `None` until its first question is printed, and for other requests.
    form: Option<PlainForm>,
}

struct TypedLine {
    at: Instant,
    text: String,
}

/// Runs a session until it ends.
pub(super) async fn serve(prepared: PreparedUi, prompt: Option<String>) -> UiFinished {
    let PreparedUi { session, handle, mut events, mut endings, effective, .. } = prepared;
    let log = Some(session.log_path().to_owned());
    let mut lines = match lines_of_stdin() {
        Ok(lines) => Some(lines),
        Err(error) => {
            let message = Some(format!("cannot read what is typed: {error}"));
            let (exit, then) = (crate::process::exit::Exit::Internal, super::AfterUi::Nothing);
            return UiFinished { exit, message, log, farewell: Farewell::default(), then };
        }
    };
    let mut plain = PlainUi { models: known_models(&effective), ..PlainUi::default() };
    plain.say(WELCOME);
    if let Some(text) = prompt {
        plain.at_work.insert(AgentId::root());
        handle.act(UserActionKind::Agent(AgentAction::Prompt { text, images: Vec::new() })).await;
    }
    let mut session = tokio::spawn(session.run());
    let ended: UiEnded = loop {
        let action = tokio::select! {
            biased;
            signal = endings.next() => Some(handle.action(match signal {
                libc::SIGINT => UserActionKind::Agent(AgentAction::Interrupt),
                libc::SIGHUP => UserActionKind::Agent(AgentAction::HangUp),
                _ => UserActionKind::Agent(AgentAction::Terminate),
            })),
            event = events.recv(), if !events.is_closed() || !events.is_empty() => {
                if let Some(event) = event {
                    plain.event(event);
                }
                None
            }
            ended = &mut session => break ended,
            line = next(&mut lines) => if let Some(line) = line {
                plain.line(line, |kind| handle.action(kind))
            } else {
                lines = None;
                plain.is_over = true;
                Some(handle.action(UserActionKind::Agent(AgentAction::Quit)))
            },
        };
        if let Some(action) = action {
            handle.act_on(action).await;
        }
        for note in notes::take() {
            plain.say(&note);
            plain.invite();
        }
    };
    while let Ok(event) = events.try_recv() {
        plain.event(event);
    }
    plain.end_line();
    UiFinished { log, ..of_session(ended) }
}

#[derive(Default)]
struct PlainUi {
    live: ShownLive,
    /// Open questions. Only the first one has been printed.
    asked: VecDeque<OpenQuestion>,
    since: Option<Instant>,
    at_work: BTreeSet<AgentId>,
    /// The current access and mode; `None` before the session has started.
    allowed: Option<(RightsSummary, ApprovalMode)>,
    models: KnownModels,
    /// True while the session waits because its log cannot be written.
    is_paused: bool,
    is_over: bool,
    /// True if the current line begins with the prompt mark.
    is_open: bool,
}

impl PlainUi {
    fn event(&mut self, UiEvent { agent, kind, .. }: UiEvent) {
        match kind {
            UiEventKind::Logged(event) => {
                if let Some(text) = self.live.text(&event, columns()) {
                    self.tell(&text);
                }
                self.note(&agent, &event.kind);
                self.invite();
            }
            UiEventKind::ApprovalRequested { id, request } => {
                self.asked.push_back(OpenQuestion { agent, id, request, form: None });
                if self.asked.len() == 1 {
                    self.ask();
                }
            }
            UiEventKind::ApprovalClosed { id } => {
                let first = self.asked.front().is_some_and(|asked| (&asked.agent, asked.id) == (&agent, id));
                self.asked.retain(|asked| (&asked.agent, asked.id) != (&agent, id));
                if first {
                    self.ask();
                }
            }
            // The event is repeated at each attempt to write.
            UiEventKind::LogPaused { path, last, .. } if !self.is_paused => {
                self.is_paused = true;
                self.say(&format!(
                    "paused: cannot write the log {path}: the disk is full; everything up to event {last} is \
                     saved\n  free some space: the session continues by itself · :q ends the session"
                ));
                self.invite();
            }
            UiEventKind::LogGoesOn => {
                self.is_paused = false;
                self.say("the log can be written again: the session continues, and nothing was lost");
                self.invite();
            }
            // Replies and outputs are printed when they are complete.
            _ => {}
        }
    }

    /// Updates the state that decides what the person may type, from an event.
    fn note(&mut self, agent: &AgentId, event: &EventKind) {
        match event {
            EventKind::UserMessage { .. } if agent.is_top_level() => _ = self.at_work.insert(agent.clone()),
            EventKind::TurnFinished(_) => _ = self.at_work.remove(agent),
            EventKind::SubAgentSpawned(spawned) => _ = self.at_work.insert(spawned.agent.clone()),
            EventKind::SubAgentResult(result) => _ = self.at_work.remove(&result.agent),
            EventKind::Result(_) => self.is_over = true,
            EventKind::SessionStarted(started) => {
                self.allowed = started.rights.value().map(|rights| (rights.clone(), started.mode));
            }
            EventKind::RightsChanged(changed) if agent.is_top_level() => {
                if let (Some((rights, _)), Some(new)) = (&mut self.allowed, changed.rights.value()) {
                    rights.clone_from(new);
                }
            }
            EventKind::ModeChanged { mode: new } if agent.is_top_level() => {
                if let Some((_, mode)) = &mut self.allowed {
                    *mode = *new;
                }
            }
            _ => {}
        }
    }

    /// Asks the oldest question. Its subject was printed when the request was logged, perhaps before other text.
    fn ask(&mut self) {
        self.since = None;
        let behind = self.asked.len().saturating_sub(1);
        let Some(first) = self.asked.front_mut() else { return };
        let others = match behind {
            0 => String::new(),
            1 => " Another question waits.".to_owned(),
            count => format!(" {count} other questions wait."),
        };
        let answers = match &*first.request {
            ServerRequest::ServerForm(params) => {
                let form = first.form.insert(PlainForm::of(params));
                format!("\n{}", form.begin(params))
            }
            request => format!(" {}", answers(request)),
        };
        let question = format!("Approval {} waits for you.{others}{answers}", first.id);
        self.put(&question);
    }

    /// Prints a question. Only lines that are typed from now on can answer it.
    fn put(&mut self, question: &str) {
        // Earlier input cannot be an answer to this question.
        let _ = tcflush(stdin().as_fd(), FlushArg::TCIFLUSH);
        self.say(question);
        self.since = Some(Instant::now());
        self.invite();
    }

    /// Prints lines. Half-typed input stays in the terminal's buffer, and continues after the next prompt mark.
    fn tell(&mut self, lines: &str) {
        self.end_line();
        print(lines);
    }

    /// Prints a message without terminal controls, broken at the terminal's width.
    fn say(&mut self, words: &str) {
        self.tell(&broken(&harmless(words), columns()));
    }

    /// Ends the current line if it has the prompt mark.
    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_open) {
            print("\n");
        }
    }

    /// Prints the prompt mark if the person can type something: an answer, or a message while no turn runs.
    fn invite(&mut self) {
        if self.is_open || self.is_over {
            return;
        }
        if self.since.is_some() {
            print("? ");
        } else if self.at_work.is_empty() && self.asked.is_empty() {
            print("> ");
        } else {
            return;
        }
        self.is_open = true;
    }

    fn line(
        &mut self,
        TypedLine { at, text }: TypedLine,
        action: impl FnOnce(UserActionKind) -> UserAction,
    ) -> Option<UserAction> {
        // The line end came from the person's Enter key.
        self.is_open = false;
        match (self.asked.front(), self.since) {
            (Some(OpenQuestion { form: Some(_), .. }), Some(since)) if at >= since => {
                match PlainForm::way_out(&text) {
                    Some(decision) => self.decided(decision, action),
                    None if text.starts_with(':') => self.command(&text, action),
                    None => self.fill_in(&text, action),
                }
            }
            (Some(_), Some(since)) if at >= since && !text.starts_with(':') => self.answer(&text, action),
            // The line was typed before the question, so it counts as a message.
            _ => self.command(&text, action),
        }
    }

    fn answer(
        &mut self,
        text: &str,
        action: impl FnOnce(UserActionKind) -> UserAction,
    ) -> Option<UserAction> {
        let request = self.asked.front().map(|asked| &*asked.request);
        let Some(decision) = request.and_then(|request| decision(text, request)) else {
            let answers = request.map_or_else(|| ANSWERS.to_owned(), answers);
            self.say(&format!("That is not an answer. {answers}"));
            self.invite();
            return None;
        };
        self.decided(decision, action)
    }

    /// Handles a line that is typed into a form.
    fn fill_in(
        &mut self,
        text: &str,
        action: impl FnOnce(UserActionKind) -> UserAction,
    ) -> Option<UserAction> {
        let form = self.asked.front_mut()?.form.as_mut()?;
        let next = match form.line(text) {
            Ok(Some(decision)) => return self.decided(decision, action),
            Ok(None) => form.question(),
            Err(why) => format!("Not accepted: {why}.\n{}", form.question()),
        };
        self.put(&next);
        None
    }

    fn decided(
        &mut self,
        decision: ReviewDecision,
        action: impl FnOnce(UserActionKind) -> UserAction,
    ) -> Option<UserAction> {
        let OpenQuestion { agent, id, request, form: _ } = self.asked.pop_front()?;
        let answer = request.answer(decision);
        let answered = UserAction { agent: Some(agent), ..action(UserActionKind::Answer { id, answer }) };
        self.ask();
        Some(answered)
    }

    fn command(
        &mut self,
        text: &str,
        action: impl FnOnce(UserActionKind) -> UserAction,
    ) -> Option<UserAction> {
        match PlainCommand::of(text) {
            PlainCommand::Nothing => {}
            PlainCommand::Help => self.say(&words::help()),
            PlainCommand::Allowed => {
                let allowed = self.allowed.as_ref().map(|(rights, mode)| allowed(rights, *mode, &[]));
                let lines = allowed.unwrap_or_default().join("\n  ");
                self.say(&format!("{ALLOWED}:\n  {lines}"));
            }
            PlainCommand::Wrong(why) => self.say(&why),
            PlainCommand::Model(model) => {
                if let Some(why) = self.models.refusal(&model) {
                    self.say(&why);
                } else {
                    self.invite();
                    return Some(action(UserActionKind::SetModel { model }));
                }
            }
            PlainCommand::Act(kind) => {
                if matches!(
                    kind,
                    UserActionKind::Agent(AgentAction::Prompt { .. } | AgentAction::PromptReading { .. })
                ) {
                    self.at_work.insert(AgentId::root());
                }
                self.is_over |= kind == UserActionKind::Agent(AgentAction::Quit);
                // These actions have an immediate message of their own.
                if !matches!(
                    kind,
                    UserActionKind::Plan { .. } | UserActionKind::Agent(AgentAction::RunCommand { .. })
                ) {
                    self.invite();
                }
                return Some(action(kind));
            }
        }
        self.invite();
        None
    }
}

fn print(text: &str) {
    let mut out = stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn columns() -> Option<usize> {
    tty::columns(&stdout())
}

async fn next(lines: &mut Option<mpsc::Receiver<TypedLine>>) -> Option<TypedLine> {
    match lines {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}

/// Maximum size in bytes of a line. The rest of a longer one becomes another line.
const LONGEST: usize = 1 << 20;

fn lines_of_stdin() -> io::Result<mpsc::Receiver<TypedLine>> {
    let (sender, lines) = mpsc::channel(1);
    thread::Builder::new().name("lines".to_owned()).spawn(move || {
        let (mut text, mut buffer) = (Vec::new(), [0; 4 << 10]);
        loop {
            match read(stdin().as_fd(), &mut buffer) {
                Ok(0) | Err(_) if text.is_empty() => return,
                Ok(0) => {}
                Ok(length) => text.extend_from_slice(&buffer[..length]),
                Err(Errno::EINTR) => continue,
                Err(_) => return,
            }
            // A terminal returns one line at a time, or a part of a very long line.
            if text.ends_with(b"\n") || text.len() > LONGEST {
                let line = String::from_utf8_lossy(&text).trim_end_matches(['\r', '\n']).to_owned();
                text.clear();
                if sender.blocking_send(TypedLine { at: Instant::now(), text: line }).is_err() {
                    return;
                }
            }
        }
    })?;
    Ok(lines)
}
