use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use model::provider::{
    ModelProvider, ModelRequest, ProviderError, ProviderKind, ReplayProvider, RequestOptions, StreamEvent,
};

pub(crate) type Item = Result<StreamEvent, ProviderError>;

fn request() -> ModelRequest {
    ModelRequest {
        model: "m".to_owned(),
        system: Arc::from(""),
        tools: Arc::from([]),
        messages: Vec::new(),
        max_tokens: 1,
        options: RequestOptions::default(),
    }
}

pub(crate) async fn play(kind: ProviderKind, body: Bytes, chunk: Option<usize>) -> Vec<Item> {
    let provider = ReplayProvider::new([body]).of(kind);
    let provider = match chunk.and_then(NonZeroUsize::new) {
        Some(size) => provider.in_chunks(size),
        None => provider,
    };
    provider.stream(request()).collect().await
}

/// Checks that a body has the same result in chunks of any size, and in every form that the format allows.
pub(crate) async fn assert_same_however_it_comes(kind: ProviderKind, name: &str, body: &Bytes) {
    let whole = play(kind, body.clone(), None).await;
    for size in [1, 2, 3, 7, 64, 1000] {
        assert_eq!(play(kind, body.clone(), Some(size)).await, whole, "{name} in chunks of {size}");
    }
    for (way, body) in forms(body) {
        assert_eq!(play(kind, body.clone(), None).await, whole, "{name} {way}");
        assert_eq!(play(kind, body, Some(1)).await, whole, "{name} {way}, byte by byte");
    }
}

/// Returns the body in every form that server-sent events may have, each with a name for the form.
fn forms(body: &Bytes) -> Vec<(&'static str, Bytes)> {
    const BOM: &[u8] = "\u{feff}".as_bytes();
    let lf = lines_of(body);
    let joined = |end: &[u8]| Bytes::from(lf.join(end));
    let mut forms =
        vec![("with LF", joined(b"\n")), ("with CRLF", joined(b"\r\n")), ("with CR", joined(b"\r"))];
    if !body.starts_with(BOM) {
        forms.push(("with a byte-order mark", Bytes::from([BOM, body].concat())));
    }
    let is_stream =
        body.iter().find(|byte| !byte.is_ascii_whitespace()).is_none_or(|first| !b"{<".contains(first));
    if is_stream {
        let last = lf.len() - 1;
        let mark = usize::from(lf[0].starts_with(BOM)) * BOM.len();
        let mut commented = lf[0][..mark].to_vec();
        for (index, line) in lf.iter().enumerate() {
            commented.extend_from_slice(if index == 0 { &line[mark..] } else { line });
            if index < last {
                commented.extend_from_slice(b"\n: a comment\n:\n");
            }
        }
        forms.push(("with comments between all lines", Bytes::from(commented)));
    }
    forms
}

fn lines_of(body: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = vec![Vec::new()];
    let mut after_cr = false;
    for &byte in body {
        match byte {
            b'\n' if after_cr => {}
            b'\n' | b'\r' => lines.push(Vec::new()),
            _ => lines.last_mut().expect("a line").push(byte),
        }
        after_cr = byte == b'\r';
    }
    lines
}
