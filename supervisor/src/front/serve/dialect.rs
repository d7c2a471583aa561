use std::sync::Arc;

use ipc::id::ConversationId;
use protocol::approval::ServerRequest;
use protocol::frontend::UiEvent;
use protocol::rpc::{
    self, Accepted, ErrorObject, HistoryResponse, NewConversationResponse, Notification, NotificationForm,
    Passing, RequestId, ResponseOutcome,
};
use serde_json::value::RawValue;

use crate::front::wire::pending::Asked;
use crate::front::wire::{Dialect, OpenConversation, OpenedConversation, Server};
use crate::process::messages::say;

pub(super) struct ServeDialect<O> {
    pub(super) opener: Arc<O>,
    pub(super) readers: usize,
    /// The notification format that the front end chose in its first request; `None` before this request.
    pub(super) form: Option<NotificationForm>,
    /// `shutdown` requests that wait until everything has ended.
    pub(super) farewells: Vec<RequestId>,
}

pub(super) type ServeServer<O> = Server<ServeDialect<O>>;

pub(super) enum ServeDone {
    Opened(RequestId, Result<OpenedConversation, ErrorObject>),
    Read(RequestId, Result<HistoryResponse, ErrorObject>),
}

impl<O: OpenConversation> Dialect for ServeDialect<O> {
    type Done = ServeDone;

    fn request(server: &mut Server<Self>, id: RequestId, method: &str, params: Option<&RawValue>) {
        server.request(id, method, params);
    }

    fn notified(_: &mut Server<Self>, method: &str, _: Option<&RawValue>) {
        say(&format!("ignored the notification {method:?}"));
    }

    fn done(server: &mut Server<Self>, done: ServeDone) {
        match done {
            ServeDone::Opened(id, opened) => match opened.and_then(|opened| server.admit(opened)) {
                Ok(conversation_id) => server.grant(&id, &NewConversationResponse { conversation_id }),
                Err(error) => server.refuse(Some(&id), &error),
            },
            ServeDone::Read(id, page) => {
                server.dialect.readers -= 1;
                match page {
                    Ok(page) => server.grant(&id, &page),
                    Err(error) => server.refuse(Some(&id), &error),
                }
            }
        }
    }

    fn tell(server: &mut Server<Self>, event: UiEvent) {
        if let Some(told) = Notification::of(event) {
            server.notify(told);
        }
    }

    fn question(&mut self, id: &RequestId, asked: &ServerRequest) -> serde_json::Result<String> {
        rpc::request(id, asked)
    }

    fn respond(
        server: &mut Server<Self>,
        asked: Asked,
        request: Box<ServerRequest>,
        outcome: &ResponseOutcome,
    ) {
        server.pass_on(asked.answered(rpc::answer(&request, outcome)));
    }

    fn over(server: &mut Server<Self>, conversation: ConversationId, error: Option<String>) {
        let kind = Passing::ConversationClosed { message: error };
        server.notify(Notification::Passing { conversation_id: conversation, kind });
    }

    fn piece(
        &mut self,
        conversation_id: ConversationId,
        kind: Passing,
    ) -> Option<serde_json::Result<String>> {
        let told = Notification::Passing { conversation_id, kind };
        Some(rpc::notification(&told, self.form.unwrap_or_default()))
    }

    fn part(server: &mut Server<Self>) {
        for id in std::mem::take(&mut server.dialect.farewells) {
            server.grant(&id, &Accepted {});
        }
    }
}

impl<O: OpenConversation> ServeServer<O> {
    pub(super) fn new(opener: O) -> Self {
        let opener = Arc::new(opener);
        Self::of(ServeDialect { opener, readers: 0, form: None, farewells: Vec::new() })
    }

    fn notify(&mut self, told: Notification) {
        match told {
            Notification::Passing {
                conversation_id,
                kind:
                    kind @ (Passing::TextDelta { .. }
                    | Passing::ThinkingDelta { .. }
                    | Passing::OutputDelta { .. }),
            } => self.send_piece(conversation_id, kind),
            told => match rpc::notification(&told, self.dialect.form.unwrap_or_default()) {
                Ok(line) => self.send(line),
                Err(error) => {
                    say(&format!("a notification cannot be serialised: {}: {error}", told.method()));
                }
            },
        }
    }
}
