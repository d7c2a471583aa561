//! Transport of MCP messages, each as a line of JSON.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdout;
use tokio::sync::Notify;

use crate::mcp::lines::ServerLines;
use crate::mcp::server::{Input, Streams};
use crate::mcp::state::GuestState;

type FromServer = RxJsonRpcMessage<RoleClient>;
type ToServer = TxJsonRpcMessage<RoleClient>;

/// Maximum number of lines before the first message that are no messages, such as a greeting for people.
const MAX_GREETING: u32 = 8;

/// Number of invalid lines after which a server is ended.
const MAX_BROKEN: u32 = 2;

/// Maximum number of answers to requests that are not open, for example cancelled ones. One more ends the server.
const MAX_STRAYS: u32 = 256;

/// Maximum number of a server's own requests that wait for an answer at a time.
const MAX_REQUESTS: usize = 32;

#[derive(Debug)]
pub(super) struct LineTransport {
    lines: ServerLines<ChildStdout>,
    input: Input,
    state: Arc<GuestState>,
    book: Arc<Mutex<Book>>,
    closed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Book {
    open: Vec<RequestId>,
    requests: usize,
    strays: u32,
    greeting: u32,
    broken: u32,
    has_spoken: bool,
}

impl LineTransport {
    pub(super) fn new(streams: Streams, state: Arc<GuestState>, closed: Arc<Notify>) -> Self {
        let Streams { input, output } = streams;
        Self { lines: ServerLines::new(output), input, state, book: Arc::default(), closed }
    }

    async fn next(&mut self) -> Option<FromServer> {
        loop {
            let line = match self.lines.next().await {
                Ok(line) => line?,
                Err(error) => {
                    self.state.broke(&error.to_string());
                    return None;
                }
            };
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match self.book().receive(&line) {
                Ok(None) => {}
                Ok(message) => return message,
                Err(fault) => {
                    self.state.broke(fault);
                    return None;
                }
            }
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport<RoleClient> for LineTransport {
    type Error = io::Error;

    fn send(&mut self, message: ToServer) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.book().sent(&message);
        let input = Arc::clone(&self.input);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let input = input.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            input.write_all(&line).await?;
            input.flush().await
        }
    }

    async fn receive(&mut self) -> Option<FromServer> {
        let message = self.next().await;
        if message.is_none() {
            self.closed.notify_one();
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        // The owner of the process closes its input.
        Ok(())
    }
}

impl Book {
    fn sent(&mut self, message: &ToServer) {
        match message {
            JsonRpcMessage::Request(request) => {
                if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                    // The answer to an earlier `server/discover` would be taken for that to this one.
                    self.open.clear();
                }
                self.open.push(request.id.clone());
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
                self.requests = self.requests.saturating_sub(1);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                    self.open.retain(|id| Some(id) != cancelled.params.request_id.as_ref());
                }
            }
        }
    }

    fn receive(&mut self, line: &[u8]) -> Result<Option<FromServer>, &'static str> {
        let text = std::str::from_utf8(line).ok();
        let parsed = text.and_then(|text| serde_json::from_str(text).ok());
        let Some(message) = parsed else { return self.broken(line).map(|()| None) };
        self.has_spoken = true;
        match &message {
            JsonRpcMessage::Response(response) => Ok(self.answers(&response.id)?.then_some(message)),
            JsonRpcMessage::Error(error) => match &error.id {
                Some(id) => Ok(self.answers(id)?.then_some(message)),
                // Before the first answer it may be the answer: an old server that could not read the request.
                None => Ok((self.open.len() == 1).then_some(message)),
            },
            JsonRpcMessage::Request(_) => {
                self.requests += 1;
                if self.requests > MAX_REQUESTS {
                    return Err("the server sent too many requests at a time");
                }
                Ok(Some(message))
            }
            JsonRpcMessage::Notification(_) => Ok(Some(message)),
        }
    }

    fn answers(&mut self, id: &RequestId) -> Result<bool, &'static str> {
        // Some servers make a string of a number.
        let found = self.open.iter().position(|open| open == id || open.to_string() == id.to_string());
        if let Some(found) = found {
            self.open.swap_remove(found);
            return Ok(true);
        }
        self.strays += 1;
        if self.strays > MAX_STRAYS {
            Err("the server sent too many answers without a request")
        } else {
            Ok(false)
        }
    }

    fn broken(&mut self, line: &[u8]) -> Result<(), &'static str> {
        if !self.has_spoken && line.first() != Some(&b'{') && self.greeting < MAX_GREETING {
            self.greeting += 1;
            return Ok(());
        }
        self.broken += 1;
        if self.broken < MAX_BROKEN { Ok(()) } else { Err("too many lines are not messages of MCP") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(book: &mut Book, id: i64) {
        let request = ClientRequest::PingRequest(rmcp::model::PingRequest {
            method: rmcp::model::PingRequestMethod,
            extensions: rmcp::model::Extensions::default(),
        });
        book.sent(&ToServer::request(request, RequestId::Number(id)));
    }

    fn answer(id: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
    }

    #[test]
    fn an_answer_counts_once_and_only_if_somebody_asked() {
        let mut book = Book::default();
        asked(&mut book, 1);
        assert!(book.receive(answer("2").as_bytes()).unwrap().is_none());
        assert!(book.receive(answer("\"1\"").as_bytes()).unwrap().is_some());
        assert!(book.receive(answer("1").as_bytes()).unwrap().is_none());
        let more = (0..MAX_STRAYS).map(|_| book.receive(answer("1").as_bytes()));
        assert!(more.last().unwrap().is_err());
    }

    #[test]
    fn text_may_come_before_the_first_message_and_one_broken_line_after() {
        let mut book = Book::default();
        for _ in 0..MAX_GREETING {
            assert!(book.receive(b"Welcome!").unwrap().is_none());
        }
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        assert!(book.receive(notification.as_bytes()).unwrap().is_some());
        assert!(book.receive(b"\xff").unwrap().is_none());
        assert!(book.receive(b"{\"jsonrpc\":\0}").is_err());
    }

    #[test]
    fn requests_of_the_server_are_bounded_while_they_wait() {
        let mut book = Book::default();
        let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        for _ in 0..MAX_REQUESTS {
            assert!(book.receive(ping).unwrap().is_some());
        }
        assert!(book.receive(ping).is_err());
    }
}
