//! Connects a headless run and the front end that answers its approvals.

use std::io;

use protocol::approval::{ApprovalAnswer, ServerRequest};
use protocol::frontend::{UiEvent, UiEventKind, UserAction, UserActionKind};
use protocol::rpc::{
    self, ErrorObject, ErrorWord, Incoming, Line, MAX_LINE, Notification, NotificationForm, RequestId,
};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::peer::{SocketPeer, is_ours, turn_away};
use super::place::ApprovalSocket;
use crate::engine::opening::{Handle, SessionEvents};
use crate::front::wire::pending::{Asked, Pending};
use crate::process::messages::say;

const GONE: &str = "the front end disconnected";

/// Connects a session with front ends. Returns a channel with all events of the session, and the tasks that serve the
/// connection. Dropping the tasks ends them. Must be called within the runtime.
pub(in crate::front::exec) fn relay(
    socket: ApprovalSocket,
    handle: Handle,
    mut events: SessionEvents,
) -> io::Result<(SessionEvents, JoinSet<()>)> {
    let listener = UnixListener::from_std(socket.listener.try_clone()?)?;
    let (sender, shown) = mpsc::unbounded_channel();
    let mut relay = SocketRelay {
        handle,
        peer: None,
        pending: Pending::default(),
        unasked: Vec::new(),
        acting: JoinSet::new(),
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        // The socket's file is removed at the end of this task.
        let _socket = socket;
        loop {
            tokio::select! {
                event = events.recv() => {
                    let Some(event) = event else { break };
                    relay.look_at(&event);
                    // A printer that has ended needs no more events.
                    let _ = sender.send(event);
                }
                Ok((stream, _)) = listener.accept() => relay.connected(stream),
                line = next_line(&mut relay.peer) => relay.line(line),
            }
        }
    });
    Ok((shown, tasks))
}

async fn next_line(peer: &mut Option<SocketPeer>) -> Option<Line> {
    match peer {
        Some(peer) => peer.line().await,
        None => std::future::pending().await,
    }
}

struct SocketRelay {
    handle: Handle,
    peer: Option<SocketPeer>,
    pending: Pending,
    unasked: Vec<(Asked, Box<ServerRequest>)>,
    /// Tasks that each pass an answer to the session, and wait until the session accepts the answer.
    acting: JoinSet<()>,
}

impl SocketRelay {
    fn look_at(&mut self, event: &UiEvent) {
        let asked =
            |id| Asked { conversation: event.conversation_id.clone(), agent: event.agent.clone(), id };
        match &event.kind {
            UiEventKind::ApprovalRequested { id, request } => {
                self.unasked.push((asked(*id), request.clone()));
                self.ask();
            }
            UiEventKind::ApprovalClosed { id } => {
                let (closed, unasked) = (asked(*id), self.unasked.len());
                self.unasked.retain(|(waiting, _)| *waiting != closed);
                if self.unasked.len() == unasked {
                    let _ = self.pending.close(&closed);
                    self.tell(event);
                }
            }
            _ => {}
        }
    }

    fn ask(&mut self) {
        if self.peer.is_none() {
            return;
        }
        for (asked, request) in std::mem::take(&mut self.unasked) {
            match self.pending.ask(asked, request) {
                Ok(line) => self.send(line),
                Err(answer) => self.pass_on(*answer),
            }
        }
    }

    fn tell(&mut self, event: &UiEvent) {
        let told = Notification::of(event.clone());
        let line = told.map(|told| rpc::notification(&told, NotificationForm::Typed));
        match line {
            Some(Ok(line)) if self.peer.is_some() => self.send(line),
            Some(Err(error)) => say(&format!("a notification cannot be serialised: {error}")),
            _ => {}
        }
    }

    fn connected(&mut self, stream: UnixStream) {
        if !is_ours(&stream) {
            say("refused the connection of another user's front end");
        } else if self.peer.is_some() {
            turn_away(&stream);
        } else {
            self.peer = Some(SocketPeer::new(stream));
            self.ask();
        }
    }

    fn line(&mut self, line: Option<Line>) {
        let read = match line {
            // An incomplete line of a front end that disconnected is ignored.
            None | Some(Line::Cut) => return self.lose(),
            Some(Line::Whole(line)) => Incoming::read(&line),
            Some(Line::TooLong) => {
                let why = format!("the line is longer than {MAX_LINE} bytes");
                return self.refuse(None, &ErrorWord::InvalidRequest.because(why));
            }
        };
        match read {
            Ok(Incoming::Response { id, outcome }) => match self.pending.answer(&id, &outcome) {
                Some(answer) => self.pass_on(answer),
                None => say(&rpc::unawaited(&id, &outcome)),
            },
            Ok(Incoming::Request { id, method, .. }) => {
                let why = format!("{method:?}: an approval socket accepts only responses");
                self.refuse(Some(&id), &ErrorWord::MethodNotFound.because(why));
            }
            Ok(Incoming::Notification { method, .. }) => say(&format!("ignored the notification {method:?}")),
            Err(refused) => self.refuse(refused.id.as_ref(), &ErrorObject::from(&refused)),
        }
    }

    fn refuse(&mut self, id: Option<&RequestId>, error: &ErrorObject) {
        match rpc::failure(id, error) {
            Ok(line) => self.send(line),
            Err(error) => say(&format!("an error cannot be serialised: {error}")),
        }
    }

    fn send(&mut self, line: String) {
        if self.peer.as_ref().is_some_and(|peer| !peer.send(line)) {
            self.lose();
        }
    }

    /// Denies the open requests of a front end that disconnected.
    fn lose(&mut self) {
        self.peer = None;
        for answer in self.pending.fail_all(GONE) {
            self.pass_on(answer);
        }
    }

    fn pass_on(&mut self, action: UserAction) {
        if let UserActionKind::Answer { answer: ApprovalAnswer::Failed { cause }, .. } = &action.kind {
            say(&format!("an approval request was denied: {cause}"));
        }
        while self.acting.try_join_next().is_some() {}
        let handle = self.handle.clone();
        self.acting.spawn(async move { handle.act_on(action).await });
    }
}
