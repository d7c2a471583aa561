//! Conversion of a page to text.

use std::time::Duration;

use encoding_rs::{Encoding, UTF_8};
use ipc::fetch::{FetchFailure, MAX_TEXT, Page};
use ipc::text::harmless;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::exchange::PageAnswer;
use super::html;

/// Time limit for the conversion of HTML, after which the page is returned as HTML.
const RENDER: Duration = Duration::from_secs(4);

/// Stack size of the conversion in bytes. The renderer recurses into nested elements; unused stack costs no memory.
const STACK: usize = 256 << 20;

/// Number of bytes at the start of a page that are searched for the page's type and charset.
const BEGINNING: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Html,
    Text,
    Other,
}

/// Returns a response as text. Fails if it is not text.
pub(super) async fn text_of(answer: PageAnswer) -> Result<Page, FetchFailure> {
    let PageAnswer { url, status, content_type, length, body, is_partial } = answer;
    let kind = kind_of(&content_type, &body);
    if kind == Kind::Other {
        let size = length.or_else(|| (!is_partial).then_some(body.len() as u64));
        return Err(FetchFailure::NoText { status, content_type, size });
    }
    let text = decoded(&content_type, &body, kind);
    drop(body);
    let (text, is_rendered) = match kind {
        Kind::Html => match rendered(text.clone()).await {
            Some(rendered) => (rendered, true),
            None => (text, false),
        },
        Kind::Text | Kind::Other => (text, false),
    };
    let text = harmless(&text.replace("\r\n", "\n"));
    let whole = text.len();
    let text = beginning(text);
    let cut_from = (text.len() < whole).then_some(whole as u64);
    Ok(Page { url, status, content_type, text, is_rendered, cut_from, is_partial })
}

/// Converts HTML on a thread with a large stack. `None` if that fails or exceeds the time limit.
async fn rendered(text: String) -> Option<String> {
    let (sender, receiver) = oneshot::channel();
    let render = move || {
        // Nobody waits any more if this fails.
        let _ = sender.send(html::render(&text));
    };
    std::thread::Builder::new().stack_size(STACK).spawn(render).ok()?;
    timeout(RENDER, receiver).await.ok()?.ok()?
}

/// Shortens a text to the size limit, at a line end if one is near, else between two characters.
fn beginning(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        if let Some(end) = text.rfind('\n').filter(|end| *end > MAX_TEXT / 2) {
            text.truncate(end + 1);
        }
    }
    text
}

/// Returns the kind of a page: by `Content-Type`, or by the page's first bytes if that is missing or
/// `application/octet-stream`.
pub(super) fn kind_of(content_type: &str, body: &[u8]) -> Kind {
    let named = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = |kind: &str| {
        kind.starts_with("text/")
            || ["json", "xml", "javascript", "yaml", "toml", "x-ndjson", "x-sh", "sql"].iter().any(|end| {
                kind.strip_prefix("application/").is_some_and(|kind| {
                    kind.strip_prefix("x-").unwrap_or(kind) == *end
                        || kind == *end
                        || kind.ends_with(&format!("+{end}"))
                })
            })
            || kind == "image/svg+xml"
    };
    match named.as_str() {
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "" | "application/octet-stream" => {
            let start = body.get(..BEGINNING).unwrap_or(body);
            let is_html = start.trim_ascii_start().to_ascii_lowercase();
            match () {
                () if start.contains(&0) || body.is_empty() && !named.is_empty() => Kind::Other,
                () if is_html.starts_with(b"<!doctype html") || is_html.starts_with(b"<html") => Kind::Html,
                () if is_utf8(start) => Kind::Text,
                () => Kind::Other,
            }
        }
        kind if is_text(kind) => Kind::Text,
        _ => Kind::Other,
    }
}

/// True if the bytes are UTF-8; the last character may be incomplete.
fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

/// Decodes a page by its byte order mark, else by the charset in `Content-Type` or in the page, else as UTF-8.
pub(super) fn decoded(content_type: &str, body: &[u8], kind: Kind) -> String {
    let parameters = content_type.split(';').skip(1).filter_map(|field| field.split_once('='));
    let named = parameters
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
        .find_map(|(_, label)| Encoding::for_label(label.trim().trim_matches('"').as_bytes()));
    let in_page = || (kind == Kind::Html).then(|| charset_in(body)).flatten();
    let encoding = named.or_else(in_page).unwrap_or(UTF_8);
    encoding.decode(body).0.into_owned()
}

fn charset_in(body: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(body.get(..BEGINNING).unwrap_or(body)).to_ascii_lowercase();
    let (_, rest) = start.split_once("charset=")?;
    let rest = rest.trim_start_matches(['"', '\'', ' ']);
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:".contains(c))).unwrap_or(rest.len());
    Encoding::for_label(rest.get(..end)?.as_bytes())
}
