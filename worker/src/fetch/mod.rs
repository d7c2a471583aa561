//! Fetches one page for the model.
//!
//! Policy, in this order:
//!
//! 1. The request is a `GET` without a body, cookie or credential. A redirect is followed only to the same host, and
//!    never from HTTPS to HTTP.
//! 2. Every connection is to a host and port of the order; no other name is looked up.
//! 3. The machine's resolver returns the addresses; the sandbox (kernel and broker) decides which may be reached.
//! 4. The number of bytes is limited, also after decompression, and so is the time.
//! 5. This process converts the page to text, so that the supervisor parses nothing that a host sent.

mod connect;
mod exchange;
mod html;
mod page;
#[cfg(test)]
mod tests;

use std::time::Duration;

use ipc::fetch::{FetchFailure, FetchOrder, FetchReport, Fetched, MAX_REDIRECTS};
use ipc::frame::FrameError;
use ipc::id::Generation;
use ipc::page_url::PageUrl;
use ipc::pipe::async_pair;
use nix::sys::resource::{Resource, setrlimit};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::timeout;

use connect::Connector;
use exchange::{Exchange, PageAnswer};

/// Time limit of a fetch; shorter than the supervisor's own.
const LATEST: Duration = Duration::from_secs(25);

/// Maximum size of the process's data in bytes (`RLIMIT_DATA`). A page of two megabytes needs a tenth of that.
const MEMORY: u64 = 1 << 30;

/// Maximum number of characters that a report quotes from a host's answer.
const WORDS: usize = 300;

#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("the supervisor closed the connection before its first message")]
    NoOrder,
    #[error("the supervisor sent its first message twice")]
    SecondOrder,
    /// The input is not an order, or a report could not be sent.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

pub fn limit_memory() {
    if let Err(error) = setrlimit(Resource::RLIMIT_DATA, MEMORY, MEMORY) {
        tracing::warn!(%error, "memory is not limited");
    }
}

/// Carries out one order. Ends early if the supervisor closes its end of the connection.
pub async fn serve<R, W>(reader: R, writer: W) -> Result<(), FetchError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    serve_within(LATEST, reader, writer).await
}

async fn serve_within<R, W>(latest: Duration, reader: R, writer: W) -> Result<(), FetchError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (mut incoming, mut outgoing) = async_pair(reader, writer, Generation(0));
    let order: FetchOrder = incoming.receive().await?.ok_or(FetchError::NoOrder)?;
    outgoing.send(FetchReport::Ready).await?;
    let (reports, mut queue) = mpsc::channel(2 * (MAX_REDIRECTS + 2) + 1);
    let mut fetching = std::pin::pin!(fetch(order, latest, reports));
    let outcome = loop {
        tokio::select! {
            biased;
            Some(report) = queue.recv() => outgoing.send(report).await?,
            done = &mut fetching => break done,
            order = incoming.receive() => return order?.map_or(Ok(()), |_: FetchOrder| Err(FetchError::SecondOrder)),
        }
    };
    while let Ok(report) = queue.try_recv() {
        outgoing.send(report).await?;
    }
    Ok(outgoing.send(FetchReport::Done(outcome)).await?)
}

async fn fetch(
    order: FetchOrder,
    latest: Duration,
    reports: mpsc::Sender<FetchReport>,
) -> Result<Fetched, FetchFailure> {
    let connector = Connector::new(order.hosts, order.authorities.as_ref(), reports)?;
    let answered = timeout(latest, answer(order.url, &connector)).await;
    connector.tell_carried();
    match answered.unwrap_or(Err(FetchFailure::Late))? {
        Ok(answer) => page::text_of(answer).await.map(Fetched::Page),
        Err(elsewhere) => Ok(elsewhere),
    }
}

/// Returns the final response. The outer `Err` is a failure; the inner one is a redirect that may not be followed.
async fn answer(
    mut url: PageUrl,
    connector: &Connector,
) -> Result<Result<PageAnswer, Fetched>, FetchFailure> {
    for _ in 0..=MAX_REDIRECTS {
        let exchange = Exchange::begin(&url, connector).await?;
        connector.tell_carried();
        let Some(location) = exchange.location() else { return exchange.read(url).await.map(Ok) };
        let to = url
            .join(&location)
            .map_err(|error| FetchFailure::Redirect { to: words(&location), reason: error.to_string() })?;
        if !url.may_lead_to(&to) || !connector.allows(&to) {
            return Ok(Err(Fetched::Elsewhere { status: exchange.status(), from: url, to }));
        }
        url = to;
    }
    Err(FetchFailure::Redirects { at: url })
}

/// Returns the start of a text that a host sent, with printable characters only.
fn words(text: &str) -> String {
    ipc::text::one_line(text).chars().take(WORDS).collect()
}
