//! Parses server-sent events (SSE). A filter prepares the input for the crate `eventsource-stream` 0.2.3.
//!
//! That crate panics on a byte-order mark, loses the last event of a stream with CR line ends, and takes quadratic time
//! for a large event. The filter passes single complete lines to the crate, which end with LF and are valid UTF-8
//! without a byte-order mark.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use eventsource_stream::{EventStream, EventStreamError};
use futures_util::{Stream, StreamExt};

/// Maximum bytes of an event, without comments.
pub(crate) const MAX_EVENT: usize = 16 * 1024 * 1024;

const BOM: &[u8] = "\u{feff}".as_bytes();

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SseError<E> {
    #[error("{0}")]
    Transport(E),
    #[error("{what} of more than {limit} bytes")]
    TooLarge { what: &'static str, limit: usize },
    #[error("bytes that are not UTF-8")]
    InvalidUtf8,
    #[error("a stream that ends inside a character")]
    CutShort,
}

/// Returns the data of each event. The names of events are ignored: gateways omit them, and the data has a `type`.
pub(crate) fn events<S, E>(bytes: S) -> impl Stream<Item = Result<String, SseError<E>>> + Unpin
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    EventStream::new(LineGuard::new(bytes, MAX_EVENT)).map(|event| match event {
        Ok(event) => Ok(event.data),
        Err(EventStreamError::Transport(error)) => Err(error),
        Err(EventStreamError::Utf8(_) | EventStreamError::Parser(_)) => Err(SseError::InvalidUtf8),
    })
}

struct LineGuard<S> {
    bytes: S,
    lines: SseLines,
    ended: bool,
}

impl<S> LineGuard<S> {
    fn new(bytes: S, limit: usize) -> Self {
        Self { bytes, lines: SseLines::new(limit), ended: false }
    }
}

impl<S, E> Stream for LineGuard<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    type Item = Result<Bytes, SseError<E>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(line) = this.lines.next_line().transpose() {
                let line = line.map_err(|fault| this.fail(fault));
                return Poll::Ready(Some(line));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            match ready!(this.bytes.poll_next_unpin(cx)) {
                Some(Ok(chunk)) => this.lines.feed(chunk),
                Some(Err(error)) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(SseError::Transport(error))));
                }
                None => {
                    this.ended = true;
                    this.lines.end();
                }
            }
        }
    }
}

impl<S> LineGuard<S> {
    fn fail<E>(&mut self, fault: SseFault) -> SseError<E> {
        let limit = self.lines.limit;
        let cut = self.ended;
        self.ended = true;
        self.lines = SseLines::new(limit);
        match fault {
            SseFault::TooLarge(what) => SseError::TooLarge { what, limit },
            SseFault::IncompleteUtf8 if cut => SseError::CutShort,
            SseFault::IncompleteUtf8 | SseFault::InvalidUtf8 => SseError::InvalidUtf8,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum SseFault {
    TooLarge(&'static str),
    InvalidUtf8,
    IncompleteUtf8,
}

/// Splits a stream into lines. Each byte is examined once.
struct SseLines {
    chunk: Bytes,
    partial: BytesMut,
    /// True if the last line ended with CR, so that a following LF belongs to it.
    after_cr: bool,
    first: bool,
    event: usize,
    limit: usize,
}

impl SseLines {
    fn new(limit: usize) -> Self {
        Self { chunk: Bytes::new(), partial: BytesMut::new(), after_cr: false, first: true, event: 0, limit }
    }

    fn feed(&mut self, chunk: Bytes) {
        self.chunk = chunk;
    }

    /// Adds a blank line at the end of the stream. Servers may omit that line after the last event.
    fn end(&mut self) {
        self.chunk = Bytes::from_static(b"\n\n");
    }

    /// Returns the next line with an LF at its end; `None` if more bytes are needed.
    fn next_line(&mut self) -> Result<Option<Bytes>, SseFault> {
        // Skips comments, and blank lines that end no event.
        loop {
            let before = self.event;
            match self.any_line()? {
                Some(line) if line[0] == b':' || line.len() == 1 && before == 0 => {}
                line => {
                    self.first &= line.is_none();
                    return Ok(line);
                }
            }
        }
    }

    fn any_line(&mut self) -> Result<Option<Bytes>, SseFault> {
        if self.after_cr && !self.chunk.is_empty() {
            self.after_cr = false;
            if self.chunk[0] == b'\n' {
                self.chunk.advance(1);
            }
        }
        let Some(end) = self.chunk.iter().position(|&byte| byte == b'\n' || byte == b'\r') else {
            self.partial.extend_from_slice(&self.chunk);
            self.chunk.clear();
            return self.bounded(&self.partial).map(|()| None);
        };
        let mut line = self.chunk.split_to(end + 1);
        self.after_cr = line[end] == b'\r';
        if !self.partial.is_empty() || self.after_cr {
            self.partial.extend_from_slice(&line[..end]);
            self.partial.extend_from_slice(b"\n");
            line = self.partial.split().freeze();
        }
        self.check(line).map(Some)
    }

    fn check(&mut self, mut line: Bytes) -> Result<Bytes, SseFault> {
        // All marks are removed, because eventsource-stream panics on a second one.
        while self.first && line.starts_with(BOM) {
            line.advance(BOM.len());
        }
        if let Err(error) = std::str::from_utf8(&line) {
            // The line includes its LF, so that the bytes of a character that was cut off are directly before the LF.
            let cut = error.valid_up_to() + error.error_len().unwrap_or(0) + 1 >= line.len();
            return Err(if cut { SseFault::IncompleteUtf8 } else { SseFault::InvalidUtf8 });
        }
        if line.len() == 1 {
            self.event = 0;
        } else if line[0] != b':' {
            self.bounded(&line)?;
            self.event += line.len();
        }
        Ok(line)
    }

    fn bounded(&self, line: &[u8]) -> Result<(), SseFault> {
        let (what, before) = if line.starts_with(b":") { ("a comment", 0) } else { ("an event", self.event) };
        if before + line.len() > self.limit { Err(SseFault::TooLarge(what)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{FutureExt, stream};
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;

    use super::*;

    const TOO_LARGE: SseError<Infallible> = SseError::TooLarge { what: "an event", limit: 12 };

    type Data = Result<Vec<String>, SseError<Infallible>>;

    /// Returns the results of filter and parser for a text in chunks of `size` bytes.
    fn parse(text: &[u8], size: usize) -> Data {
        let chunks: Vec<_> = text.chunks(size).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        let all = events(stream::iter(chunks)).collect::<Vec<_>>().now_or_never().expect("never pending");
        all.into_iter().collect()
    }

    fn own_time() -> i64 {
        getrusage(UsageWho::RUSAGE_THREAD).expect("a thread's own usage").user_time().num_seconds()
    }

    fn parse_every_way(text: &[u8]) -> Data {
        let whole = parse(text, text.len().max(1));
        for size in 1..text.len().min(40) {
            assert_eq!(parse(text, size), whole, "chunks of {size}");
        }
        whole
    }

    #[test]
    fn s1_line_ends_comments_and_fields_in_any_chunks() {
        let cases: &[(&str, &[&str])] = &[
            ("data: a\n\ndata: b\n\n", &["a", "b"]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
            ("data: a\r\rdata: b\r\r", &["a", "b"]),
            ("data: a\r\n\rdata: b\n\r\n", &["a", "b"]),
            ("event: x\ndata: a\ndata:b\ndata:  c\n\n", &["a\nb\n c"]),
            (": comment\n\n:\n\nid: 1\nretry: 5\nfoo: bar\ndata: a\n\n", &["a"]),
            ("event: x\n\ndata: a\n\n", &["a"]),
            ("data: äöü 🦀\n\n", &["äöü 🦀"]),
            ("", &[]),
            ("\n\r\r\n\n", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_every_way(text.as_bytes()).expect(text), *expected, "{text:?}");
        }
    }

    #[test]
    fn s1_a_byte_order_mark_is_stripped_and_a_second_one_does_not_panic() {
        assert_eq!(parse_every_way("\u{feff}data: a\n\n".as_bytes()), Ok(vec!["a".to_owned()]));
        assert_eq!(parse_every_way("\u{feff}\u{feff}data: a\n\n".as_bytes()), Ok(vec!["a".to_owned()]));
        assert_eq!(parse_every_way("\u{feff}\n\u{feff}\n\ndata: a\n\n".as_bytes()), Ok(vec!["a".to_owned()]));
        assert_eq!(parse_every_way(": c\n\u{feff}data: a\n\n".as_bytes()), Ok(vec!["a".to_owned()]));
        assert_eq!(parse_every_way("data: a\u{feff}\n\n".as_bytes()), Ok(vec!["a\u{feff}".to_owned()]));
        assert_eq!(parse_every_way("\u{feff}".as_bytes()), Ok(vec![]));
    }

    #[test]
    fn s7_the_last_event_needs_no_blank_line() {
        for text in ["data: a", "data: a\n", "data: a\r", "data: a\r\n", "data: a\r\r", "data: a\n\n"] {
            assert_eq!(parse_every_way(text.as_bytes()), Ok(vec!["a".to_owned()]), "{text:?}");
        }
    }

    #[test]
    fn invalid_utf8_is_a_typed_error_and_a_cut_character_another() {
        assert_eq!(parse_every_way(b"data: \xff\xfe\n\n"), Err(SseError::InvalidUtf8));
        assert_eq!(parse_every_way(b"data: \xf0\x9f\xa6 x\n\n"), Err(SseError::InvalidUtf8));
        assert_eq!(parse_every_way(b"data: \xf0\x9f\xa6"), Err(SseError::CutShort));
        assert_eq!(parse_every_way(b"data: \xed\xa0\xbd x\n\n"), Err(SseError::InvalidUtf8));
    }

    #[test]
    fn an_event_is_bounded_and_comments_are_not_part_of_it() {
        let parse = |text: &'static str| {
            let chunks = [Ok::<_, Infallible>(Bytes::from_static(text.as_bytes()))];
            LineGuard::new(stream::iter(chunks), 12).map(|line| line.map(|_| ())).collect::<Vec<_>>()
        };
        let run = |text| {
            parse(text).now_or_never().expect("never pending").into_iter().collect::<Result<Vec<_>, _>>()
        };
        assert!(run("data: 12345\n\ndata: 12345\n\n").is_ok());
        assert_eq!(run("data: 123456\n\n"), Err(TOO_LARGE));
        assert_eq!(run("data: 1\ndata: 2\n\n"), Err(TOO_LARGE));
        assert_eq!(run("data: 123456 no end of the line"), Err(TOO_LARGE));
        assert!(run(":23456789\n:23456789\n:23456789\n").is_ok());
        assert_eq!(run(":234567890123 no end"), Err(SseError::TooLarge { what: "a comment", limit: 12 }));
    }

    #[test]
    fn large_events_are_linear_in_small_chunks_and_in_many_lines() {
        // Quadratic behaviour takes tens of seconds, linear less than one even in a debug build.
        let begin = own_time();
        let large = format!("data: {}\n\n", "x".repeat(4 << 20));
        assert_eq!(parse(large.as_bytes(), 1024).expect("one event")[0].len(), 4 << 20);
        let many = format!("{}\n", "data:\n".repeat(300_000));
        assert_eq!(parse(many.as_bytes(), 1 << 20).expect("one event")[0].len(), 299_999);
        let taken = own_time() - begin;
        assert!(taken < 10, "{taken} s");
    }

    #[test]
    fn a_transport_error_comes_through_once() {
        let chunks =
            [Ok(Bytes::from_static(b"data: a\n\ndata: b")), Err("reset"), Ok(Bytes::from_static(b"\n\n"))];
        let all = events(stream::iter(chunks)).collect::<Vec<_>>().now_or_never().expect("never pending");
        assert_eq!(all, [Ok("a".to_owned()), Err(SseError::Transport("reset"))]);
    }
}
