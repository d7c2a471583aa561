use std::time::Duration;

use ipc::id::ConversationId;
use protocol::approval::{ApprovalAnswer, ServerRequest};
use protocol::frontend::{UiEvent, UiEventKind, UserAction, UserActionKind};
use protocol::rpc::{
    self, ErrorObject, ErrorWord, Incoming, Line, MAX_LINE, Passing, RequestId, ResponseOutcome,
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use super::conversations::{ConversationEnded, Conversations, NextEvent, OpenedConversation};
use super::ending::ServeEnding;
use super::outbox::{Outbox, Overflow};
use super::output::Writer;
use super::pending::{Asked, Pending};
use crate::process::exit::Exit;
use crate::process::messages::say;
use crate::process::signals::Endings;

/// Longest time that an ending server gives the front end to read the last lines.
const PARTING: Duration = Duration::from_secs(5);

/// A protocol of front ends: the form of its requests, events and approvals.
pub(in crate::front) trait Dialect: Sized + 'static {
    /// Result of work on a separate thread.
    type Done: Send + 'static;

    /// Carries out a request of the front end, or answers with an error.
    fn request(server: &mut Server<Self>, id: RequestId, method: &str, params: Option<&RawValue>);

    /// Handles a message that has no answer.
    fn notified(server: &mut Server<Self>, method: &str, params: Option<&RawValue>);

    /// Handles the result of work that [`Server::start`] began.
    fn done(server: &mut Server<Self>, done: Self::Done);

    /// Sends an event that is no approval request.
    fn tell(server: &mut Server<Self>, event: UiEvent);

    /// Returns the line that asks for an approval.
    fn question(&mut self, id: &RequestId, asked: &ServerRequest) -> serde_json::Result<String>;

    /// Handles the response to an approval request. The method is called once for each request.
    fn respond(
        server: &mut Server<Self>,
        asked: Asked,
        request: Box<ServerRequest>,
        outcome: &ResponseOutcome,
    );

    /// Handles the response to a question that the dialect itself sent. Returns false if no such question has this id.
    fn answered(_server: &mut Server<Self>, _id: &RequestId, _outcome: &ResponseOutcome) -> bool {
        false
    }

    /// Tells the front end that an approval request needs no response any more.
    fn withdrawn(_server: &mut Server<Self>, _asked: &Asked) {}

    /// Handles the end of a conversation, after its last events. If it ended without a result, `error` says why.
    fn over(server: &mut Server<Self>, conversation: ConversationId, error: Option<String>);

    /// Returns the line for a piece of text from the queue; `None` if the piece is left out.
    fn piece(&mut self, conversation: ConversationId, piece: Passing) -> Option<serde_json::Result<String>>;

    /// Answers the requests that wait until all conversations have ended.
    fn part(server: &mut Server<Self>);
}

pub(in crate::front) struct Server<D: Dialect> {
    pub(in crate::front) dialect: D,
    pub(in crate::front) conversations: Conversations,
    /// Tasks that run on separate threads.
    work: JoinSet<D::Done>,
    pub(in crate::front) pending: Pending,
    outbox: Outbox,
    pub(in crate::front) ending: Option<ServeEnding>,
    input_over: bool,
    output_gone: bool,
}

enum ServerInput<T> {
    Line(Option<Line>),
    Done(T),
    NotDone(JoinError),
    Next(NextEvent),
    Writable,
    OutputGone,
    Signal(i32),
}

impl<D: Dialect> Server<D> {
    pub(in crate::front) fn of(dialect: D) -> Self {
        Self {
            dialect,
            conversations: Conversations::default(),
            work: JoinSet::new(),
            pending: Pending::default(),
            outbox: Outbox::default(),
            ending: None,
            input_over: false,
            output_gone: false,
        }
    }

    /// Serves until all conversations have ended. Returns the exit status.
    pub(in crate::front) async fn run(mut self, mut lines: mpsc::Receiver<Line>, writer: Writer) -> Exit {
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
                ServerInput::Done(done) => D::done(&mut self, done),
                ServerInput::NotDone(error) => say(&format!("a request failed: {error}")),
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
    ) -> ServerInput<D::Done> {
        let gone = self.output_gone;
        let listening = !self.input_over && !self.outbox.is_crowded();
        tokio::select! {
            biased;
            signal = signals.next() => ServerInput::Signal(signal),
            () = writer.closed(), if !gone => ServerInput::OutputGone,
            // The permit is dropped at once, because only this task sends lines.
            Ok(_) = writer.reserve(), if !gone && !self.outbox.is_empty() => ServerInput::Writable,
            line = lines.recv(), if listening => ServerInput::Line(line),
            Some(done) = self.work.join_next() => match done {
                Ok(done) => ServerInput::Done(done),
                Err(error) => ServerInput::NotDone(error),
            },
            next = self.conversations.next() => ServerInput::Next(next),
        }
    }

    fn is_idle(&self) -> bool {
        self.conversations.is_empty() && self.work.is_empty()
    }

    /// Runs `work` on a separate thread, because such work reads file systems.
    pub(in crate::front) fn start(&mut self, work: impl FnOnce() -> D::Done + Send + 'static) {
        self.work.spawn_blocking(work);
    }

    fn line(&mut self, line: Line) {
        let read = match line {
            Line::Whole(line) => Incoming::read(&line),
            Line::TooLong => {
                return self.refuse(None, &ErrorWord::InvalidRequest.because(too_long()));
            }
            Line::Cut => {
                let error = ErrorWord::ParseError.because("the input ended in the middle of a line");
                return self.refuse(None, &error);
            }
        };
        match read {
            Ok(Incoming::Request { id, method, params }) => D::request(self, id, &method, params.as_deref()),
            Ok(Incoming::Notification { method, params }) => D::notified(self, &method, params.as_deref()),
            Ok(Incoming::Response { id, outcome }) => self.response(&id, &outcome),
            Err(refused) => self.refuse(refused.id.as_ref(), &ErrorObject::from(&refused)),
        }
    }

    fn response(&mut self, id: &RequestId, outcome: &ResponseOutcome) {
        match self.pending.take(id) {
            Some((asked, request)) => D::respond(self, asked, request, outcome),
            None if D::answered(self, id, outcome) => {}
            None => say(&rpc::unawaited(id, outcome)),
        }
    }

    /// Passes an answer to its conversation. While the conversation is busy, the answer waits.
    pub(in crate::front) fn pass_on(&mut self, answer: UserAction) {
        if let UserActionKind::Answer { answer: ApprovalAnswer::Failed { cause }, .. } = &answer.kind {
            say(&format!("an approval request was denied: {cause}"));
        }
        self.conversations.act_surely(answer);
    }

    /// Adds an opened conversation. If the server is ending, ends the conversation at once and returns an error.
    pub(in crate::front) fn admit(
        &mut self,
        opened: OpenedConversation,
    ) -> Result<ConversationId, ErrorObject> {
        let conversation_id = self.conversations.start(opened);
        let Some(ending) = self.ending else { return Ok(conversation_id) };
        let (agent, kind) = (None, ending.last_action());
        self.conversations.act_surely(UserAction { conversation_id, agent, kind });
        Err(ErrorWord::ShuttingDown.because("the server is shutting down"))
    }

    fn tell(&mut self, event: UiEvent) {
        let UiEvent { conversation_id, agent, kind } = event;
        match kind {
            UiEventKind::ApprovalRequested { id, request } => {
                self.ask(Asked { conversation: conversation_id, agent, id }, request);
            }
            kind => {
                if let UiEventKind::ApprovalClosed { id } = kind {
                    let (conversation, agent) = (conversation_id.clone(), agent.clone());
                    let asked = Asked { conversation, agent, id };
                    if self.pending.close(&asked) {
                        D::withdrawn(self, &asked);
                    }
                }
                D::tell(self, UiEvent { conversation_id, agent, kind });
            }
        }
    }

    /// Sends an approval request to the front end, and denies it at once if the server is ending.
    pub(in crate::front) fn ask(&mut self, asked: Asked, request: Box<ServerRequest>) {
        let line = self.dialect.question(&asked.request_id(), &request);
        match self.pending.record(line, asked, request) {
            Ok(line) => self.send(line),
            Err(answer) => self.pass_on(*answer),
        }
        if let Some(ending) = self.ending {
            self.deny_all(ending.cause());
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
        D::over(self, conversation, error);
    }

    pub(in crate::front) fn end(&mut self, ending: ServeEnding) {
        self.ending = self.ending.max(Some(ending));
        self.deny_all(ending.cause());
        self.conversations.act_in_all(&ending.last_action());
    }

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

    /// Adds a piece of text to the queue, which may join it to the previous piece, or drop it for a slow front end.
    pub(in crate::front) fn send_piece(&mut self, conversation: ConversationId, piece: Passing) {
        if !self.output_gone {
            self.outbox.push_piece(conversation, piece);
        }
    }

    pub(in crate::front) fn grant<T: Serialize>(&mut self, id: &RequestId, result: &T) {
        match rpc::success(id, result) {
            Ok(line) => self.send(line),
            Err(error) => self.refuse(Some(id), &ErrorWord::InternalError.because(error)),
        }
    }

    /// Sends an error as the response to a request, or to an invalid line if `id` is `None`.
    pub(in crate::front) fn refuse(&mut self, id: Option<&RequestId>, error: &ErrorObject) {
        match rpc::failure(id, error) {
            Ok(line) => self.send(line),
            Err(error) => say(&format!("an error cannot be serialised: {error}")),
        }
    }

    pub(in crate::front) fn send(&mut self, line: String) {
        if !self.output_gone && self.outbox.push(line) == Err(Overflow) {
            say(ServeEnding::OutputGone.cause());
            self.lose();
        }
    }

    fn write(&mut self, writer: &mpsc::Sender<String>) {
        match self.line_to_write() {
            Some(Ok(line)) => {
                let _ = writer.try_send(line);
            }
            Some(Err(error)) => say(&format!("a notification cannot be serialised: {error}")),
            None => {}
        }
    }

    fn line_to_write(&mut self) -> Option<serde_json::Result<String>> {
        let Self { outbox, dialect, .. } = self;
        outbox.pop(|conversation, piece| dialect.piece(conversation, piece))
    }

    /// Answers the open `shutdown` requests and writes the remaining lines, as far as the front end reads them.
    async fn part(mut self, writer: Writer) {
        D::part(&mut self);
        let Writer { lines, finished } = writer;
        let written = timeout(PARTING, async {
            while let Some(line) = self.line_to_write() {
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
