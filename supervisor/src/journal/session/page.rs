//! Reads a part of a log while the log may still be written.

use std::fs::File;
use std::path::Path;

use ipc::id::EventId;
use protocol::event::SessionEvent;
use serde::Deserialize;

use super::LogError;
use super::parts::{LONGEST_LINE, LogPart, Parts};
use super::scan::checked;

#[derive(Debug)]
pub struct LogPage {
    pub events: Vec<SessionEvent>,
    /// Id of the last returned event, after which the next page begins; `None` if no further events are in the log.
    pub next: Option<EventId>,
}

/// The id of an event, which is all that is parsed of a skipped event.
#[derive(Deserialize)]
struct Numbered {
    id: EventId,
}

/// Reads events after the event `after`: at most `most` events, and no further event once `bytes` bytes were read.
/// Skips lines that are too long. Does not check the digest chain.
pub fn read_page(path: &Path, after: EventId, most: usize, bytes: usize) -> Result<LogPage, LogError> {
    let failed = |source| LogError::Read { path: path.to_owned(), source };
    let mut parts = Parts::new(File::open(path).map_err(failed)?);
    let (mut page, mut read) = (LogPage { events: Vec::new(), next: None }, 0);
    // An incomplete line is still being written.
    while let Some(part) = parts.next().map_err(failed)? {
        let LogPart::Lines(lines) = part else { continue };
        for line in lines.split_inclusive(|byte| *byte == b'\n').filter(|line| line.len() <= LONGEST_LINE) {
            let unreadable = |error| failed(std::io::Error::other(error));
            if serde_json::from_slice::<Numbered>(line).map_err(unreadable)?.id <= after {
                continue;
            }
            if page.events.len() >= most || read >= bytes {
                page.next = page.events.last().map(|event| event.id);
                return Ok(page);
            }
            let event = SessionEvent::from_json(line).map_err(unreadable)?;
            page.events.push(checked(event).map_err(|error| failed(std::io::Error::other(error)))?);
            read += line.len();
        }
    }
    Ok(page)
}
