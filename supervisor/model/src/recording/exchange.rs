use std::fs::File;
use std::io::Write;
use std::time::Instant;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use secrecy::SecretString;

use super::format::{Ending, Meta, RecordedChunk, RequestMeta, ResponseMeta, meta_name, name};
use super::{Recorder, headers};
use crate::secrets::Redactor;

pub struct ExchangeHead<'a> {
    pub path: &'a str,
    /// The part of the request's path that belongs to the API, such as `/v1/messages`. The base URL's path precedes it.
    pub endpoint: &'a str,
    /// Headers of the request, except those that identify the user.
    pub headers: &'a HeaderMap,
}

/// An exchange that is being recorded. If this value is dropped early, the record says that the client hung up.
#[derive(Debug)]
pub struct Exchange {
    recorder: Recorder,
    number: usize,
    secret: Option<SecretString>,
    began: Instant,
    meta: Meta,
    body: Option<(File, Redactor)>,
}

impl Exchange {
    pub(super) fn new(
        recorder: Recorder,
        number: usize,
        head: &ExchangeHead<'_>,
        secret: Option<SecretString>,
    ) -> Self {
        let request = RequestMeta {
            method: "POST".to_owned(),
            path: head.path.to_owned(),
            endpoint: head.endpoint.to_owned(),
            headers: headers::of_request(head.headers),
        };
        let meta = Meta { request, response: None, end: Ending::Left };
        Self { recorder, number, secret, began: Instant::now(), meta, body: None }
    }

    pub fn answered(&mut self, status: u16, headers: &HeaderMap) {
        let body = name(self.number, &format!("response.{}", extension(headers)));
        let (recorder, secret) = (self.recorder.clone(), self.secret.clone());
        recorder.attempt(|| {
            self.body = Some((self.recorder.file(&body)?, Redactor::new(secret)));
            Ok(())
        });
        let redactor = Redactor::new(self.secret.clone());
        let headers =
            headers::of_response(headers).into_iter().map(|(name, value)| (name, redactor.masked(&value)));
        self.meta.response =
            Some(ResponseMeta { status, headers: headers.collect(), body, chunks: Vec::new() });
    }

    pub fn chunk(&mut self, piece: &[u8]) {
        let at = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(response) = &mut self.meta.response {
            response.chunks.push(RecordedChunk(at, piece.len()));
        }
        if let Some((file, redactor)) = &mut self.body {
            self.recorder.attempt(|| file.write_all(&redactor.push(piece)));
        }
    }

    pub fn end(&mut self, end: Ending) {
        self.meta.end = end;
    }

    pub fn tapped<E>(
        self,
        pieces: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> impl Stream<Item = Result<Bytes, E>> {
        stream::unfold(Some((self, pieces)), |state| async move {
            let (mut exchange, mut pieces) = state?;
            match pieces.next().await {
                Some(Ok(piece)) => {
                    exchange.chunk(&piece);
                    Some((Ok(piece), Some((exchange, pieces))))
                }
                Some(Err(error)) => {
                    exchange.end(Ending::Cut);
                    Some((Err(error), None))
                }
                None => {
                    exchange.end(Ending::Whole);
                    None
                }
            }
        })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let Self { recorder, meta, body, number, .. } = self;
        recorder.attempt(|| {
            if let Some((file, redactor)) = body {
                file.write_all(&redactor.finish())?;
            }
            recorder.write_json(&meta_name(*number), meta)
        });
    }
}

fn extension(headers: &HeaderMap) -> &'static str {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match kind {
        kind if kind.contains("event-stream") => "sse",
        kind if kind.contains("json") => "json",
        _ => "txt",
    }
}
