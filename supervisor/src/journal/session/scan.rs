//! Verifies a log. Reads each line once and keeps no line in memory.

use std::io::{self, Read};
use std::iter;
use std::num::NonZero;
use std::thread::{self, Builder};

use protocol::event::{EventKind, SessionEvent, UnknownEvent};

use super::Fault;
use super::chain::{Carried, GENESIS, Link, digests};
use super::parts::{LONGEST_LINE, LogPart, Parts};

/// Minimum number of bytes that each further thread must have to parse.
const FEW: usize = 256 << 10;

/// Maximum number of threads. Memory would be too slow for more.
const MOST_THREADS: usize = 8;

/// Maximum number of recorded faults. A file that is no log has a fault in each line.
const MOST_FAULTS: usize = 10_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct LinePlace {
    pub offset: u64,
    pub length: usize,
}

pub(super) enum Scanned {
    Event(Box<SessionEvent>),
    Unknown(UnknownEvent),
}

#[derive(Debug)]
pub(super) struct Scan {
    /// The faults of the lines, in order.
    pub faults: Vec<Fault>,
    pub prev: Link,
    /// Size in bytes of the complete lines.
    pub whole: u64,
    /// True if an incomplete line follows the complete ones.
    pub torn: bool,
    /// True if any line has a digest of itself.
    has_own: bool,
    lines: usize,
    unlisted: usize,
}

/// Reads a log. Calls `read` with the number of bytes read so far, and `each` with every event in the order of lines.
pub(super) fn scan(
    from: impl Read,
    read: &mut dyn FnMut(u64),
    each: &mut dyn FnMut(LinePlace, Scanned),
) -> io::Result<Scan> {
    let mut parts = Parts::new(from);
    let mut scan = Scan {
        faults: Vec::new(),
        prev: GENESIS,
        whole: 0,
        torn: false,
        has_own: false,
        lines: 0,
        unlisted: 0,
    };
    while let Some(part) = parts.next()? {
        match part {
            LogPart::Lines(part) => in_parallel(part).for_each(|line| scan.take(line, each)),
            LogPart::Long { bytes, link } => scan.pass_over(bytes, link),
            LogPart::Torn => scan.torn = true,
        }
        read(scan.whole);
    }
    if scan.torn {
        // This fault is always listed, because it shows that the writer was killed.
        scan.faults.push(Fault::Torn { line: scan.lines + 1 });
    }
    if scan.unlisted > 0 {
        scan.faults.push(Fault::More { count: scan.unlisted });
    }
    Ok(scan)
}

impl Scan {
    fn take(&mut self, line: ScannedLine<'_>, each: &mut dyn FnMut(LinePlace, Scanned)) {
        self.lines += 1;
        let number = self.lines;
        let at = LinePlace { offset: self.whole, length: line.length };
        self.whole += line.length as u64 + 1;
        if line.length > LONGEST_LINE {
            self.fault(Fault::Long { line: number, bytes: line.length as u64 });
            self.prev = line.link;
            return;
        }
        if line.carried.map(|carried| carried.prev) != Some(&self.prev.hex()) {
            self.fault(Fault::Chain { line: number });
        }
        let own = line.carried.and_then(|carried| carried.own);
        if own == Some(false) || own.is_none() && self.has_own {
            self.fault(Fault::Changed { line: number });
        }
        self.has_own |= own.is_some();
        self.prev = line.link;
        match line.event {
            Ok(event) => each(at, Scanned::Event(Box::new(event))),
            Err(Unread::Unknown(event)) => {
                self.fault(Fault::UnknownType { line: number, r#type: event.r#type.clone() });
                each(at, Scanned::Unknown(event));
            }
            Err(Unread::Broken(reason)) => self.fault(Fault::Unreadable { line: number, reason }),
        }
    }

    fn pass_over(&mut self, bytes: u64, link: Link) {
        self.lines += 1;
        self.whole += bytes + 1;
        self.prev = link;
        self.fault(Fault::Long { line: self.lines, bytes });
    }

    fn fault(&mut self, fault: Fault) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(fault);
        } else if !matches!(fault, Fault::UnknownType { .. }) {
            self.unlisted += 1;
        }
    }
}

struct ScannedLine<'a> {
    carried: Option<Carried<'a>>,
    link: Link,
    length: usize,
    event: Result<SessionEvent, Unread>,
}

/// The reason why a line has no readable event.
enum Unread {
    Unknown(UnknownEvent),
    Broken(String),
}

impl<'a> ScannedLine<'a> {
    fn read(text: &'a [u8]) -> Self {
        let event = match SessionEvent::from_json(text) {
            Ok(event) => checked(event).map_err(Unread::Broken),
            Err(error) => Err(match UnknownEvent::read(text) {
                Some(event) => Unread::Unknown(event),
                None => Unread::Broken(error.to_string()),
            }),
        };
        let (carried, link) = digests(text);
        Self { carried, link, length: text.len(), event }
    }
}

/// Returns the event, if its pictures are valid. An edited log may contain any bytes.
pub(super) fn checked(event: SessionEvent) -> Result<SessionEvent, String> {
    if let EventKind::UserMessage { images, .. } | EventKind::ToolCallFinished { images, .. } = &event.kind {
        images.iter().try_for_each(picture::check).map_err(|error| format!("the picture {error}"))?;
    }
    Ok(event)
}

/// Parses each line, in several threads if there are many bytes. The lines do not depend on each other.
fn in_parallel(lines: &[u8]) -> impl Iterator<Item = ScannedLine<'_>> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    let size = lines.len().div_ceil(threads).max(FEW);
    let parts: Vec<Vec<_>> = thread::scope(|scope| {
        let mut shares = shares(lines, size).into_iter();
        let own = shares.next().unwrap_or_default();
        let spawn = |lines| Builder::new().spawn_scoped(scope, move || read(lines));
        let others: Vec<_> = shares.map(|lines| (lines, spawn(lines).ok())).collect();
        let own = read(own);
        // If a thread cannot be started, this thread reads its share.
        let others = others.into_iter().map(|(lines, thread)| {
            thread.and_then(|thread| thread.join().ok()).unwrap_or_else(|| read(lines))
        });
        iter::once(own).chain(others).collect()
    });
    parts.into_iter().flatten()
}

/// Splits lines into parts of at least `size` bytes, except for the last.
fn shares(mut lines: &[u8], size: usize) -> Vec<&[u8]> {
    let mut shares = Vec::new();
    while !lines.is_empty() {
        let end = lines.get(size..).and_then(|rest| memchr::memchr(b'\n', rest));
        let (share, rest) = lines.split_at(end.map_or(lines.len(), |end| size + end + 1));
        shares.push(share);
        lines = rest;
    }
    shares
}

fn read(lines: &[u8]) -> Vec<ScannedLine<'_>> {
    lines
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| ScannedLine::read(&line[..line.len() - 1]))
        .collect()
}
