//! The main task of a server, which handles input lines, output lines and events.

use std::sync::Arc;
use std::time::Duration;

use protocol::approval::ApprovalAnswer;
use protocol::frontend::{AgentAction, UiEvent, UiEventKind, UserAction, UserActionKind};
use protocol::rpc::{
    self, ErrorObject, ErrorWord, HistoryResponse, Incoming, Line, MAX_LINE, Notification, NotificationForm,
    Passing, RequestId,
};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use super::conversations::{
    ConversationEnded, Conversations, NextEvent, OpenConversation, OpenedConversation,
};
use super::outbox::{Outbox, Overflow};
use super::output::Writer;
use super::pending::{Asked, Pending};
use crate::process::exit::Exit;
use crate::process::messages::say;
use crate::process::signals::Endings;

/// The time in which the last lines must be read at the end.
const PARTING: Duration = Duration::from_secs(5);

/// A server with its one front end.
pub(super) struct ServeServer<O> {
    pub(super) opener: Arc<O>,
    pub(super) conversations: Conversations,
    /// The conversations that are being opened, with the ids of their requests.
    pub(super) opening: JoinSet<(RequestId, Result<OpenedConversation, ErrorObject>)>,
    /// The pages of logs that are being read, with the ids of their requests.
    pub(super) reading: JoinSet<(RequestId, Result<HistoryResponse, ErrorObject>)>,
    pub(super) pending: Pending,
    outbox: Outbox,
    /// The notification format that the front end chose in its first request.
    pub(super) form: Option<NotificationForm>,
    pub(super) ending: Option<ServeEnding>,
    input_over: bool,
    output_gone: bool,
    /// The requests that are answered when the server has ended everything.
    pub(super) farewells: Vec<RequestId>,
}

/// The reason of a server's end. Later variants take precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServeEnding {
    /// A request asked for the end.
    Shutdown,
    /// The input has ended.
    InputOver,
    /// The output is closed.
    OutputGone,
    Interrupted,
    /// SIGTERM or SIGQUIT.
    Terminated,
    HungUp,
}

impl ServeEnding {
    const fn exit(self) -> Exit {
        match self {
            Self::Shutdown | Self::InputOver => Exit::Done,
            Self::OutputGone => Exit::Internal,
            Self::Interrupted => Exit::Interrupted,
            Self::Terminated => Exit::Terminated,
            Self::HungUp => Exit::HungUp,
        }
    }

    const fn by(signal: i32) -> Self {
        match signal {
            libc::SIGINT => Self::Interrupted,
            libc::SIGHUP => Self::HungUp,
            _ => Self::Terminated,
        }
    }

    /// Returns the last action for every conversation.
    const fn last_action(self) -> UserActionKind {
        match self {
            Self::Shutdown => UserActionKind::Agent(AgentAction::Quit),
            Self::HungUp => UserActionKind::Agent(AgentAction::HangUp),
            Self::Interrupted => UserActionKind::Agent(AgentAction::InterruptSession),
            Self::InputOver | Self::OutputGone | Self::Terminated => {
                UserActionKind::Agent(AgentAction::Terminate)
            }
        }
    }

    /// Returns the reason with which open approvals are denied.
    const fn cause(self) -> &'static str {
        match self {
            Self::Shutdown => "the front end ended the session",
            Self::InputOver => "the front end closed its end",
            Self::OutputGone => "the front end reads nothing any more",
            Self::Interrupted | Self::Terminated | Self::HungUp => "the server was told to end",
        }
    }
}

/// The next thing that a server handles.
enum ServerInput {
    Line(Option<Line>),
    Opened(RequestId, Result<OpenedConversation, ErrorObject>),
    NotOpened(JoinError),
    Read(RequestId, Result<HistoryResponse, ErrorObject>),
    NotRead(JoinError),
    Next(NextEvent),
    Writable,
    OutputGone,
    Signal(i32),
}

impl<O: OpenConversation> ServeServer<O> {
    pub(super) fn new(opener: O) -> Self {
        Self {
            opener: Arc::new(opener),
            conversations: Conversations::default(),
            opening: JoinSet::new(),
            reading: JoinSet::new(),
            pending: Pending::default(),
            outbox: Outbox::default(),
            form: None,
            ending: None,
            input_over: false,
            output_gone: false,
            farewells: Vec::new(),
        }
    }

    /// Serves until everything has ended. Returns the exit status.
    pub(super) async fn run(mut self, mut lines: mpsc::Receiver<Line>, writer: Writer) -> Exit {
        let mut signals = match Endings::new() {
            Ok(signals) => signals,
            Err(error) => {
                say(&format!("cannot handle signals: {error}"));
                return Exit::Internal;
            }
        };
        let exit = loop {
            if let Some(ending) = self.ending.filter(|_| self.is_idle()) {
                break ending.exit();
            }
            match self.next(&mut lines, &writer.lines, &mut signals).await {
                ServerInput::Line(Some(line)) => self.line(line),
                ServerInput::Line(None) => {
                    self.input_over = true;
                    self.end(ServeEnding::InputOver);
                }
                ServerInput::Opened(id, opened) => self.opened(&id, opened),
                ServerInput::NotOpened(error) => say(&format!("a conversation was not opened: {error}")),
                ServerInput::Read(id, Ok(page)) => self.grant(&id, &page),
                ServerInput::Read(id, Err(error)) => self.refuse(Some(&id), &error),
                ServerInput::NotRead(error) => say(&format!("a log was not read: {error}")),
                ServerInput::Next(NextEvent::Event(event)) => self.tell(event),
                ServerInput::Next(NextEvent::Ended(ended)) => self.over(ended),
                ServerInput::Writable => self.write(&writer.lines),
                ServerInput::OutputGone => self.lose(),
                ServerInput::Signal(signal) => self.end(ServeEnding::by(signal)),
            }
        };
        self.part(writer).await;
        exit
    }

    async fn next(
        &mut self,
        lines: &mut mpsc::Receiver<Line>,
        writer: &mpsc::Sender<String>,
        signals: &mut Endings,
    ) -> ServerInput {
        let gone = self.output_gone;
        let listening = !self.input_over && !self.outbox.is_crowded();
        tokio::select! {
            biased;
            signal = signals.next() => ServerInput::Signal(signal),
            () = writer.closed(), if !gone => ServerInput::OutputGone,
            // The permit is dropped at once, because only this task sends lines.
            Ok(_) = writer.reserve(), if !gone && !self.outbox.is_empty() => ServerInput::Writable,
            line = lines.recv(), if listening => ServerInput::Line(line),
            Some(opened) = self.opening.join_next() => match opened {
                Ok((id, opened)) => ServerInput::Opened(id, opened),
                Err(error) => ServerInput::NotOpened(error),
            },
            Some(read) = self.reading.join_next() => match read {
                Ok((id, page)) => ServerInput::Read(id, page),
                Err(error) => ServerInput::NotRead(error),
            },
            next = self.conversations.next() => ServerInput::Next(next),
        }
    }

    fn is_idle(&self) -> bool {
        self.conversations.is_empty() && self.opening.is_empty() && self.reading.is_empty()
    }

    fn line(&mut self, line: Line) {
        let read = match line {
            Line::Whole(line) => Incoming::read(&line),
            Line::TooLong => {
                return self.refuse(None, &ErrorWord::InvalidRequest.because(too_long()));
            }
            Line::Cut => {
                let error = ErrorWord::ParseError.because("the input ended within a line");
                return self.refuse(None, &error);
            }
        };
        match read {
            Ok(Incoming::Request { id, method, params }) => self.request(id, &method, params.as_deref()),
            Ok(Incoming::Notification { method }) => say(&format!("ignored the notification {method:?}")),
            Ok(Incoming::Response { id, outcome }) => match self.pending.answer(&id, &outcome) {
                Some(answer) => self.pass_on(answer),
                None => say(&rpc::unawaited(&id, &outcome)),
            },
            Err(refused) => self.refuse(refused.id.as_ref(), &ErrorObject::from(&refused)),
        }
    }

    /// Passes an answer to its conversation, even if that is busy.
    fn pass_on(&mut self, answer: UserAction) {
        if let UserActionKind::Answer { answer: ApprovalAnswer::Failed { cause }, .. } = &answer.kind {
            say(&format!("an approval is denied: {cause}"));
        }
        self.conversations.act_surely(answer);
    }

    fn opened(&mut self, id: &RequestId, opened: Result<OpenedConversation, ErrorObject>) {
        match opened {
            Ok(opened) => {
                let conversation_id = self.conversations.start(opened);
                if let Some(ending) = self.ending {
                    self.refuse(Some(id), &ErrorWord::ShuttingDown.because("the server ends"));
                    let (agent, kind) = (None, ending.last_action());
                    return self.conversations.act_surely(UserAction { conversation_id, agent, kind });
                }
                self.grant(id, &rpc::NewConversationResponse { conversation_id });
            }
            Err(error) => self.refuse(Some(id), &error),
        }
    }

    /// Sends an event or a question to the front end.
    fn tell(&mut self, event: UiEvent) {
        let UiEvent { conversation_id, agent, kind } = event;
        match kind {
            UiEventKind::ApprovalRequested { id, request } => {
                match self.pending.ask(Asked { conversation: conversation_id, agent, id }, request) {
                    Ok(line) => self.send(line),
                    Err(answer) => self.pass_on(*answer),
                }
                if let Some(ending) = self.ending {
                    self.deny_all(ending.cause());
                }
            }
            kind => {
                if let UiEventKind::ApprovalClosed { id } = kind {
                    let (conversation, agent) = (conversation_id.clone(), agent.clone());
                    self.pending.close(&Asked { conversation, agent, id });
                }
                if let Some(told) = Notification::of(UiEvent { conversation_id, agent, kind }) {
                    self.notify(told);
                }
            }
        }
    }

    fn over(&mut self, ended: ConversationEnded) {
        let ConversationEnded { conversation, events, error } = ended;
        for event in events {
            self.tell(event);
        }
        self.pending.forget(&conversation);
        if let Some(error) = &error {
            say(&format!("conversation {conversation}: {error}"));
        }
        let kind = Passing::ConversationClosed { message: error };
        self.notify(Notification::Passing { conversation_id: conversation, kind });
    }

    /// Begins the end of all conversations.
    pub(super) fn end(&mut self, ending: ServeEnding) {
        self.ending = self.ending.max(Some(ending));
        self.deny_all(ending.cause());
        self.conversations.act_in_all(&ending.last_action());
    }

    /// Handles the loss of the reader.
    fn lose(&mut self) {
        self.output_gone = true;
        self.outbox = Outbox::default();
        self.end(ServeEnding::OutputGone);
    }

    fn deny_all(&mut self, cause: &str) {
        for answer in self.pending.fail_all(cause) {
            self.pass_on(answer);
        }
    }

    fn notify(&mut self, told: Notification) {
        match told {
            Notification::Passing {
                conversation_id,
                kind:
                    kind @ (Passing::TextDelta { .. }
                    | Passing::ThinkingDelta { .. }
                    | Passing::OutputDelta { .. }),
            } if !self.output_gone => self.outbox.push_piece(conversation_id, kind),
            told => match rpc::notification(&told, self.form.unwrap_or_default()) {
                Ok(line) => self.send(line),
                Err(error) => {
                    say(&format!("a notification cannot be serialised: {}: {error}", told.method()));
                }
            },
        }
    }

    /// Answers a request with a result.
    pub(super) fn grant<T: Serialize>(&mut self, id: &RequestId, result: &T) {
        match rpc::success(id, result) {
            Ok(line) => self.send(line),
            Err(error) => self.refuse(Some(id), &ErrorWord::InternalError.because(error)),
        }
    }

    /// Answers a request, or an invalid line, with an error.
    pub(super) fn refuse(&mut self, id: Option<&RequestId>, error: &ErrorObject) {
        match rpc::failure(id, error) {
            Ok(line) => self.send(line),
            Err(error) => say(&format!("an error cannot be serialised: {error}")),
        }
    }

    fn send(&mut self, line: String) {
        if !self.output_gone && self.outbox.push(line) == Err(Overflow) {
            say(ServeEnding::OutputGone.cause());
            self.lose();
        }
    }

    fn write(&mut self, writer: &mpsc::Sender<String>) {
        match self.outbox.pop(self.form.unwrap_or_default()) {
            Some(Ok(line)) => {
                let _ = writer.try_send(line);
            }
            Some(Err(error)) => say(&format!("a notification cannot be serialised: {error}")),
            None => {}
        }
    }

    /// Answers the requests for the end and writes the remaining lines, if somebody reads them.
    async fn part(mut self, writer: Writer) {
        for id in std::mem::take(&mut self.farewells) {
            self.grant(&id, &rpc::Accepted {});
        }
        let Writer { lines, finished } = writer;
        let form = self.form.unwrap_or_default();
        let written = timeout(PARTING, async {
            while let Some(line) = self.outbox.pop(form) {
                if let Ok(line) = line
                    && lines.send(line).await.is_err()
                {
                    break;
                }
            }
            drop(lines);
            let _ = finished.await;
        });
        let _ = written.await;
    }
}

fn too_long() -> String {
    format!("the line is longer than {MAX_LINE} bytes")
}
