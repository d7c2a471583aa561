//! One HTTP request and its response.

use std::io::{self, Write};

use flate2::write::{GzDecoder, ZlibDecoder};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes as Chunk, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderName};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use ipc::fetch::{FetchFailure, MAX_PAGE};
use ipc::page_url::PageUrl;
use tokio::task::JoinSet;

use super::connect::Connector;
use super::words;

const AGENT: &str = concat!("bailiwick/", env!("CARGO_PKG_VERSION"));

const ACCEPT: &str = "text/html,text/plain,text/markdown,application/json,application/xml;q=0.9,*/*;q=0.5";

pub(super) struct Exchange {
    response: Response<Incoming>,
    /// Task that drives the connection. Dropping it closes the connection.
    _driver: JoinSet<()>,
}

#[derive(Debug)]
pub(super) struct PageAnswer {
    pub(super) url: PageUrl,
    pub(super) status: u16,
    /// Value of `Content-Type`; empty if the response has none.
    pub(super) content_type: String,
    /// Value of `Content-Length`; `None` if it is missing or invalid.
    pub(super) length: Option<u64>,
    pub(super) body: Vec<u8>,
    /// True if the body is longer than the size limit, so that the rest was not read.
    pub(super) is_partial: bool,
}

impl Exchange {
    pub(super) async fn begin(url: &PageUrl, connector: &Connector) -> Result<Self, FetchFailure> {
        let stream = connector.connect(url).await?;
        let (mut sender, connection) =
            http1::Builder::new().handshake(TokioIo::new(stream)).await.map_err(http)?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // The sender reports the error.
            let _ = connection.await;
        });
        let request = Request::get(url.target())
            .header(header::HOST, url.authority())
            .header(header::USER_AGENT, AGENT)
            .header(header::ACCEPT, ACCEPT)
            .header(header::ACCEPT_ENCODING, "gzip")
            .header(header::CONNECTION, "close")
            .body(Empty::<Chunk>::new())
            .map_err(http)?;
        let response = sender.send_request(request).await.map_err(http)?;
        Ok(Self { response, _driver: driver })
    }

    pub(super) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(super) fn location(&self) -> Option<String> {
        let leads = matches!(self.status(), 301 | 302 | 303 | 307 | 308);
        leads.then(|| self.field(&header::LOCATION)).flatten()
    }

    fn field(&self, name: &HeaderName) -> Option<String> {
        let value = self.response.headers().get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    }

    /// Reads the body, at most up to the size limit.
    pub(super) async fn read(self, url: PageUrl) -> Result<PageAnswer, FetchFailure> {
        let status = self.status();
        let content_type = self.field(&header::CONTENT_TYPE).map(|text| words(&text)).unwrap_or_default();
        let length = self.field(&header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let mut body = Decoder::new(self.field(&header::CONTENT_ENCODING).as_deref())?;
        let mut incoming = self.response.into_body();
        let mut is_partial = false;
        while let Some(frame) = incoming.frame().await {
            let Ok(chunk) = frame.map_err(http)?.into_data() else { continue };
            match body.write(&chunk) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    is_partial = true;
                    break;
                }
                Err(error) => return Err(http(error)),
            }
        }
        let body = if is_partial { body.so_far() } else { body.finish().map_err(http)? };
        // The last bytes of a compressed body may come only at its end.
        let is_partial = is_partial || body.is_full();
        Ok(PageAnswer { url, status, content_type, length, body: body.bytes, is_partial })
    }
}

fn http(error: impl std::error::Error) -> FetchFailure {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    FetchFailure::Http(words(&text))
}

/// Buffer limited to the maximum size of a page. A write beyond that size fails.
#[derive(Debug, Default)]
struct Bounded {
    bytes: Vec<u8>,
}

impl Bounded {
    fn is_full(&self) -> bool {
        self.bytes.len() >= MAX_PAGE
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_PAGE - self.bytes.len();
        if room == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.bytes.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Decoder {
    Plain(Bounded),
    Gzip(GzDecoder<Bounded>),
    Deflate(ZlibDecoder<Bounded>),
}

impl Decoder {
    fn new(coding: Option<&str>) -> Result<Self, FetchFailure> {
        match coding.map(|coding| coding.trim().to_ascii_lowercase()).as_deref() {
            None | Some("" | "identity") => Ok(Self::Plain(Bounded::default())),
            Some("gzip" | "x-gzip") => Ok(Self::Gzip(GzDecoder::new(Bounded::default()))),
            Some("deflate") => Ok(Self::Deflate(ZlibDecoder::new(Bounded::default()))),
            Some(other) => Err(FetchFailure::Coding(words(other))),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(plain) => plain.write_all(bytes),
            Self::Gzip(gzip) => gzip.write_all(bytes),
            Self::Deflate(deflate) => deflate.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<Bounded> {
        match self {
            Self::Plain(plain) => Ok(plain),
            Self::Gzip(mut gzip) => match gzip.try_finish() {
                Err(error) if error.kind() != io::ErrorKind::FileTooLarge => Err(error),
                _ => Ok(std::mem::take(gzip.get_mut())),
            },
            Self::Deflate(mut deflate) => match deflate.try_finish() {
                Err(error) if error.kind() != io::ErrorKind::FileTooLarge => Err(error),
                _ => Ok(std::mem::take(deflate.get_mut())),
            },
        }
    }

    fn so_far(self) -> Bounded {
        match self {
            Self::Plain(plain) => plain,
            Self::Gzip(mut gzip) => std::mem::take(gzip.get_mut()),
            Self::Deflate(mut deflate) => std::mem::take(deflate.get_mut()),
        }
    }
}
