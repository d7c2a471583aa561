//! Compares the requests of a run with those of a recording.

use std::fmt;

use serde_json::Value;

use super::difference::Difference;
use super::format::request_name;
use super::headers::COMPARED;
use super::{Places, Recorded, RecordedRequest};

/// Data of two runs for the comparison of their requests. Placeholders replace values that differ between equal runs.
#[derive(Clone, Debug)]
pub struct RecordingComparison {
    pub recorded: Places,
    /// The values of the current run; `recorded` has those of the recorded run.
    pub now: Places,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    number: usize,
    fault: RecordingFault,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RecordingFault {
    Extra { recorded: usize },
    Missing { recorded: usize },
    Head { what: String, recorded: String, now: String },
    Unreadable(String),
    Body(Difference),
}

impl Mismatch {
    pub const fn extra(number: usize, recorded: usize) -> Self {
        Self { number, fault: RecordingFault::Extra { recorded } }
    }

    pub const fn missing(number: usize, recorded: usize) -> Self {
        Self { number, fault: RecordingFault::Missing { recorded } }
    }
}

impl RecordingComparison {
    pub fn check(&self, recorded: &Recorded, now: &RecordedRequest) -> Option<Mismatch> {
        let fault = head(recorded, now).or_else(|| self.body(&recorded.request, &now.body))?;
        Some(Mismatch { number: recorded.number, fault })
    }

    fn body(&self, recorded: &[u8], now: &[u8]) -> Option<RecordingFault> {
        let read = |body: &[u8], places: &Places, whose: &str| {
            let mut value: Value = serde_json::from_slice(body)
                .map_err(|error| RecordingFault::Unreadable(format!("{whose} is not JSON: {error}")))?;
            places.normalise(&mut value);
            Ok(value)
        };
        let both = read(recorded, &self.recorded, "the recorded body")
            .and_then(|recorded| Ok((recorded, read(now, &self.now, "the body")?)));
        match both {
            Ok((recorded, now)) => Difference::first(&recorded, &now).map(RecordingFault::Body),
            Err(fault) => Some(fault),
        }
    }
}

fn head(recorded: &Recorded, now: &RecordedRequest) -> Option<RecordingFault> {
    let meta = &recorded.meta.request;
    let ours = |name: &str| meta.headers.iter().find(|(header, _)| header == name).map(|(_, value)| &**value);
    let header = |name: &&str| (format!("the header {name}"), ours(name), now.header(name));
    let path = ("the path".to_owned(), Some(&*meta.path), Some(&*now.path));
    let all = std::iter::once(path).chain(COMPARED.iter().map(header));
    let word = |word: Option<&str>| word.unwrap_or("(none)").to_owned();
    all.filter(|(_, recorded, now)| recorded != now)
        .map(|(what, recorded, now)| RecordingFault::Head { what, recorded: word(recorded), now: word(now) })
        .next()
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        let file = request_name(number);
        match &self.fault {
            RecordingFault::Extra { recorded } => {
                write!(f, "the run sent {number} requests to the model, and the recording has {recorded}")
            }
            RecordingFault::Missing { recorded } => {
                let made = number - 1;
                write!(f, "the run ended after {made} of {recorded} recorded requests: {file} was never sent")
            }
            RecordingFault::Head { what, recorded, now } => {
                write!(
                    f,
                    "request {number} differs from the recorded request ({file})\n  {what}: recorded {recorded}, now {now}"
                )
            }
            RecordingFault::Unreadable(why) => {
                write!(f, "request {number} cannot be compared ({file}): {why}")
            }
            RecordingFault::Body(difference) => {
                write!(f, "request {number} differs from the recorded request ({file})\n{difference}")
            }
        }
    }
}
