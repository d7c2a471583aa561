use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;

use super::body::ReplyBody;
use super::script::Script;
use crate::recording::{RecordedRequest, Reply, ReplyEnd};

/// A server that sends prepared replies. Dropping this value stops the server.
pub struct ReplayServer {
    address: SocketAddr,
    state: Arc<Mutex<ServerState>>,
    /// Sender whose drop ends the server's thread; `None` once dropped.
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

/// Checks a request. The number counts requests from 1. If a reply is returned, it replaces that of the script.
pub type Check = Box<dyn FnMut(usize, &RecordedRequest) -> Option<Reply> + Send>;

struct ServerState {
    check: Check,
    replies: VecDeque<Reply>,
    requests: Vec<RecordedRequest>,
    connections: usize,
}

impl ReplayServer {
    pub fn start(script: Script) -> io::Result<Self> {
        Self::start_checked(script, Box::new(|_, _| None))
    }

    pub fn start_checked(script: Script, check: Check) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let replies = script.replies;
        let state =
            Arc::new(Mutex::new(ServerState { check, replies, requests: Vec::new(), connections: 0 }));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&state);
        // The server has its own thread, so that its work is not measured with the caller's, and the caller needs no
        // runtime.
        let thread = std::thread::Builder::new().name("replay-server".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    result = serve(listener, shared) => {
                        if let Err(error) = result {
                            tracing::warn!(%error, "replay server");
                        }
                    }
                }
            });
        })?;
        Ok(Self { address, state, stop: Some(stop), thread: Some(thread) })
    }

    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<RecordedRequest> {
        lock(&self.state).requests.clone()
    }

    pub fn connections(&self) -> usize {
        lock(&self.state).connections
    }

    pub fn remaining(&self) -> usize {
        lock(&self.state).replies.len()
    }
}

impl Drop for ReplayServer {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::warn!("the replay server's thread panicked");
        }
    }
}

fn lock(state: &Mutex<ServerState>) -> MutexGuard<'_, ServerState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, state: Arc<Mutex<ServerState>>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        lock(&state).connections += 1;
        let state = Arc::clone(&state);
        let service = service_fn(move |request| answer(request, Arc::clone(&state)));
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // The task ends with its connection, or with the runtime of the server's thread.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "replay connection");
            }
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    state: Arc<Mutex<ServerState>>,
) -> Result<Response<ReplyBody>, Box<dyn Error + Send + Sync>> {
    let (head, body) = request.into_parts();
    let request = RecordedRequest {
        method: head.method.to_string(),
        path: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers: recorded(&head.headers),
        body: body.collect().await?.to_bytes(),
        received: Instant::now(),
    };
    let reply = {
        let mut state = lock(&state);
        let count = state.requests.len() + 1;
        let checked = (state.check)(count, &request);
        state.requests.push(request);
        let scripted = state.replies.pop_front();
        checked.or(scripted).unwrap_or_else(|| exhausted(count))
    };
    if reply.end == ReplyEnd::HungUp {
        return Err(Box::new(io::Error::from(io::ErrorKind::ConnectionReset)));
    }
    Ok(response(reply))
}

fn exhausted(count: usize) -> Reply {
    let message = format!("the script has no reply to request {count}");
    Reply::error(500, "api_error", &message).header("x-should-retry", "false")
}

fn response(reply: Reply) -> Response<ReplyBody> {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = reply.headers.clone();
    let mut response = Response::new(ReplyBody::new(reply));
    *response.status_mut() = status;
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (name.parse::<hyper::header::HeaderName>(), value.parse()) {
            response.headers_mut().append(name, value);
        } else {
            tracing::warn!(name, "a header that cannot be sent");
        }
    }
    response
}

fn recorded(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            let text = String::from_utf8_lossy(value.as_bytes());
            let text = match (name.as_str(), text.strip_prefix("Bearer ")) {
                ("authorization", Some(key)) => format!("Bearer [{} bytes]", key.len()),
                ("x-api-key" | "authorization", _) => format!("[{} bytes]", value.len()),
                _ => text.into_owned(),
            };
            (name.to_string(), text)
        })
        .collect()
}
