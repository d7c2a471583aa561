//! Pages that guests fetch for agents: the results as text for the model, and the hosts that were used.

use agent::core::ServedOutcome;
use boundary::monitor::{FetchEnd, GuestError};
use gate::tools::PermittedFetch;
use ipc::fetch::{FetchFailure, Fetched, MAX_TEXT, Page};
use ipc::id::Generation;
use ipc::place::Place;
use ipc::rights::Reach;
use ipc::text::{harmless, one_line};
use nix::errno::Errno;
use protocol::event::HostUse;
use tokio::sync::mpsc;

pub(super) struct PageUses {
    sender: mpsc::UnboundedSender<HostUse>,
    ended: mpsc::UnboundedReceiver<HostUse>,
    /// Generation, and total uses of each host in it. Each logged event has the totals.
    sums: (Generation, Vec<HostUse>),
}

impl Default for PageUses {
    fn default() -> Self {
        let (sender, ended) = mpsc::unbounded_channel();
        Self { sender, ended, sums: (Generation(0), Vec::new()) }
    }
}

impl PageUses {
    pub(super) fn sender(&self) -> mpsc::UnboundedSender<HostUse> {
        self.sender.clone()
    }

    /// Returns the host use of the next finished fetch. Pends while there is none. Cancel safe.
    pub(super) async fn next(&mut self) -> HostUse {
        match self.ended.recv().await {
            Some(used) => used,
            None => std::future::pending().await,
        }
    }

    /// Waits until all open fetches are over. Returns their host uses as totals. Called once no new fetch can begin.
    pub(super) async fn last(&mut self, generation: Generation) -> Vec<HostUse> {
        let (sender, _) = mpsc::unbounded_channel();
        self.sender = sender;
        let mut uses = Vec::new();
        while let Some(used) = self.ended.recv().await {
            uses.push(self.sum(generation, used));
        }
        uses
    }

    pub(super) fn sum(&mut self, generation: Generation, used: HostUse) -> HostUse {
        if self.sums.0 != generation {
            self.sums = (generation, Vec::new());
        }
        let sums = &mut self.sums.1;
        let known = sums.iter_mut().find(|sum| (&sum.host, sum.port) == (&used.host, used.port));
        let Some(sum) = known else {
            sums.push(used.clone());
            return used;
        };
        sum.connections = sum.connections.saturating_add(used.connections);
        sum.failures = sum.failures.saturating_add(used.failures);
        sum.sent = sum.sent.saturating_add(used.sent);
        sum.received = sum.received.saturating_add(used.received);
        sum.failure = used.failure.or(sum.failure.take());
        sum.address = sum.address.take().or(used.address);
        sum.clone()
    }
}

pub(super) fn outcome(fetch: &PermittedFetch, end: FetchEnd) -> (ServedOutcome, HostUse) {
    let FetchEnd { outcome, mut used } = end;
    let host = format!("{}:{}", fetch.url.host(), fetch.url.port());
    let failed = match outcome {
        Ok(Ok(fetched)) => return (of_answer(fetched), used),
        Ok(Err(failure)) => words(&host, &failure, fetch.reach),
        Err(error @ GuestError::Ended) => format!("the process that fetches pages failed: {error}"),
        Err(error) => {
            return (
                ServedOutcome::Unserved(format!("cannot start the process that fetches pages: {error}")),
                used,
            );
        }
    };
    if used.connections == 0 {
        (used.failures, used.failure) = (1, Some(failed.clone()));
    }
    (ServedOutcome::Failed(format!("{} was not fetched: {failed}", fetch.url)), used)
}

fn of_answer(fetched: Fetched) -> ServedOutcome {
    match fetched {
        Fetched::Elsewhere { status, from, to } => ServedOutcome::Answered(format!(
            "{from} · status {status}: the page has moved to {to}\nCall fetch_url with that URL to get it."
        )),
        Fetched::Page(page) if page.status >= 400 => ServedOutcome::Failed(of_page(page)),
        Fetched::Page(page) => ServedOutcome::Answered(of_page(page)),
    }
}

fn of_page(page: Page) -> String {
    let Page { url, status, content_type, text, is_rendered, cut_from, is_partial } = page;
    let mut facts = vec![url.to_string(), format!("status {status}")];
    if !content_type.is_empty() {
        facts.push(one_line(&content_type));
    }
    if is_rendered {
        facts.push("rendered as text".to_owned());
    }
    if let Some(whole) = cut_from {
        facts.push(format!("the first {} of {whole} bytes, the rest is left out", text.len()));
    }
    if is_partial {
        facts.push("the page is larger than 2 MiB, and the rest was not read".to_owned());
    }
    // An honest guest has escaped the text already, so that this changes nothing.
    let mut text = harmless(&text);
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    let text = if text.trim().is_empty() { "(the page has no text)" } else { &text };
    format!("{}\n\n{text}", facts.join(" · "))
}

fn words(host: &str, failure: &FetchFailure, reach: Reach) -> String {
    match failure {
        FetchFailure::Unresolved => format!("no address was found for {host}"),
        FetchFailure::Unreachable { address, errno } => {
            let place = Place::of(*address);
            match flag(place).filter(|_| !place.is_within(reach)) {
                Some(flag) => format!(
                    "{host} has the address {}, which is not allowed · to allow: --reach {flag}",
                    address.ip()
                ),
                None => format!("{address} cannot be reached: {}", Errno::from_raw(*errno).desc()),
            }
        }
        FetchFailure::Tls(why) => format!("no encrypted connection: {}", one_line(why)),
        FetchFailure::Http(why) => format!("the connection failed: {}", one_line(why)),
        FetchFailure::Late => "the response was not complete in time".to_owned(),
        FetchFailure::Authorities(why) => {
            format!(
                "the certificate authorities of SSL_CERT_FILE or SSL_CERT_DIR cannot be read: {}",
                one_line(why)
            )
        }
        FetchFailure::Coding(coding) => format!("the page has the unknown encoding {:?}", one_line(coding)),
        FetchFailure::NoText { status, content_type, size } => {
            let kind = if content_type.is_empty() { "no known type" } else { content_type };
            let size = size.map(|size| format!(", {size} bytes")).unwrap_or_default();
            format!(
                "the page is not text ({}{size}, status {status}); fetch_url returns only text",
                one_line(kind)
            )
        }
        FetchFailure::Redirects { at } => format!("too many redirects, the last one at {at}"),
        FetchFailure::Redirect { to, reason } => {
            format!("the page redirects to {:?}, which is not fetched: {}", one_line(to), one_line(reason))
        }
    }
}

const fn flag(place: Place) -> Option<&'static str> {
    match place {
        Place::Host => Some("host"),
        Place::Lan => Some("lan"),
        Place::LinkLocal => Some("link-local"),
        Place::Metadata => Some("metadata"),
        Place::Elsewhere => None,
    }
}
