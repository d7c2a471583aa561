use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::answer::{AnswerBody, RelayAnswer};
use super::ledger::{NoBudget, RelayLedger};
use super::log::RelayLogEntry;
use super::passing::{RelayPassing, millis};
use super::patient::Patient;
use super::relay::RelayShared;
use super::request::{CountedPrompts, RelayRequest as Understood, RequestBounds, understand};
use super::socket::{Listener, Stream};
use super::upstream;
use crate::provider::ProviderKind;
use crate::provider::meter::Meter;
use crate::provider::passage::Passage;

/// Maximum number of open connections of a client. Further ones wait in the socket's backlog.
const CONNECTIONS: usize = 32;

/// Maximum number of bodies that are read at the same time, each with up to [`MOST_BODY`] bytes.
const READING: usize = 4;

/// Maximum memory, in KiB, for bodies that were read but not sent yet.
const ROOM: usize = 96 << 10;

/// Maximum number of simultaneous requests of a client.
const UNDER_WAY: usize = 16;

/// Maximum bytes of a body, as in the Messages API.
const MOST_BODY: usize = 32 * 1000 * 1000;

/// Length in bytes above which a body is parsed on a blocking thread, so that other clients do not wait.
const LONG_BODY: usize = 64 << 10;

/// Maximum time in which the head of a request must arrive. [`BODY`] is the maximum time for the body.
const HEAD: Duration = Duration::from_mins(1);
const BODY: Duration = Duration::from_mins(2);

/// Maximum time in which a client may read nothing of a reply that is being sent.
const STALL: Duration = Duration::from_mins(2);

const HEAD_BYTES: usize = 64 << 10;

/// Number of a client's rejected requests that are all logged. After these, only every 2ⁿ-th request is logged.
const ALL_REFUSED: u64 = 1_000;

const KEY: HeaderName = HeaderName::from_static("x-api-key");

pub(super) struct Client {
    pub(super) name: String,
    pub(super) token: Option<SecretString>,
    pub(super) ledger: RelayLedger,
    pub(super) shared: Arc<RelayShared>,
    counted: Arc<CountedPrompts>,
    reading: Semaphore,
    room: Arc<Semaphore>,
    under_way: Arc<Semaphore>,
}

impl Client {
    pub(super) fn new(
        name: String,
        token: Option<SecretString>,
        ledger: RelayLedger,
        shared: Arc<RelayShared>,
    ) -> Self {
        let under_way = Arc::new(Semaphore::new(UNDER_WAY));
        let (counted, reading) = (Arc::default(), Semaphore::new(READING));
        let room = Arc::new(Semaphore::new(ROOM));
        Self { name, token, ledger, shared, counted, reading, room, under_way }
    }
}

/// Serves a client until `stopped` resolves, then closes the client's connections.
pub(super) async fn serve(client: Arc<Client>, listener: Listener, stopped: oneshot::Receiver<Infallible>) {
    let mut connections = JoinSet::new();
    tokio::select! {
        _ = stopped => {}
        () = let_in(client, listener, &mut connections) => {}
    }
    connections.shutdown().await;
}

async fn let_in(client: Arc<Client>, listener: Listener, connections: &mut JoinSet<()>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok(Stream::Socket(stream)) => {
                connections.spawn(attend(Arc::clone(&client), stream, permit));
            }
            Ok(Stream::Loopback(stream)) => {
                connections.spawn(attend(Arc::clone(&client), stream, permit));
            }
            Err(error) => {
                // Most likely no file descriptors are left at the moment.
                tracing::warn!(%error, client = client.name, "relay: accept");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn attend<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    client: Arc<Client>,
    stream: S,
    _permit: OwnedSemaphorePermit,
) {
    let service = service_fn(move |request| {
        let client = Arc::clone(&client);
        async move { Ok::<_, Infallible>(answer(client, request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES).half_close(false);
    let served = builder.serve_connection(TokioIo::new(Patient::new(stream, STALL)), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "relay: a connection ended");
    }
}

/// A rejected request: the error for the client, and the result for the log.
pub(super) struct Rejected {
    pub(super) answer: RelayAnswer,
    pub(super) end: &'static str,
}

impl Rejected {
    fn refused(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { answer: RelayAnswer::new(status, kind, message), end: "refused" }
    }
}

struct Accepted {
    understood: Understood,
    headers: HeaderMap,
    passing: RelayPassing,
    permit: OwnedSemaphorePermit,
}

async fn answer(client: Arc<Client>, request: Request<Incoming>) -> Response<AnswerBody> {
    let began = Instant::now();
    let mut entry = RelayLogEntry {
        time: jiff::Timestamp::now().to_string(),
        client: client.name.clone(),
        ..RelayLogEntry::default()
    };
    let passage = match admit(&client, request.method(), request.uri(), request.headers()) {
        Ok(passage) => passage,
        Err(rejected) => return reject(&client, rejected, entry, began, None),
    };
    let kind = passage.kind();
    entry.api = Some(kind.as_str());
    let accepted = accept(&client, &passage, request, &mut entry, began).await;
    match accepted {
        Ok(Accepted { understood, headers, passing, permit }) => {
            upstream::pass(&passage, understood.body, headers, passing, permit).await
        }
        Err(rejected) => reject(&client, rejected, entry, began, Some(kind)),
    }
}

fn reject(
    client: &Client,
    Rejected { answer, end }: Rejected,
    entry: RelayLogEntry,
    began: Instant,
    kind: Option<ProviderKind>,
) -> Response<AnswerBody> {
    let count = client.ledger.refused();
    if count <= ALL_REFUSED || count.is_power_of_two() {
        let status = answer.status.as_u16();
        let why = Some(answer.message.clone());
        client.shared.log.write(&RelayLogEntry { status, end, why, ms: millis(began), ..entry });
    }
    answer.response(kind)
}

/// Returns the API of a request, by its method and path. Fails for an unknown path or a wrong token.
fn admit(
    client: &Client,
    method: &Method,
    uri: &hyper::Uri,
    headers: &HeaderMap,
) -> Result<Arc<Passage>, Rejected> {
    if let Some(token) = &client.token
        && !has_token(headers, token)
    {
        let message = "the token is missing or wrong: send the token as the API key";
        return Err(Rejected::refused(StatusCode::UNAUTHORIZED, "authentication_error", message));
    }
    let kind = match (uri.path(), uri.query()) {
        ("/v1/messages", None) => Some(ProviderKind::Anthropic),
        ("/v1/chat/completions", None) => Some(ProviderKind::OpenAi),
        ("/v1/responses", None) => Some(ProviderKind::Responses),
        _ => None,
    };
    let passage = kind.and_then(|kind| client.shared.passages.iter().find(|passage| passage.kind() == kind));
    match passage {
        Some(passage) if method == Method::POST => Ok(Arc::clone(passage)),
        Some(_) => {
            let message = "the relay passes on only POST requests";
            Err(Rejected::refused(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", message))
        }
        None => {
            let served: Vec<_> =
                client.shared.passages.iter().map(|passage| passage.kind().as_str()).collect();
            let message = format!("the relay does not serve this path, but only {}", served.join(", "));
            Err(Rejected::refused(StatusCode::NOT_FOUND, "not_found_error", message))
        }
    }
}

/// True if the headers have the client's token. The comparison takes constant time.
fn has_token(headers: &HeaderMap, token: &SecretString) -> bool {
    let key = headers.get(KEY).map(HeaderValue::as_bytes);
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let token = token.expose_secret().as_bytes();
    key.or(bearer).is_some_and(|given| is_same(given, token))
}

fn is_same(given: &[u8], wanted: &[u8]) -> bool {
    let differ = given.iter().zip(wanted).fold(0, |differ, (a, b)| differ | (a ^ b));
    given.len() == wanted.len() && std::hint::black_box(differ) == 0
}

async fn accept(
    client: &Arc<Client>,
    passage: &Passage,
    request: Request<Incoming>,
    entry: &mut RelayLogEntry,
    began: Instant,
) -> Result<Accepted, Rejected> {
    let headers = upstream::headers(passage.kind(), request.headers())
        .map_err(|why| Rejected::refused(StatusCode::BAD_REQUEST, "invalid_request_error", why))?;
    is_plain_json(request.headers())?;
    let Ok(permit) = Arc::clone(&client.under_way).try_acquire_owned() else {
        let message = format!("{UNDER_WAY} requests of this client are already open");
        let answer = RelayAnswer::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        return Err(Rejected { answer: answer.for_later(), end: "refused" });
    };
    // Held while the body is read and parsed, so that many bodies occupy few threads.
    let turn = client.reading.acquire().await;
    let body = read(request.into_body()).await?;
    entry.request_bytes = body.len() as u64;
    let understood = checked(client, passage, body).await?;
    // The sent body is a copy, for which memory is reserved.
    let size = u32::try_from(understood.body.len().div_ceil(1024)).unwrap_or(u32::MAX);
    let room = Arc::clone(&client.room).acquire_many_owned(size.max(1)).await.ok();
    drop(turn);
    entry.model = Some(understood.model.clone());
    entry.reserved_usd = Some(understood.estimate.cost);
    let reservation = client.ledger.reserve(understood.estimate).map_err(no_budget)?;
    let passing = RelayPassing {
        meter: Meter::new(passage.kind()),
        prices: understood.prices,
        counted: Arc::clone(&client.counted),
        trail: understood.trail.clone(),
        reservation: Some(reservation),
        entry: entry.clone(),
        began,
        log: Arc::clone(&client.shared.log),
        room,
    };
    Ok(Accepted { understood, headers, passing, permit })
}

fn is_plain_json(headers: &HeaderMap) -> Result<(), Rejected> {
    let value = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let media = value(CONTENT_TYPE).and_then(|value| value.split(';').next());
    let (name, is_json) = match value(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => ("content-encoding", false),
        _ => ("content-type", media.is_some_and(|media| media.trim() == "application/json")),
    };
    if is_json {
        return Ok(());
    }
    let message = format!("{name}: the relay accepts only application/json without an encoding");
    Err(Rejected::refused(StatusCode::BAD_REQUEST, "invalid_request_error", message))
}

fn no_budget(why: NoBudget) -> Rejected {
    let answer = match why {
        NoBudget::Now => {
            let message =
                "the budget of this client has no room until other requests of the client have ended";
            RelayAnswer::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message).for_later()
        }
        NoBudget::Spent(message) => RelayAnswer::new(StatusCode::PAYMENT_REQUIRED, "billing_error", message),
    };
    Rejected { answer, end: "no_budget" }
}

async fn read(body: Incoming) -> Result<Bytes, Rejected> {
    let too_large = || {
        let message = format!("the body of the request is longer than {MOST_BODY} bytes");
        Rejected::refused(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message)
    };
    if body.size_hint().lower() > MOST_BODY as u64 {
        return Err(too_large());
    }
    match timeout(BODY, Limited::new(body, MOST_BODY).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => {
            let message = "the body of the request broke off";
            Err(Rejected::refused(StatusCode::BAD_REQUEST, "invalid_request_error", message))
        }
        Err(_) => {
            let message = format!("the body of the request did not arrive within {} s", BODY.as_secs());
            Err(Rejected::refused(StatusCode::REQUEST_TIMEOUT, "timeout_error", message))
        }
    }
}

/// Parses a body. A long body is parsed on another thread, so that other clients do not wait.
async fn checked(client: &Client, passage: &Passage, body: Bytes) -> Result<Understood, Rejected> {
    let (kind, chat) = (passage.kind(), passage.form());
    let (shared, counted) = (Arc::clone(&client.shared), Arc::clone(&client.counted));
    let is_long = body.len() > LONG_BODY;
    let work = move || {
        let RelayShared { facts, models, max_reply, .. } = &*shared;
        let bounds = RequestBounds { facts: &**facts, models, max_reply: *max_reply, chat };
        understand(kind, &body, &bounds, &counted)
    };
    let understood = if is_long {
        tokio::task::spawn_blocking(work).await.map_err(|_| {
            let message = "the request could not be read";
            Rejected::refused(StatusCode::INTERNAL_SERVER_ERROR, "api_error", message)
        })?
    } else {
        work()
    };
    understood.map_err(|refused| {
        Rejected::refused(StatusCode::BAD_REQUEST, "invalid_request_error", refused.to_string())
    })
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_comes_too_slowly_is_left() {
        let (ours, theirs) = tokio::io::duplex(4096);
        let service = service_fn(|request: Request<Incoming>| async move {
            let refused = read(request.into_body()).await.err().map(|rejected| rejected.answer);
            let (status, text) =
                refused.map_or((StatusCode::OK, String::new()), |answer| (answer.status, answer.message));
            let mut response = Response::new(Full::new(Bytes::from(text)));
            *response.status_mut() = status;
            Ok::<_, Infallible>(response)
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(ours), service));
        let began = tokio::time::Instant::now();
        let (mut replies, mut requests) = tokio::io::split(theirs);
        tokio::spawn(async move {
            let head = b"POST /v1/messages HTTP/1.1\r\nhost: relay\r\ncontent-length: 100\r\n\r\n";
            requests.write_all(head).await.expect("somebody reads");
            // Each byte is in time, but the body as a whole is not.
            while requests.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(7)).await;
            }
        });
        let mut reply = String::new();
        while !reply.contains("within 120 s") {
            let mut piece = [0; 1024];
            let length = replies.read(&mut piece).await.expect("a reply");
            assert!(length > 0, "it ended: {reply}");
            reply.push_str(&String::from_utf8_lossy(&piece[..length]));
        }
        assert!(reply.starts_with("HTTP/1.1 408 "), "{reply}");
        assert_eq!(began.elapsed().as_secs(), BODY.as_secs());
    }

    #[test]
    fn a_token_is_the_whole_token_in_either_header() {
        let token = SecretString::from("0123456789abcdef".to_owned());
        let headers = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().expect("a value"))])
        };
        for (name, value, expected) in [
            ("x-api-key", "0123456789abcdef", true),
            ("authorization", "Bearer 0123456789abcdef", true),
            ("authorization", "0123456789abcdef", false),
            ("x-api-key", "0123456789abcde", false),
            ("x-api-key", "0123456789abcdefg", false),
            ("x-api-key", "0123456789abcdeF", false),
            ("x-api-key", "", false),
        ] {
            assert_eq!(has_token(&headers(name, value), &token), expected, "{name}: {value}");
        }
        assert!(!has_token(&HeaderMap::new(), &token));
    }
}
